"""How lateness lies in time: its episodes, how long they last, and what depends on what.

Late activations come in groups, so that counting them says little: a thousand of them may be one
event. Counted are *episodes*: one goes on until nothing was late for the deadline's `burst` (or
three distances of activations, if that is longer), and counts once more for every ten bursts that
it lasts. Bounds from above count finer, and so never less: there a hundredth of a burst without
lateness is enough for a new one, and every whole burst counts once more.

How far lateness reaches is read from the data, too. The variance of counts in windows over their
mean (Cox and Lewis, The Statistical Analysis of Series of Events, 1966, section 4.5) is 1 for
independent events at every window, and for bursts it grows with the window up to the mean size of
the burst that a random late activation lies in. That size bounds a deadline's blocks from below.
Where a limit was exceeded too rarely to tell, the latest tenth and hundredth of all times tell.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from latenz._core import LatenessScan
from latenz.columns import as_numpy
from latenz.model import Deadline, SampleSet

_Integers = npt.NDArray[np.int64]
_Columns = tuple[_Integers, _Integers | None, _Integers | None]
_CELLS = 1 << 16
_FIRST_CELL_NS = 1_000_000
_LEAST_WINDOWS = 20
_LEAST_EVENTS = 10
_TAILS = (0.9, 0.99)
_SECOND = 1_000_000_000
_FEW = 10_000


@dataclass(frozen=True)
class Lateness:
    """When activations were later than a limit.

    Attributes:
        episodes: Episodes of activations known to be late.
        possible_episodes: What bounds from above count: finer, and undecided ones as late.
        longest_ns: The longest stretch of late activations, from its first to its last.
        dependence_ns: How far lateness reaches, by the data; 0 where they show no dependence.
        dispersion: Variance over mean of the counts of episodes; 1 where they show no more.
        in_a_block: The most activations that were due within a block (`block_ns`); None unknown.
        block_ns: The deadline's burst, or as far as lateness reaches if that is longer.
    """

    episodes: int
    possible_episodes: int
    longest_ns: int = 0
    dependence_ns: int = 0
    dispersion: float = 1.0
    in_a_block: int | None = None
    block_ns: int = 0


@dataclass(frozen=True)
class Observation:
    """How long was measured, and what was late when.

    Attributes:
        time_ns: How long; None where the source tells neither times nor a period.
        lateness: For each deadline, in the order asked for.
    """

    time_ns: int | None
    lateness: tuple[Lateness, ...]


def pause_ns(burst_ns: int, distance_ns: int) -> int:
    """Return how long no activation may be late before the next counts as another event."""
    return max(burst_ns // 100, 3 * distance_ns, 1)


def observe_samples(sample_set: SampleSet, deadlines: Sequence[Deadline]) -> Observation:
    """Go over the samples once and return when which deadline's limit was exceeded.

    Without times or a period, or with times that go back, every late sample counts as an episode,
    and the time is unknown.
    """
    known = sample_set.metadata
    period_ns = known.period_ns or 0
    distance_ns = period_ns or _typical_distance_ns(sample_set)
    slack = known.resolution_ns - 1
    watches = [
        (max(limit, -1), pause_ns(each.burst_ns, distance_ns), max(each.burst_ns, 3 * distance_ns))
        for each in deadlines
        for limit in (each.limit_ns, each.limit_ns - slack)
    ]
    scan = LatenessScan(watches, period_ns, max(_FIRST_CELL_NS, period_ns), _CELLS)
    longest_gap_ns = max(*(each.burst_ns for each in deadlines), 10 * distance_ns)
    clock = _Clock(period_ns, longest_gap_ns)
    for latency_ns, missed, due_ns in _activations(sample_set):
        clock.add(len(latency_ns) + (0 if missed is None else int(missed.sum())), due_ns)
        scan.add(latency_ns, missed, due_ns)
    if clock.time_ns is None:
        return Observation(None, tuple(_unplaced(scan, i) for i in range(len(deadlines))))
    tail = _tail(scan)
    return Observation(
        clock.time_ns,
        tuple(_placed(scan, i, each, clock, tail) for i, each in enumerate(deadlines)),
    )


class _Clock:
    """How long was measured: gaps in which nothing was measured do not count.

    Attributes:
        activations: Those so far, skipped ones included.
    """

    def __init__(self, period_ns: int, longest_gap_ns: int) -> None:
        self.activations = 0
        self._period_ns = period_ns
        self._longest_gap_ns = longest_gap_ns
        self._last_ns: int | None = None
        self._seen_ns = 0
        self._is_timed = False
        self._goes_back = False

    @property
    def time_ns(self) -> int | None:
        """The time observed: from the first activation to one distance after the last."""
        if self._goes_back or not (self._is_timed or self._period_ns):
            return None
        if not self._is_timed:
            return self.activations * self._period_ns
        return self._seen_ns + self._seen_ns // max(self.activations - 1, 1)

    def add(self, activations: int, due_ns: _Integers | None) -> None:
        """Take some more activations, and their times where counting periods gives none."""
        self.activations += activations
        if due_ns is None or not len(due_ns):
            return
        self._is_timed = True
        before = due_ns[0] if self._last_ns is None else self._last_ns
        gaps = np.diff(due_ns, prepend=before)
        self._goes_back |= bool((gaps < 0).any())
        self._seen_ns += int(np.minimum(np.maximum(gaps, 0), self._longest_gap_ns).sum())
        self._last_ns = int(due_ns[-1])


def _typical_distance_ns(sample_set: SampleSet) -> int:
    """The median distance of the first activations; 0 without times."""
    if "t_ns" not in sample_set.columns:
        return 0
    for batch in sample_set.batches("t_ns"):
        gaps = np.diff(as_numpy(batch.column(0))[:_FEW])
        return int(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 0
    return 0


def observe_peaks(peaks: SampleSet, deadlines: Sequence[Deadline]) -> Observation:
    """Return what the largest latency of each second tells of when limits were exceeded.

    What lies between two of them is unknown, so that episodes are told apart by two seconds more.
    """
    coarser = [
        each.model_copy(update={"burst_ns": each.burst_ns + 2 * _SECOND}) for each in deadlines
    ]
    return observe_samples(peaks, coarser)


def among_peaks(peaks: Lateness, late: int, possible: int) -> Lateness:
    """Return what is known of a limit from counts and the largest latency of each second."""
    return Lateness(
        episodes=max(peaks.episodes, min(late, 1)),
        possible_episodes=possible,
        dependence_ns=peaks.dependence_ns,
        dispersion=peaks.dispersion,
    )


def unplaced(late: int, possible: int) -> Lateness:
    """Return what a mere number of late activations tells: one episode, or as many."""
    return Lateness(min(late, 1), possible)


def _activations(
    sample_set: SampleSet,
) -> Iterator[_Columns]:
    """Give latencies, skipped activations, and due times where counting periods gives none."""
    counted = bool(sample_set.metadata.period_ns) and "missed" in sample_set.columns
    wanted = ["latency_ns"]
    wanted += ["missed"] if counted else ["t_ns"] if "t_ns" in sample_set.columns else []
    for batch in sample_set.batches(*wanted):
        latency_ns, *rest = (as_numpy(batch.column(i)) for i in range(len(wanted)))
        second = rest[0] if rest else None
        yield (latency_ns, second, None) if counted else (latency_ns, None, second)


def _unplaced(scan: LatenessScan, deadline: int) -> Lateness:
    return unplaced(scan.found[2 * deadline][0], scan.found[2 * deadline + 1][0])


def _placed(
    scan: LatenessScan, number: int, deadline: Deadline, clock: _Clock, tail: tuple[int, float]
) -> Lateness:
    late, finer, episodes, longest_ns = scan.found[2 * number]
    possible, possible_finer, _, longest_possible_ns = scan.found[2 * number + 1]
    reach_ns, dispersion = tail
    if finer >= _LEAST_EVENTS:  # they tell themselves
        distance_ns = (clock.time_ns or 0) / clock.activations
        reach_ns = round(_dispersion(scan.late(2 * number)) * distance_ns)
        dispersion = _dispersion(scan.begun(2 * number))
    dependence_ns = max(reach_ns, longest_ns, longest_possible_ns)
    block_ns = max(deadline.burst_ns, dependence_ns)
    return Lateness(
        episodes=min(episodes, late),
        possible_episodes=min(possible_finer, possible),
        longest_ns=longest_ns,
        dependence_ns=dependence_ns,
        dispersion=dispersion,
        in_a_block=_most_within(scan, block_ns),
        block_ns=block_ns,
    )


def _most_within(scan: LatenessScan, block_ns: int) -> int:
    """The most activations with a sample that were due in one block, at least 1."""
    due = scan.due
    cells = -(-block_ns // scan.cell_ns)
    if cells == 1:  # a cell may be longer than a block
        return max(1, math.ceil(int(due.max()) * min(1.0, block_ns / scan.cell_ns)))
    whole = np.concatenate((due, np.zeros(-len(due) % cells, due.dtype)))
    return max(1, int(whole.reshape(-1, cells).sum(axis=1).max()))


def _tail(scan: LatenessScan) -> tuple[int, float]:
    """How far the latest cells of all reach, and how the episodes of the very latest disperse."""
    highest = scan.highest
    highest = highest[highest != np.iinfo(np.int64).min]  # cells in which nothing was due
    if len(highest) < _LEAST_WINDOWS * _LEAST_EVENTS:
        return 0, 1.0
    reach, dispersion = 0.0, 1.0
    for level in _TAILS:
        latest = highest > np.quantile(highest, level, method="lower")
        begun = latest & ~np.concatenate(([False], latest[:-1]))
        reach = max(reach, _dispersion(latest.astype(np.int64)))
        dispersion = _dispersion(begun.astype(np.int64))
    return (round(reach * scan.cell_ns) if reach > 1 else 0), dispersion


def _dispersion(counts: npt.NDArray[Any]) -> float:
    """Largest variance over mean of counts in windows of any length; 1 unless surely above it."""
    counts = counts.astype(np.float64)
    largest = 1.0
    while len(counts) >= _LEAST_WINDOWS and counts.sum() >= _LEAST_EVENTS:
        found = float(counts.var(ddof=1) / counts.mean())
        if found > 1 + 4 * np.sqrt(2 / (len(counts) - 1)):
            largest = max(largest, found)
        counts = counts[: len(counts) // 2 * 2].reshape(-1, 2).sum(axis=1)
    return largest
