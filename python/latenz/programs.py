"""Where the native measuring programs are installed."""

from pathlib import Path

import latenz
from latenz.errors import BadInput


def probe_program(name: str) -> Path:
    """Return the path of a native program of ours, such as `latenz-wakeup`.

    Raises:
        BadInput: It has not been built.
    """
    for folder in latenz.__path__:
        program = Path(folder) / "bin" / name
        if program.exists():
            return program
    raise BadInput("has not been built", name, "run ./latenz, which builds what is missing")
