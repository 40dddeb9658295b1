"""What a file is that was given to the wrong command, output of other tools among it."""

from pathlib import Path

from latenz import importers
from latenz.errors import BadInput
from latenz.magic import HEAD_BYTES, other_use


def other_use_of(path: Path) -> str | None:
    """Return what a file is and which command reads it; None if unknown or unreadable."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        return (
            other_use(head) or f"it is output of {importers.recognise(head, '')}: latenz show FILE"
        )
    except (BadInput, OSError):
        return None
