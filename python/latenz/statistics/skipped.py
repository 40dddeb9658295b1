"""Activations that got no run of their own, and how late they were.

When an activation wakes up a latency L after it was due, the k-th one skipped after it had been
waiting for L - k periods. That is its latency, as certain as L itself: it counts towards a limit
with it. Where a source tells only how many were skipped, those that may have exceeded a limit
stay undecided; none did if no latency at all exceeded it, as each is shorter than the one before.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from latenz.columns import as_numpy
from latenz.model import SampleSet
from latenz.statistics.cells import Cells
from latenz.statistics.due import skipped_while_waiting
from latenz.statistics.evidence import Evidence

_Integers = npt.NDArray[np.int64]


def skipped_in_samples(
    sample_set: SampleSet, limits: Sequence[int]
) -> tuple[int, dict[int, Evidence]] | None:
    """Return how many activations were skipped, and the evidence they give on each limit.

    None if the set has no column `missed` or no period. Those that were not due while the one
    before was waiting have a latency that nobody knows: they stay undecided.
    """
    period_ns = sample_set.metadata.period_ns
    if "missed" not in sample_set.columns or not period_ns:
        return None
    total = unexplained = 0
    exceeding = dict.fromkeys(limits, 0)
    for batch in sample_set.batches("latency_ns", "missed"):
        latency_ns, missed = (as_numpy(batch.column(i)) for i in range(2))
        late = missed > 0
        latency_ns, missed = latency_ns[late], missed[late]
        total += int(missed.sum())
        unexplained += int((missed - skipped_while_waiting(latency_ns, missed, period_ns)).sum())
        for limit in exceeding:  # each once, however often it was asked for
            exceeding[limit] += int(skipped_above(latency_ns, missed, limit, period_ns).sum())
    return total, {limit: Evidence(exceeding[limit], unexplained, total) for limit in limits}


def skipped_in_cells(cells: Cells, missed: int, period_ns: int, limit: int) -> Evidence:
    """Return what a histogram's cells tell about activations skipped after the latencies in them.

    Args:
        cells: All latencies, none beyond the range.
        missed: How many activations were skipped.
        period_ns: Distance of the activations.
        limit: The limit they are held against.
    """
    counts = np.diff(cells.until, prepend=0)
    highest = cells.lowest + (cells.width - 1)
    surely, possibly = (
        min(missed, int((counts * _could_exceed(values, limit, period_ns)).sum()))
        for values in (cells.lowest, highest)
    )
    return Evidence(surely, possibly - surely, missed)


def skipped_unplaced(missed: int, max_ns: int | None, limit: int) -> Evidence:
    """Return what a mere count of skipped activations tells about a limit."""
    within = max_ns is not None and max_ns <= limit
    return Evidence(0, 0 if within else missed, missed)


def skipped_above(
    latency_ns: _Integers, missed: _Integers, limit: int, period_ns: int
) -> _Integers:
    """Return how many of the activations skipped after each latency exceeded the limit.

    Args:
        latency_ns: Latencies, shape (n,).
        missed: Activations skipped after each, shape (n,).
        limit: The limit, positive.
        period_ns: Distance of the activations, positive.
    """
    return np.minimum(missed, _could_exceed(latency_ns, limit, period_ns))


def _could_exceed(latency_ns: _Integers, limit: int, period_ns: int) -> _Integers:
    """How many k >= 1 have latency - k period > limit, for each latency."""
    over = np.maximum(latency_ns, limit + 1) - (limit + 1)  # cannot overflow: limits are positive
    return np.asarray(over // period_ns, dtype=np.int64)
