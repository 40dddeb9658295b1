"""Which processes and threads are meant, as people name them."""

import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from latenz.errors import BadInput, shown

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
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
    """Return what a number of a process or thread, or a name, stands for.

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
        raise BadInput(f"{shown(unit)} is no unit", "--unit", "write for example robot.service")
    full = unit if "." in unit else f"{unit}.service"
    group = _group_of(full)
    found = []
    with suppress(OSError):
        for path in [group / "cgroup.procs", *group.glob("**/cgroup.procs")]:
            found += [int(line) for line in path.read_text().split()]
    processes = tuple(sorted(set(found)))
    if not processes:
        raise BadInput(f"{full} does not run", "--unit", f"start it: systemctl start {full}")
    return Target(full.partition(".")[0], processes[:_MOST_PROCESSES])


def _group_of(unit: str) -> Path:
    try:
        told = subprocess.run(
            ["systemctl", "show", "--property=ControlGroup", "--value", "--", unit],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=30,
            check=False,
        ).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        told = ""
    if told.startswith("/"):
        return _CGROUPS / told.lstrip("/")
    slices = sorted(_CGROUPS.glob(f"**/{unit}")) if _CGROUPS.is_dir() else []
    if not slices:
        raise BadInput(f"there is no running unit {unit}", "--unit", "see systemctl list-units")
    return slices[0]


def _numbered(number: int) -> Target:
    for path in (_PROC / str(number) / "status",):
        with suppress(OSError):
            group = re.search(r"^Tgid:\s*(\d+)$", path.read_text(errors="replace"), re.MULTILINE)
            if group and int(group[1]) == number:
                return Target(name_of(number), (number,))
            if group:
                return Target(name_of(number), (int(group[1]),), (number,))
    raise BadInput(f"there is no process or thread {number}", "attach", "see ps -eLo pid,tid,comm")


def _named(name: str) -> Target:
    """By the process's name or its program's; else by the name of one of its threads."""
    processes = [pid for pid in _numbers(_PROC) if name in _names_of(pid)]
    if not processes:
        threads = [
            (pid, tid)
            for pid in _numbers(_PROC)
            for tid in _numbers(_PROC / str(pid) / "task")
            if name_of(tid) == name[:_COMM]
        ]
        owners = sorted({pid for pid, _ in threads})
        if len(owners) == 1:
            return Target(name, tuple(owners), tuple(sorted(tid for _, tid in threads)))
        processes = owners
    if not processes:
        what = f"no process or thread is called {shown(name)}"
        raise BadInput(what, "attach", "see ps -eLo pid,tid,comm")
    if len(processes) > 1:
        told = ", ".join(map(str, processes[:_MOST_NAMED]))
        more = ", ..." if len(processes) > _MOST_NAMED else ""
        what = f"{len(processes)} processes are called {shown(name)}: {told}{more}"
        raise BadInput(what, "attach", "name one by its number, or a service by --unit")
    return Target(name[:60], (processes[0],))


def _names_of(pid: int) -> set[str]:
    names = {name_of(pid)}
    with suppress(OSError, IndexError):
        words = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
        names.add(Path(words[0].decode(errors="replace")).name)
    return names - {""}


def name_of(number: int) -> str:
    """Return what a thread calls itself; empty if there is none."""
    with suppress(OSError):
        return (_PROC / str(number) / "comm").read_text(errors="replace").rstrip("\n")
    return ""


def _numbers(folder: Path) -> list[int]:
    with suppress(OSError):
        return sorted(int(each.name) for each in folder.iterdir() if each.name.isdecimal())
    return []
