"""What the readers of text traces share: lines, a last line that was cut off, growing times."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from latenz.errors import BadInput, shown
from latenz.importers.source import INT64_MAX, Source, decimal
from latenz.system.trace import Times

_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a reader found.

    Attributes:
        times_by_source: Ascending, nanoseconds.
        warnings: What the trace lacks.
        advice: What would be right if there is nothing in it.
    """

    times_by_source: dict[str, Times]
    warnings: list[str]
    advice: str = ""


class Collected:
    """Times by source, growing in 8 bytes each."""

    def __init__(self) -> None:
        self._times: dict[str, array[int]] = {}

    def add(self, source: str, time_ns: int) -> None:
        """Add an activation; the time fits in 64 bits."""
        times = self._times.get(source)
        if times is None:
            times = self._times[source] = array("q")
        times.append(time_ns)

    def __contains__(self, source: str) -> bool:
        return source in self._times

    def by_source(self) -> dict[str, Times]:
        """Return ascending times; sources in the order of their first activations."""
        return {
            name: np.sort(np.array(times, np.int64), kind="stable")
            for name, times in self._times.items()
        }


def read_lines(source: Source, take: Callable[[int, str], None]) -> list[str]:
    """Give each line and its number to a reader; return a warning if the last one was cut off.

    Recording may end in the middle of a line. So the last line may be broken if it has no end;
    every other one may not.
    """
    broken: tuple[int, BadInput] | None = None
    for number, content in source.lines():
        if broken:
            raise broken[1]
        try:
            take(number, content)
        except BadInput as mistake:
            broken = number, mistake
    if broken is None:
        return []
    if broken[0] == 1 or _ends_with_newline(source):
        raise broken[1]
    return [f"line {broken[0]}, the last one, is cut off and was left out"]


def _ends_with_newline(source: Source) -> bool:
    with source.path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) in b"\r\n"


def nanoseconds(source: Source, text: str, unit_ns: int | Fraction, line: int) -> tuple[int, bool]:
    """Read a time stamp that is not negative; return it, rounded down, and whether it is exact."""
    if text.isascii() and text.isdigit() and len(text) < 19 and isinstance(unit_ns, int):
        time_ns, exact = int(text) * unit_ns, True
    else:
        value = decimal(text)
        if value is None or value < 0:
            remedy = "it must be a number, 0 or above"
            raise source.bad(f"the time stamp is {shown(text)}", line, remedy)
        whole = value * unit_ns
        time_ns, exact = whole.numerator // whole.denominator, whole.denominator == 1
    if time_ns > INT64_MAX:
        raise source.bad(f"the time stamp is {shown(text)}", line, "it must fit in 64 bits of ns")
    return time_ns, exact


def printable(name: str) -> str:
    """Return a name from a trace such that it can do no harm on a terminal."""
    kept = "".join(each if each.isprintable() else "?" for each in name[:_LONGEST_NAME])
    return kept.strip() or "?"
