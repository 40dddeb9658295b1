"""Services of a machine, told from its files: which are active, and which start at boot.

The service manager is never asked: a tree of files has none, and a container's is not the host's.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from latenz.tune.root import Root

_UNIT_FOLDERS = ("/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system")
_LIB = "/lib/systemd/system"
_GROUPS = "/sys/fs/cgroup"
_COMM_LENGTH = 15


@dataclass(frozen=True)
class Running:
    """What runs on a machine.

    Attributes:
        groups: Control groups that are named like services, by path.
        commands: Names of processes (comm), by the paths of the files that tell them; none where
            control groups tell more.
    """

    groups: tuple[str, ...]
    commands: dict[str, str]


def running(root: Root) -> Running:
    """Return what runs, which takes long enough to do it once for many services."""
    groups = tuple(root.glob(f"{_GROUPS}/**/*.service"))
    commands = {}
    if not root.is_folder(f"{_GROUPS}/system.slice"):
        for path in root.glob("/proc/[0-9]*/comm"):
            commands[path] = (root.read(path) or "").strip()
    return Running(groups, commands)


def unit_states(
    root: Root, pattern: str, runs: Running | None = None
) -> list[tuple[str, str, str]] | None:
    """Return (unit, state, where it shows) of the units that are active or enabled.

    A unit is active if its control group has processes; where the tree has no control groups, if
    a process has its name. It is enabled if something wants it at boot and it is not masked.

    Args:
        root: The machine's files.
        pattern: Of the unit's name with its suffix, such as irqbalance.service.
        runs: What runs there, if that is known already.

    Returns:
        In order of the names; None if the tree tells neither processes nor services.
    """
    active = dict(_active(root, pattern, runs or running(root)))
    enabled = dict(_enabled(root, pattern))
    if not any(map(root.is_folder, ("/proc", *_UNIT_FOLDERS, _LIB, "/etc/init.d"))):
        return None
    found = []
    for unit in sorted(active | enabled):
        words = [
            word for word, units in (("active", active), ("enabled", enabled)) if unit in units
        ]
        found.append((unit, ", ".join(words), active.get(unit) or enabled[unit]))
    return found


def _active(root: Root, pattern: str, runs: Running) -> Iterator[tuple[str, str]]:
    name, _, suffix = pattern.rpartition(".")
    if suffix != "service":
        return
    for path in runs.groups:
        unit = path.rpartition("/")[2]
        if fnmatchcase(unit, pattern) and (root.read(f"{path}/cgroup.procs") or "").strip():
            yield unit, path
    for path, comm in runs.commands.items():
        if comm and fnmatchcase(comm, name[:_COMM_LENGTH]):
            yield f"{comm}.service", path


def _enabled(root: Root, pattern: str) -> Iterator[tuple[str, str]]:
    for folder in (*_UNIT_FOLDERS, _LIB):
        for wants in ("wants", "requires"):
            for path in root.glob(f"{folder}/*.{wants}/{pattern}"):
                unit = path.rpartition("/")[2]
                if not _is_masked(root, unit):
                    yield unit, path
    if pattern.endswith(".service"):
        name = pattern.removesuffix(".service")
        for path in (
            *root.glob(f"/etc/rc[2-5].d/S??{name}"),
            *root.glob(f"/etc/runlevels/*/{name}"),
        ):
            yield path.rpartition("/")[2].lstrip("S0123456789") + ".service", path


def has_systemd(root: Root) -> bool:
    """Return whether a machine has systemd, so that its files count when it boots.

    It need not run now: what is looked at may be a container, or have been started by another init.
    """
    first = (root.read("/proc/1/comm") or "systemd").strip()
    return first == "systemd" or any(map(root.is_folder, ("/etc/systemd", _UNIT_FOLDERS[2], _LIB)))


def _is_masked(root: Root, unit: str) -> bool:
    return any(root.link(f"{folder}/{unit}") == "/dev/null" for folder in _UNIT_FOLDERS[:2])
