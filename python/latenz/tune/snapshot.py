"""Snapshots: a tar of what the catalogue reads on a machine, to be checked elsewhere.

Only what a probe asked for is in it, as it was when it was asked; where a probe looks for lines,
only these lines. Words that may be secrets or name the machine are replaced by dots.
"""

import io
import re
import stat
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from latenz.affinity import MOUNTS
from latenz.environment import anonymous_command_line
from latenz.files import replacing
from latenz.tune import outputs, probes_vm  # noqa: F401 - its readers are found by their probes
from latenz.tune.catalogue import load_all
from latenz.tune.context import (
    KERNEL_THREADS,
    NOT_ALL_THREADS,
    Context,
    NotKnown,
    online_cpus,
)
from latenz.tune.model import Condition, CpusProbe, FileProbe, TextProbe
from latenz.tune.probes import read
from latenz.tune.root import ABSENT, LEFT_OUT, Root, Unreadable

_CPU = "/sys/devices/system/cpu"
ALSO = (
    "/proc/interrupts",
    "/proc/irq/*/smp_affinity_list",
    "/proc/irq/*/effective_affinity_list",
    "/proc/version",
    "/proc/meminfo",
    "/proc/modules",
    "/etc/os-release",
    "/sys/kernel/debug/irq/irqs/*",
    *(f"{_CPU}/{name}" for name in ("online", "possible", "present", "isolated")),
    f"{_CPU}/cpu*/topology/*",
    *(f"{_CPU}/cpu*/cache/index*/{name}" for name in ("level", "type", "size", "shared_cpu_list")),
    f"{_CPU}/cpu*/cpu_capacity",
    "/sys/devices/system/node/node*/cpulist",
    "/sys/devices/cpu_*/cpus",
    *(f"/sys/module/{name}/parameters/*" for name in ("kvm", "kvm_intel", "kvm_amd")),
    "/etc/modprobe.d/*.conf",
)
"""Patterns of what no entry reads, but the other commands of `latenz tune`, and people."""
_QEMU = re.compile(rb"(?:[^\0]*/)?(?:qemu-|kvm\b)")
_SECRET_OPTION = re.compile(rb"\b((?:data|password|passwd|secret|key)=)[^,\0]*")
_PARAMETER = re.compile(r"(?<!\S)([^\s=]+=)\S+")
_SECRET_NAME = re.compile(r"pass|secret|token|key")
_SECRET_ATTRIBUTE = re.compile(rb"""\b(passwd=)(?:'[^']*'|"[^"]*")""")
_KEPT_MOUNTS = ("hugetlbfs", "resctrl", "cgroup", "cgroup2", "tracefs", "debugfs")


class _Recorder(Root):
    """Files of a machine that remember what was asked for.

    Attributes:
        looks_for: The lines that are asked for just now; empty: whole files.
        left_out: What could not be read, and why.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.looks_for = ""
        self.left_out: dict[str, str] = {}
        self._contents: dict[str, tuple[bytes, set[str]]] = {}
        self._links: dict[str, str] = {}
        self._folders: set[str] = set()

    def content(self, path: str) -> bytes:
        """Return the bytes of a file, and keep them."""
        try:
            found = super().content(path)
        except Unreadable as reason:
            if str(reason) != ABSENT:
                self.left_out[path] = str(reason)
            raise
        self.keep(path, found)
        return found

    def keep(self, path: str, content: bytes) -> None:
        """Keep bytes, or the lines of them that are asked for just now."""
        before = self._contents.get(path)
        if before is None:
            self._contents[path] = (content, {self.looks_for})
        else:
            before[1].add(self.looks_for)

    def exists(self, path: str) -> bool:
        """Return whether there is something, and keep what."""
        there = super().exists(path)
        if there and not self.is_folder(path) and self.read_bytes(path) is None:
            self.left_out.pop(path, None)
            self.keep(path, b"")  # a device: that it is there is all that can be kept
        return there

    def is_folder(self, path: str) -> bool:
        """Return whether there is a folder, and keep that."""
        is_folder = super().is_folder(path)
        if is_folder:
            self._folders.add(path)
        return is_folder

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder, and keep those of folders and links."""
        found = super().names(folder)
        for name in found:
            self._keep_kind(f"{folder.rstrip('/')}/{name}")
        return found

    def link(self, path: str) -> str | None:
        """Return what a symbolic link says, and keep it."""
        target = super().link(path)
        if target is not None:
            self._links[path] = target
        return target

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that match, and keep those of folders and links."""
        found = super().glob(pattern)
        for path in found:
            self._keep_kind(path)
        return found

    def _keep_kind(self, path: str) -> None:
        if self.link(path) is None:
            self.is_folder(path)

    def members(self) -> Iterator[tuple[str, int, str | bytes]]:
        """Give path, type and content or target of all that was kept, by path."""
        kept: dict[str, tuple[int, str | bytes]] = {}
        for folder in self._folders:
            kept[folder] = (stat.S_IFDIR, b"")
        for path, target in self._links.items():
            kept[path] = (stat.S_IFLNK, target)
        for path, (content, looks_for) in self._contents.items():
            harmless = _harmless(path, content)
            if harmless is not None:
                kept[path] = (stat.S_IFREG, _only_lines(harmless, looks_for))
        # A link that something was read through becomes the folder that holds it.
        for path in list(kept):
            for above in _folders_above(path):
                if kept.get(above, (0,))[0] == stat.S_IFLNK:
                    kept[above] = (stat.S_IFDIR, b"")
        if self.left_out:
            lines = "".join(
                f"{path}\t{why}\n"
                for path, why in sorted(self.left_out.items())
                if "\n" not in path
            )
            kept[LEFT_OUT] = (stat.S_IFREG, lines.encode("utf-8", "surrogateescape"))
        kept.pop("/", None)
        for path in sorted(kept):
            yield path, *kept[path]


def _folders_above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _only_lines(content: bytes, looks_for: set[str]) -> bytes:
    if "" in looks_for:
        return content
    text = content.decode("utf-8", "replace")
    return outputs.matching_lines(text, sorted(looks_for)).encode()


def _harmless(path: str, content: bytes) -> bytes | None:
    """Return a file without secrets; None if it is not to be kept at all."""
    if path == "/proc/cmdline":
        text = anonymous_command_line(content.decode("utf-8", "replace"))
        return _PARAMETER.sub(_without_secret, text).encode()
    if path == "/proc/cpuinfo":
        return re.sub(rb"(?m)^(Serial\s*:).*$", rb"\1 ...", content)
    if path == "/proc/modules":  # names alone: for root, it tells where the kernel is in memory
        return re.sub(rb"(?m)^(\S+) .*$", rb"\1 ...", content)
    if path in ("/proc/mounts", MOUNTS):
        kept = [line for line in content.splitlines(keepends=True) if _is_kept_mount(line)]
        return b"".join(kept)
    if re.fullmatch(r"/proc/\d+/cmdline", path):
        return _SECRET_OPTION.sub(rb"\1...", content) if _QEMU.match(content) else None
    if path.endswith(".xml"):
        return _SECRET_ATTRIBUTE.sub(rb"\1'...'", content)
    return content


def _is_kept_mount(line: bytes) -> bool:
    """Return whether a line of /proc/mounts, or of mountinfo with its " - ", is of such a type."""
    before, dash, after = line.partition(b" - ")
    fields = after.split()[:1] if dash else before.split()[2:3]
    return any(each.decode("utf-8", "replace") in _KEPT_MOUNTS for each in fields)


def write_snapshot(
    output: Path, root: Path = Path("/"), progress: Callable[[int], None] = lambda _: None
) -> dict[str, str]:
    """Write a machine's snapshot: the same files give the same bytes.

    Args:
        output: The tar to write.
        root: The machine's files.
        progress: Is told how many conditions have been read.

    Returns:
        What could not be read, and why.

    Raises:
        BadInput: The tar cannot be written, or there is no such root.
    """
    recorder = _Recorder(root)
    _record(recorder, progress)
    with (
        replacing(output, renewable=False) as partial,
        tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path, kind, said in recorder.members():
            _add(tar, path, kind, said)
    return recorder.left_out


def _without_secret(parameter: re.Match[str]) -> str:
    return f"{parameter[1]}..." if _SECRET_NAME.search(parameter[1]) else parameter[0]


def condition_count() -> int:
    """Return how many conditions a snapshot reads, for showing progress."""
    return sum(1 for _ in _conditions())


def _record(recorder: _Recorder, progress: Callable[[int], None]) -> None:
    chosen = Context.of(recorder)
    # Whichever CPUs somebody chooses to isolate later, their files are there.
    context = Context(recorder, online_cpus(recorder), chosen.online, chosen.profile)
    if not context.sees_all_threads:
        recorder.left_out[KERNEL_THREADS] = NOT_ALL_THREADS
    texts: dict[str, set[str]] = {}
    for count, condition in enumerate(_conditions(), 1):
        probe = condition.probe
        if isinstance(probe, TextProbe):
            texts.setdefault(probe.name, set()).add(probe.regex)
        elif probe is not None:
            recorder.looks_for = probe.regex if isinstance(probe, FileProbe | CpusProbe) else ""
            with suppress(NotKnown):
                read(probe, context)
            recorder.looks_for = ""
        progress(count)
    for name, regexes in sorted(texts.items()):
        _record_text(recorder, name, regexes)
    for path in (each for pattern in ALSO for each in recorder.glob(pattern)):
        recorder.read_bytes(path)


def _record_text(recorder: _Recorder, name: str, regexes: set[str]) -> None:
    path = f"{outputs.FOLDER}/{name}"
    try:
        text = outputs.read(recorder, name)
    except outputs.NotTold as reason:
        if recorder.running:
            recorder.left_out[path] = str(reason)
        return
    recorder.keep(path, outputs.matching_lines(text, regexes).encode())


def _conditions() -> Iterator[Condition]:
    """Give every condition of the catalogue, those within others, too."""
    catalogue = load_all()
    yield from _flat(catalogue.conditions.values())
    for entry in catalogue.entries:
        yield from _flat([entry, *([entry.outcome] if entry.outcome else [])])


def _flat(conditions: Iterable[Condition]) -> Iterator[Condition]:
    for condition in conditions:
        yield condition
        yield from _flat((*condition.all, *condition.any))


def _add(tar: tarfile.TarFile, path: str, kind: int, said: str | bytes) -> None:
    member = tarfile.TarInfo("." + path)
    if isinstance(said, str):
        member.type, member.linkname, member.mode = tarfile.SYMTYPE, said, 0o777
        tar.addfile(member)
    elif kind == stat.S_IFDIR:
        member.type, member.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(member)
    else:
        member.size = len(said)
        tar.addfile(member, io.BytesIO(said))
