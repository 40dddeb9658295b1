"""Setting up what boards need when a condition first needs it."""

import functools

from latenz.obstacle import Obstacle
from latenz.setup import ensure_group


@functools.cache
def ensure_boards() -> Obstacle | None:
    """Install emulator, cross compilers and firmware unless they are there; takes 20 ms if so.

    What set-up does it says on standard error.

    Returns:
        What is missing and the command that installs it, or None if all is there.
    """
    return ensure_group("boards", "boards")
