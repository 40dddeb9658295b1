"""Durations as people write them, exact to the nanosecond.

A duration is an integer (nanoseconds) or a string with a unit: "40 us", "6ms", "1.5 ms", or a
count of instructions at a clock rate: "128 instr @ 200 MHz". What is not a whole number of
nanoseconds is refused, never rounded.
"""

import re
from fractions import Fraction

from latenz.errors import BadInput, shown

NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_HERTZ = {"Hz": 1, "kHz": 1_000, "MHz": 1_000_000, "GHz": 1_000_000_000}
_NUMBER = r"(-?\d{1,30}(?:\.\d{1,30})?)"
_WITH_UNIT = re.compile(rf"{_NUMBER}\s*([^\s\d.@]+)")
_COMMA = re.compile(r"[0-9]{1,18},[0-9]{1,18} ?\w{1,5}")
_INSTRUCTIONS = re.compile(rf"(\d{{1,30}})\s*instr\s*@\s*{_NUMBER}\s*([kMG]?Hz)")
_FREQUENCY = re.compile(rf"{_NUMBER}\s*([kMG]?Hz)")
_BARE = re.compile(r"-?\d{1,30}")
_LIMIT = 2**63
_SHORTEST_INTERVAL_NS, _LONGEST_INTERVAL_NS = 10_000_000, 3_600_000_000_000
EXAMPLES = 'write an integer (nanoseconds) or a string such as "40 us", "1.5 ms" or "2 min"'


def parse_duration(value: int | str, where: str = "") -> int:
    """Return a duration in nanoseconds.

    Args:
        value: An integer (nanoseconds) or a string with a unit.
        where: The file, field or option it came from, for the error message.

    Raises:
        BadInput: The text is not a duration, is not a whole number of nanoseconds, or does not fit
            in 64 bits.
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise BadInput(f"{shown(value)} is not a duration", where, EXAMPLES)
    exact = Fraction(value) if isinstance(value, int) else _parse_text(value.strip(), where)
    if exact.denominator != 1:
        raise BadInput(
            f"{shown(value)} is not a whole number of nanoseconds", where, "write it exactly"
        )
    if not -_LIMIT <= exact < _LIMIT:
        raise BadInput(f"{shown(value)} does not fit in 64 bits", where, "the longest is 292 years")
    return int(exact)


def _parse_text(text: str, where: str) -> Fraction:
    if _BARE.fullmatch(text):
        return Fraction(int(text))
    if match := _WITH_UNIT.fullmatch(text):
        number, unit = match.groups()
        if unit in NANOSECONDS:
            return Fraction(number) * NANOSECONDS[unit]
        raise BadInput(
            f"{shown(unit)} in {shown(text)} is not a unit of time",
            where,
            "units: " + ", ".join(NANOSECONDS),
        )
    if match := _INSTRUCTIONS.fullmatch(text):
        count, rate, unit = match.groups()
        if Fraction(rate) <= 0:
            raise BadInput(f"{shown(text)} has no positive clock rate", where, EXAMPLES)
        return Fraction(int(count) * 1_000_000_000) / (Fraction(rate) * _HERTZ[unit])
    remedy = f"write {text.replace(',', '.')}" if _COMMA.fullmatch(text) else EXAMPLES
    raise BadInput(f"{shown(text)} is not a duration", where, remedy)


def parse_interval(text: str, where: str) -> int:
    """Return the nanoseconds from one report to the next that a text asks for.

    Raises:
        BadInput: It is too short or too long for anybody who watches.
    """
    interval_ns = parse_duration(text, where)
    if not _SHORTEST_INTERVAL_NS <= interval_ns <= _LONGEST_INTERVAL_NS:
        raise BadInput(f"{text!r} is not an interval", where, "it is between 10 ms and 1 h")
    return interval_ns


def parse_frequency(text: str, where: str = "") -> int:
    """Return a frequency in hertz, such as that of "100 MHz".

    Raises:
        BadInput: The text is none, or not a whole number of hertz above 0.
    """
    match = _FREQUENCY.fullmatch(text.strip())
    exact = Fraction(match[1]) * _HERTZ[match[2]] if match else Fraction(0)
    if exact.denominator != 1 or exact <= 0:
        raise BadInput(f"{shown(text)} is not a frequency", where, 'write for example "100 MHz"')
    return int(exact)


def format_duration(nanoseconds: float) -> str:
    """Return a duration for people, in the largest unit that keeps a leading digit, 4 digits."""
    for unit, size in (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000)):
        if abs(nanoseconds) >= size:
            return (
                f"{nanoseconds / size:.4g} {unit}"
                if abs(nanoseconds) < 1e13
                else f"{nanoseconds / size:.0f} {unit}"
            )
    return f"{nanoseconds:.4g} ns"


def whole_seconds(duration_ns: int) -> int:
    """Return a duration in whole seconds, rounded up, as the other tools take it."""
    return -(-duration_ns // 1_000_000_000)
