"""What was found, told once for each pair of functions and the object between them."""

from collections.abc import Iterable
from dataclasses import dataclass

from latenz.coherence.names import Names
from latenz.coherence.recording import Finding

_PAGE = 1 << 12
WHAT = {
    "dirty": ("not cleaned", "memory is read, and the newest data may be in a cache only"),
    "stale": ("stale line", "memory was written uncached, and a cache may hold older data"),
    "overwritten": (
        "written under a dirty line",
        "a line that is dirty in a cache may be written back over what was written uncached",
    ),
    "discarded": ("discarded", "a dirty line was invalidated and not cleaned"),
    "incomplete": ("no barrier", "maintenance that no barrier follows may not be complete"),
    "uncleaned": (
        "code not cleaned",
        "instructions were written as data, and may not be where instructions are read",
    ),
    "instructions": (
        "old instructions",
        "instructions were written, and an instruction cache may hold those before",
    ),
}
"""Each cause in a few words, and in a sentence."""
_READING = {"load": "", "walk": "table walk in ", "fetch": "execution of "}


@dataclass(frozen=True)
class Place:
    """What may be read old, by whom, and who wrote it.

    Attributes:
        cause: In one word, as in the recording.
        what: The same in a few words.
        address: Physical, of the first such access.
        symbol: The object that holds it; None if no file names it.
        written_by: The function that wrote it.
        read_by: The function that read it first.
        reading: load, walk or fetch.
        readers: How many instructions read it so, in all functions.
        first_ns: Virtual time of the first.
    """

    cause: str
    what: str
    address: int
    symbol: str | None
    written_by: str
    read_by: str
    reading: str
    readers: int
    first_ns: int


def places_of(findings: Iterable[Finding], names: Names) -> tuple[Place, ...]:
    """Join findings: one place for each cause, kind of reading, object, and function that wrote."""
    joined: dict[tuple[str, str, object, str], list[Finding]] = {}
    for each in findings:
        symbol = names.object(each.physical) or names.object(each.address)
        where: object = symbol or each.physical // _PAGE
        writer = names.function(each.writer)
        joined.setdefault((each.cause, each.reading, where, writer), []).append(each)
    return tuple(
        _place(found, where if isinstance(where, str) else None, writer, names)
        for (_, _, where, writer), found in joined.items()
    )


def _place(found: list[Finding], symbol: str | None, writer: str, names: Names) -> Place:
    first = found[0]
    return Place(
        cause=first.cause,
        what=WHAT[first.cause][0],
        address=first.physical,
        symbol=symbol,
        written_by=writer,
        read_by=_READING[first.reading] + names.function(first.reader),
        reading=first.reading,
        readers=len(found),
        first_ns=first.time_ns,
    )
