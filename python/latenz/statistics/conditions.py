"""The conditions under which a tail may be extrapolated, each with its test."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latenz.statistics import pareto

FEWEST_EXCEEDANCES = 100
LEVEL = 0.01
"""Every test refuses at this level, except the goodness of fit."""
COARSEST_STEP = 0.2
"""Largest step of the values, as a share of the mean excess."""
_LAGS = 10
_NEIGHBOURS = 0.1


@dataclass(frozen=True)
class Diagnostic:
    """One condition and how it was tested.

    Attributes:
        name: The condition.
        passed: Whether the data are compatible with it.
        p_value: Of the test, None where it is no test of significance.
        detail: What was found, in words.
    """

    name: str
    passed: bool
    p_value: float | None
    detail: str


def step_of(latencies: npt.NDArray[np.int64], resolution: int) -> int:
    """Return by how much the values step: the resolution stated, or a coarser one that shows."""
    found = int(np.gcd.reduce(latencies - latencies.min()))
    return max(resolution, found, 1)


_Test = Callable[[npt.NDArray[np.int64], npt.NDArray[np.int64], int, int], Diagnostic]


def _enough(
    excesses: npt.NDArray[np.int64], _positions: npt.NDArray[np.int64], n: int, _resolution: int
) -> Diagnostic:
    count = len(excesses)
    return Diagnostic(
        "enough exceedances",
        count >= FEWEST_EXCEEDANCES,
        None,
        f"{count} of {n} samples lie above the threshold, {FEWEST_EXCEEDANCES} are needed",
    )


def _fine(
    excesses: npt.NDArray[np.int64], _positions: npt.NDArray[np.int64], _n: int, resolution: int
) -> Diagnostic:
    step, mean = step_of(excesses, resolution), float(excesses.mean())
    return Diagnostic(
        "fine enough values",
        step <= COARSEST_STEP * mean,
        None,
        f"they step by {step} ns, {step / mean:.2g} of the mean excess; at most {COARSEST_STEP}",
    )


def _steady_rate(
    _excesses: npt.NDArray[np.int64], positions: npt.NDArray[np.int64], n: int, _resolution: int
) -> Diagnostic:
    from scipy.stats import kstest

    p = float(kstest((positions + 0.5) / n, "uniform").pvalue)
    early = float(np.mean(positions < n / 2))
    return Diagnostic(
        "stationary rate",
        p >= LEVEL,
        p,
        f"{early:.0%} of the exceedances lie in the first half (Kolmogorov-Smirnov)",
    )


def _steady_size(
    excesses: npt.NDArray[np.int64], positions: npt.NDArray[np.int64], _n: int, _resolution: int
) -> Diagnostic:
    from scipy.stats import kendalltau

    tau, p = kendalltau(positions, excesses)
    return Diagnostic(
        "stationary size",
        not p < LEVEL,
        float(p),
        f"Kendall's tau of excess and time is {tau:.2f} (Mann-Kendall)",
    )


def _no_clusters(
    excesses: npt.NDArray[np.int64], positions: npt.NDArray[np.int64], n: int, _resolution: int
) -> Diagnostic:
    """Counts gaps as short as a tenth of all would be if exceedances came independently."""
    from scipy.stats import binom

    rate = len(excesses) / n
    reach = max(1, round(math.log1p(-_NEIGHBOURS) / math.log1p(-rate)))
    expected = -math.expm1(reach * math.log1p(-rate))
    gaps = np.diff(positions)
    close = int(np.count_nonzero(gaps <= reach))
    p = float(binom.sf(close - 1, len(gaps), expected))
    return Diagnostic(
        "independent times",
        p >= LEVEL,
        p,
        f"{close / len(gaps):.0%} of the exceedances follow another within {reach} samples,"
        f" {expected:.0%} would by chance; extremal index {extremal_index(positions):.2f}",
    )


def _no_correlation(
    excesses: npt.NDArray[np.int64], _positions: npt.NDArray[np.int64], _n: int, _resolution: int
) -> Diagnostic:
    """Ljung-Box test (Biometrika 65, 1978) on ranks, which a heavy tail cannot upset."""
    from scipy.stats import chi2, rankdata

    count = len(excesses)
    ranks = rankdata(excesses)
    ranks -= ranks.mean()
    power = float(ranks @ ranks)
    correlations = [
        float(ranks[lag:] @ ranks[:-lag]) / power if power else 0.0 for lag in range(1, _LAGS + 1)
    ]
    statistic = sum(
        count * (count + 2) * value**2 / (count - lag)
        for lag, value in enumerate(correlations, start=1)
    )
    p = float(chi2.sf(statistic, _LAGS))
    return Diagnostic(
        "independent sizes",
        p >= LEVEL,
        p,
        f"neighbouring excesses correlate by {correlations[0]:.2f} (Ljung-Box, {_LAGS} lags)",
    )


BEFORE_FITTING: tuple[_Test, ...] = (
    _enough,
    _fine,
    _no_clusters,
    _no_correlation,
    _steady_rate,
    _steady_size,
)
"""Tests of the exceedances themselves: dependence first, because it upsets the other tests."""


def threshold_stability(excesses: npt.NDArray[np.float64], fitted: pareto.Pareto) -> Diagnostic:
    """Compares the shape with that of the larger half alone.

    The difference of an efficient estimate and one from half the data has the difference of their
    variances, (1 + shape)^2 (2 / k - 1 / k) (Hausman, Econometrica 46, 1978; Smith 1987).
    """
    from scipy.stats import norm

    count = len(excesses)
    ordered = np.sort(excesses)
    half = ordered[count // 2 + 1 :] - ordered[count // 2]
    shape = pareto.fit(half).shape
    z = (shape - fitted.shape) / ((1 + max(fitted.shape, -0.5)) / math.sqrt(count))
    p = float(2 * norm.sf(abs(z)))
    return Diagnostic(
        "threshold stability",
        p >= LEVEL,
        p,
        f"shape {fitted.shape:.2f}, but {shape:.2f} over a threshold with half the exceedances",
    )


def usable_shape(fitted: pareto.Pareto) -> Diagnostic:
    """Likelihood theory fails below -0.5 (Smith, Biometrika 72, 1985); no mean exists from 1 on."""
    return Diagnostic(
        "usable shape",
        -0.5 < fitted.shape < 1,
        None,
        f"shape {fitted.shape:.2f}; it must lie between -0.5 and 1",
    )


def extremal_index(positions: npt.NDArray[np.int64]) -> float:
    """Return the extremal index: 1 / mean size of the clusters in which exceedances come.

    The intervals estimator of Ferro and Segers, Journal of the Royal Statistical Society B 65,
    2003; 1 for independent samples.

    Args:
        positions: Which samples exceeded the threshold, in order; at least two.
    """
    gaps = np.diff(positions).astype(np.float64)
    shift = 0.0 if gaps.max() <= 2 else 1.0
    sizes = gaps - shift
    powers = gaps**2 if shift == 0 else sizes * (gaps - 2)
    return float(min(1.0, 2 * sizes.sum() ** 2 / (len(gaps) * powers.sum())))
