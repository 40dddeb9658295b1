"""What a fitted tail tells about latencies later than any seen, with confidence intervals.

Intervals are those of the profile likelihood, over several tails at once: the generalised Pareto,
whose shape stays as it was fitted, and the generalised Weibull, whose shape fades. Data above one
threshold cannot tell them apart, and far beyond the data they part: an interval spans both. Its
lower end also allows for a shape that fades at once, as it does where two kinds of lateness
overlap at the threshold and only the later one goes on.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from latenz.errors import BadInput
from latenz.statistics import pareto
from latenz.statistics.conditions import Diagnostic
from latenz.statistics.exceedance import check_confidence

_LOG_FAINTEST = math.log(1e-30)  # below, probabilities count as 0
_AT_ONCE = 1.0  # depth of a threshold from which on a shape fades within some powers of e
_CERTAIN = 1e6  # a drop of the log-likelihood that no confidence level reaches
_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Estimate:
    """An estimate with its two-sided confidence interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class TailFit:
    """A tail that passed every test.

    Attributes:
        n: Activations that the exceedances were taken from, skipped ones included.
        threshold_ns: Excesses are counted from here.
        excesses_ns: What was fitted, the peaks: latencies above the threshold, minus the
            threshold; one of each cluster, or all where their sizes do not depend on each other.
        fitted: The generalised Pareto distribution of the excesses.
        diagnostics: All tests made.
        exceedances: Activations above the threshold, skipped ones included.
        sizes: How many peaks each cluster has.
        spread: Standard deviation of the number of peaks, relative to it.
        extremal_index: 1 / mean size of a cluster; 1 where all exceedances come alone.
        run: Exceedances so many activations apart, or closer, are of one cluster.
        duration_ns: How long was measured; None where the source cannot tell.
    """

    n: int
    threshold_ns: float
    excesses_ns: npt.NDArray[np.float64]
    fitted: pareto.Pareto
    diagnostics: tuple[Diagnostic, ...]
    exceedances: int
    sizes: npt.NDArray[np.int64]
    spread: float
    extremal_index: float = 1.0
    run: int = 0
    duration_ns: int | None = None

    @property
    def shape(self) -> float:
        """Above 0 the tail is heavy, at 0 exponential, below 0 it ends."""
        return self.fitted.shape

    @property
    def scale_ns(self) -> float:
        """Scale of the excesses: their mean if the tail is exponential."""
        return self.fitted.scale

    @property
    def clusters(self) -> int:
        """Clusters that the exceedances came in."""
        return len(self.sizes)

    @property
    def _peaks(self) -> int:
        return len(self.excesses_ns)

    @property
    def _activations_a_peak(self) -> float:
        return self.exceedances / self._peaks

    @property
    def share(self) -> float:
        """Share of activations above the threshold."""
        return self.exceedances / self.n

    @property
    def end_ns(self) -> float | None:
        """Latency that the fitted tail never reaches; None if it has no end."""
        return self.threshold_ns - self.scale_ns / self.shape if self.shape < 0 else None

    def exceedance_curve(self, latencies_ns: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return P(latency > x) for each x above the threshold, by the fit."""
        excesses = (latencies_ns - self.threshold_ns)[np.newaxis, :]
        rows = np.array([self.shape]), np.array([self.scale_ns])
        curve: npt.NDArray[np.float64] = np.exp(pareto.log_survival(excesses, *rows)[0])
        return self.share * curve

    def exceedance(self, limit_ns: float, confidence: float = 0.95) -> Estimate:
        """Estimate the probability that one activation exceeds a limit above the threshold.

        Of peaks as many activations are taken to be above the limit as above the threshold, and at
        the lower end of the interval one each: clusters get smaller the higher one looks.

        Args:
            limit_ns: The limit.
            confidence: Two-sided confidence level.

        Raises:
            BadInput: The limit is not above the threshold, where counting tells more than a fit.
        """
        above = self._above(limit_ns, confidence)
        alone, together = self._peaks / self.n, self.exceedances / self.n
        return Estimate(above.value * together, above.lower * alone, above.upper * together)

    def episodes(self, limit_ns: float, duration_ns: float, confidence: float = 0.95) -> Estimate:
        """Estimate how many clusters exceed a limit above the threshold in a time.

        Args:
            limit_ns: The limit.
            duration_ns: The time.
            confidence: Two-sided confidence level.

        Raises:
            BadInput: The limit is not above the threshold, or the source tells no time.
        """
        part = duration_ns / self._measured_ns()
        above = self._above(limit_ns, confidence)
        return Estimate(
            *(part * self._clusters_above(one) for one in (above.value, above.lower, above.upper))
        )

    def expected_episodes(self, limit_ns: float, duration_ns: float) -> float:
        """Return the estimate of `episodes` alone, which takes no time."""
        share = math.exp(self._log_share_above(limit_ns - self.threshold_ns))
        return duration_ns / self._measured_ns() * self._clusters_above(share)

    def return_level(self, activations: float, confidence: float = 0.95) -> Estimate:
        """Estimate the latency (ns) exceeded once in so many activations on average.

        Args:
            activations: More than n / peaks, that is beyond the threshold.
            confidence: Two-sided confidence level.

        Raises:
            BadInput: So few activations have their level below the threshold.
        """
        check_confidence(confidence)
        expected = activations * self._peaks / self.n
        if not expected > 1:
            raise BadInput(
                f"the level of {activations} activations is below the threshold of the tail",
                "activations",
                f"more than {self.n / self._peaks:.0f}",
            )
        together = self._level(math.log(expected * self._activations_a_peak), confidence)
        if self.exceedances == self._peaks:
            return together
        alone = self._level(math.log(expected), confidence)
        return Estimate(together.value, alone.lower, together.upper)

    def largest_in(self, duration_ns: float, confidence: float = 0.95) -> Estimate:
        """Estimate the latency (ns) exceeded by one cluster in a time on average.

        The largest latency of such a time is below it in 37 of 100, above it in the others.

        Args:
            duration_ns: The time.
            confidence: Two-sided confidence level.

        Raises:
            BadInput: The time is so short that its level is below the threshold, or the source
                tells no time.
        """
        from scipy.optimize import brentq

        check_confidence(confidence)
        wanted = self._measured_ns() / duration_ns
        if not wanted < self.clusters:
            raise BadInput(
                f"the level of {duration_ns:.0f} ns is below the threshold of the tail",
                "duration",
                f"more than {self._measured_ns() / self.clusters:.0f} ns",
            )
        log_rarity = brentq(
            lambda y: math.log(self._clusters_above(math.exp(-y)) / wanted),
            0,
            1 + math.log(self._peaks / wanted),
        )
        return self._level(float(log_rarity), confidence)

    def _measured_ns(self) -> int:
        if self.duration_ns is None:
            raise BadInput("its source tells neither times nor a period", "tail")
        return self.duration_ns

    def _clusters_above(self, probability: float) -> float:
        """Return how many clusters have a peak of those that so large a share of peaks exceeds."""
        if probability >= 1:
            return self.clusters * probability  # an interval's upper end may lie there
        return float(-np.expm1(self.sizes * math.log1p(-probability)).sum())

    def _above(self, limit_ns: float, confidence: float) -> Estimate:
        """Return which share of the peaks exceeds a limit, uncertain number of peaks included."""
        check_confidence(confidence)
        distance = limit_ns - self.threshold_ns
        if distance <= 0:
            raise BadInput(
                f"{limit_ns} ns is below the threshold of the tail, {self.threshold_ns} ns",
                "limit",
                "count the samples above it instead",
            )
        best = self._log_share_above(distance)
        low, high = self._span(
            lambda depth, log_p: pareto.profile(self.excesses_ns, distance, log_p, depth),
            (_LOG_FAINTEST, -1e-9),
            confidence,
        )
        if best < _LOG_FAINTEST:
            return Estimate(0.0, 0.0, math.exp(high + self._spread(confidence)))
        spread = self._spread(confidence)
        low, high = min(low, best), max(high, best)
        return Estimate(
            math.exp(best),
            math.exp(best - math.hypot(best - low, spread)),
            math.exp(best + math.hypot(high - best, spread)),
        )

    def _level(self, log_rarity: float, confidence: float) -> Estimate:
        """Return the latency that one peak in exp(log_rarity) exceeds.

        That it is uncertain how rare it is comes on top of the interval (the method of variance
        estimates recovery: Zou and Donner, Statistics in Medicine 27, 2008).
        """
        distance = self._distance(log_rarity)
        middle = math.log(distance)
        low, high = self._span(
            lambda depth, log_x: pareto.profile(
                self.excesses_ns, math.exp(log_x), -log_rarity, depth
            ),
            (middle - 20, middle + 20),
            confidence,
        )
        spread = self._spread(confidence)
        below = distance - self._distance(max(0.0, log_rarity - spread))
        above = self._distance(log_rarity + spread) - distance
        low, high = min(distance, math.exp(low)), max(distance, math.exp(high))
        return Estimate(
            self.threshold_ns + distance,
            self.threshold_ns + distance - math.hypot(distance - low, below),
            self.threshold_ns + distance + math.hypot(high - distance, above),
        )

    def _log_share_above(self, distance: float) -> float:
        rows = np.array([self.shape]), np.array([self.scale_ns])
        return float(pareto.log_survival(np.array([[distance]]), *rows)[0, 0])

    def _distance(self, log_rarity: float) -> float:
        return self.scale_ns * float(
            pareto.quantile_at(log_rarity, np.array([self.shape]), math.inf)[0]
        )

    def _spread(self, confidence: float) -> float:
        """Return how far the logarithm of the number of peaks may be off."""
        from scipy.special import ndtri

        return float(ndtri((1 + confidence) / 2)) * self.spread

    def _span(
        self,
        likelihood: Callable[[float, float], float],
        ends: tuple[float, float],
        confidence: float,
    ) -> tuple[float, float]:
        """Return the interval of a quantity over all tails, given its profile likelihood.

        Args:
            likelihood: Of a depth of the tails and a value of the quantity.
            ends: Between which values to look.
            confidence: Two-sided confidence level.
        """
        from scipy.special import fdtri

        # the likelihood ratio's limit is chi-square; with few peaks an F distribution is nearer
        freedom = self._peaks - 2
        drop = self._peaks / 2 * math.log1p(float(fdtri(1, freedom, confidence)) / freedom)
        fading = math.log(self.n / self._peaks)
        spans = [
            _interval(partial(likelihood, depth), ends, drop)
            for depth in (math.inf, fading, _AT_ONCE)
        ]
        return min(low for low, _ in spans), max(high for _, high in spans[:2])


def _interval(
    likelihood: Callable[[float], float], ends: tuple[float, float], drop: float
) -> tuple[float, float]:
    """Return where a log-likelihood with one maximum is at most `drop` below it."""
    place, highest = _maximum(likelihood, *ends)

    def lacking(at: float) -> float:
        return min(highest - likelihood(at), _CERTAIN) - drop

    return _crossing(lacking, place, ends[0]), _crossing(lacking, place, ends[1])


def _maximum(function: Callable[[float], float], low: float, high: float) -> tuple[float, float]:
    """Return where a function with one maximum has it, and the maximum."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    while high - low > 2e-3:
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
    return (right, at_right) if at_left < at_right else (left, at_left)


def _crossing(function: Callable[[float], float], inside: float, end: float) -> float:
    """Return where the function turns positive on the way to `end`; `end` if it never does."""
    from scipy.optimize import brentq

    reached, step = inside, math.copysign(0.25, end - inside)
    while abs(step) < abs(end - inside):
        if function(inside + step) > 0:
            return float(brentq(function, reached, inside + step, xtol=1e-3))
        reached, step = inside + step, 2 * step
    return end
