"""Late samples come in clusters: how many there are, and the latest sample of each.

What delays one activation often delays the next ones, too. Such neighbours are one event: only
the latest of them, the peak of the cluster, tells about the tail. How large clusters are is
estimated from the distances of the exceedances (the intervals estimator of Ferro and Segers,
Journal of the Royal Statistical Society B 65, 2003), which needs no distance to be chosen.

Activations skipped after a late one are members of its cluster, each a period less late than the
one before. They make a cluster larger and never change its peak.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from latenz.statistics.skipped import skipped_above

_Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Exceedances:
    """The samples above a threshold, in recorded order.

    Attributes:
        threshold_ns: Every latency is above it.
        latency_ns: The latencies.
        position: Which activation each was, counted from 0; skipped ones count.
        missed: Activations skipped right after each because it was late.
        n: All activations, those without exceedance and skipped ones included.
        period_ns: Distance of the activations; 0 where the source cannot tell.
        duration_ns: How long was measured; None where the source cannot tell.
        t_ns: When each was due; None where it is not needed.
    """

    threshold_ns: int
    latency_ns: _Integers
    position: _Integers
    missed: _Integers
    n: int
    period_ns: int = 0
    duration_ns: int | None = None
    t_ns: _Integers | None = None

    def above(self, threshold_ns: int) -> "Exceedances":
        """Return those above a higher threshold."""
        return self.where(self.latency_ns > threshold_ns, threshold_ns)

    def where(self, kept: npt.NDArray[np.bool_], threshold_ns: int) -> "Exceedances":
        """Return some of them, as those above a threshold."""
        return replace(
            self,
            threshold_ns=threshold_ns,
            latency_ns=self.latency_ns[kept],
            position=self.position[kept],
            missed=self.missed[kept],
            t_ns=None if self.t_ns is None else self.t_ns[kept],
        )

    @cached_property
    def lengths(self) -> _Integers:
        """How many activations in a row each stands for: itself, and skipped ones above."""
        if not self.period_ns:
            return np.ones(len(self.latency_ns), dtype=np.int64)
        floor_ns = max(self.threshold_ns, 0)
        return 1 + skipped_above(self.latency_ns, self.missed, floor_ns, self.period_ns)

    @cached_property
    def gaps(self) -> _Integers:
        """Activations from the last one that each stands for to the next exceedance."""
        gaps: _Integers = np.diff(self.position) - self.lengths[:-1] + 1
        return gaps


@dataclass(frozen=True, eq=False)
class Clusters:
    """Exceedances in groups that are independent of each other.

    Attributes:
        exceedances: All of them.
        starts: Which exceedance is the first of each cluster.
        peaks: Which is the latest, the one with the largest latency.
        gaps: Activations between one cluster and the next.
        run: Exceedances this far apart, or closer, are of one cluster.
        extremal_index: 1 / mean number of activations in a cluster, 1 where all come alone.
    """

    exceedances: Exceedances
    starts: _Integers
    peaks: _Integers
    gaps: _Integers
    run: int
    extremal_index: float

    @property
    def count(self) -> int:
        """Number of clusters."""
        return len(self.peaks)

    @property
    def position(self) -> _Integers:
        """Which activation was the latest of each cluster."""
        return self.exceedances.position[self.peaks]


def extremal_index(exceedances: Exceedances) -> float:
    """Return the extremal index: 1 / mean size of the clusters in which exceedances come.

    Args:
        exceedances: At least two.
    """
    gaps = exceedances.gaps.astype(np.float64)
    count = float(exceedances.lengths.sum() - 1)  # within a run of skipped ones each gap is 1
    if gaps.max() <= 2:
        total, powers = gaps.sum() + count - len(gaps), (gaps**2).sum() + count - len(gaps)
    else:
        total, powers = (gaps - 1).sum(), ((gaps - 1) * (gaps - 2)).sum()
    return float(min(1.0, 2 * total**2 / (count * powers)))


def decluster(exceedances: Exceedances) -> Clusters:
    """Part exceedances into clusters, at the largest of their gaps.

    Args:
        exceedances: At least two.
    """
    index = extremal_index(exceedances)
    gaps = exceedances.gaps
    wanted = min(len(gaps), int(index * int(exceedances.lengths.sum())))
    # of equal gaps all part clusters or none does
    run = int(np.partition(gaps, -wanted - 1)[-wanted - 1]) if wanted < len(gaps) else 0
    parting = np.flatnonzero(gaps > run)
    starts = np.concatenate([[0], parting + 1])
    cluster = np.searchsorted(starts, np.arange(len(gaps) + 1), side="right") - 1
    order = np.lexsort((exceedances.latency_ns, cluster))
    last = np.append(starts[1:], len(order)) - 1
    return Clusters(exceedances, starts, order[last], gaps[parting], run, index)
