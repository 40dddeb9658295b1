"""A tail of several causes: each cause has a tail of its own, and their rates add up."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latenz.errors import BadInput
from latenz.statistics.conditions import Diagnostic
from latenz.statistics.extrapolation import Estimate, TailFit

_NEAREST = 1e-3
_MOST_STEPS = 20


@dataclass(frozen=True, eq=False)
class MixedTail:
    """Tails of late samples whose causes are known; it answers what a `TailFit` does.

    Intervals of sums are those of the method of variance estimates recovery (Zou and Donner,
    Statistics in Medicine 27, 2008): each cause adds its own uncertainty, squared.

    Attributes:
        parts: The tail of each cause, by its name; at least one, all from the same activations.
    """

    parts: Mapping[str, TailFit]

    @property
    def n(self) -> int:
        """Activations that the exceedances were taken from, skipped ones included."""
        return next(iter(self.parts.values())).n

    @property
    def duration_ns(self) -> int | None:
        """How long was measured; None where the source cannot tell."""
        return next(iter(self.parts.values())).duration_ns

    @property
    def threshold_ns(self) -> float:
        """Above it, all parts are fitted."""
        return max(part.threshold_ns for part in self.parts.values())

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All tests made, of each cause."""
        return tuple(each for part in self.parts.values() for each in part.diagnostics)

    def exceedance_curve(self, latencies_ns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return P(latency > x) for each x above the threshold, by the fits."""
        curves = [part.exceedance_curve(latencies_ns) for part in self.parts.values()]
        total: npt.NDArray[np.float64] = np.sum(curves, axis=0)
        return total

    def exceedance(self, limit_ns: float, confidence: float = 0.95) -> Estimate:
        """Estimate the probability that one activation exceeds a limit above the threshold.

        Raises:
            BadInput: The limit is not above the threshold.
        """
        return _sum([part.exceedance(limit_ns, confidence) for part in self.parts.values()])

    def episodes(self, limit_ns: float, duration_ns: float, confidence: float = 0.95) -> Estimate:
        """Estimate how many clusters exceed a limit above the threshold in a time.

        Raises:
            BadInput: The limit is not above the threshold, or the source tells no time.
        """
        return _sum(
            [part.episodes(limit_ns, duration_ns, confidence) for part in self.parts.values()]
        )

    def return_level(self, activations: float, confidence: float = 0.95) -> Estimate:
        """Estimate the latency (ns) exceeded once in so many activations on average.

        Raises:
            BadInput: So few activations have their level below the threshold.
        """
        return self._level(
            lambda x: float(self.exceedance_curve(np.array([x]))[0]) * activations,
            lambda x: _times(self.exceedance(x, confidence), activations),
        )

    def largest_in(self, duration_ns: float, confidence: float = 0.95) -> Estimate:
        """Estimate the latency (ns) exceeded by one cluster in a time on average.

        Raises:
            BadInput: The level is below the threshold, or the source tells no time.
        """
        parts = self.parts.values()
        return self._level(
            lambda x: sum(part.expected_episodes(x, duration_ns) for part in parts),
            lambda x: self.episodes(x, duration_ns, confidence),
        )

    def _level(
        self, expected: Callable[[float], float], bounded: Callable[[float], Estimate]
    ) -> Estimate:
        """Return where what is expected, and its bounds, fall to 1."""
        base = self.threshold_ns
        least = min(part.scale_ns for part in self.parts.values()) * _NEAREST
        if expected(base + least) <= 1:
            raise BadInput("the level is below the threshold of the tail", "tail", "ask for more")
        middle = _fallen(lambda y: expected(base + math.exp(y)), math.log(least), 1.0, 1e-6)
        low = _fallen(lambda y: bounded(base + math.exp(y)).lower, middle, -0.25, 1e-2)
        high = _fallen(lambda y: bounded(base + math.exp(y)).upper, middle, 0.25, 1e-2)
        lower = base if low < math.log(least) else base + math.exp(low)
        return Estimate(base + math.exp(middle), lower, base + math.exp(high))


def _sum(estimates: list[Estimate]) -> Estimate:
    value = sum(each.value for each in estimates)
    below = math.hypot(*(each.value - each.lower for each in estimates))
    above = math.hypot(*(each.upper - each.value for each in estimates))
    return Estimate(value, max(0.0, value - below), value + above)


def _times(estimate: Estimate, factor: float) -> Estimate:
    return Estimate(estimate.value * factor, estimate.lower * factor, estimate.upper * factor)


def _fallen(
    function: Callable[[float], float], start: float, step: float, precision: float
) -> float:
    """Return where a falling function is 1, on the side of the start that the step points to."""
    from scipy.optimize import brentq

    end = start
    for _ in range(_MOST_STEPS):
        before, end = end, end + step
        if (function(end) < 1) == (step > 0):
            return float(brentq(lambda y: function(y) - 1, before, end, xtol=precision))
        step *= 1.5
    return end
