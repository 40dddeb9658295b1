"""Where boards are described, and what emulates those that are emulated."""

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

from latenz.boards import apt_sources
from latenz.programs import program_version

ENVIRONMENTS = Path(__file__).parent / "environments"
"""Our labgrid environments, one for each bench that is a board."""


def environment_of(bench: str) -> Path:
    """Return the labgrid environment that describes a board: the user's own, or ours."""
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    own = Path(base) / "latenz" / f"{bench}.yaml"
    return own if own.exists() else ENVIRONMENTS / f"{bench}.yaml"


def emulator() -> dict[str, Any]:
    """Return the emulator of boards and what drives it, for a run's record."""
    return {
        "qemu": program_version("qemu-system-aarch64", "--version"),
        "labgrid": version("labgrid"),
        "clock": "1 ns for each instruction, summed over all cores; no caches, no buses",
        "packages": apt_sources.account(),
    }
