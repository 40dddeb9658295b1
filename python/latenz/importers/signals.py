"""Finding the signals a user names, and the edges of their levels."""

import re
from collections.abc import Iterable, Sequence

from latenz.errors import BadInput
from latenz.importers.source import Options

_RANGE = re.compile(r"\[ ?(-?\d{1,9}) ?(?:: ?(-?\d{1,9}) ?)?\]$")


class Edge:
    """Watches one signal and counts the edges of one direction.

    An edge is a change from 0 straight to 1 (or from 1 to 0): 0, x, 1 is none.

    Args:
        falling: Count falling edges, not rising ones.
    """

    def __init__(self, falling: bool) -> None:
        self._before, self._after = ("1", "0") if falling else ("0", "1")
        self._level = "x"
        self.count = 0

    def take(self, level: str) -> None:
        """Take the signal's new level: 0, 1, or anything else for unknown."""
        if level == self._after and self._level == self._before:
            self.count += 1
        self._level = level

    def forget(self) -> None:
        """Forget the level, as when the recording has a gap."""
        self._level = "x"


def split_direction(wanted: str) -> tuple[str, bool]:
    """Split `SIGNAL:fall` into the signal's name and whether its falling edge is meant."""
    for suffix, falling in ((":fall", True), (":rise", False)):
        if wanted.endswith(suffix):
            return wanted.removesuffix(suffix), falling
    return wanted, False


def required(wanted: str | None, option: str, names: Iterable[str], where: str) -> str:
    """Return the signal the user named; if none, say which there are in the file `where`."""
    if wanted:
        return wanted
    raise BadInput(f"no signal given for {option}", where, _candidates("signals", names))


def chosen(
    options: Options, names: Sequence[str], codes: Sequence[object], where: str
) -> list[tuple[int, bool]]:
    """Return which signal starts a latency and which ends it, and whether by its falling edge.

    Args:
        options: Those of the user.
        names: As `find`.
        codes: As `find`.
        where: The file, for the error message.

    Raises:
        BadInput: One was not named, is not there, or both are the same edge.
    """
    found = []
    for option, wanted in (("--start", options.start), ("--end", options.end)):
        name, falling = split_direction(required(wanted, option, names, where))
        found.append((find(name, names, codes, f"{where}, {option}"), falling))
    (start, start_falls), (end, end_falls) = found
    if codes[start] == codes[end] and start_falls == end_falls:
        raise BadInput(
            "start and end are the same edge", where, f"write {names[end]}:fall for the falling one"
        )
    return found


def find(wanted: str, names: Sequence[str], codes: Sequence[object], where: str) -> int:
    """Find a signal by its full name or by its last name, with or without its bit range.

    Args:
        wanted: What the user wrote, without direction.
        names: The full names in the file, their parts separated by dots or slashes.
        codes: What each name stands for; names of the same thing are not ambiguous.
        where: The file and option, for the error message.

    Returns:
        The index of the first name that fits.

    Raises:
        BadInput: No name fits, or names of different signals do.
    """
    wanted = normal(wanted)
    fitting = [i for i, name in enumerate(names) if wanted in (name, without_range(name))]
    fitting = fitting or [
        i for i, name in enumerate(names) if wanted in (_last(name), without_range(_last(name)))
    ]
    if not fitting:
        close = [name for name in names if wanted.lower() in name.lower()] or names
        raise BadInput(f"no signal {wanted[:80]!r}", where, _candidates("there are", close))
    if len({codes[i] for i in fitting}) > 1:
        candidates = [names[i] for i in fitting]
        raise BadInput(
            f"the signal {wanted[:80]!r} is ambiguous",
            where,
            _candidates("give one of", candidates),
        )
    return fitting[0]


def normal(name: str) -> str:
    """Return a name with its bit range attached: `data [7:0]` is `data[7:0]`."""
    match = _RANGE.search(name)
    return name if match is None else without_range(name) + match[0].replace(" ", "")


def without_range(name: str) -> str:
    """Return a name without its bit range."""
    match = _RANGE.search(name)
    return name if match is None else name[: match.start()].rstrip()


def bit_range(name: str) -> tuple[int, int] | None:
    """Return the left and right index of a name's bit range, None if it has none."""
    match = _RANGE.search(name)
    if match is None:
        return None
    return int(match[1]), int(match[2] if match[2] is not None else match[1])


def _last(name: str) -> str:
    base = without_range(name)
    return name[max(base.rfind("."), base.rfind("/")) + 1 :]


def _candidates(label: str, names: Iterable[str]) -> str:
    listed = sorted(set(names))
    shown = ", ".join(name[:100] for name in listed[:10])
    return f"{label}: {shown}{', ...' if len(listed) > 10 else ''}"
