"""Figures with intervals at any confidence, and what two of them say of each other.

The interval of a difference is put together from those of its sides, and so is that of a ratio
(Zou and Donner, Statistics in Medicine 27, 2008; Donner and Zou, Statistical Methods in Medical
Research 21, 2012). For sides with symmetric intervals these are as Welch's and Fieller's. A ratio's
interval excludes one exactly where the difference's excludes zero.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from latenz.statistics.stretches import Floats, Integers, Share

Ends = tuple[float, float]


class Estimate(Protocol):
    """A figure that was estimated."""

    @property
    def value(self) -> float:
        """The figure."""

    def ends(self, confidence: float) -> Ends | None:
        """Return its two-sided interval; None if it cannot be told at that confidence."""


@dataclass(frozen=True)
class Mean:
    """A mean, with an interval by Student's t.

    Attributes:
        value: The mean.
        error: Its standard error.
        degrees: Degrees of freedom of that.
    """

    value: float
    error: float
    degrees: float

    def factor(self, confidence: float) -> float:
        """Return how many standard errors there are on each side."""
        from scipy.special import stdtrit

        return float(-stdtrit(self.degrees, (1 - confidence) / 2))

    def ends(self, confidence: float) -> Ends | None:
        """Return its interval."""
        reach = self.factor(confidence) * self.error
        return self.value - reach, self.value + reach


@dataclass(frozen=True)
class Ratio:
    """A share, such as that of late activations."""

    share: Share

    @property
    def value(self) -> float:
        """The share."""
        return self.share.share

    def ends(self, confidence: float) -> Ends | None:
        """Return its interval."""
        return self.share.interval(confidence)


@dataclass(frozen=True)
class Quantile:
    """A quantile, whose interval goes from one activation to another.

    Attributes:
        value: The quantile.
        share: The share of activations up to it, and how sure that is.
        n: Activations.
        ranks: Ranks of activations on both sides of it, ascending from 1.
        values: The latencies at these ranks.
        resolution: A recorded value v stands for [v, v + resolution).
    """

    value: float
    share: Share
    n: int
    ranks: Integers
    values: Floats
    resolution: int = 1

    def ends(self, confidence: float) -> Ends | None:
        """Return its interval; None if it reaches beyond the smallest or largest activation."""
        low, high = self.share.interval(confidence)
        first, last = math.floor(low * self.n), math.ceil(high * self.n) + 1
        if first < 1 or last > self.n:
            return None
        below = int(np.searchsorted(self.ranks, first, "right")) - 1
        above = int(np.searchsorted(self.ranks, last))
        if below < 0 or above == len(self.ranks):
            return None
        slack = self.resolution - 1
        return float(self.values[below]), float(self.values[above]) + slack


def rank_ladder(share: Share, n: int, confidence: float) -> list[int]:
    """Return the ranks at which a quantile's interval may end.

    At the confidence asked for, and at those at which two, three, ... hold together; the ends of
    intervals in between are those of the next wider one.
    """
    ranks = set()
    for together in sorted({round(1.3**step) for step in range(60)}):
        low, high = share.interval(1 - (1 - confidence) / together)
        ranks |= {math.floor(low * n), math.ceil(high * n) + 1}
    return sorted(rank for rank in ranks if 1 <= rank <= n)


@dataclass(frozen=True)
class Contrast:
    """Two estimates, and how they depend on each other.

    Attributes:
        a: Of the first side.
        b: Of the second.
        fewest: Smallest error probability, 1 - confidence, at which they can differ at all.
        covariance: Of two means that were estimated in pairs; else 0.
    """

    a: Estimate
    b: Estimate
    fewest: float = 0
    covariance: float = 0

    def difference(self, confidence: float) -> Ends | None:
        """Return the interval of b - a; None if it cannot be told."""
        if (sides := self._sides(confidence)) is None:
            return None
        (a_low, a_high), (b_low, b_high), shared = sides
        a, b = self.a.value, self.b.value
        down = math.sqrt(max((b - b_low) ** 2 + (a_high - a) ** 2 - 2 * shared, 0))
        up = math.sqrt(max((b_high - b) ** 2 + (a - a_low) ** 2 - 2 * shared, 0))
        return b - a - down, b - a + up

    def ratio(self, confidence: float) -> Ends | None:
        """Return the interval of b / a; None if a may be zero, or it cannot be told."""
        if (sides := self._sides(confidence)) is None:
            return None
        (a_low, a_high), (b_low, b_high), shared = sides
        a, b = self.a.value, self.b.value
        if a_low <= 0 or b <= 0:
            return None
        # Where b - r a is as far from zero as its interval reaches: a quadratic equation in r.
        middle = a * b - shared
        over = _root(middle, a_low * (2 * a - a_low), b_high * (2 * b - b_high))
        under = _root(middle, a_high * (2 * a - a_high), b_low * (2 * b - b_low))
        if over is None:
            return None
        low = 0.0 if under is None or b_low <= 0 else b_low * (2 * b - b_low) / under
        return low, over / (a_low * (2 * a - a_low))

    def p_value(self) -> float:
        """Return the largest error probability at which the difference's interval holds zero."""
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = (low + high) / 2
            ends = self.difference(1 - middle)
            excluded = ends is not None and not ends[0] <= 0 <= ends[1]
            low, high = (low, middle) if excluded else (middle, high)
        return high

    def _sides(self, confidence: float) -> tuple[Ends, Ends, float] | None:
        if 1 - confidence < self.fewest:
            return None
        a, b = self.a.ends(confidence), self.b.ends(confidence)
        if a is None or b is None:
            return None
        factor = self.a.factor(confidence) if isinstance(self.a, Mean) else 0
        return a, b, self.covariance * factor**2


def _root(middle: float, square: float, constant: float) -> float | None:
    inside = middle * middle - square * constant
    total = middle + math.sqrt(inside) if inside >= 0 else 0
    return total if total > 0 else None


def of_repetitions(a: Sequence[float], b: Sequence[float], resolution: int = 1) -> Contrast:
    """Return what repetitions tell of a figure, each side's being independent.

    Welch's interval, with the degrees of freedom of the side that has fewer: it is never too
    narrow, whatever the variances, where the usual approximation errs for so few values.

    If a run's figure takes one of two values by chance, all of A may take one and all of B the
    other: so many repetitions as make that rarer than 1 - confidence are needed.

    Args:
        a: The figure of each repetition of the first side, at least two.
        b: Those of the second.
        resolution: A figure v stands for [v, v + resolution).
    """
    degrees = min(len(a), len(b)) - 1
    first, second = (Mean(*_mean(side, resolution), degrees) for side in (a, b))
    return Contrast(first, second, fewest=2.0 ** (1 - len(a) - len(b)))


def of_pairs(a: Sequence[float], b: Sequence[float], resolution: int = 1) -> Contrast:
    """Return what repetitions tell of a figure, the i-th of A taken together with the i-th of B.

    All n differences have the same sign by chance with a probability of 2^(1-n).
    """
    n = len(a)
    first, second = (Mean(*_mean(side, resolution), n - 1) for side in (a, b))
    covariance = float(np.cov(a, b)[0, 1]) / n
    return Contrast(first, second, fewest=2.0 ** (1 - n), covariance=covariance)


def _mean(values: Sequence[float], resolution: int) -> Ends:
    """Return the mean and its standard error, which values that were rounded do not tell fully."""
    n = len(values)
    rounding = (resolution * resolution - 1) / 12
    return float(np.mean(values)), math.sqrt((float(np.var(values, ddof=1)) + rounding) / n)


def fewest_repetitions(error: float, paired: bool) -> int:
    """Return how many repetitions of each side can tell a difference at all.

    Args:
        error: 1 - confidence.
        paired: Whether those of both sides are taken in pairs.
    """
    needed = 1 - math.log2(error)
    return max(3, math.ceil((needed if paired else needed / 2) - 1e-9))
