"""The journal of a transaction: what was there before, and how far the changes came.

A text file of records, one a line: CRC-32 of the rest in eight hexadecimal digits, a blank, JSON.
The first record holds all changes with what they found; each further one is on the disk before
the step that it announces, and after the one that it reports. Room for all of them is taken when
the journal is made, so that a disk that fills up later cannot stop it; unused room is zeros. A
last record that was cut short is none.
"""

import json
import stat
import zlib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from latenz.errors import BadInput
from latenz.tune.changes import AnyChange
from latenz.tune.places import Place

_ROOM = 1024
"""Bytes for the records of one change; longer texts are cut."""
_MOST_TEXT = 160
_MOST_CHANGES = 100_000
_MEND = "it is damaged: take the changes back by hand, see docs/tune-apply.md"


class Head(BaseModel):
    """What a transaction is about.

    Attributes:
        boot: What the kernel called the boot in which it began.
        began: When it began, UTC, ISO 8601.
        isolated: The CPUs chosen, as a list; and what the machine is for.
        made: How many of the last folders of the path of the state folder are ours.
        proof: The folder of the proof that tries these changes; empty if they were asked for.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    journal: Literal[1] = 1
    boot: str = Field(max_length=64)
    began: str = Field(max_length=64)
    isolated: str = Field(max_length=65536)
    profile: str = Field(max_length=64)
    made: Annotated[int, Field(ge=0, le=4)]
    proof: str = Field("", max_length=4096)
    changes: Annotated[tuple[AnyChange, ...], Field(max_length=_MOST_CHANGES)]


Event = Literal["begin", "done", "refused", "applied", "revert", "undo", "undone", "reverted"]


class Record(BaseModel):
    """One thing that happened.

    Attributes:
        event: To all of the transaction: applied, revert (begins), reverted. To one change: begin,
            done, refused; undo, undone.
        change: Its number.
        text: done: what stands for what is there then. refused, undone: why it could not be.
        remake: undone: what was made of its files must be made again once they are as before.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    event: Event
    change: int = -1
    text: str = ""
    remake: bool = False


class Journal:
    """A journal on the disk.

    Attributes:
        head: Its first record.
        records: The others so far.
    """

    def __init__(
        self, place: Place, path: Path, head: Head, records: list[Record], end: int
    ) -> None:
        self.place = place
        self.path = path
        self.head = head
        self.records = records
        self._end = end

    @classmethod
    def create(cls, place: Place, path: Path, head: Head) -> "Journal":
        """Make a journal that is on the disk with room for all its records.

        Raises:
            BadInput: It would be larger than what is read back.
            OSError: It cannot be written.
        """
        line = _line(head)
        room = _ROOM * (len(head.changes) + 8)
        if len(line) + room > place.calls.most_bytes:
            raise BadInput("is too much for one transaction", "the plan", "choose with --only")
        place.calls.write_new(path, line, room)
        return cls(place, path, head, [], len(line))

    @classmethod
    def read(cls, place: Place, path: Path) -> "Journal":
        """Read a journal, however it ended.

        Raises:
            BadInput: It is damaged, not ours, or open to others.
        """
        if not stat.S_ISREG(place.mode(path)):
            raise BadInput("is not a journal", str(path), _MEND)
        found = place.calls.status(path)
        if found.uid not in (0, place.calls.user()) or found.mode & 0o022:
            raise BadInput("could be written by others", str(path), "look who did, see its owner")
        lines = place.read(path).split(b"\0", 1)[0].splitlines(keepends=True)
        bodies = [_body(line) for line in lines]
        good = bodies.index(None) if None in bodies else len(bodies)
        if any(body is not None for body in bodies[good:]) or not good:
            raise BadInput(f"line {good + 1} makes no sense", str(path), _MEND)
        try:
            head = Head.model_validate_json(bodies[0] or b"")
            records = [Record.model_validate_json(body or b"") for body in bodies[1:good]]
        except (ValidationError, RecursionError) as error:
            raise BadInput(_first(error), str(path), _MEND) from None
        if any(not -1 <= record.change < len(head.changes) for record in records):
            raise BadInput("names something that is not a change", str(path), _MEND)
        return cls(place, path, head, records, sum(map(len, lines[:good])))

    def append(
        self, event: Event, change: int = -1, text: str = "", *, remake: bool = False
    ) -> None:
        """Append a record; it is on the disk when this returns.

        Raises:
            OSError: It cannot be written.
        """
        plain = text.encode("ascii", "replace").decode()
        shorter = plain if len(plain) <= _MOST_TEXT else plain[:_MOST_TEXT] + "..."
        record = Record(event=event, change=change, text=shorter, remake=remake)
        line = _line(record)
        self.place.calls.write_at(self.path, self._end, line)
        self._end += len(line)
        self.records.append(record)

    def happened(self, event: Event) -> dict[int, Record]:
        """Return the last record of this kind of each change; of the transaction itself: -1."""
        return {record.change: record for record in self.records if record.event == event}


def _line(record: BaseModel) -> bytes:
    body = json.dumps(record.model_dump(mode="json"), separators=(",", ":")).encode()
    return b"%08x %b\n" % (zlib.crc32(body), body)


def _body(line: bytes) -> bytes | None:
    """Return the JSON of a whole line, None for one that is damaged or cut short."""
    checksum, _, body = line.rstrip(b"\n").partition(b" ")
    whole = line.endswith(b"\n") and checksum == b"%08x" % zlib.crc32(body)
    return body if whole else None


def _first(error: Any) -> str:
    if not isinstance(error, ValidationError):
        return "is nested too deeply"
    first = error.errors()[0]
    place = ".".join(str(part)[:40] for part in first["loc"][:4])
    return f"{place}: {first['msg'][:200]}"
