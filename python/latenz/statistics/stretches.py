"""How sure a mean is whose values resemble their neighbours: means of long stretches.

A run is cut into `CELLS` stretches of equally many activations. Neighbouring ones are put together
again, into ever longer stretches: as long as these resemble their neighbours, the variance of the
run's mean seems the greater the longer they are; once it no longer grows, they are as good as
independent, and the mean of `LONG` of them has an interval by Student's t (method of batch means:
Law and Kelton, Simulation Modeling and Analysis, section 9.5.3; the correction for what the longest
stretches still miss: Vats and Flegal, Biometrika 109, 2022). If it still grows, the run is too
short, and nothing can be told from it alone.

What is done for means holds for shares, as a share is the mean of noughts and ones: of a limit, and
of a quantile, which is where a share is reached (Woodruff, JASA 47, 1952). Intervals of shares are
those of Korn and Graubard (Survey Methodology 24, 1998): exact binomial ones for as many
independent activations as the stretches tell, at Student's t instead of the normal distribution.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

CELLS = 128
"""Stretches that a run is cut into."""
LONG = 8
"""Stretches that an interval rests on."""
DEGREES = LONG - 1
"""Degrees of freedom of a variance that so few of them tell."""
FEWEST_EVENTS = 10
"""Independent values on each side of a quantile, or of a limit, that an interval rests on."""
_SMALLEST = np.iinfo(np.int64).min
_GROWTH = 1.5
"""Most that the variance may grow from stretches to such twice as long: neighbours correlate by
half, so that they forget within little more than their own length, a hundredth of the run."""
_FAR_GROWTH = 2.0
"""Most that it may grow to stretches eight times as long; chance alone lets it vary by a third."""


@dataclass(frozen=True)
class Spread:
    """The variance of a mean as stretches of several lengths tell it.

    Attributes:
        cells: By all stretches.
        pairs: By stretches twice as long.
        far: By stretches eight times as long.
        longest: By `LONG` of them.
    """

    cells: float
    pairs: float
    far: float
    longest: float

    @classmethod
    def of(cls, means: Floats) -> "Spread":
        """Compute it from the means of a series' stretches, shape (CELLS,)."""
        lengths = CELLS, CELLS // 2, 2 * LONG, LONG
        return cls(*(float(means.reshape(n, -1).mean(axis=1).var(ddof=1) / n) for n in lengths))

    def __add__(self, other: "Spread") -> "Spread":
        """Return the variance of the difference of two independent means."""
        return Spread(
            self.cells + other.cells,
            self.pairs + other.pairs,
            self.far + other.far,
            self.longest + other.longest,
        )

    @property
    def settled(self) -> bool:
        """Whether the variance no longer grows with the stretches."""
        return self.pairs <= _GROWTH * self.cells and self.far <= _FAR_GROWTH * self.cells

    @property
    def variance(self) -> float:
        """The variance by the longest stretches, and what they would miss if it still grew.

        Not below that by stretches half as long: so few tell a variance only roughly.
        """
        return max(self.longest, self.far, 2 * self.longest - self.far)

    @property
    def highest(self) -> float:
        """The greatest of all that the stretches tell."""
        return max(self.variance, self.pairs, self.cells)

    def scaled(self, factor: float) -> "Spread":
        """Return the spread of a mean of values that are so many times as large."""
        square = factor * factor
        parts = self.cells, self.pairs, self.far, self.longest
        return Spread(*(square * part for part in parts))


@dataclass(frozen=True)
class Stretches:
    """A run's activations, counted and summed by stretch.

    Attributes:
        sizes: Activations in each stretch, shape (CELLS,).
        edges: Values, ascending, above which activations were counted.
        above: Activations above each edge, shape (CELLS, edges).
        sums: Sum of the deviations from `centre`, shape (CELLS,).
        squares: Sum of their squares.
        centre: A value among the activations, near their middle.
    """

    sizes: Integers
    edges: Integers
    above: Integers
    sums: Floats
    squares: Floats
    centre: int

    @property
    def n(self) -> int:
        """All activations."""
        return int(self.sizes.sum())

    def weigh(self, share: float, *edges: int) -> "tuple[Share, Spread]":
        """Weigh a share of the activations.

        Args:
            share: The share.
            edges: Those edges above which about as many lie: where many values are equal, a
                quantile lies between the share above them and that from them on.

        Returns:
            How sure the share is, and its spread.
        """
        likely = cautious = 1.0
        found = Spread(0, 0, 0, 0)
        for edge in edges:
            above = self.above[:, int(np.searchsorted(self.edges, max(edge, _SMALLEST)))]
            spread = Spread.of(above / self.sizes)
            near = int(above.sum()) / self.n
            if 0 < near < 1:
                independent = near * (1 - near) / self.n
                likely = max(likely, spread.variance / independent)
                cautious = max(cautious, spread.highest / independent)
                found = max(found, spread, key=lambda each: each.highest)
        rarer = min(share, 1 - share)
        return Share(share, self.n / likely, rarer * self.n / cautious), found


def cut(
    values: Iterable[Integers], n: int, edges: Iterable[int], centre: int = 0
) -> Stretches | None:
    """Cut a run into its stretches; None if it has too few activations for that.

    Args:
        values: All latencies in order, piece by piece.
        n: How many there are.
        edges: Values above which to count.
        centre: A value near their middle: deviations from it are summed.
    """
    if n < CELLS:
        return None
    steps = np.unique(np.fromiter((max(edge, _SMALLEST) for edge in edges), np.int64))
    width = len(steps) + 1
    borders = np.arange(CELLS + 1) * n // CELLS
    counts = np.zeros(CELLS * width, np.int64)
    sums, squares = np.zeros(CELLS), np.zeros(CELLS)
    begin = 0
    for piece in values:
        inside = np.clip(borders, begin, begin + len(piece))
        cell = np.repeat(np.arange(CELLS), inside[1:] - inside[:-1])
        step = np.searchsorted(steps, piece)
        counts += np.bincount(cell * width + step, minlength=CELLS * width)
        deviation = piece.astype(np.float64) - centre
        sums += np.bincount(cell, deviation, CELLS)
        squares += np.bincount(cell, deviation * deviation, CELLS)
        begin += len(piece)
    above = np.cumsum(counts.reshape(CELLS, width)[:, ::-1], axis=1)[:, -2::-1]
    return Stretches(np.diff(borders), steps, above, sums, squares, centre)


@dataclass(frozen=True)
class Share:
    """A share of a run's activations, and how many independent ones it rests on.

    Attributes:
        share: The share itself.
        effective: Independent activations that would tell it as surely.
        events: Independent ones that lie on the rarer side of it, at the least.
    """

    share: float
    effective: float
    events: float

    def interval(self, confidence: float) -> tuple[float, float]:
        """Return its two-sided interval."""
        from scipy.special import betaincinv, ndtri, stdtrit

        tail = (1 - confidence) / 2
        n = self.effective * float((ndtri(tail) / stdtrit(DEGREES, tail)) ** 2)
        hits = n * self.share
        low = float(betaincinv(hits, n - hits + 1, tail)) if hits > 0 else 0.0
        high = float(1 - betaincinv(n - hits, hits + 1, tail)) if hits < n else 1.0
        return low, high
