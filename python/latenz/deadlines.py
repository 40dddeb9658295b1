"""Deadlines as people write them on the command line: `[NAME=]LIMIT[@ALLOWED]`."""

import re

from latenz.allowance import DEFAULT, parse_allowance
from latenz.durations import parse_duration
from latenz.errors import BadInput, shown
from latenz.model import Deadline

_EXAMPLES = 'write for example "3ms", "30us@1/h", "30us@0.1%" or "goose=3ms@0"'
_BARE = re.compile(r"-?[\d.]+")


def parse_deadline(text: str, where: str = "--deadline") -> Deadline:
    """Return the deadline that a text asks to judge by.

    Args:
        text: `[NAME=]LIMIT[@ALLOWED]`: a limit with its unit, and how much lateness it allows
            (`latenz.allowance`); without a name it is called by its limit.
        where: The option or field that it came from.

    Raises:
        BadInput: A part is missing or is none.
    """
    named, equals, rest = text.rpartition("=")
    limit, at, allowed = (part.strip() for part in rest.rpartition("@"))
    if not at or allowed.endswith("Hz"):  # as in 128 instr @ 200 MHz
        limit, at, allowed = rest.strip(), "", ""
    if (equals and not named.strip()) or (at and not allowed) or not limit:
        raise BadInput(f"{shown(text)} is not a deadline", where, _EXAMPLES)
    if _BARE.fullmatch(limit):
        raise BadInput(f"{shown(text)} has no unit", where, f'write "{limit}us" or the like')
    if "/" in limit:
        raise BadInput(f"{shown(text)} is not a deadline", where, _EXAMPLES)
    limit_ns = parse_duration(limit, where)
    if limit_ns <= 0:
        raise BadInput(f"{shown(text)} is not a deadline", where, "the limit must be above zero")
    parse_allowance(allowed if at else DEFAULT, where)
    return Deadline(
        name=named.strip() or limit, limit_ns=limit_ns, allowed=allowed if at else DEFAULT
    )
