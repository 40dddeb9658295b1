"""Setting up a group of what Latenz needs when a command first needs it."""

import importlib
import subprocess
import sys
from pathlib import Path

from latenz.obstacle import Obstacle

_PREFIX = "latenz set-up: "


def ensure_group(group: str, who: str) -> Obstacle | None:
    """Install a group of `setup/ensure` unless it is there; takes 20 ms if so.

    What set-up does it says on standard error.

    Args:
        group: Such as `boards`.
        who: Who needs it, for the message, such as "boards".

    Returns:
        What is missing and the command that installs it, or None if all is there.
    """
    program = Path(__file__).parents[2] / "setup/ensure"
    if not program.is_file():
        return Obstacle(f"{who} need Latenz's own folder", "clone Latenz and run ./latenz there")
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
