"""Which processes and threads are meant, as people name them."""

import re
from dataclasses import dataclass

from latenz.errors import BadInput, shown
from latenz.machine import measured_machine

_CGROUPS = "/sys/fs/cgroup"
_DEEPEST_UNIT = 6  # user.slice/user-1.slice/user@1.service/app.slice/robot.slice/robot.service
_DEEPEST_PART = 4
_MOST_NAMED = 5
_MOST_PROCESSES = 256
_COMM = 15  # characters that the kernel keeps of a name
_UNIT = re.compile(r"[A-Za-z0-9:_.\\@-]{1,255}")


@dataclass(frozen=True)
class Target:
    """What is measured.

    Attributes:
        name: Of the program, or of the thread if one is meant.
        processes: Their numbers.
        threads: Only these threads; none: all.
    """

    name: str
    processes: tuple[int, ...]
    threads: tuple[int, ...] = ()


def find_target(wanted: str) -> Target:
    """Return what a number of a process or thread, or a name, stands for on the measured machine.

    Raises:
        BadInput: There is no such one, or several.
    """
    if wanted.isdecimal():
        return _numbered(int(wanted))
    return _named(wanted)


def find_unit(unit: str) -> Target:
    """Return the processes of a unit of systemd.

    Raises:
        BadInput: There is no such unit, or it does not run.
    """
    if not _UNIT.fullmatch(unit):
        raise BadInput(f"{shown(unit)} is not a unit", "--unit", "write for example robot.service")
    full = unit if "." in unit else f"{unit}.service"
    group = _group_of(full)
    found = set()
    for depth in range(_DEEPEST_PART):
        below = "/*" * depth
        for path in measured_machine().matching(f"{_pattern_of(group)}{below}/cgroup.procs"):
            found |= {int(word) for word in _text(path).split() if word.isdecimal()}
    processes = tuple(sorted(found))
    if not processes:
        raise BadInput(f"{full} does not run", "--unit", f"start it: systemctl start {full}")
    return Target(full.partition(".")[0], processes[:_MOST_PROCESSES])


def _group_of(unit: str) -> str:
    """Return the folder of a unit's control group."""
    asked = ("systemctl", "show", "--property=ControlGroup", "--value", "--", unit)
    told = (measured_machine().output_of(asked) or "").partition("\n")[0].strip()
    if told.startswith("/"):
        return f"{_CGROUPS}{told.rstrip('/')}"
    for depth in range(_DEEPEST_UNIT):
        pattern = f"{_CGROUPS}{'/*' * depth}/{_pattern_of(unit)}/cgroup.procs"
        for path in measured_machine().matching(pattern):
            group = path.rpartition("/")[0]
            if group.rpartition("/")[2] == unit:
                return group
    raise BadInput(f"there is no running unit {unit}", "--unit", "see systemctl list-units")


def _pattern_of(path: str) -> str:
    """Return a shell pattern that matches a path; units' names have backslashes."""
    return re.sub(r"[\\*?\[\]]", "?", path)


def _numbered(number: int) -> Target:
    status = _text(f"/proc/{number}/status")
    group = re.search(r"^Tgid:\s*(\d+)$", status, re.MULTILINE)
    if group is None:
        what = f"there is no process or thread {number}"
        raise BadInput(what, "attach", "see ps -eLo pid,tid,comm")
    process = int(group[1])
    return Target(name_of(number), (process,), () if process == number else (number,))


def _named(name: str) -> Target:
    """By the process's name or its program's; else by the name of one of its threads."""
    with measured_machine().fetching(("/proc/[0-9]*/comm", "/proc/[0-9]*/cmdline")):
        processes = [pid for pid in _numbers("/proc") if name in _names_of(pid)]
    if not processes:
        threads = _threads_called(name)
        processes = sorted({pid for pid, _ in threads})
        if len(processes) == 1:
            return Target(name, tuple(processes), tuple(sorted(tid for _, tid in threads)))
    if not processes:
        what = f"no process or thread is called {shown(name)}"
        raise BadInput(what, "attach", "see ps -eLo pid,tid,comm")
    if len(processes) > 1:
        told = ", ".join(map(str, processes[:_MOST_NAMED]))
        more = ", ..." if len(processes) > _MOST_NAMED else ""
        what = f"{len(processes)} processes are called {shown(name)}: {told}{more}"
        raise BadInput(what, "attach", "name one by its number, or a service by --unit")
    return Target(name[:60], (processes[0],))


def _threads_called(name: str) -> list[tuple[int, int]]:
    """Return the threads of a name, each after its process."""
    with measured_machine().fetching(("/proc/[0-9]*/task/[0-9]*/comm",)):
        return [
            (pid, tid)
            for pid in _numbers("/proc")
            for tid in _numbers(f"/proc/{pid}/task")
            if _text(f"/proc/{pid}/task/{tid}/comm").rstrip("\n") == name[:_COMM]
        ]


def _names_of(pid: int) -> set[str]:
    program = _text(f"/proc/{pid}/cmdline").partition("\0")[0]
    return {name_of(pid), program.rpartition("/")[2]} - {""}


def name_of(number: int) -> str:
    """Return what a thread calls itself; empty if there is none."""
    return _text(f"/proc/{number}/comm").rstrip("\n")


def _numbers(folder: str) -> list[int]:
    """Return the names in a folder that are numbers."""
    names = (path.rpartition("/")[2] for path in measured_machine().matching(f"{folder}/[0-9]*"))
    return sorted(int(name) for name in names if name.isdecimal())


def _text(path: str) -> str:
    return (measured_machine().content(path) or b"").decode("utf-8", "replace")
