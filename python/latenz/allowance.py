"""How much lateness a deadline allows: none, a share of activations, or a rate of episodes."""

import re
from dataclasses import dataclass
from typing import Literal

from latenz.durations import NANOSECONDS
from latenz.errors import BadInput, shown

DEFAULT = "1/h"
EXAMPLES = "write 0, a probability such as 1e-3 or 0.1%, or a rate such as 1/h or 2/day"
_NUMBER = r"((?:\d{1,15}(?:\.\d{0,15})?|\.\d{1,15})(?:[eE][+-]?\d{1,3})?)"
_LEAST, _MOST = 1e-15, 0.999_999
_PROBABILITY = re.compile(rf"{_NUMBER}\s*(%?)")
_RATE = re.compile(rf"{_NUMBER}\s*/\s*([a-z]+)")
_PER_S = {
    **{unit: size / 1e9 for unit, size in NANOSECONDS.items() if unit in ("s", "min", "h", "d")},
    "hour": 3_600.0,
    "day": 86_400.0,
    "week": 604_800.0,
    "year": 31_557_600.0,
}


@dataclass(frozen=True)
class Allowance:
    """How much lateness is allowed.

    Attributes:
        kind: `hard`: no activation may be late; `share`: a share of them may; `rate`: so many
            episodes of late ones in a time.
        value: The share, or the episodes in a second; 0 for `hard`.
        text: As it was written.
    """

    kind: Literal["hard", "share", "rate"]
    value: float
    text: str


def parse_allowance(text: str, where: str = "allowed") -> Allowance:
    """Return the allowance that a text such as `0`, `1e-3`, `0.1%` or `1/h` names.

    Args:
        text: What was written.
        where: The file, field or option it came from.

    Raises:
        BadInput: It is none of these, no probability below 1, or a rate of nothing.
    """
    written = text.strip()
    if match := _RATE.fullmatch(written):
        count, unit = float(match[1]), match[2]
        if unit in _PER_S and 1e-9 <= count < 1e12:
            return Allowance("rate", count / _PER_S[unit], written)
        units = ", ".join(_PER_S)
        raise BadInput(f"{shown(written)} is not a rate", where, f"write 1/h; units: {units}")
    if match := _PROBABILITY.fullmatch(written):
        value = float(match[1]) / (100 if match[2] else 1)
        if not float(match[1].lower().partition("e")[0]):
            return Allowance("hard", 0.0, written)
        if _LEAST <= value <= _MOST:
            return Allowance("share", value, written)
    raise BadInput(f"{shown(written)} is not an allowance", where, EXAMPLES)
