"""A file that is being imported: its lines and fields, numbers read exactly, errors that say where.

Nothing here trusts the file: numbers are bounded before they are computed with, lines and JSON
documents are bounded in length, and no memory is set aside because a number in the file says so.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from latenz.errors import BadInput
from latenz.model import Metadata, SampleSet, TimeBase

HEAD_BYTES = 1 << 16
LONGEST_LINE = 1 << 24
LARGEST_JSON = 1 << 28
INT64_MAX = 2**63 - 1
_LINES_PER_PROGRESS = 10_000
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")
_DECIMAL = re.compile(r"([+-]?)([0-9]{0,40})(?:\.([0-9]{0,40}))?(?:[eE]([+-]?[0-9]{1,3}))?")
_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;?]{0,32}[A-Za-z]")


@dataclass(frozen=True)
class Options:
    """What the user says about a file that the file itself cannot tell.

    Attributes:
        time_base: The kind of clock the values were read from; the format's own, if None.
        unit_ns: The unit of values in a file that prints none, in nanoseconds.
        start: The signal whose edge starts a latency (VCD, ILA).
        end: The signal whose edge ends it.
        overlap: What a start does while a latency is open: "drop", "restart" or "queue".
        clock_period: The time from one ILA sample to the next, as a duration with a unit.
        machine: What it was measured on.
        measured: When, in ISO 8601.
        note: What else a reader must know.
    """

    time_base: TimeBase | None = None
    unit_ns: int | None = None
    start: str | None = None
    end: str | None = None
    overlap: str = "drop"
    clock_period: str | None = None
    machine: str | None = None
    measured: str | None = None
    note: str | None = None


class Number(str):
    """A number of a JSON document as it was written, so that nothing is lost or computed early."""

    __slots__ = ()


class Source:
    """One file, read as one format.

    Args:
        path: The file.
        format_name: The name of the format it is read as.
        options: What the user says about it.
        progress: Called now and then with the number of bytes read so far.
    """

    def __init__(
        self,
        path: Path,
        format_name: str,
        options: Options,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self.path = path
        self.format_name = format_name
        self.options = options
        self._progress = progress

    def bad(self, what: str, line: int | None = None, remedy: str = "") -> BadInput:
        """Return the error for this file, with the line where known, ready to be raised."""
        place = f"{self.path}:{line}" if line else str(self.path)
        return BadInput(what, f"{place} ({self.format_name})", remedy)

    def head(self) -> bytes:
        """Return the beginning of the file."""
        with self.path.open("rb") as file:
            return file.read(HEAD_BYTES)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Give each line's number and text, without line end and terminal control codes."""
        with self.path.open("rb") as file:
            number = 0
            while raw := file.readline(LONGEST_LINE):
                number += 1
                if self._progress and number % _LINES_PER_PROGRESS == 0:
                    self._progress(file.tell())
                if len(raw) == LONGEST_LINE:
                    raise self.bad("the line is longer than 16 MiB", number)
                text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
                yield number, _TERMINAL_CODE.sub("", text) if "\x1b" in text else text

    def document(self) -> "Fields":
        """Read the file as one JSON object; numbers stay as written."""
        if self.path.stat().st_size > LARGEST_JSON:
            raise self.bad("is larger than 256 MiB", remedy="a result of this tool is far smaller")
        try:
            value = json.loads(
                self.path.read_bytes().decode("utf-8"),
                parse_int=Number,
                parse_float=Number,
                parse_constant=_no_constant,
                object_pairs_hook=_distinct_keys,
            )
        except json.JSONDecodeError as error:
            raise self.bad(f"is not whole JSON ({error.msg})", error.lineno) from None
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else error
            raise self.bad(f"is not readable JSON ({str(reason)[:200]})") from None
        return Fields(self, value, "")

    def integer(self, text: str, line: int | None, what: str) -> int:
        """Read a whole number of 64 bits."""
        if _INTEGER.fullmatch(text) and -INT64_MAX - 1 <= int(text) <= INT64_MAX:
            return int(text)
        raise self.bad(f"{what} is {_shown(text)}", line, "it must be a whole number of 64 bits")

    def count(self, text: str, line: int | None, what: str) -> int:
        """Read a whole number that is not negative."""
        value = self.integer(text, line, what)
        if value < 0:
            raise self.bad(f"{what} is {value}", line, "it must not be negative")
        return value

    def exact(self, text: str, unit_ns: int | Fraction, line: int | None, what: str) -> Fraction:
        """Read a decimal number of a unit; return nanoseconds, exactly."""
        value = decimal(text)
        if value is None:
            raise self.bad(f"{what} is {_shown(text)}", line, "it must be a number")
        if abs(value * unit_ns) > INT64_MAX:
            raise self.bad(f"{what} is {_shown(text)}", line, "it must fit in 64 bits of ns")
        return value * unit_ns

    def whole(self, text: str, unit_ns: int, line: int | None, what: str) -> int:
        """Read a decimal number of a unit that is a whole number of nanoseconds."""
        value = self.exact(text, unit_ns, line, what)
        if value.denominator != 1:
            raise self.bad(f"{what} is {_shown(text)}", line, "it must be whole nanoseconds")
        return int(value)

    def metadata(self, name: str, **known: Any) -> Metadata:
        """Return a set's metadata: what the format tells, the file, and the user's time base."""
        told = self.options.time_base or known.pop("time_base", None)
        known.pop("time_base", None)
        return Metadata(
            name=name,
            source=f"{self.path.name}, read as {self.format_name}",
            time_base=told or TimeBase.SILICON,
            time_base_assumed=told is None,
            **known,
        )

    def with_said(self, sample_set: SampleSet) -> SampleSet:
        """Return a set with what the user says of its measurement."""
        said = self.options
        told = {"machine": said.machine, "measured": said.measured}
        known: dict[str, object] = {key: value for key, value in told.items() if value}
        if said.note:
            known["notes"] = (*sample_set.metadata.notes, said.note)
        return sample_set.with_metadata(**known) if known else sample_set


class Fields:
    """A JSON object with the path that leads to it, so that errors can name the field."""

    def __init__(self, source: Source, value: object, place: str) -> None:
        if not isinstance(value, dict):
            raise source.bad(f"{place or 'the document'} is not a JSON object")
        self.source = source
        self.values: dict[str, object] = value
        self.place = place

    def at(self, key: str) -> str:
        """Return the path of a field."""
        return f"{self.place}.{key}" if self.place else key

    def bad(self, key: str, what: str) -> BadInput:
        """Return the error for a field."""
        return self.source.bad(f"{self.at(key)} {what}")

    def inner(self, key: str) -> "Fields":
        """Return the object in a field."""
        if key not in self.values:
            raise self.bad(key, "is missing")
        return Fields(self.source, self.values[key], self.at(key))

    def inners(self) -> list[tuple[str, "Fields"]]:
        """Return all fields; each must be an object."""
        return [(key, self.inner(key)) for key in self.values]

    def text(self, key: str) -> str | None:
        """Return a string, None if the field is absent."""
        value = self.values.get(key)
        if value is not None and (not isinstance(value, str) or isinstance(value, Number)):
            raise self.bad(key, "is not a string")
        return value

    def number(self, key: str) -> Number:
        """Return a number as written."""
        value = self.values.get(key)
        if not isinstance(value, Number):
            raise self.bad(key, "is missing" if value is None else "is not a number")
        return value

    def count(self, key: str) -> int:
        """Return a whole number that is not negative."""
        return self.source.count(self.number(key), None, self.at(key))

    def integer(self, key: str) -> int:
        """Return a whole number."""
        return self.source.integer(self.number(key), None, self.at(key))

    def ns(self, key: str, unit_ns: int) -> int:
        """Return a time in nanoseconds."""
        return self.source.whole(self.number(key), unit_ns, None, self.at(key))

    def mean_ns(self, key: str, unit_ns: int) -> float:
        """Return a mean in nanoseconds."""
        return float(self.source.exact(self.number(key), unit_ns, None, self.at(key)))


def is_json(head: bytes) -> bool:
    """Tell whether a file that begins like this is a JSON object, or damaged."""
    return head.lstrip()[:1] == b"{"


def decimal(text: str) -> Fraction | None:
    """Return the exact value of a decimal number of reasonable length, None if it is none."""
    match = _DECIMAL.fullmatch(text.strip())
    if match is None:
        return None
    sign, whole, fraction, exponent = match.groups()
    digits = (whole or "") + (fraction or "")
    power = int(exponent or 0) - len(fraction or "")
    if not digits or abs(power) > 100:
        return None
    value = Fraction(int(digits)) * Fraction(10) ** power
    return -value if sign == "-" else value


def share(text: str) -> Fraction | None:
    """Return the exact value of a share such as 0.25 or 25%, None if it is no such."""
    bare = text.strip()
    value = decimal(bare.removesuffix("%"))
    if value is None:
        return None
    value = value / 100 if bare.endswith("%") else value
    return value if 0 <= value <= 1 else None


def _shown(text: str) -> str:
    return repr(str(text) if len(text) <= 40 else text[:40] + "...")


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def _distinct_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:40]!r} stands twice in one object")
    return found
