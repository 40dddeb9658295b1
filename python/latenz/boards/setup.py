"""Setting up what boards need when a condition first needs it."""

import functools
import importlib
import subprocess
import sys
from pathlib import Path

from latenz.engines.base import Obstacle

_PREFIX = "latenz set-up: "


@functools.cache
def ensure_boards() -> Obstacle | None:
    """Install emulator, cross compilers and firmware unless they are there; takes 20 ms if so.

    What set-up does it says on standard error.

    Returns:
        What is missing and the command that installs it, or None if all is there.
    """
    program = Path(__file__).parents[3] / "setup/ensure"
    if not program.is_file():
        return Obstacle("boards need Latenz's own folder", "clone Latenz and run ./latenz there")
    told = ""
    with subprocess.Popen(
        [program, "boards"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as setup:
        for line in setup.stderr or ():
            text = line.decode(errors="replace")
            sys.stderr.write(text)
            told = text.strip().removeprefix(_PREFIX)
    if setup.returncode == 0:
        importlib.invalidate_caches()
        return None
    reason, _, fix = told.partition("; run: ")
    return Obstacle(reason or f"{program} failed", fix or f"{program} boards")
