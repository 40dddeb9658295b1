"""The machine that is looked at: its files, its CPUs, and what it is for."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, get_args

from latenz.affinity import listed_isolated, unified_groups
from latenz.errors import BadInput, closest
from latenz.tune.cpus import format_list, format_mask, parse_list
from latenz.tune.model import Profile
from latenz.tune.root import ABSENT, Root

if TYPE_CHECKING:
    from latenz.tune.interrupts import Interrupt
    from latenz.tune.qemu import QemuProcess
    from latenz.tune.services import Running
    from latenz.tune.tasks import Thread

_CPU = "/sys/devices/system/cpu"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_IN_STAT = r"^cpu(\d{1,4}) "
NO_ISOLATED = "no CPU is isolated, and none was chosen: give --cpus"
KERNEL_THREADS = "/proc/kthreadd"
"""No file: a snapshot that was taken in a container lists it among what it could not read."""
NOT_ALL_THREADS = "shows a container's threads only, not the machine's"
GUESTS = ("/sys/kernel/debug/kvm/[0-9]*-[0-9]*", "/etc/libvirt/qemu/*.xml")
"""What is there for each guest that runs under KVM, or that libvirt knows."""
NO_ONLINE = "which CPUs the machine has cannot be read"


class NotKnown(Exception):  # noqa: N818 - an answer, not a mistake in the program
    """What a text or a check needs to know is not known; the message tells what."""


@dataclass(frozen=True)
class Context:
    """The machine that is looked at.

    Attributes:
        root: Its files.
        isolated: The CPUs that are, or are to be, for real-time work alone; may be empty.
        online: All CPUs that are in use; empty if that cannot be read.
        profile: What the machine is for.
        partition: Whether a cpuset partition is to isolate them.
    """

    root: Root
    isolated: frozenset[int]
    online: frozenset[int]
    profile: Profile
    partition: bool = False

    @classmethod
    def of(cls, root: Root, cpus: str | None = None, profile: str | None = None) -> "Context":
        """Return the context of a machine.

        Args:
            root: Its files.
            cpus: The CPUs to isolate, as a list; None: those that it isolates already.
            profile: None: `guest` in a virtual machine, `kvm-host` where a virtual machine runs or
                is defined, else `host`.

        Raises:
            BadInput: The CPUs are not online, or all that are; or there is no such profile.
        """
        online = online_cpus(root)
        isolated = isolated_cpus(root) if cpus is None else _given(cpus, online)
        if profile is None:
            return cls(root, isolated, online, detected_profile(root))
        for known in get_args(Profile):
            if profile == known:
                return cls(root, isolated, online, known)
        raise BadInput(
            f"{profile!r} is not a profile", "--profile", closest(profile, get_args(Profile))
        )

    @property
    def housekeeping(self) -> frozenset[int]:
        """The CPUs for everything else."""
        return self.online - self.isolated

    def cpus(self, which: str) -> frozenset[int]:
        """Return the isolated ("iso") or the housekeeping ("hk") CPUs.

        Raises:
            NotKnown: There are none, so that nothing can be said about them.
        """
        if not self.isolated:
            raise NotKnown(NO_ISOLATED)
        if which == "iso":
            return self.isolated
        if not self.online:
            raise NotKnown(NO_ONLINE)
        return self.housekeeping

    def expand(self, text: str) -> str:
        """Replace the placeholders of a text, but for those that stand for one CPU.

        Raises:
            NotKnown: The CPUs or the kernel's release are not known.
        """
        return _PLACEHOLDER.sub(self._replaced, text)

    def paths(self, pattern: str) -> list[str]:
        """Return the patterns that a path stands for: one for each CPU if it holds `{iso_cpu}`.

        Raises:
            NotKnown: As `expand`.
        """
        if "{iso_cpu}" not in pattern:
            return [self.expand(pattern)]
        cpus = sorted(self.cpus("iso"))
        return [self.expand(pattern.replace("{iso_cpu}", str(cpu))) for cpu in cpus]

    def _replaced(self, match: re.Match[str]) -> str:
        name = match[1]
        if name == "release":
            release = (self.root.read("/proc/sys/kernel/osrelease") or "").strip()
            if not re.fullmatch(r"[A-Za-z0-9._+~-]+", release):
                raise NotKnown("the release of the kernel cannot be read")
            return release
        if name == "groups":
            return unified_groups(self.root.read).lstrip("/")
        if name == "domain":
            return "" if self._is_by_partition() else "domain,"
        which, _, form = name.partition("_")
        if which not in ("iso", "hk") or form not in ("", "mask", "count", "nodes"):
            return match[0]
        cpus = self.cpus(which)
        if form == "nodes":
            return self._nodes(cpus)
        if form == "mask":
            return format_mask(cpus)
        return str(len(cpus)) if form == "count" else format_list(cpus)

    def _is_by_partition(self) -> bool:
        """Return whether isolcpus= need not, and need not go on to, isolate the CPUs."""
        given = dict(self.parameters or ()).get("isolcpus")
        by_line = given is not None and not re.match("(managed_irq|nohz),(?!.*domain)", given)
        by_set = bool(self.isolated) and self.isolated <= partitioned_cpus(self.root)
        return self.partition or (by_set and not by_line)

    def _nodes(self, cpus: frozenset[int]) -> str:
        """Return the list of the NUMA nodes that CPUs belong to."""
        nodes = [
            int(path.rpartition("node")[2])
            for path in self.root.glob("/sys/devices/system/node/node[0-9]*")
            if (list_in(self.root, f"{path}/cpulist") or frozenset()) & cpus
        ]
        return format_list(frozenset(nodes))

    @cached_property
    def threads(self) -> "tuple[Thread, ...]":
        """All threads, read once."""
        from latenz.tune.tasks import read_threads

        return read_threads(self.root)

    @cached_property
    def sees_all_threads(self) -> bool:
        """Whether the threads are those of the whole machine: in a container, none is the kernel's.

        Nor is one for users from whom /proc hides what is not theirs (mount option hidepid).
        """
        if self.root.running:
            return any(each.kernel for each in self.threads)
        return self.root.problem(KERNEL_THREADS) == ABSENT

    @cached_property
    def interrupts(self) -> "tuple[Interrupt, ...]":
        """All interrupts, read once."""
        from latenz.tune.interrupts import read_interrupts

        return read_interrupts(self.root)

    @cached_property
    def processes(self) -> "tuple[QemuProcess, ...]":
        """All processes of QEMU, read once."""
        from latenz.tune.qemu import read_processes

        return read_processes(self.root)

    @cached_property
    def running(self) -> "Running":
        """What runs, for finding services, read once."""
        from latenz.tune.services import running

        return running(self.root)

    @cached_property
    def parameters(self) -> tuple[tuple[str, str], ...] | None:
        """Names and values on the kernel command line, in order; None if it cannot be read."""
        text = self.root.read("/proc/cmdline")
        return None if text is None else parse_command_line(text)


def _given(cpus: str, online: frozenset[int]) -> frozenset[int]:
    try:
        given = parse_list(cpus, max(online, default=0))
    except ValueError as mistake:
        raise BadInput(str(mistake), "--cpus", "give for example 4 or 2-3,6") from None
    if not given:
        raise BadInput("names no CPU", "--cpus", "give for example 4 or 2-3,6")
    if online and (missing := given - online):
        raise BadInput(
            f"CPU {format_list(missing)} is not online",
            "--cpus",
            f"choose of {format_list(online)}",
        )
    if given == online:
        raise BadInput("leaves no CPU for everything else", "--cpus", "give fewer CPUs")
    return given


def online_cpus(root: Root) -> frozenset[int]:
    """Return the CPUs in use; none if that cannot be read."""
    cpus = list_in(root, f"{_CPU}/online")
    if cpus is not None:
        return cpus
    for path, pattern in (
        ("/proc/cpuinfo", r"^processor\s*:\s*(\d{1,4})$"),
        ("/proc/stat", _IN_STAT),
    ):
        if found := re.findall(pattern, root.read(path) or "", re.MULTILINE):
            return frozenset(map(int, found))
    return frozenset()


def isolated_cpus(root: Root) -> frozenset[int]:
    """Return the CPUs that a machine isolates: by isolcpus=, by a cpuset, or by nohz_full=.

    What the kernel lists counts; where it has no list, what its command line gives: as for the
    kernel, the first one of a name.
    """
    listed = listed_isolated(root.read)
    given = dict(reversed(parse_command_line(root.read("/proc/cmdline") or "")))
    last = max(online_cpus(root), default=0)
    return partitioned_cpus(root).union(
        *(
            _parsed(given.get(name, ""), last) if cpus is None else cpus
            for name, cpus in listed.items()
        )
    )


def partitioned_cpus(root: Root) -> frozenset[int]:
    """Return the CPUs of isolated cpuset partitions (cgroup v2).

    Linux lists all of them since 6.7; such partitions are there since 6.1.
    """
    groups = unified_groups(root.read)
    found = list_in(root, f"{groups}/cpuset.cpus.isolated") or frozenset()
    for below in ("*", "*/*"):
        for path in root.glob(f"{groups}/{below}/cpuset.cpus.partition"):
            if (root.read(path) or "").strip() == "isolated":
                cpus = list_in(root, f"{path.rpartition('/')[0]}/cpuset.cpus.effective")
                found |= cpus or frozenset()
    return found


def _parsed(text: str, last: int) -> frozenset[int]:
    try:
        return parse_list(text, last)
    except ValueError:
        return frozenset()


def list_in(root: Root, path: str) -> frozenset[int] | None:
    """Return the CPUs that a file lists; None if it cannot be read or is not a list."""
    text = root.read(path)
    try:
        return None if text is None else parse_list(text)
    except ValueError:
        return None


def detected_profile(root: Root) -> Profile:
    """Return what a machine seems to be for."""
    flags = re.search(r"^flags\s*:(.*)", root.read("/proc/cpuinfo") or "", re.MULTILINE)
    if "control_d" in (root.read("/proc/xen/capabilities") or ""):
        return "host"  # Xen's first domain, which is itself a guest of Xen
    if flags and "hypervisor" in flags[1].split():
        return "guest"
    if any(map(root.exists, ("/sys/hypervisor/type", "/proc/device-tree/hypervisor"))):
        return "guest"
    return "kvm-host" if _has_guests(root) else "host"


def _has_guests(root: Root) -> bool:
    """Return whether there is a guest: that KVM is loaded, as it is by default, is no sign of one.

    KVM has a folder for each virtual machine, whoever made it.
    """
    from latenz.tune.qemu import read_processes

    return any(map(root.glob, GUESTS)) or bool(read_processes(root))


def parse_command_line(text: str) -> tuple[tuple[str, str], ...]:
    """Return names and values as the kernel splits its command line.

    Quotes keep blanks together, `--` begins what is for init, and `-` in names is the same as `_`.
    """
    found = []
    for match in re.finditer(r'(?:[^\s"]|"[^"]*"?)+', text):
        token = match[0]
        if token == "--":  # noqa: S105 - a token of the command line
            break
        name, _, value = token.replace('"', "").partition("=")
        found.append((name.replace("-", "_"), value))
    return tuple(found)
