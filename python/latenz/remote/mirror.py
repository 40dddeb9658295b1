"""Bringing what a program records on a target into the run's folder, while it records."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from latenz.errors import BadInput
from latenz.remote.connection import Reply
from latenz.remote.link import checked, number

BUDGET = 4 << 20
"""Bytes that are asked for at once."""
_PART = "[A-Za-z0-9_+=@][A-Za-z0-9._+=@-]{0,99}"  # threads have folders, by their names
_NAME = re.compile(f"{_PART}(/{_PART}){{0,4}}")
_VERSION = re.compile(r"[0-9-]{1,60}")
_REPLACED = (".json", ".yaml")
_LARGEST_REPLACED = 256 << 20


@dataclass
class _Known:
    version: str
    offset: int
    held: bytearray


class Mirror:
    """A folder of a run that becomes like one on a target.

    Files that grow are appended to; files that the target replaces as a whole are replaced as a
    whole, so that readers never see half of one.

    Args:
        folder: Of the run.
        name: Of the folder on the target, below the agent's.
        url: The target, for messages.
    """

    def __init__(self, folder: Path, name: str, url: str) -> None:
        self._folder = folder
        self._name = name
        self._url = url
        self._known: dict[str, _Known] = {}

    def request(self) -> tuple[str, list[str]]:
        """Return what to ask for: all that is not here yet."""
        known: list[str] = []
        for name, each in self._known.items():
            known += [name, each.version, str(each.offset)]
        return "news", [self._name, str(BUDGET), *known]

    def take(self, reply: Reply) -> bool:
        """Write what came; return whether there is more.

        Raises:
            BadInput: It is not what an agent says, or cannot be written.
            OSError: The agent refused.
        """
        fields = checked(reply)
        if not fields or (len(fields) - 1) % 5:
            raise self._damaged()
        for at in range(1, len(fields), 5):
            name, version = (each.decode("ascii", "replace") for each in fields[at : at + 2])
            if not _NAME.fullmatch(name) or not _VERSION.fullmatch(version):
                raise self._damaged()
            offset, size = number(fields[at + 2]), number(fields[at + 3])
            self._take_file(name, version, offset, size, fields[at + 4])
        return fields[0] == b"1"

    def _take_file(self, name: str, version: str, offset: int, size: int, data: bytes) -> None:
        known = self._known.get(name)
        if known is None or known.version != version or offset == 0:
            known = self._known[name] = _Known(version, 0, bytearray())
        if offset != known.offset:
            raise self._damaged()
        replaced = name.endswith(_REPLACED)
        path = self._folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if replaced:
                self._replace(path, known, size, data)
            else:
                _write(path, offset, data)
        except OSError as error:
            raise BadInput(f"cannot be written ({error.strerror})", str(path)) from None
        known.offset += len(data)

    def _replace(self, path: Path, known: _Known, size: int, data: bytes) -> None:
        if size > _LARGEST_REPLACED:
            raise self._damaged()
        known.held += data
        if len(known.held) < size:
            return
        temporary = path.with_name(f"{path.name}.new")
        temporary.unlink(missing_ok=True)
        _write(temporary, 0, bytes(known.held))
        temporary.replace(path)
        known.held = bytearray()

    def _damaged(self) -> BadInput:
        return BadInput("what the agent tells of its files is damaged", self._url)


def _write(path: Path, offset: int, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    flags |= os.O_TRUNC if offset == 0 else 0
    descriptor = os.open(path, flags, 0o644)
    try:
        place = offset
        while place < offset + len(data):
            place += os.pwrite(descriptor, data[place - offset :], place)
    finally:
        os.close(descriptor)
