"""How often a latency of B is the greater of two: an effect size free of any distribution.

The probability of superiority, with ties counted half (the statistic of Mann and Whitney over
n_a n_b); Cliff's delta is the same on the scale from -1 to 1. Its error is that of the mean
placement of each side's latencies among the other's (DeLong and others, Biometrics 44, 1988).
"""

from collections.abc import Sequence

import numpy as np

from latenz.compare.estimate import Contrast, of_pairs, of_repetitions
from latenz.compare.result import Superiority
from latenz.compare.side import Side, Weighted
from latenz.statistics.stretches import Floats, Integers

_EDGES = 200
"""Quantiles of each side that divide latencies into classes, where they are too many to sort."""
MOST_SORTED = 1_000_000
"""Latencies of a set up to which each is held against each."""


def is_known(side: Side) -> bool:
    """Tell whether the single latencies of a side are known, at least roughly."""
    return not (side.summary.beyond_range or side.unknown or side.sample_set.form == "summary")


def class_edges(sides: Sequence[Side]) -> list[int]:
    """Return values that divide the latencies of several sides into a few hundred classes.

    None, if those of one side are not known.
    """
    if not all(is_known(side) for side in sides):
        return []

    def ranks(n: int) -> list[int]:
        return [1 + step * (n - 1) // _EDGES for step in range(_EDGES + 1)]

    found = {value for side in sides for value in side.order(ranks).values()}
    return sorted(value for value in found if value is not None)


def probability_of(a: Side, b: Side, edges: Sequence[int]) -> float | None:
    """Return the probability that B is later; None where single values are not known.

    Args:
        a: The first side.
        b: The second side.
        edges: Their `class_edges`, for sides with too many samples to sort.
    """
    if not (is_known(a) and is_known(b)):
        return None
    longest = max(side.n if side.sample_set.form == "samples" else 0 for side in (a, b))
    if longest > MOST_SORTED:
        return probability_later(in_classes(a, edges), in_classes(b, edges))
    return probability_later(a.weighted(), b.weighted())


def in_classes(side: Side, edges: Sequence[int]) -> Weighted:
    """Return for each class how many latencies of a side lie in it: up to its edge."""
    numbers = np.arange(len(edges) + 1)
    if side.sample_set.form == "histogram":
        values, weights = side.weighted()
        places = np.searchsorted(edges, values)
        return numbers, np.bincount(places, weights, len(numbers)).astype(np.int64)
    counts = np.zeros(len(numbers), np.int64)
    for part in side.latencies():
        counts += np.bincount(np.searchsorted(edges, part), minlength=len(numbers))
    return numbers, counts


def placements(values: Integers, among: Weighted) -> Floats:
    """Return for each value the share of others that are smaller, equal ones counted half."""
    others, weights = among
    until = np.concatenate([[0.0], np.cumsum(weights, dtype=np.float64)])
    below = until[np.searchsorted(others, values, "left")]
    upto = until[np.searchsorted(others, values, "right")]
    shares: Floats = (below + upto) / (2 * until[-1])
    return shares


def probability_later(a: Weighted, b: Weighted) -> float:
    """Return the probability that a value of b is greater than one of a, ties counted half."""
    values, weights = b
    shares = weights / weights.sum(dtype=np.float64)
    return float((shares * placements(values, a)).sum())


def over_repetitions(
    a: Sequence[Side], b: Sequence[Side], paired: bool
) -> tuple[float, Contrast | None] | None:
    """Return the mean over repetitions, and a contrast that is as far from zero as it may err.

    None where single values are not known; without a contrast if there are too few.
    """
    if not all(is_known(side) for side in (*a, *b)):
        return None
    edges = class_edges((*a, *b))
    first, second = ([in_classes(side, edges) for side in sides] for sides in (a, b))
    if paired:
        each = [probability_later(*both) for both in zip(first, second, strict=True)]
        mean = float(np.mean(each))
        return mean, of_pairs([mean] * len(each), each) if len(each) > 1 else None
    table = np.array([[probability_later(one, other) for other in second] for one in first])
    enough = min(table.shape) > 1
    rows, columns = table.mean(axis=1).tolist(), table.mean(axis=0).tolist()
    return float(table.mean()), of_repetitions(rows, columns) if enough else None


def with_ends(probability: float, contrast: Contrast, confidence: float) -> Superiority:
    """Return the probability with its interval, if there is one."""
    ends = contrast.difference(confidence)
    if ends is None:
        return Superiority(probability)
    shift = probability - (contrast.b.value - contrast.a.value)
    low, high = (min(max(end + shift, 0.0), 1.0) for end in ends)
    return Superiority(probability, low, high)
