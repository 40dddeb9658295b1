"""Block bootstrap of a series of latencies, which resemble their neighbours.

Resampling single values would pretend that they are independent and give intervals that are far
too narrow. Here runs of consecutive values are resampled (Künsch, Ann. Statist. 17, 1989; circular
as Politis and Romano 1992), as long as the series asks for (Politis and White, Econometric Reviews
23, 2004, corrected by Patton, Politis and White, ibid. 28, 2009).

The series is divided into at most `CELLS` cells of consecutive values and a block is a number of
consecutive cells. Every figure that is bootstrapped follows from counts and sums within cells, so
that a replicate is a weighted sum of rows of a small table, whatever the number of values.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latenz.statistics import quantile_rank

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CELLS = 2048
"""Most cells of a series; with that many, an interval's own uncertainty is about 3 %."""
_FEWEST_CELLS = 256
_CELLS_IN_BLOCK = 4
"""Cells in a block, where the series is long enough: finer ones would hardly overlap better."""
_CANDIDATES = 200
"""Most values a bootstrapped quantile may take; a step is 1/17 of its standard error."""
_REACH = 6
"""Standard errors on each side of a quantile that its candidates cover."""
_LEVELS = (0.5, 0.99, 0.999)


def block_length(values: Integers) -> int:
    """Return how many consecutive values to resample together.

    The longest that the rule of Politis and White asks for, over the values themselves and over
    their being above the median, p99 and p99.9: a few huge latencies hide in the plain series how
    much the rest of it resembles itself, and late wake-ups may come in bursts while the others do
    not.
    """
    n = len(values)
    if n < 8:
        return 1
    thresholds = np.quantile(values, _LEVELS, method="inverted_cdf")
    series = [
        values.astype(np.float64),
        *((values > each).astype(np.float64) for each in thresholds),
    ]
    return max(_politis_white(each) for each in series)


def _politis_white(series: Floats) -> int:
    n = len(series)
    longest = int(np.ceil(min(3 * np.sqrt(n), n / 3)))
    quiet = max(5, int(np.sqrt(np.log10(n))))  # lags that must be quiet for the dependence to end
    lags = int(np.ceil(np.sqrt(n))) + quiet
    covariance = _autocovariance(series, lags)
    if covariance[0] <= 0:
        return 1
    correlation = np.abs(covariance[1:] / covariance[0])
    noise = 2 * np.sqrt(np.log10(n) / n)
    loud = correlation > noise
    reach = next(
        (lag for lag in range(lags - quiet + 1) if not loud[lag : lag + quiet].any()),
        int(np.flatnonzero(loud)[-1]) + 1 if loud.any() else 0,
    )
    window = min(2 * max(reach, 1), lags)
    lag = np.arange(1, window + 1)
    taper = np.clip(2 * (1 - lag / window), 0, 1)  # flat top, then a slope to zero
    weighted = taper * covariance[1 : window + 1]
    spectrum = covariance[0] + 2 * weighted.sum()
    if spectrum <= 0:
        return 1
    curvature = 2 * (lag * weighted).sum()
    length = np.cbrt(2 * curvature**2 / (4 / 3 * spectrum**2) * n)
    return int(np.clip(np.ceil(length), 1, longest))


def _autocovariance(series: Floats, lags: int) -> Floats:
    centred = series - series.mean()
    n = len(series)
    lags = min(lags, n - 1)
    size = 1 << int(n + lags).bit_length()
    spectrum = np.fft.rfft(centred, size)
    return np.fft.irfft(np.abs(spectrum) ** 2, size)[: lags + 1] / n


@dataclass(frozen=True)
class Resampling:
    """Random choices of blocks of one series: how often each cell's block is in each replicate.

    Attributes:
        cell: For each value the cell it lies in.
        cells: Number of cells.
        span: Cells in a block.
        weights: Replicates x cells: how often the block that starts there was drawn.
    """

    cell: Integers
    cells: int
    span: int
    weights: npt.NDArray[np.float32]

    @property
    def block_length(self) -> float:
        """Values in a block, on average."""
        return self.span * len(self.cell) / self.cells

    @property
    def blocks(self) -> float:
        """Blocks in the series."""
        return self.cells / self.span

    def sums(self, per_value: Floats) -> Floats:
        """Return the sum of a quantity over each replicate."""
        table = np.bincount(self.cell, per_value, self.cells).astype(np.float64)
        drawn: Floats = self.weights.astype(np.float64) @ self._blocks(table)
        return drawn

    def counts_up_to(self, values: Integers, edges: Integers) -> Floats:
        """Return, replicates x edges, how many values lie at or below each ascending edge."""
        width = len(edges) + 1
        column = np.searchsorted(edges, values)
        table = np.bincount(self.cell * width + column, minlength=self.cells * width)
        below = np.cumsum(table.reshape(self.cells, width)[:, :-1], axis=1, dtype=np.float64)
        drawn = self.weights @ self._blocks(below).astype(np.float32)  # counts below 2^24: exact
        return drawn.astype(np.float64)

    def blocks_with(self, marked: npt.NDArray[np.bool_]) -> int:
        """Return how many separate blocks of the series hold a marked value."""
        return len(np.unique(self.cell[marked] // self.span))

    def _blocks(self, table: Floats) -> Floats:
        """Return the sums over the block that starts at each cell; the last ones wrap around."""
        wrapped = np.concatenate([np.zeros_like(table[:1]), table, table[: self.span - 1]])
        total = np.cumsum(wrapped, axis=0)
        block: Floats = total[self.span :] - total[: -self.span]
        return block


def draw_blocks(n: int, length: int, replicates: int, random: np.random.Generator) -> Resampling:
    """Draw the blocks of all replicates of a series of n values.

    Args:
        n: Number of values.
        length: Values in a block, at least 1; it is rounded up to whole cells.
        replicates: How many series to draw.
        random: Source of the random choices.
    """
    cells = min(n, CELLS, max(_FEWEST_CELLS, _CELLS_IN_BLOCK * n // length))
    span = min(max(1, -(-length * cells // n)), cells)
    draws = max(1, round(cells / span))
    starts = random.integers(0, cells, (replicates, draws))
    flat = (np.arange(replicates)[:, None] * cells + starts).ravel()
    weights = np.bincount(flat, minlength=replicates * cells).reshape(replicates, cells)
    cell = np.arange(n) * cells // n
    return Resampling(cell, cells, span, weights.astype(np.float32))


def quantile_replicates(
    values: Integers, ordered: Integers, probability: str, drawn: Resampling
) -> Floats:
    """Return the quantile of each replicate: the least value with a share of at least p below it.

    Args:
        values: The series.
        ordered: The same, ascending.
        probability: Which quantile, as an exact decimal such as "0.99".
        drawn: The blocks of each replicate.
    """
    n = len(values)
    rank = quantile_rank(probability, n)
    size = drawn.sums(np.ones(n))
    value = int(ordered[rank - 1])
    edges = np.array([max(value - 1, np.iinfo(np.int64).min), value])
    around = drawn.counts_up_to(values, edges) / size[:, None]
    reach = int(np.ceil(_REACH * around.std(axis=0).max() * n)) + 5
    low, high = max(1, rank - reach), min(n, rank + reach)
    steps = np.linspace(low, high, min(_CANDIDATES, high - low + 1)).astype(np.int64)
    candidates = np.unique(ordered[np.append(steps, rank) - 1])
    counts = drawn.counts_up_to(values, candidates)
    needed = np.ceil(float(probability) * size - 1e-9)
    first = np.argmax(counts >= needed[:, None], axis=1)
    reached = counts[:, -1] >= needed
    return candidates[np.where(reached, first, len(candidates) - 1)].astype(np.float64)
