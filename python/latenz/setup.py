"""Setting up a group of what Latenz needs when a command first needs it."""

import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from latenz.installation import add_python, built, clone
from latenz.obstacle import Obstacle
from latenz.programs import LEAST_QEMU, program_version

_PREFIX = "latenz set-up: "


@dataclass(frozen=True)
class _Group:
    """What a group needs where nothing is set up by us.

    Attributes:
        modules: Python modules; they are the package's extra of the group's name.
        emulator: The processor that QEMU emulates.
        package: Debian's package of that emulator.
        programs: Folder of programs for boards, which wheels of releases have; "": none.
    """

    modules: tuple[str, ...]
    emulator: str
    package: str
    programs: str = ""


_GROUPS = {
    "boards": _Group(("labgrid", "elftools", "qemu.qmp"), "aarch64", "qemu-system-arm", "firmware"),
    "vm": _Group(("elftools", "qemu.qmp"), "x86_64", "qemu-system-x86"),
}


def ensure_group(group: str, who: str) -> Obstacle | None:
    """Install a group of `setup/ensure` unless it is there; takes 20 ms if so.

    What set-up does it says on standard error. Where Latenz is installed from a package, nothing is
    installed: what is missing is told.

    Args:
        group: Such as `boards`.
        who: Who needs it, for the message, such as "boards".

    Returns:
        What is missing and the command that installs it, or None if all is there.
    """
    root = clone()
    return _set_up(root / "setup/ensure", group) if root else missing(group, who)


def missing(group: str, who: str) -> Obstacle | None:
    """Return what of a group an installed Latenz lacks, or None if all is there."""
    needs = _GROUPS.get(group)
    if needs is None:
        return Obstacle(f"{who} need Latenz's own folder", "clone Latenz and run ./latenz there")
    absent = [name for name in needs.modules if not _has_module(name)]
    if absent:
        return Obstacle(f"{who} need the Python packages of {absent[0]}", add_python(group))
    if needs.programs and not built(needs.programs).is_dir():
        reason = f"{who} need firmware, which this installation was built without"
        return Obstacle(reason, "install a wheel of a release, or clone Latenz")
    return _emulator_obstacle(needs, who)


def _emulator_obstacle(needs: _Group, who: str) -> Obstacle | None:
    program = f"qemu-system-{needs.emulator}"
    fix = f"apt-get install {needs.package} (Debian 12: from its backports)"
    if shutil.which(program) is None:
        return Obstacle(f"{who} need {program}, which is not installed", fix)
    version = program_version(program, "--version") or ""
    found = re.match(r"\d+", version)
    if found is None or int(found[0]) < LEAST_QEMU:
        return Obstacle(f"{who} need QEMU {LEAST_QEMU}; {program} is {version or 'unknown'}", fix)
    return None


def _has_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False


def _set_up(program: Path, group: str) -> Obstacle | None:
    told = ""
    with subprocess.Popen(
        [program, group], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as setup:
        for line in setup.stderr or ():
            text = line.decode(errors="replace")
            sys.stderr.write(text)
            told = text.strip().removeprefix(_PREFIX)
    if setup.returncode == 0:
        importlib.invalidate_caches()
        return None
    reason, _, fix = told.partition("; run: ")
    return Obstacle(reason or f"{program} failed", fix or f"{program} {group}")
