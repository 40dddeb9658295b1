"""Tail extrapolation by peaks over threshold, which refuses when its conditions do not hold.

Excesses over a high threshold tend to a generalised Pareto distribution (Pickands, Annals of
Statistics 3, 1975) if the latencies are independent and all of one kind. On computers both often
fail: a tail made of several causes looks fine until the rare cause appears, and a Gumbel or
exponential model chosen for convenience can lie on the unsafe side (Lima and Bate, RTSS 2017).
So the shape is always estimated, and each condition is tested; the first that fails refuses.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.statistics import pareto
from latenz.statistics.conditions import (
    BEFORE_FITTING,
    FEWEST_EXCEEDANCES,
    Diagnostic,
    step_of,
    threshold_stability,
    usable_shape,
)
from latenz.statistics.exceedance import check_confidence, exceedance_upper
from latenz.statistics.scan import column, scan_samples

MOST_EXCEEDANCES = 1000
LARGEST_SHARE = 0.1
FIT_LEVEL = 0.1
"""The lowest threshold is taken at which the Anderson-Darling test gives at least this p-value."""
_REPETITIONS = 199
_SEED = 2017  # the same samples always give the same fit
_FAINTEST = 1e-30  # below, probabilities count as 0
_CERTAIN = 1e6  # a drop of the log-likelihood that no confidence level reaches


@dataclass(frozen=True)
class TailRefusal:
    """Why the tail must not be extrapolated from these samples.

    Attributes:
        reason: The condition that failed, with what was found.
        diagnostics: All tests made until then.
    """

    reason: str
    diagnostics: tuple[Diagnostic, ...]


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
        n: Samples that the exceedances were taken from.
        threshold_ns: Excesses are counted from here.
        excesses_ns: The latencies above the threshold, minus the threshold.
        fitted: The generalised Pareto distribution of the excesses.
        diagnostics: All tests made.
    """

    n: int
    threshold_ns: float
    excesses_ns: npt.NDArray[np.float64]
    fitted: pareto.Pareto
    diagnostics: tuple[Diagnostic, ...]

    @property
    def shape(self) -> float:
        """Above 0 the tail is heavy, at 0 exponential, below 0 it ends."""
        return self.fitted.shape

    @property
    def scale_ns(self) -> float:
        """Scale of the excesses: their mean if the tail is exponential."""
        return self.fitted.scale

    @property
    def share(self) -> float:
        """Share of samples above the threshold."""
        return len(self.excesses_ns) / self.n

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

        The interval is that of the profile likelihood, widened by the Clopper-Pearson bound on
        the share above the threshold, which takes a tenth of the allowed error.

        Args:
            limit_ns: The limit.
            confidence: Two-sided confidence level.

        Raises:
            BadInput: The limit is not above the threshold, where counting tells more than a fit.
        """
        check_confidence(confidence)
        distance = limit_ns - self.threshold_ns
        if distance <= 0:
            raise BadInput(
                f"{limit_ns} ns is below the threshold of the tail, {self.threshold_ns} ns",
                "limit",
                "count the samples above it instead",
            )
        best = math.exp(self._log_survival(distance))
        allowed = 0.1 * (1 - confidence)
        drop = _likelihood_drop(1 - 9 * allowed)
        low, high = (
            _crossing(
                lambda log_p: self._drop(distance, math.exp(log_p)) - drop,
                math.log(max(best, _FAINTEST)),
                end,
            )
            for end in (math.log(_FAINTEST), math.log1p(-1e-9))
        )
        count = len(self.excesses_ns)
        share_low = 1 - exceedance_upper(self.n - count, self.n, 1 - allowed / 2)
        share_high = exceedance_upper(count, self.n, 1 - allowed / 2)
        lower = 0.0 if best < _FAINTEST else share_low * math.exp(low)
        return Estimate(self.share * best, lower, share_high * math.exp(high))

    def return_level(self, activations: float, confidence: float = 0.95) -> Estimate:
        """Estimate the latency (ns) exceeded once in so many activations on average.

        The interval is that of the profile likelihood.

        Args:
            activations: More than n / exceedances, that is beyond the threshold.
            confidence: Two-sided confidence level.

        Raises:
            BadInput: So few activations have their level below the threshold.
        """
        check_confidence(confidence)
        probability = 1 / (activations * self.share)
        if not 0 < probability < 1:
            raise BadInput(
                f"the level of {activations} activations is below the threshold of the tail",
                "activations",
                f"more than {1 / self.share:.0f}",
            )
        distance = self._distance(probability)
        drop = _likelihood_drop(confidence)
        largest = float(self.excesses_ns.max())
        low, high = (
            _crossing(
                lambda log_x: self._drop(math.exp(log_x), probability) - drop,
                math.log(distance),
                end,
            )
            for end in (math.log(distance) - 20, math.log(max(distance, largest)) + 20)
        )
        values = (distance, math.exp(low), math.exp(high))
        return Estimate(*(self.threshold_ns + value for value in values))

    def _distance(self, probability: float) -> float:
        if self.shape == 0:
            return -self.scale_ns * math.log(probability)
        return self.scale_ns * math.expm1(-self.shape * math.log(probability)) / self.shape

    def _log_survival(self, distance: float) -> float:
        excess = np.array([[distance]])
        return float(
            pareto.log_survival(excess, np.array([self.shape]), np.array([self.scale_ns]))[0, 0]
        )

    def _drop(self, distance: float, probability: float) -> float:
        found = pareto.profile(self.excesses_ns, distance, probability)
        return min(self.fitted.log_likelihood - found, _CERTAIN)


def fit_tail(sample_set: SampleSet) -> TailFit | TailRefusal:
    """Fit the tail of a sample set, or say why not; two passes, in bounded memory.

    Args:
        sample_set: Latencies in the form `samples`: cells and printed figures have lost the order
            that the independence and stationarity tests need.
    """
    if sample_set.form != "samples":
        return _refusal("samples in recorded order", f"the source kept only a {sample_set.form}")

    def rank(n: int) -> list[int]:
        wanted = min(MOST_EXCEEDANCES, int(n * LARGEST_SHARE))
        return [n - wanted]

    if (scan := scan_samples(sample_set, lambda n: rank(n) if n > 10 else [], ())) is None:
        raise BadInput("the sample set holds no samples", sample_set.metadata.name)
    if not scan.order:
        return _refusal("enough samples", f"there are only {scan.moments.n}")
    (threshold,) = scan.order.values()
    parts: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    start = 0
    for values in column(sample_set, "latency_ns"):
        above = np.flatnonzero(values > threshold)
        parts.append((above + start, values[above]))
        start += len(values)
    positions, latencies = (np.concatenate(part) for part in zip(*parts, strict=True))
    return fit_peaks(
        latencies, positions, scan.moments.n, threshold, sample_set.metadata.resolution_ns
    )


def fit_peaks(
    latencies_ns: npt.NDArray[np.int64],
    positions: npt.NDArray[np.int64],
    n: int,
    threshold_ns: int,
    resolution_ns: int = 1,
) -> TailFit | TailRefusal:
    """Fit the tail of n samples from those above a threshold, or say why not.

    Args:
        latencies_ns: All latencies above the threshold, in recorded order.
        positions: Which samples they are, counted from 0.
        n: All samples.
        threshold_ns: The lowest threshold to be tried.
        resolution_ns: Step of the values.
    """
    diagnostics: list[Diagnostic] = []
    for test in BEFORE_FITTING:
        diagnostics.append(test(latencies_ns - threshold_ns, positions, n, resolution_ns))
        if not diagnostics[-1].passed:
            return _refused(diagnostics)
    step = step_of(latencies_ns, resolution_ns)
    rng = np.random.default_rng(_SEED)
    # a value stands for a whole step: spread evenly within it, or ties would spoil the fit tests
    exact = np.sort(latencies_ns + step * rng.random(len(latencies_ns)))[::-1]
    for count in _counts(len(exact)):
        threshold = float(exact[count]) if count < len(exact) else float(threshold_ns)
        excesses = exact[:count] - threshold
        fitted = pareto.fit(excesses)
        fit_p = pareto.goodness_of_fit(excesses, fitted, rng, _REPETITIONS)
        if fit_p >= FIT_LEVEL:
            break
    diagnostics.append(
        Diagnostic(
            "goodness of fit",
            fit_p >= FIT_LEVEL,
            fit_p,
            f"Anderson-Darling, {count} exceedances of {threshold:.0f} ns",
        )
    )
    if fit_p >= FIT_LEVEL:
        diagnostics.append(threshold_stability(excesses, fitted))
        diagnostics.append(usable_shape(fitted))
    if not all(diagnostic.passed for diagnostic in diagnostics):
        return _refused(diagnostics)
    return TailFit(n, threshold, excesses, fitted, tuple(diagnostics))


def _refused(diagnostics: Sequence[Diagnostic]) -> TailRefusal:
    failed = next(diagnostic for diagnostic in diagnostics if not diagnostic.passed)
    return TailRefusal(f"{failed.name}: {failed.detail}", tuple(diagnostics))


def _refusal(name: str, detail: str) -> TailRefusal:
    return _refused([Diagnostic(name, False, None, detail)])


def _counts(available: int) -> list[int]:
    """Numbers of exceedances to try, from the lowest threshold up, each half as many again."""
    counts = [available]
    while counts[-1] / 1.5 >= FEWEST_EXCEEDANCES:
        counts.append(int(counts[-1] / 1.5))
    return counts


def _likelihood_drop(confidence: float) -> float:
    from scipy.special import chdtri

    return float(chdtri(1, 1 - confidence)) / 2


def _crossing(function: Callable[[float], float], inside: float, end: float) -> float:
    """Return where the function turns positive on the way to `end`; `end` if it never does."""
    from scipy.optimize import brentq

    if function(inside) > 0:
        return inside
    reached, step = inside, math.copysign(0.25, end - inside)
    while abs(step) < abs(end - inside):
        if function(inside + step) > 0:
            return float(brentq(function, reached, inside + step, xtol=1e-6))
        reached, step = inside + step, 2 * step
    return end
