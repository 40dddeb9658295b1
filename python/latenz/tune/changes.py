"""Single changes to a machine: what was there, how each is carried out, and how it is taken back.

A change is data, so that the journal can hold it. Carrying out or taking back a change that was
cut short at any point, and doing so again, leads to the same end.
"""

import errno
import os
import re
import stat
from abc import ABC, abstractmethod
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from latenz.affinity import unified_groups
from latenz.errors import BadInput
from latenz.system_calls import SystemCalls
from latenz.tune.places import Image, Place, partial_of
from latenz.tune.root import Root

Now = Literal["as applied", "as before", "changed since", "gone"]
"""How a change looks now; `gone`: what it changed is no more, as a thread that ended."""

_OF_INTERRUPT = re.compile(r"/proc/irq/(\d+)/(\w+)")
_RESTORABLE = (os.SCHED_OTHER, os.SCHED_FIFO, os.SCHED_RR, os.SCHED_BATCH, os.SCHED_IDLE)
_COMMAND_TIMEOUT_S = 300
_UNIT = r"^[A-Za-z0-9@_.:\\-]{1,250}$"
BOOT_ENTRIES = "/loader/entries/"
"""In the path of each boot entry."""
PARTITION_UNIT = "/etc/systemd/system/latenz-partition.service"
PARTITION_GROUP = "latenz.slice"
_PARTITION = "cpuset.cpus.partition"
_HANDED_ON = "cgroup.subtree_control"
_MOST_TRIES = 100
"""So often is a group emptied whose processes start others meanwhile."""


class Refused(Exception):  # noqa: N818 - an answer of the kernel, which is reported
    """The kernel or a program did not accept a change; the rest of the transaction goes on."""


class Left(Refused):
    """Nothing was tried, on purpose: no failure of the machine."""


def _plain_path(path: str) -> str:
    if not path.startswith("/") or len(path) > 4096 or not path.isprintable():
        raise ValueError("is not an absolute path")
    if any(part in (".", "..") for part in path.split("/")):
        raise ValueError("holds . or ..")
    return path


def _of_a_disk(path: str) -> str:
    if path.startswith(("/proc/", "/sys/", "/dev/")):
        raise ValueError("is not a file that lasts")
    return _plain_path(path)


def _of_the_kernel(path: str) -> str:
    if not path.startswith(("/proc/", "/sys/")):
        raise ValueError("is not a file of the running kernel")
    return _plain_path(path)


Scheduling = tuple[tuple[int, ...], int, int]
"""CPUs, policy and priority of a thread."""
DiskPath = Annotated[str, AfterValidator(_of_a_disk)]
KernelPath = Annotated[str, AfterValidator(_of_the_kernel)]


class Change(BaseModel, ABC):
    """One change.

    Attributes:
        entries: Ids of the catalogue's entries that want it.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_bytes="base64", val_json_bytes="base64"
    )
    fleeting: ClassVar[bool] = False
    """Whether a restart of the machine takes it back."""
    entries: tuple[str, ...] = ()

    @property
    @abstractmethod
    def what(self) -> str:
        """What is changed, in a few words."""

    @abstractmethod
    def captured(self, place: Place, backup: Path, /) -> Self:
        """Return the change with what is there now, the content of a file being put in `backup`.

        Raises:
            BadInput: It cannot be changed, or not so that it could be taken back.
            OSError: The backup cannot be written.
        """

    @abstractmethod
    def do(self, place: Place, /) -> str:
        """Carry out; return what is then there, as `now` wants it.

        Raises:
            Refused: The kernel or a program does not accept it.
            BadInput: Somebody changed the same since it was captured.
            OSError: It cannot be written.
        """

    @abstractmethod
    def now(self, place: Place, after: str | None, /) -> Now:
        """Return how it looks; `after` is what `do` returned, None if it was cut short."""

    @abstractmethod
    def undo(self, place: Place, backup: Path, /) -> None:
        """Take back, whatever is there now."""


class FileChange(Change):
    """A file gets another content, is made, or is removed.

    Attributes:
        content: What it is to hold; None removes it.
        seen: SHA-256 of what `content` was made from, empty for no file; None: of nothing.
        before: What it was; None: there was none.
    """

    kind: Literal["file"] = "file"
    path: DiskPath
    content: bytes | None
    seen: str | None = None
    before: Image | None = None

    @property
    def what(self) -> str:
        """Its path."""
        return self.path

    @property
    def _wanted(self) -> Image | None:
        if self.content is None:
            return None
        digest = sha256(self.content).hexdigest()
        return (self.before or Image(sha256=digest)).model_copy(update={"sha256": digest})

    def captured(self, place: Place, backup: Path, /) -> Self:
        """Copy content and attributes."""
        path = place.at(self.path)
        partial = partial_of(path)
        if place.mode(partial):
            raise BadInput("is in the way", str(partial), "remove it")
        before = place.image(path)
        if self.seen is not None and self.seen != (before.sha256 if before else ""):
            raise BadInput("was changed since it was planned", str(path), "look at the plan again")
        if before:
            content = place.read(path)
            if sha256(content).hexdigest() != before.sha256:
                raise BadInput("changes while it is read", str(path), "try again")
            place.calls.write_new(backup, content)
        return self.model_copy(update={"before": before})

    def do(self, place: Place, /) -> str:
        """Replace it by a new file."""
        path = place.at(self.path)
        now = self.now(place, None)
        if now in ("changed since", "gone"):
            raise BadInput("was changed meanwhile", str(path), "try again")
        wanted = self._wanted
        if now == "as before" and self.content is not None and wanted:
            place.put(path, self.content, wanted)
        elif now == "as before" and self.before:
            _remove(place, path)
        return wanted.sha256 if wanted else ""

    def now(self, place: Place, _after: str | None, /) -> Now:
        """Compare content, mode and owner; boot entries go with their kernel."""
        try:
            found = place.image(place.at(self.path))
        except BadInput:  # a folder, or something else that is not a file of anybody's
            return "changed since"
        if _same(found, self._wanted):
            return "as applied"
        if found is None and self.before and BOOT_ENTRIES in self.path:
            return "gone"
        return "as before" if _same(found, self.before) else "changed since"

    def undo(self, place: Place, backup: Path, /) -> None:
        """Put the former file back, or remove ours."""
        path = place.at(self.path)
        place.clear(path)
        if self.now(place, None) == "gone" or _same(place.image(path), self.before):
            return
        if self.before:
            restore(place, path, self.before, backup)
        else:
            _remove(place, path)


class LinkChange(Change):
    """A symbolic link is made or removed.

    Attributes:
        target: What it is to point to; None removes it.
        before: What it pointed to; None: there was none.
    """

    kind: Literal["link"] = "link"
    path: DiskPath
    target: str | None = Field(max_length=4096)
    before: str | None = None

    @property
    def what(self) -> str:
        """Its path."""
        return self.path

    def captured(self, place: Place, _backup: Path, /) -> Self:
        """Note what it points to."""
        path = place.at(self.path, follow=False)
        before = _pointed(place, path)
        if before is None and place.mode(path):
            raise BadInput("is not a symbolic link", str(path), "move it away")
        return self.model_copy(update={"before": before})

    def do(self, place: Place, /) -> str:
        """Make or remove it."""
        if self.now(place, None) == "changed since":
            raise BadInput("was changed meanwhile", self.path, "try again")
        self._point(place, self.target)
        return self.target or ""

    def now(self, place: Place, _after: str | None, /) -> Now:
        """Compare what it points to."""
        path = place.at(self.path, follow=False)
        found = _pointed(place, path)
        if found is None and place.mode(path):
            return "changed since"
        if found == self.target:
            return "as applied"
        return "as before" if found == self.before else "changed since"

    def undo(self, place: Place, _backup: Path, /) -> None:
        """Let it point where it did, or remove it."""
        place.clear(place.at(self.path, follow=False))
        self._point(place, self.before)

    def _point(self, place: Place, target: str | None) -> None:
        path = place.at(self.path, follow=False)
        if target is None:
            place.calls.remove(path)
        elif _pointed(place, path) != target:
            place.calls.point(path, partial_of(path), target)
        if place.is_folder(path.parent):
            place.calls.sync(path.parent)


class FolderChange(Change):
    """A folder is made; taken back, it stays if somebody put something in.

    Attributes:
        before: Whether it was there.
    """

    kind: Literal["folder"] = "folder"
    path: DiskPath
    before: bool = False

    @property
    def what(self) -> str:
        """Its path."""
        return self.path + "/"

    def captured(self, place: Place, _backup: Path, /) -> Self:
        """Note whether it is there."""
        return self.model_copy(update={"before": place.is_folder(place.at(self.path))})

    def do(self, place: Place, /) -> str:
        """Make it."""
        path = place.at(self.path)
        place.calls.make_folder(path, 0o755)
        if not self.before:
            place.calls.set_mode(path, 0o755)
        place.calls.sync(path.parent)
        return ""

    def now(self, place: Place, _after: str | None, /) -> Now:
        """Look whether it is there."""
        return "as applied" if place.is_folder(place.at(self.path)) else "as before"

    def undo(self, place: Place, _backup: Path, /) -> None:
        """Remove it if it is empty."""
        path = place.at(self.path)
        if self.before or not place.is_folder(path):
            return
        if place.calls.names(path):
            raise Left("somebody put files into it: it stays")
        place.calls.remove_folder(path)
        place.calls.sync(path.parent)


class WriteChange(Change):
    """A value is written to a file of the running kernel.

    Attributes:
        interrupt: If the path is that of an interrupt: what it is called, as its number can be
            another after a restart: its row in /proc/interrupts, and its handlers.
        before: What was read there, byte by byte.
    """

    fleeting: ClassVar[bool] = True
    kind: Literal["write"] = "write"
    path: KernelPath
    value: str = Field(max_length=4096)
    interrupt: tuple[str, str] | None = None
    before: bytes = b""

    @property
    def what(self) -> str:
        """Its path."""
        return self.path

    def captured(self, place: Place, _backup: Path, /) -> Self:
        """Read the value."""
        try:
            before = place.read(place.at(self.path))
        except OSError as error:
            raise BadInput(
                f"cannot be read ({error.strerror})", self.path, "--skip what wants it"
            ) from None
        return self.model_copy(update={"before": before})

    def do(self, place: Place, /) -> str:
        """Write the value; return what is read then."""
        path = self._found(place)
        if path is None:
            raise Refused("is no more")
        try:
            if place.live:
                place.calls.write_value(path, self.value.encode())
            else:
                self._put(place, path, shown_as(self.before, self.value))
        except OSError as error:
            raise Refused(_reason(error)) from None
        found = self._read(place, path)
        if place.live and found is not None and found.split() == self.before.split():
            with suppress(OSError):  # as a clock that is none, it may be remembered for later
                place.calls.write_value(path, chosen_word(self.before))
            raise Refused("is as before: the kernel took the value, but did not heed it")
        return "" if found is None else _digest(found)

    def now(self, place: Place, after: str | None, /) -> Now:
        """Compare the value; one that `do` wrote but could not read back is taken for ours."""
        path = self._found(place)
        found = self._read(place, path) if path else None
        if found is None:
            return "gone"
        if found.split() == self.before.split():
            return "as before"
        return "as applied" if after in (None, _digest(found)) else "changed since"

    def undo(self, place: Place, _backup: Path, /) -> None:
        """Write the former value."""
        path = self._found(place)
        if path is None:
            return
        if not place.live:
            place.clear(path)
            if place.read(path) != self.before:
                self._put(place, path, self.before)
            return
        try:
            if place.read(path) != self.before:
                place.calls.write_value(path, chosen_word(self.before))
        except OSError as error:
            raise Refused(_reason(error)) from None

    def _read(self, place: Place, path: Path) -> bytes | None:
        try:
            return place.read(path)
        except OSError:
            return None

    def _put(self, place: Place, path: Path, content: bytes) -> None:
        image = place.image(path)
        if image is None:
            raise Refused("is no more")
        place.put(path, content, image, keep_time=True)

    def _found(self, place: Place) -> Path | None:
        """Return the file, that of the interrupt of the same name if the number is another's."""
        match = _OF_INTERRUPT.fullmatch(self.path)
        if self.interrupt is None or match is None:
            path = place.at(self.path)
            return path if place.mode(path) else None
        root = Root(place.top)
        number, file = match.groups()
        matches = [number] if interrupt_name(root, number) == self.interrupt else []
        if not matches:
            names = {each: interrupt_name(root, each) for each in root.names("/proc/irq")}
            matches = [each for each, name in names.items() if name == self.interrupt] or [
                each for each, (_, handlers) in names.items() if handlers == self.interrupt[1]
            ]
        if len(matches) != 1:
            return None
        path = place.at(f"/proc/irq/{matches[0]}/{file}")
        return path if place.mode(path) else None


class ThreadChange(Change):
    """A thread is allowed other CPUs, or gets another policy and priority.

    Attributes:
        tid: Its number.
        start: When it was started, in ticks since boot: a number is used again, both are not.
        cpus: Where it is to run; empty if the policy is changed.
        policy: What it is to be scheduled by, and its priority; None if the CPUs are changed.
        before: Its CPUs, policy and priority.
    """

    fleeting: ClassVar[bool] = True
    kind: Literal["thread"] = "thread"
    tid: Annotated[int, Field(gt=0)]
    start: int
    name: str = Field(max_length=64)
    cpus: tuple[Annotated[int, Field(ge=0, lt=8192)], ...] = ()
    policy: tuple[Literal[0, 1, 2], Annotated[int, Field(ge=0, le=99)]] | None = None
    before: Scheduling | None = None

    @property
    def what(self) -> str:
        """Its name and number."""
        return f"thread {self.name} ({self.tid})"

    def captured(self, place: Place, _backup: Path, /) -> Self:
        """Note its CPUs, policy and priority, if it has not ended meanwhile."""
        return self.noted(place.calls)

    def noted(self, calls: SystemCalls) -> Self:
        """Return the change with what is there now."""
        return self.model_copy(update={"before": self._scheduling(calls)})

    def do(self, place: Place, /) -> str:
        """Set them."""
        if not place.live or self._scheduling(place.calls) is None:
            raise Refused("is no more")
        if self.before is None or self.before[1] & ~os.SCHED_RESET_ON_FORK not in _RESTORABLE:
            raise Refused("has a policy that could not be given back")
        _, policy, priority = self.before
        self._set(place.calls, self.cpus, *(self.policy or (policy, priority)))
        return self._digest(self._scheduling(place.calls))

    def now(self, place: Place, after: str | None, /) -> Now:
        """Compare its CPUs, policy and priority."""
        found = self._scheduling(place.calls) if place.live else None
        if found is None:
            return "gone"
        if self._digest(found) == self._digest(self.before):
            return "as before"
        return "as applied" if after in (None, self._digest(found)) else "changed since"

    def undo(self, place: Place, _backup: Path, /) -> None:
        """Set them as they were."""
        if place.live and self.before and self._scheduling(place.calls):
            self._set(place.calls, *self.before)

    def _set(self, calls: SystemCalls, cpus: tuple[int, ...], policy: int, priority: int) -> None:
        try:
            if self.policy:
                calls.schedule(self.tid, policy, priority)
            if self.cpus:
                calls.allow(self.tid, cpus)
        except OSError as error:
            raise Refused(_reason(error)) from None

    def _digest(self, scheduling: Scheduling | None) -> str:
        """Return what stands for the part that this changes."""
        part = scheduling and (scheduling[0] if self.cpus else scheduling[1:])
        return _digest(repr(part).encode())

    def _scheduling(self, calls: SystemCalls) -> Scheduling | None:
        """Return CPUs, policy and priority; None if the thread has ended."""
        if start_ticks(calls, self.tid) != self.start:
            return None
        try:
            return calls.scheduling(self.tid)
        except OSError:
            return None


class ServiceChange(Change):
    """A unit of systemd is stopped."""

    fleeting: ClassVar[bool] = True
    kind: Literal["service"] = "service"
    unit: str = Field(pattern=_UNIT)
    before: bool = False

    @property
    def what(self) -> str:
        """Its name."""
        return self.unit

    def captured(self, place: Place, _backup: Path, /) -> Self:
        """Note whether it runs."""
        return self.model_copy(update={"before": self._active(place)})

    def do(self, place: Place, /) -> str:
        """Stop it."""
        if not place.live or self._active(place):
            _run(place, "systemctl", "stop", "--", self.unit)
        return "stopped"

    def now(self, place: Place, _after: str | None, /) -> Now:
        """Look whether it runs."""
        return "as before" if place.live and self._active(place) == self.before else "as applied"

    def undo(self, place: Place, _backup: Path, /) -> None:
        """Start it, if it ran."""
        if self.before and place.live and not self._active(place):
            _run(place, "systemctl", "start", "--", self.unit)

    def _active(self, place: Place) -> bool:
        asked = ["systemctl", "is-active", "--quiet", "--", self.unit]
        try:
            return place.calls.run(asked, _COMMAND_TIMEOUT_S).status == 0
        except OSError:
            return False


class BootMenuChange(Change):
    """GRUB's menu is made again from its settings; taken back, it gets its former bytes.

    If somebody made it again meanwhile, as for a new kernel, it is made once more instead, after
    the settings are as before.
    """

    kind: Literal["boot menu"] = "boot menu"
    path: Literal["/boot/grub/grub.cfg", "/boot/grub2/grub.cfg"]
    before: Image | None = None

    @property
    def what(self) -> str:
        """Its path."""
        return self.path

    def captured(self, place: Place, backup: Path, /) -> Self:
        """Copy content and attributes."""
        path = place.at(self.path)
        before = place.image(path)
        if before:
            place.calls.write_new(backup, place.read(path))
        return self.model_copy(update={"before": before})

    def do(self, place: Place, /) -> str:
        """Let GRUB's own program make it."""
        self.make(place)
        return self._digest(place)

    def now(self, place: Place, after: str | None, /) -> Now:
        """Compare the content."""
        digest = self._digest(place)
        if self.before and digest == self.before.sha256:
            return "as before"
        return "as applied" if digest == after else "changed since"

    def undo(self, place: Place, backup: Path, /) -> None:
        """Put the former menu back."""
        path = place.at(self.path)
        place.clear(path)
        if self.before and self._digest(place) != self.before.sha256:
            restore(place, path, self.before, backup)

    def make(self, place: Place) -> None:
        """Make the menu from the settings as they are."""
        program = "grub2-mkconfig" if "grub2" in self.path else "grub-mkconfig"
        _run(place, program, "-o", self.path)

    def _digest(self, place: Place) -> str:
        image = place.image(place.at(self.path))
        return image.sha256 if image else ""


class FollowingChange(Change):
    """A service follows its files: it reads them anew, in both directions."""

    fleeting: ClassVar[bool] = True

    @abstractmethod
    def make(self, place: Place, /) -> None:
        """Let it read its files.

        Raises:
            Refused: It does not, or this is the copy of a tree.
        """

    def captured(self, _place: Place, _backup: Path, /) -> Self:
        """There is nothing to note."""
        return self

    def do(self, place: Place, /) -> str:
        """Start it again."""
        self.make(place)
        return ""

    def now(self, _place: Place, _after: str | None, /) -> Now:
        """It follows its files."""
        return "as applied"

    def undo(self, place: Place, backup: Path, /) -> None:
        """Nothing: `make` follows once its files are as before."""


class TunedChange(FollowingChange):
    """TuneD, if it runs, is started again so that it reads which profile is active.

    What it set itself it takes back whenever it ends, so that starting it again is all there is to
    do in both directions.
    """

    kind: Literal["tuned"] = "tuned"

    @property
    def what(self) -> str:
        """The unit."""
        return "tuned.service"

    def make(self, place: Place) -> None:
        """Start it again."""
        _run(place, "systemctl", "restart", "tuned.service")


class RestartChange(FollowingChange):
    """A unit of systemd is started again, if it runs, with the settings of its drop-ins."""

    kind: Literal["restart"] = "restart"
    unit: str = Field(pattern=_UNIT)

    @property
    def what(self) -> str:
        """Its name."""
        return self.unit

    def make(self, place: Place) -> None:
        """Let systemd read its files, and start it again."""
        _run(place, "systemctl", "daemon-reload")
        _run(place, "systemctl", "try-restart", "--", self.unit)


class PartitionChange(FollowingChange):
    """The cpuset partition is made now, and dissolved once its files are gone.

    Systemd still knows then how to stop the unit; what runs in the slice goes on, on all CPUs.
    """

    kind: Literal["partition"] = "partition"

    @property
    def what(self) -> str:
        """The unit."""
        return PARTITION_UNIT.rpartition("/")[2]

    def make(self, place: Place) -> None:
        """Make or dissolve it, as its unit is there or not."""
        if place.mode(place.at(PARTITION_UNIT)):
            _run(place, "systemctl", "daemon-reload")
            _run(place, "systemctl", "restart", "--", self.what)
        else:
            _run(place, "systemctl", "stop", "--", self.what)
            _run(place, "systemctl", "daemon-reload")


class GroupChange(Change):
    """A control group is made, and its CPUs an isolated cpuset partition, without systemd.

    Attributes:
        cpus: Its CPUs, as a list.
        handed_on: Whether the groups below the topmost one had cpusets before.
    """

    fleeting: ClassVar[bool] = True
    kind: Literal["group"] = "group"
    cpus: str = Field(pattern=r"^[0-9,-]{1,4000}$")
    handed_on: bool = False

    @property
    def what(self) -> str:
        """Its name."""
        return f"control group {PARTITION_GROUP}"

    def captured(self, place: Place, _backup: Path, /) -> Self:
        """Note whether cpusets are handed on; refuse a group that is there already."""
        top = _groups(place)
        if place.is_folder(top / PARTITION_GROUP):
            raise BadInput("is there already", str(top / PARTITION_GROUP), "remove it: rmdir")
        try:
            handed_on = b"cpuset" in place.read(top / _HANDED_ON).split()
        except OSError as error:
            where = str(top / _HANDED_ON)
            raise BadInput(f"cannot be read ({error.strerror})", where, "--skip it") from None
        return self.model_copy(update={"handed_on": handed_on})

    def do(self, place: Place, /) -> str:
        """Make it; the kernel takes the word in any case, and says in its place if it is so."""
        if not place.live:
            raise Left("is done on the machine itself only")
        top = _groups(place)
        group = top / PARTITION_GROUP
        try:
            place.calls.write_value(top / _HANDED_ON, b"+cpuset")
            place.calls.make_folder(group, 0o755)
            place.calls.write_value(group / "cpuset.cpus", self.cpus.encode())
            place.calls.write_value(group / _PARTITION, b"isolated")
            state = place.read(group / _PARTITION).decode("ascii", "replace").strip()
        except OSError as error:
            state = _reason(error)
        if state != "isolated":
            self._dissolve(place)
            raise Refused(state)
        return self._digest(place)

    def now(self, place: Place, after: str | None, /) -> Now:
        """Look whether it is there, with these CPUs."""
        if not place.live or not place.is_folder(_groups(place) / PARTITION_GROUP):
            return "as before"
        return "as applied" if after in (None, self._digest(place)) else "changed since"

    def undo(self, place: Place, _backup: Path, /) -> None:
        """Dissolve it; what runs in it goes on in the topmost group, on all CPUs."""
        if place.live:
            self._dissolve(place)

    def _dissolve(self, place: Place) -> None:
        top = _groups(place)
        group = top / PARTITION_GROUP
        try:
            if place.is_folder(group):
                place.calls.write_value(group / _PARTITION, b"member")
                _remove_group(place, group, top)
            handed_on = b"cpuset" in place.read(top / _HANDED_ON).split()
            if handed_on and not self.handed_on and not _has_cpusets(place, top):
                place.calls.write_value(top / _HANDED_ON, b"-cpuset")
        except OSError as error:
            raise Refused(_reason(error)) from None

    def _digest(self, place: Place) -> str:
        group = _groups(place) / PARTITION_GROUP
        found = [place.read(group / name) for name in ("cpuset.cpus", _PARTITION)]
        return _digest(b" ".join(found))


AnyChange = Annotated[
    FileChange
    | LinkChange
    | FolderChange
    | WriteChange
    | ThreadChange
    | ServiceChange
    | BootMenuChange
    | TunedChange
    | RestartChange
    | PartitionChange
    | GroupChange,
    Field(discriminator="kind"),
]


def _groups(place: Place) -> Path:
    """Return where control group v2 is mounted."""
    return place.at(unified_groups(Root(place.top).read))


def _remove_group(place: Place, group: Path, top: Path) -> None:
    """Remove a control group with those in it; their processes go to the topmost one.

    Raises:
        OSError: Processes are started there again and again.
    """
    for name in place.calls.names(group):
        if place.is_folder(group / name):
            _remove_group(place, group / name, top)
    for left in reversed(range(_MOST_TRIES)):
        for process in place.read(group / "cgroup.procs").split():
            with suppress(ProcessLookupError):
                place.calls.write_value(top / "cgroup.procs", process)
        try:
            place.calls.remove_folder(group)
            return
        except OSError as error:
            if error.errno != errno.EBUSY or not left:
                raise


def _has_cpusets(place: Place, top: Path) -> bool:
    """Return whether a group has CPUs of its own: somebody uses what was handed on for us."""
    for name in place.calls.names(top):
        with suppress(OSError):
            if place.read(top / name / "cpuset.cpus").strip():
                return True
    return False


def restore(place: Place, path: Path, before: Image, backup: Path) -> None:
    """Put a file back from its copy, which is checked first.

    Raises:
        BadInput: The copy is damaged or gone.
    """
    content = place.read(backup) if stat.S_ISREG(place.mode(backup)) else b""
    if sha256(content).hexdigest() != before.sha256:
        raise BadInput("the copy to restore from is damaged", str(backup), f"mend {path} by hand")
    place.put(path, content, before, keep_time=True)


def chosen_word(shown: bytes) -> bytes:
    """Return what to write to get a value back: of "always [madvise] never", the word chosen."""
    match = re.fullmatch(rb"(?:[^\[\]]*\s)?\[([^\[\]\s]+)\](?:\s[^\[\]]*)?\s*", shown)
    return match[1] if match and len(shown.split()) > 1 else shown


def shown_as(before: bytes, value: str) -> bytes:
    """Return how a copied file shows a value that the kernel would have taken."""
    words = before.replace(b"[", b"").replace(b"]", b"").split()
    if chosen_word(before) != before and value.encode() in words:
        return (
            b" ".join(b"[%b]" % word if word == value.encode() else word for word in words) + b"\n"
        )
    return value.encode() + b"\n"


def interrupt_name(root: Root, number: str) -> tuple[str, str]:
    """Return an interrupt's row in /proc/interrupts, less number and counts, and its handlers."""
    row, cpus = "", 0
    for line in (root.read("/proc/interrupts") or "").splitlines():
        first, *words = line.split() or [""]
        if first.startswith("CPU"):
            cpus = 1 + len(words)
        elif first == f"{number}:":
            row = " ".join(words[cpus:])
    folder = f"/proc/irq/{number}"
    handlers = [name for name in root.names(folder) if root.is_folder(f"{folder}/{name}")]
    return row, " ".join(handlers)


def start_ticks(calls: SystemCalls, tid: int) -> int | None:
    """Return when a thread was started, in ticks since boot; None if there is none."""
    try:
        told = calls.content(Path(f"/proc/{tid}/stat"))
    except OSError:
        return None
    return int(told.rpartition(b")")[2].split()[19])


def _digest(value: bytes) -> str:
    """Return what stands for a value however its words are spaced."""
    return sha256(b" ".join(value.split())).hexdigest()


def _same(one: Image | None, other: Image | None) -> bool:
    return one.looks_like(other) if one else other is None


def _pointed(place: Place, path: Path) -> str | None:
    return place.calls.link(path) if stat.S_ISLNK(place.mode(path)) else None


def _remove(place: Place, path: Path) -> None:
    place.calls.remove(path)
    place.calls.sync(path.parent)


def _reason(error: OSError) -> str:
    return f"{error.strerror} ({errno.errorcode.get(error.errno or 0, error.errno)})"


def _run(place: Place, *command: str) -> None:
    """Run a program of the machine.

    Raises:
        Refused: It failed.
        Left: This is the copy of a tree, where nothing is run.
    """
    if not place.live:
        raise Left("is done on the machine itself only")
    try:
        ended = place.calls.run(command, _COMMAND_TIMEOUT_S)
    except OSError as error:
        raise Refused(f"{command[0]}: {error.strerror}") from None
    if ended.status:
        lines = ended.errors.strip().splitlines() or ["it did not say why"]
        raise Refused(f"{' '.join(command)} ended with {ended.status}: {lines[-1]}")
