"""The generalised Pareto distribution: maximum likelihood, goodness of fit, profile likelihood.

P(excess > x) = (1 + shape x / scale)^(-1 / shape), exponential for shape 0. Every function works
on many samples at once, because the goodness of fit needs hundreds of fits.

Its shape stays the same however far one goes. In the tails of most textbook distributions it
fades: that of Gaussian or Weibull ones is inverse to the logarithm of the probability. For them
there is the generalised Weibull tail (de Valk, Extremes 19, 2016), whose shape at the threshold is
`shape` and fades with the *depth* of the threshold, -ln P(a sample exceeds it). An infinite depth
is the generalised Pareto distribution.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_GRID = np.linspace(-6.0, 12.0, 19)
_GOLDEN = (5**0.5 - 1) / 2
_STEPS = 24
_LEAST_SHAPE = -1.0  # below, the likelihood has no maximum
_LARGEST_SHAPE = 3.0
_NEARLY_ZERO = 1e-8


@dataclass(frozen=True)
class Pareto:
    """A fitted distribution of excesses over a threshold.

    Attributes:
        shape: Above 0 the tail is heavy, at 0 exponential, below 0 it ends.
        scale: In the unit of the excesses.
        log_likelihood: Of the excesses it was fitted to.
    """

    shape: float
    scale: float
    log_likelihood: float


def fit(excesses: Floats) -> Pareto:
    """Fit by maximum likelihood.

    Args:
        excesses: Positive excesses over the threshold.
    """
    shape, scale, log_likelihood = _fit_rows(excesses[np.newaxis, :])
    return Pareto(float(shape[0]), float(scale[0]), float(log_likelihood[0]))


def goodness_of_fit(
    excesses: Floats, fitted: Pareto, rng: np.random.Generator, repetitions: int
) -> float:
    """Return the p-value of the Anderson-Darling test, by parametric bootstrap.

    The parameters were estimated from the same excesses, which the usual tables do not allow for:
    the statistic is compared with that of samples drawn from the fit and fitted themselves
    (Stute et al., Metrika 40, 1993).

    Args:
        excesses: What was fitted.
        fitted: The fit.
        rng: Source of the drawn samples.
        repetitions: Number of drawn samples.
    """
    drawn = _quantile(rng.random((repetitions, len(excesses))), fitted.shape)
    found = _anderson_darling(
        np.sort(excesses)[np.newaxis, :], _row(fitted.shape), _row(fitted.scale)
    )
    shape, scale, _ = _fit_rows(drawn)
    under_fit = _anderson_darling(np.sort(drawn, axis=1), shape, scale)
    return float((1 + np.count_nonzero(under_fit >= found[0])) / (1 + repetitions))


def profile(
    excesses: Floats, distance: float, log_probability: float, depth: float = math.inf
) -> float:
    """Return the largest log-likelihood of all fits with P(excess > distance) = probability.

    Of k excesses, maximum likelihood finds a shape that is too small by 3 / k, a third of its
    deviation if k is 100, so that too many intervals end below the truth. A prior that grows as
    exp(3 shape) makes up for it (Firth, Biometrika 80, 1993; Giles, Feng and Godwin,
    Communications in Statistics 45, 2016, at shape 0).

    Args:
        excesses: What is fitted.
        distance: An excess, positive.
        log_probability: Logarithm of its probability of being exceeded, negative.
        depth: Of the threshold; finite for the tail whose shape fades.
    """
    low, high = _LEAST_SHAPE, _LARGEST_SHAPE
    best = -math.inf
    for steps in (25, 9, 9, 9):
        shapes = np.linspace(low, high, steps)
        scales = distance / quantile_at(-log_probability, shapes, depth)
        values = _log_likelihood(excesses[np.newaxis, :], shapes, scales, depth) + 3 * shapes
        place = int(np.argmax(values))
        best = max(best, float(values[place]))
        width = float(shapes[1] - shapes[0])
        low = max(_LEAST_SHAPE, float(shapes[place]) - width)
        high = min(_LARGEST_SHAPE, float(shapes[place]) + width)
    return best


def quantile_at(log_rarity: float, shapes: Floats, depth: float) -> Floats:
    """Excesses of scale 1 that are exceeded with probability exp(-log_rarity)."""
    reach = log_rarity if math.isinf(depth) else depth * math.log1p(log_rarity / depth)
    powers = _not_zero(shapes + 1 / depth)
    excesses: Floats = np.expm1(powers * reach) / powers
    return excesses


def _not_zero(shapes: Floats) -> Floats:
    """Move away what is so close to 0 that formulas for other shapes lose their digits."""
    return np.where(np.abs(shapes) < _NEARLY_ZERO, _NEARLY_ZERO, shapes)


def _row(value: float) -> Floats:
    return np.array([value], np.float64)


def _fit_rows(excesses: Floats) -> tuple[Floats, Floats, Floats]:
    """Fit each row: one dimension is left when the likelihood is maximised over shape / scale.

    Grimshaw, Technometrics 35, 1993; shape / scale = (exp(s) - 1) / largest excess covers all
    values that it can have.
    """
    largest = excesses.max(axis=1)

    def likelihood(s: Floats) -> Floats:
        return _profile_over_ratio(excesses, np.expm1(s) / largest)[2]

    values = np.stack([likelihood(np.full(len(excesses), s)) for s in _GRID])
    start = _GRID[np.argmax(values, axis=0)]
    s, _ = _climb(likelihood, start, _GRID[1] - _GRID[0])
    return _profile_over_ratio(excesses, np.expm1(s) / largest)


def _profile_over_ratio(excesses: Floats, ratio: Floats) -> tuple[Floats, Floats, Floats]:
    count = excesses.shape[1]
    shape = np.log1p(ratio[:, np.newaxis] * excesses).mean(axis=1)
    exponential = np.abs(shape) < _NEARLY_ZERO
    safe = np.where(exponential, 1.0, ratio)
    scale = np.where(exponential, excesses.mean(axis=1), shape / safe)
    log_likelihood = -count * (np.log(scale) + shape + 1)
    return shape, scale, np.where(shape < _LEAST_SHAPE, -np.inf, log_likelihood)


def _climb(
    function: Callable[[Floats], Floats], start: Floats, width: float
) -> tuple[Floats, Floats]:
    """Golden-section search for the maximum within `width` on either side, row by row."""
    low, high = start - width, start + width
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(_STEPS):
        rising = at_left < at_right
        low, high = np.where(rising, left, low), np.where(rising, high, right)
        new = np.where(rising, low + _GOLDEN * (high - low), high - _GOLDEN * (high - low))
        at_new = function(new)
        left, right = np.where(rising, right, new), np.where(rising, new, left)
        at_left, at_right = (
            np.where(rising, at_right, at_new),
            np.where(rising, at_new, at_left),
        )
    return np.where(at_left < at_right, right, left), np.maximum(at_left, at_right)


def _log_likelihood(excesses: Floats, shapes: Floats, scales: Floats, depth: float) -> Floats:
    relative = excesses / scales[:, np.newaxis]
    powers = _not_zero(shapes + 1 / depth)[:, np.newaxis]
    argument = powers * relative
    outside = (argument <= -1).any(axis=1)
    reach = np.log1p(np.where(argument <= -1, 0.0, argument)) / powers
    with np.errstate(over="ignore"):  # likelihood 0
        log_rarity = reach if math.isinf(depth) else depth * np.expm1(reach / depth)
    value = (
        -excesses.shape[1] * np.log(scales) - log_rarity.sum(axis=1) - shapes * reach.sum(axis=1)
    )
    return np.where(outside, -np.inf, value)


def _quantile(uniform: Floats, shape: float) -> Floats:
    """Excesses of scale 1 with the given probabilities of being exceeded."""
    safe = shape if abs(shape) > _NEARLY_ZERO else _NEARLY_ZERO  # the same to 7 digits
    excesses: Floats = np.expm1(-safe * np.log(uniform)) / safe
    return excesses


def log_survival(excesses: Floats, shape: Floats, scale: Floats) -> Floats:
    """Return ln P(excess > x) for each row of excesses; shape and scale have one value a row."""
    relative = excesses / scale[:, np.newaxis]
    column = shape[:, np.newaxis]
    exponential = np.abs(column) < _NEARLY_ZERO
    safe = np.where(exponential, 1.0, column)
    inside = np.maximum(1 + column * relative, np.finfo(np.float64).tiny)
    return np.where(exponential, -relative, -np.log(inside) / safe)


def _anderson_darling(ordered: Floats, shape: Floats, scale: Floats) -> Floats:
    count = ordered.shape[1]
    log_above = log_survival(ordered, shape, scale)
    log_below = np.log(np.maximum(-np.expm1(log_above), np.finfo(np.float64).tiny))
    weights = 2 * np.arange(1, count + 1) - 1
    statistic: Floats = -count - (weights * (log_below + log_above[:, ::-1])).mean(axis=1)
    return statistic
