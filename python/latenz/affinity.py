"""Which CPUs can be measured, which of them are isolated and by what, and keeping off them.

isolcpus=, CPUAffinity= and taskset say where programs start. What they leave out can still be
entered by a program that asks for it, so the mask that a process has inherited tells nothing of
what can be measured.
"""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from latenz.machine import measured_machine, measured_target
from latenz.settings import parse_cpu_list

_CPU = "/sys/devices/system/cpu"
_GROUPS = "/sys/fs/cgroup"
MOUNTS = "/proc/self/mountinfo"
_CPUSET = "an isolated cpuset"
_SOURCES = (
    (_CPUSET, "{groups}/cpuset.cpus.isolated"),
    ("isolcpus", f"{_CPU}/isolated"),
    ("nohz_full", f"{_CPU}/nohz_full"),
)
"""What isolates a CPU, and the file that lists those it does. The kernel counts the first among
the second."""
LEFT_OUT = "outside of the CPUs that Latenz was started on"
"""What isolates a CPU that none of these names: CPUAffinity= or taskset."""


def inherited_cpus() -> frozenset[int]:
    """Return the CPUs that the measured machine starts programs on; here: those of this process."""
    return measured_machine().inherited_cpus()


def enterable_cpus() -> frozenset[int]:
    """Return the CPUs that programs of the measured machine can enter, whatever their mask."""
    return measured_machine().enterable_cpus()


def isolation(cpu: int, root: Path = Path("/")) -> str | None:
    """Return what keeps other programs off a CPU, None if nothing does.

    Args:
        cpu: Its number.
        root: The folder of the machine's files.
    """
    listed = listed_isolated(lambda path: _text(root / path.lstrip("/")))
    reasons = [name for name, cpus in listed.items() if cpu in (cpus or ())]
    if len(reasons) > 1 and reasons[0] == _CPUSET and not _is_in_isolcpus(cpu, root):
        reasons = [each for each in reasons if each != "isolcpus"]
    if not reasons and cpu not in inherited_cpus():
        return LEFT_OUT
    return ", ".join(reasons) or None


def isolated_cpus(root: Path = Path("/")) -> dict[int, str]:
    """Return those of the enterable CPUs that are isolated, and by what."""
    found = {cpu: isolation(cpu, root) for cpu in sorted(enterable_cpus())}
    return {cpu: reason for cpu, reason in found.items() if reason is not None}


def listed_isolated(
    read: Callable[[str], str | None],
) -> dict[str, frozenset[int] | None]:
    """Return the CPUs that a kernel lists as isolated, by what isolates them.

    All that are isolated are those of all lists together. None: there is no such list to read.

    Args:
        read: Gives the text of the file at an absolute path; None if it cannot be read.
    """
    groups = unified_groups(read)
    return {name: _listed(read(path.format(groups=groups))) for name, path in _SOURCES}


def unified_groups(read: Callable[[str], str | None]) -> str:
    """Return where control group v2 is mounted; /sys/fs/cgroup, its usual place, if nothing tells.

    Where control group v1 has that place, v2 mostly is below it, at /sys/fs/cgroup/unified.

    Args:
        read: As for `listed_isolated`; of `/proc/self/mountinfo`, see proc_pid_mountinfo(5).
    """
    found: dict[str, str] = {}
    for line in (read(MOUNTS) or "").splitlines():
        fields, _, kind = line.partition(" - ")
        mount = fields.split()[3:5]
        if kind.startswith("cgroup2 ") and len(mount) == 2:
            found.setdefault(mount[0], re.sub(r"\\([0-7]{3})", _unescaped, mount[1]))
    return found.get("/") or next(iter(found.values()), _GROUPS)


def _unescaped(octal: re.Match[str]) -> str:
    return chr(int(octal[1], 8))


def _listed(text: str | None) -> frozenset[int] | None:
    if text is not None and text.strip() in ("", "(null)"):
        return frozenset()
    try:
        return None if text is None else frozenset(parse_cpu_list(text.strip()))
    except ValueError:
        return None


def _text(path: Path) -> str | None:
    content = measured_machine().content(os.fspath(path))
    return None if content is None else content.decode("utf-8", "replace")


def _is_in_isolcpus(cpu: int, root: Path) -> bool:
    try:
        line = _text(root / "proc/cmdline") or ""
        given = re.findall(r"\bisolcpus=(?:[a-z_]+,)*([\d,-]+)", line)[-1]
        return cpu in parse_cpu_list(given)
    except (ValueError, IndexError):
        return False


@contextmanager
def running_on(cpus: frozenset[int]) -> Iterator[None]:
    """Let every thread of this process run on these CPUs only; afterwards where it could before.

    Where that is not possible, all stays as it is.
    """
    before = {thread: _mask(thread) for thread in _own_threads()}
    own = _own_cpus()
    for thread in before:
        _put(thread, cpus)
    try:
        yield
    finally:
        for thread in _own_threads():  # one that was started meanwhile took over our mask
            _put(thread, before.get(thread, own))


@contextmanager
def kept_off(cpus: frozenset[int]) -> Iterator[None]:
    """Keep what runs of Latenz on the measured machine off some CPUs, if there are others."""
    if target := measured_target():
        with target.kept_off(cpus):
            yield
        return
    others = _own_cpus() - cpus or enterable_cpus() - cpus
    with running_on(others):
        yield


def _own_cpus() -> frozenset[int]:
    return frozenset(os.sched_getaffinity(0))


def _own_threads() -> list[int]:
    return [int(folder.name) for folder in Path("/proc/self/task").iterdir()]


def _mask(thread: int) -> frozenset[int]:
    with suppress(OSError):
        return frozenset(os.sched_getaffinity(thread))
    return frozenset()


def _put(thread: int, cpus: frozenset[int]) -> None:
    with suppress(OSError):  # it has ended, a cpuset forbids it, or there are none
        os.sched_setaffinity(thread, cpus)
