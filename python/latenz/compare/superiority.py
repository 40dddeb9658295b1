"""How often a latency of B is the greater of two: an effect size free of any distribution.

The probability of superiority, with ties counted half (the statistic of Mann and Whitney over
n_a n_b); Cliff's delta is the same on the scale from -1 to 1.
"""

import numpy as np

from latenz.compare.blocks import Floats, Integers, Resampling
from latenz.compare.series import read_series
from latenz.compare.side import Side
from latenz.statistics.cells import read_cells

_EDGES = 200


def probability_of(a: Side, b: Side) -> float | None:
    """Return the probability that B is later; None where single values are not known."""
    if a.summary.beyond_range or b.summary.beyond_range:
        return None
    if "summary" in (a.sample_set.form, b.sample_set.form):
        return None
    values_a, weights_a = _weighted(a)
    values_b, weights_b = _weighted(b)
    return probability_later(values_a, values_b, weights_a, weights_b)


def _weighted(side: Side) -> tuple[Integers, Integers]:
    """Return values, ascending, and how often each occurs."""
    if side.sample_set.form == "histogram":
        cells = read_cells(side.sample_set)
        return cells.lowest, np.diff(cells.until, prepend=0)
    ordered = np.sort(read_series(side.sample_set, side.summary.n or 0).latency_ns)
    return ordered, np.ones_like(ordered)


def probability_later(a: Integers, b: Integers, weights_a: Integers, weights_b: Integers) -> float:
    """Return the probability that a value of b is greater than one of a, ties counted half.

    Args:
        a: Values of the first side, ascending.
        b: Values of the second side, ascending.
        weights_a: How often each value of a occurs.
        weights_b: How often each value of b occurs.
    """
    until = np.concatenate([[0.0], np.cumsum(weights_a, dtype=np.float64)])
    below = until[np.searchsorted(a, b, "left")]
    upto = until[np.searchsorted(a, b, "right")]
    each = weights_b / weights_b.sum(dtype=np.float64)
    return float((each * (below + upto)).sum() / (2 * until[-1]))


def superiority_replicates(
    a: Integers, b: Integers, drawn_a: Resampling, drawn_b: Resampling
) -> Floats:
    """Return the probability of superiority in each replicate of two series.

    The values are put into some hundred classes of the pooled values first, which moves
    the probability by less than a hundredth of a class.
    """
    shares = np.linspace(0, 1, _EDGES)
    edges = np.unique(np.quantile(np.concatenate([a, b]), shares, method="inverted_cdf"))
    return _from_counts(drawn_a.counts_up_to(a, edges), drawn_b.counts_up_to(b, edges))


def _from_counts(until_a: Floats, until_b: Floats) -> Floats:
    """Return the probability for each row of cumulative counts over the same classes."""
    before_a = np.concatenate([np.zeros((len(until_a), 1)), until_a[:, :-1]], axis=1)
    in_b = np.diff(until_b, axis=1, prepend=0)
    wins: Floats = (in_b * (before_a + until_a)).sum(axis=1)
    shares: Floats = wins / (2 * until_a[:, -1] * until_b[:, -1])
    return shares
