"""By how much the times of a guest must be moved, so that they lie where its host says it ran."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Times = NDArray[np.int64]

ROUNDING_NS = 2
"""Of cycles into ns, once on each side."""
BIN_NS = 4_000
"""How finely distances between the clocks are counted, before they are made exact."""
_NEAR_NS = 2 * BIN_NS
_LONGEST_ENTRY_NS, _STEP_NS = 60_000, 250  # from an entry to the guest's first event
_OF_PIECE, _MOST_PIECES = 48, 256


class Runs(NamedTuple):
    """When a thread was in its guest: from each entry to the exit after it, in order."""

    entries: "Times"
    exits: "Times"


class Found(NamedTuple):
    """Events of a guest, compared with when it ran."""

    inside: int
    outside: int
    furthest_ns: int  # outside

    @property
    def score(self) -> int:
        """How well the clock suits: an event outside weighs as ten inside."""
        return self.inside - 10 * self.outside


def compared(times: "Times", runs: Runs) -> Found:
    """Compare times with when a thread was in its guest, as far as its trace goes."""
    entries, exits = runs
    times = times[(times >= entries[0]) & (times <= exits[-1])]
    place = np.searchsorted(entries, times, side="right") - 1
    until = exits[place] - times
    is_in = until >= 0
    after = entries[np.minimum(place + 1, len(entries) - 1)] - times
    beyond = np.minimum(-until[~is_in], np.where(after[~is_in] > 0, after[~is_in], 2**62))
    return Found(
        int(is_in.sum()),
        int((~is_in).sum()),
        int(beyond.max(initial=0)),
    )


class Bounds(NamedTuple):
    """By how much times of a guest must be moved, at least and at most, around one of them."""

    t_ns: int
    least_ns: int
    most_ns: int


def near(times: "Times", runs: Runs, offset: int) -> int:
    """Return how well times suit near an offset: those of runs, less those of pauses."""
    return compared(times + offset, Runs(runs.entries - _NEAR_NS, runs.exits + _NEAR_NS)).score


def closer(times: "Times", runs: Runs, offset: int) -> int:
    """Return an offset near another one that suits best: entries come before the first event."""
    steps = range(offset - _NEAR_NS, offset + _LONGEST_ENTRY_NS, _STEP_NS)
    scores = [compared(times + each, runs).score for each in steps]
    best = max(scores)
    suiting = [each for each, score in zip(steps, scores, strict=True) if score == best]
    return suiting[len(suiting) // 2]


def pieces(times: "Times", runs: Runs, offset: int) -> list[Bounds]:
    """Return what pieces of a trace tell, one after the other, as clocks drift apart slowly."""
    found: list[Bounds] = []
    step = max(_OF_PIECE, len(times) // _MOST_PIECES)
    for first in range(0, len(times), step):
        piece = times[first : first + _OF_PIECE]
        guess = offset
        if len(found) > 1:
            one, other = found[max(0, len(found) - 9)], found[-1]
            slope = (_middle(other) - _middle(one)) / max(1, other.t_ns - one.t_ns)
            guess += round(slope * int(piece[0] - other.t_ns))
        bounds = bounds_of(piece, runs, guess)
        if bounds is not None:
            found.append(bounds)
            offset = _middle(bounds)
    return found


def _middle(bounds: Bounds) -> int:
    return (bounds.least_ns + bounds.most_ns) // 2


def bounds_of(times: "Times", runs: Runs, offset: int) -> Bounds | None:
    """Return by how much times must be moved at least and at most, near an offset.

    Each time belongs to the run that it is in, or else is nearest to.
    """
    entries, exits = runs
    for _ in range(4):
        moved = times + offset
        is_known = (moved >= entries[0]) & (moved <= exits[-1])
        own = times[is_known]
        if not len(own):
            return None
        place = np.searchsorted(entries, own + offset, side="right") - 1
        after = np.minimum(place + 1, len(entries) - 1)
        late = own + offset - exits[place]
        is_next = (late > 0) & (entries[after] - own - offset < late)
        place = np.where(is_next, after, place)
        least = int((entries[place] - own).max())
        most = int((exits[place] - own).min())
        if least <= most:
            return Bounds(int(own[len(own) // 2]), least, most)
        offset = (least + most) // 2
    return None


def drifting(bounds: Sequence[Bounds]) -> tuple[str, int, int]:
    """Return a clock that drifts: a line as far as can be from the least and the most of all."""
    from scipy.optimize import linprog

    shift, first = 40, bounds[0]
    since = np.array([each.t_ns - first.t_ns for each in bounds]) / 1e9
    least = np.array([each.least_ns - first.least_ns for each in bounds], dtype=float)
    most = np.array([each.most_ns - first.least_ns for each in bounds], dtype=float)
    ones = np.ones_like(since)
    rows = np.vstack([np.column_stack([-ones, -since, ones]), np.column_stack([ones, since, ones])])
    free = (None, None)
    line = linprog([0, 0, -1], rows, np.concatenate([-least, most]), bounds=[free, free, free])
    start, slope_ppb = (float(each) for each in (line.x if line.x is not None else (0, 0))[:2])
    multiplier = (1 << shift) + round(slope_ppb * 1e-9 * (1 << shift))
    start_ns = first.least_ns + round(start)
    offset = start_ns + first.t_ns - (first.t_ns * multiplier >> shift)
    moves = [(each.t_ns * multiplier >> shift) + offset - each.t_ns for each in bounds]
    error_ns = max(
        max(abs(each.most_ns - move), abs(move - each.least_ns))
        for each, move in zip(bounds, moves, strict=True)
    )
    return f"{multiplier}:{shift}:{offset}", error_ns + ROUNDING_NS, start_ns
