"""How latencies are distributed: counted in cells once, then thinned for each kind of figure.

A cell holds the values of a range whose width is below 1/1000 of its values (values below 2048
have a cell each), so that a pass over any number of samples needs a megabyte of counters and no
figure shifts by more than 0.1 %. Counts are exact throughout.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latenz.model import SampleSet
from latenz.statistics.cells import read_cells
from latenz.statistics.due import due_cells

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_SUB_BITS = 10
_CELLS = 64 << _SUB_BITS
_CHUNK = 1 << 15  # so that what is made of it on the way stays in the cache
_BINS_A_DECADE = 20
_FEWEST_BINS = 40
_VIOLIN_STEPS = 120


@dataclass(frozen=True)
class Distribution:
    """The cells of a sample set, ascending and none of them empty.

    Attributes:
        lowest: Lowest value of each cell, ns.
        upper: End of each cell (the first value above it), ns.
        count: Activations in each cell.
        beyond: Samples known only to lie at or above `beyond_from_ns`.
        beyond_from_ns: Where the range ended; None without such samples or if not known.
        max_ns: The largest latency; None where the source cannot tell.
        unknown: Skipped activations of which nobody knows how late they were: above all others.
    """

    lowest: Integers
    upper: Integers
    count: Integers
    beyond: int = 0
    beyond_from_ns: int | None = None
    max_ns: int | None = None
    unknown: int = 0

    @classmethod
    def empty(cls) -> "Distribution":
        """Return a distribution without samples."""
        none = np.empty(0, dtype=np.int64)
        return cls(none, none, none)

    @property
    def n(self) -> int:
        """All activations, those beyond the range included."""
        return int(self.count.sum()) + self.beyond + self.unknown

    @property
    def not_drawable(self) -> int:
        """Activations at or below zero, which a logarithmic axis cannot show."""
        return int(self.count[self.upper <= 1].sum())

    def _drawable(self) -> tuple[Floats, Floats, Integers]:
        """Return left and right ends on a logarithmic axis, and counts."""
        kept = self.upper > 1
        right = self.upper[kept].astype(np.float64)
        left = np.maximum(self.lowest[kept].astype(np.float64), 0)
        return np.where(left > 0, left, right / 2), right, self.count[kept]


class CellCounter:
    """Counts batches of latencies into cells."""

    def __init__(self) -> None:
        self._counts = np.zeros(2 * _CELLS + 1, dtype=np.int64)
        self._max_ns: int | None = None

    def add(self, latency_ns: Integers) -> None:
        """Count one batch."""
        for start in range(0, len(latency_ns), _CHUNK):
            self._add_chunk(latency_ns[start : start + _CHUNK])

    def _add_chunk(self, latency_ns: Integers) -> None:
        index = _cell_index(latency_ns)
        offset = int(index.min())
        counts = np.bincount(index - offset)
        start = offset + _CELLS
        self._counts[start : start + len(counts)] += counts
        largest = int(latency_ns.max())
        self._max_ns = largest if self._max_ns is None else max(self._max_ns, largest)

    def distribution(self, resolution_ns: int) -> Distribution:
        """Return what was counted; a value v stands for [v, v + resolution_ns)."""
        index = np.flatnonzero(self._counts) - _CELLS
        count = self._counts[index + _CELLS]
        lowest, width = _cell_range(np.abs(index))
        lowest = np.where(index < 0, -(lowest + width - 1), lowest)
        upper = _end(lowest, np.maximum(width, resolution_ns))
        return Distribution(lowest, upper, count, max_ns=self._max_ns)


def _cell_index(values: Integers) -> Integers:
    """Return each value's cell number: ascending with the value, that of -v is minus that of v.

    The exponent comes from a rounding conversion to float64. Where that rounds a value up to a
    power of two, shift is one too large and the kept bits are one too few: the sum is the same.
    """
    magnitude = np.abs(np.maximum(values, -(2**63) + 1))
    bits = np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)
    shift = np.maximum(bits - (_SUB_BITS + 1), 0)
    index = (shift << _SUB_BITS) + (magnitude >> shift)
    return np.where(values < 0, -index, index)


def _cell_range(index: Integers) -> tuple[Integers, Integers]:
    """Return lowest value and width of cells of values from 0 on."""
    shift = np.maximum((index >> _SUB_BITS) - 1, 0)
    return (index - (shift << _SUB_BITS)) << shift, np.int64(1) << shift


def _end(lowest: Integers, width: Integers) -> Integers:
    """Return lowest + width, at most the largest 64-bit integer."""
    end: Integers = lowest + np.minimum(width, np.iinfo(np.int64).max - np.maximum(lowest, 0))
    return end


def histogram_distribution(sample_set: SampleSet) -> Distribution:
    """Return the distribution of the activations of a set in the form `histogram`."""
    metadata = sample_set.metadata
    cells, unknown = due_cells(read_cells(sample_set), metadata)
    reported = metadata.reported
    largest = reported.max_ns if reported else None
    if largest is None and not metadata.beyond_range:
        largest = cells.largest
    return Distribution(
        lowest=cells.lowest,
        upper=_end(cells.lowest, np.maximum(cells.width, metadata.resolution_ns)),
        count=np.diff(cells.until, prepend=0),
        beyond=metadata.beyond_range,
        beyond_from_ns=metadata.beyond_range_from_ns,
        max_ns=largest,
        unknown=unknown,
    )


def pooled(parts: Sequence[Distribution]) -> Distribution | None:
    """Return the distribution of all activations of several sets together.

    None where that cannot be told: a set has no cells, or the range of one ended below where
    another has values, so that nobody knows how their order is.
    """
    ends = [part.beyond_from_ns for part in parts if part.beyond]
    if not all(len(part.count) for part in parts) or None in ends:
        return None
    above_all = min((end for end in ends if end is not None), default=None)
    if above_all is not None and above_all < max(int(part.lowest[-1]) for part in parts):
        return None
    lowest = np.concatenate([part.lowest for part in parts])
    upper = np.concatenate([part.upper for part in parts])
    order = np.lexsort((upper, lowest))
    lowest, upper = lowest[order], upper[order]
    count = np.concatenate([part.count for part in parts])[order]
    first = np.flatnonzero(np.diff(lowest, prepend=lowest[0] - 1))
    last = np.append(first[1:], len(lowest)) - 1
    largest = [part.max_ns for part in parts]
    return Distribution(
        lowest[first],
        upper[last],
        np.add.reduceat(count, first),
        beyond=sum(part.beyond for part in parts),
        beyond_from_ns=above_all,
        max_ns=None if None in largest else max(each for each in largest if each is not None),
        unknown=sum(part.unknown for part in parts),
    )


@dataclass(frozen=True)
class Bins:
    """Bars of a histogram on a logarithmic axis: ends in ns and exact counts."""

    left: Floats
    right: Floats
    count: Integers


def histogram_bins(distribution: Distribution) -> Bins:
    """Join cells into bars of a twentieth of a decade or less; no count is split or lost."""
    left, right, count = distribution._drawable()
    if not len(count):
        return Bins(left, right, count)
    decades = np.log10(right[-1] / left[0])
    number = np.floor(np.log10(left) * max(_BINS_A_DECADE, _FEWEST_BINS / decades))
    first = np.flatnonzero(np.diff(number, prepend=-np.inf))
    last = np.append(first[1:], len(number)) - 1
    ends = right[last]
    touching = np.diff(number[first]) == 1
    ends[:-1] = np.where(touching, left[first[1:]], np.minimum(ends[:-1], left[first[1:]]))
    return Bins(left[first], ends, np.add.reduceat(count, first))


@dataclass(frozen=True)
class Violin:
    """Outline of a violin: relative width (0 to 1) at logarithmically spaced latencies, ns."""

    latency_ns: Floats
    width: Floats


def violin(distribution: Distribution) -> Violin:
    """Estimate the density over log latency from the cells, smoothed by a Gaussian kernel.

    The bandwidth is Silverman's rule of thumb on log latency, and at least one step of the grid.
    Cells are spread evenly over their range, so that coarse resolutions give no comb.
    """
    left, right, count = distribution._drawable()
    if not len(count):
        return Violin(left, right)
    low, high = np.log10(left[0]), np.log10(right[-1])
    edges = np.linspace(low, high, _VIOLIN_STEPS + 1)
    mass = np.diff(_cumulative(left, right, count, 10**edges))
    middles = (edges[:-1] + edges[1:]) / 2
    mean = np.average(middles, weights=mass)
    spread = np.sqrt(np.average((middles - mean) ** 2, weights=mass))
    step = edges[1] - edges[0]
    bandwidth = max(step, 0.9 * spread * float(count.sum()) ** -0.2)
    reach = int(min(_VIOLIN_STEPS, np.ceil(4 * bandwidth / step)))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / bandwidth) ** 2)
    smooth = np.convolve(mass, kernel, mode="full")[reach : reach + len(mass)]
    return Violin(10**middles, smooth / smooth.max())


def _cumulative(left: Floats, right: Floats, count: Integers, at: Floats) -> Floats:
    """Return the number of samples below each place, cells spread evenly over their range."""
    within = np.clip((at[:, None] - left) / (right - left), 0, 1) if len(left) < 4096 else None
    if within is not None:
        return np.asarray(within @ count, dtype=np.float64)
    until = np.concatenate([[0], np.cumsum(count)]).astype(np.float64)
    return np.interp(at, np.append(left, right[-1]), until)


@dataclass(frozen=True)
class Exceedance:
    """Activations at or above each latency, with a pointwise confidence band.

    Attributes:
        latency_ns: Latencies, ascending.
        at_or_above: Activations at or above each, exact.
        n: All activations.
        lower: Lower Clopper-Pearson bound on the probability, for each latency.
        upper: Upper bound likewise.
    """

    latency_ns: Integers
    at_or_above: Integers
    n: int
    lower: Floats
    upper: Floats


def exceedance(distribution: Distribution, points: int, confidence: float) -> Exceedance:
    """Return the exceedance curve, thinned to about `points` points; the tail is kept whole.

    Args:
        distribution: The cells.
        points: About how many points to keep.
        confidence: Two-sided level of the band at each single point (Clopper and Pearson 1934);
            it needs no assumption on the distribution but independent samples.
    """
    from scipy.special import betaincinv

    latency = distribution.lowest
    total = distribution.n
    above_all = distribution.unknown
    counted = np.cumsum(distribution.count[::-1])[::-1] + distribution.beyond + above_all
    if distribution.beyond and distribution.beyond_from_ns is not None:
        latency = np.append(latency, distribution.beyond_from_ns)
        counted = np.append(counted, distribution.beyond + above_all)
    elif distribution.max_ns is not None and len(latency) and distribution.max_ns > latency[-1]:
        latency = np.append(latency, distribution.max_ns)
        counted = np.append(counted, 1 + above_all)
    kept = _thinned(latency, counted, points)
    latency, counted = latency[kept], counted[kept]
    miss = (1 - confidence) / 2
    k = counted.astype(np.float64)
    lower: Floats = np.asarray(betaincinv(k, total - k + 1, miss), dtype=np.float64)
    upper: Floats = np.ones(len(k))
    fewer = k < total
    upper[fewer] = betaincinv(k[fewer] + 1, total - k[fewer], 1 - miss)
    return Exceedance(latency, counted, total, lower, upper)


def _thinned(latency: Integers, counted: Integers, points: int) -> Integers:
    """Keep points evenly along the curve as it looks on two logarithmic axes."""
    if len(latency) <= points:
        return np.arange(len(latency))
    across = np.log10(np.maximum(latency, 1).astype(np.float64))
    down = -np.log10(counted.astype(np.float64))
    along = np.cumsum(np.hypot(np.diff(across, prepend=across[0]), np.diff(down, prepend=down[0])))
    tail = points // 4
    stations = np.linspace(0, along[-1], points - tail)
    chosen = np.searchsorted(along, stations).clip(0, len(latency) - 1)
    ends = np.arange(len(latency) - tail, len(latency))
    return np.unique(np.concatenate([chosen, ends]))
