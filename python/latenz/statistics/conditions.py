"""The conditions under which a tail may be extrapolated, each with its test and what helps."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latenz.durations import format_duration
from latenz.statistics import pareto
from latenz.statistics.clusters import Clusters

FEWEST_PEAKS = 50
FEWEST_CLUSTERS = 30
LEVEL = 0.01
"""Every test refuses at this level, except those of the fit itself."""
STABILITY_LEVEL = 0.05
COARSEST_STEP = 0.2
"""Largest step of the values, as a share of the mean excess."""
ALONE_LEVEL = 0.05
"""Sizes are taken to have nothing to do with clusters from this p-value on."""
SURE_LEVEL = 0.001
"""Below, what is tested is sure."""
_MOST_ALONE = 0.1
_SURELY_COMPARED = 30
_STRETCHES = 20
_LAGS = 10
_FEWEST_COMPARED = 10
_FEWEST_ALONE = 200
_NEIGHBOURS = 0.1
_SPARE = 1.25  # recordings of the same length differ in their number of clusters
_BY_CAUSE = "record a trace (latenz run --trace) and fit each cause by itself"


@dataclass(frozen=True)
class Diagnostic:
    """One condition and how it was tested.

    Attributes:
        name: The condition.
        passed: Whether the data are compatible with it.
        p_value: Of the test, None where it is not a test of significance.
        detail: What was found, in words.
        remedy: What would make it hold where it does not.
    """

    name: str
    passed: bool
    p_value: float | None
    detail: str
    remedy: str = ""


@dataclass(frozen=True, eq=False)
class Peaks:
    """What is fitted of the clusters above a threshold, with what the tests need.

    Attributes:
        clusters: Clusters in time.
        chosen: Which exceedances are fitted: the peaks of the clusters, or all exceedances where
            the sizes of neighbours have nothing to do with each other.
        step_ns: By how much the values step.
    """

    clusters: Clusters
    chosen: npt.NDArray[np.int64]
    step_ns: int

    @classmethod
    def of(cls, clusters: Clusters, step_ns: int) -> "Peaks":
        """Choose what is to be fitted.

        Few exceedances do not show that they depend on each other: then each cluster's peak.
        """
        count = len(clusters.exceedances.latency_ns)
        if count >= _FEWEST_ALONE and not companions_alike(clusters):
            return cls(clusters, np.arange(count), step_ns)
        return cls(clusters, clusters.peaks, step_ns)

    @property
    def excesses(self) -> npt.NDArray[np.int64]:
        """By how much each that is fitted exceeds the threshold."""
        above = self.clusters.exceedances
        return above.latency_ns[self.chosen] - above.threshold_ns

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        """How many of each cluster are fitted."""
        cluster = np.searchsorted(self.clusters.starts, self.chosen, side="right") - 1
        return np.bincount(cluster, minlength=self.clusters.count)

    @property
    def spread(self) -> float:
        """Standard deviation of their number, relative to it.

        As clusters of these sizes give it, or as stretches of the recording differ in it.
        """
        count = len(self.chosen)
        moments = self.clusters.exceedances.position[self.chosen] * _STRETCHES
        stretches = np.bincount(moments // self.clusters.exceedances.n, minlength=_STRETCHES)
        by_stretch = float(stretches.std(ddof=1)) * math.sqrt(_STRETCHES)
        return max(math.sqrt(float((self.sizes**2).sum())), by_stretch) / count

    @property
    def all_of_them(self) -> bool:
        """Whether every exceedance is fitted, in whatever clusters they come."""
        return len(self.chosen) == len(self.clusters.exceedances.latency_ns)

    def longer(self, factor: float) -> str:
        """Say how long to measure: so many times as long as it was."""
        duration_ns = self.clusters.exceedances.duration_ns
        times = f"{max(2, math.ceil(factor))} times as long"
        if duration_ns is None:
            return f"measure {times}"
        return f"measure {times} ({_rounded(duration_ns * max(2, math.ceil(factor)))})"


def _rounded(duration_ns: int) -> str:
    """Return a duration with two digits, as nobody plans a measurement finer."""
    unit = 10 ** max(0, len(str(duration_ns)) - 2)
    return format_duration(-(-duration_ns // unit) * unit)


def companions_alike(clusters: Clusters) -> bool:
    """Tell whether neighbours in a cluster are of like sizes (Kendall's test)."""
    from scipy.stats import kendalltau

    latencies = clusters.exceedances.latency_ns
    together = np.ones(len(latencies) - 1, dtype=np.bool_)
    together[clusters.starts[1:] - 1] = False
    if np.count_nonzero(together) < _FEWEST_COMPARED:
        return False
    before, after = latencies[:-1][together], latencies[1:][together]
    return bool(kendalltau(before, after).pvalue < SURE_LEVEL)


def come_alone(clusters: Clusters) -> npt.NDArray[np.bool_]:
    """Tell for each exceedance whether it has a cluster for itself."""
    members = np.diff(np.append(clusters.starts, len(clusters.exceedances.latency_ns)))
    return np.repeat(members == 1, members)


def tells_kinds_apart(clusters: Clusters) -> bool:
    """Tell whether two kinds would show: there are enough that come alone, or next to none."""
    alone = come_alone(clusters)
    return bool(alone.mean() <= _MOST_ALONE or min(alone.sum(), (~alone).sum()) >= _SURELY_COMPARED)


def step_of(latencies: npt.NDArray[np.int64], resolution: int) -> int:
    """Return by how much the values step: the resolution stated, or a coarser one that shows."""
    found = int(np.gcd.reduce(latencies - latencies.min())) if len(latencies) else 0
    return max(resolution, found, 1)


def enough_peaks(peaks: Peaks) -> Diagnostic:
    """The likelihood needs some tens of independent events, however many samples they have."""
    clusters, above = peaks.clusters, peaks.clusters.exceedances
    factor = max(FEWEST_CLUSTERS / clusters.count, FEWEST_PEAKS / len(peaks.chosen))
    return Diagnostic(
        "enough clusters",
        factor <= 1,
        None,
        f"{int(above.lengths.sum())} of {above.n} activations are above"
        f" {format_duration(above.threshold_ns)}, in {clusters.count} clusters (extremal index"
        f" {clusters.extremal_index:.2g}) with {len(peaks.chosen)} peaks; {FEWEST_CLUSTERS} and"
        f" {FEWEST_PEAKS} are needed",
        peaks.longer(_SPARE * factor),
    )


def _fine(peaks: Peaks) -> Diagnostic:
    step, mean = peaks.step_ns, float(peaks.excesses.mean())
    return Diagnostic(
        "fine enough values",
        step <= COARSEST_STEP * mean,
        None,
        f"they step by {step} ns, {step / mean:.2g} of the mean excess",
        f"record in steps of at most {math.floor(COARSEST_STEP * mean)} ns",
    )


def _no_clusters_left(peaks: Peaks) -> Diagnostic:
    """Counts gaps as short as a tenth of all would be if clusters came independently."""
    from scipy.stats import binom

    index = f"extremal index {peaks.clusters.extremal_index:.2g}"
    if peaks.all_of_them:
        detail = f"not needed, as sizes do not depend on each other; {index}"
        return Diagnostic("independent times", True, None, detail)
    gaps = peaks.clusters.gaps - peaks.clusters.run
    rate = min(1 / float(gaps.mean()), 0.5)
    reach = max(1, round(math.log1p(-_NEIGHBOURS) / math.log1p(-rate)))
    expected = -math.expm1(reach * math.log1p(-rate))
    close = int(np.count_nonzero(gaps <= reach))
    p = float(binom.sf(close - 1, len(gaps), expected))
    return Diagnostic(
        "independent times",
        p >= LEVEL,
        p,
        f"{close / len(gaps):.0%} of the clusters follow another within"
        f" {reach + peaks.clusters.run} activations, {expected:.0%} would by chance; {index}",
        f"clusters come in phases: {peaks.longer(4)}, so that whole phases can be told apart",
    )


def _no_correlation(peaks: Peaks) -> Diagnostic:
    correlation, p = _correlation(peaks.excesses)
    return Diagnostic(
        "independent sizes",
        p >= LEVEL,
        p,
        f"neighbouring peaks correlate by {correlation:.2f} (Ljung-Box, {_LAGS} lags)",
        f"the load changes in phases: {peaks.longer(4)}, or measure each phase as a condition",
    )


def _correlation(excesses: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return how neighbours correlate, and the p-value of the test that none do.

    Ljung-Box test (Biometrika 65, 1978) on ranks, which a heavy tail cannot upset.
    """
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
        if lag < count
    )
    return correlations[0], float(chi2.sf(statistic, _LAGS))


def _one_kind(peaks: Peaks) -> Diagnostic:
    """Where sizes do not depend on neighbours, they do not depend on having any, either."""
    from scipy.stats import mannwhitneyu

    clusters = peaks.clusters
    latencies = clusters.exceedances.latency_ns
    alone = come_alone(clusters)
    groups = latencies[alone], latencies[~alone]
    if min(map(len, groups)) < _FEWEST_COMPARED or companions_alike(clusters):
        return Diagnostic("one kind", True, None, "clusters and single ones are not to be compared")
    p = float(mannwhitneyu(*groups).pvalue)
    means = [format_duration(round(float(group.mean()))) for group in groups]
    return Diagnostic(
        "one kind",
        p >= ALONE_LEVEL,
        p,
        f"late activations that come alone have {means[0]} on average, those in clusters {means[1]}"
        " (Mann-Whitney)",
        f"{peaks.longer(4)}, for a threshold that only one kind exceeds, or {_BY_CAUSE}",
    )


def _steady_rate(peaks: Peaks) -> Diagnostic:
    from scipy.stats import kstest

    moments = (peaks.clusters.position + 0.5) / peaks.clusters.exceedances.n
    p = float(kstest(moments, "uniform").pvalue)
    return Diagnostic(
        "stationary rate",
        p >= LEVEL,
        p,
        f"{float(np.mean(moments < 0.5)):.0%} of the clusters lie in the first half"
        " (Kolmogorov-Smirnov)",
        _steadier(peaks),
    )


def _steady_size(peaks: Peaks) -> Diagnostic:
    from scipy.stats import kendalltau

    tau, p = kendalltau(peaks.clusters.exceedances.position[peaks.chosen], peaks.excesses)
    return Diagnostic(
        "stationary size",
        not p < LEVEL,
        float(p),
        f"Kendall's tau of peak and time is {tau:.2f} (Mann-Kendall)",
        _steadier(peaks),
    )


def _steadier(peaks: Peaks) -> str:
    return (
        f"hold the load steady, or {peaks.longer(4)} if what changed comes again and again in that"
        " time"
    )


BEFORE_FITTING: tuple[Callable[[Peaks], Diagnostic], ...] = (
    _fine,
    _no_clusters_left,
    _no_correlation,
    _one_kind,
    _steady_rate,
    _steady_size,
)
"""Tests of the peaks themselves: dependence first, because it upsets the other tests."""


def good_fit(peaks: Peaks, p: float, least: float) -> Diagnostic:
    """Judge the p-value of the Anderson-Darling test."""
    return Diagnostic(
        "goodness of fit",
        p >= least,
        p,
        f"Anderson-Darling, {len(peaks.chosen)} peaks of {peaks.clusters.count} clusters above"
        f" {format_duration(peaks.clusters.exceedances.threshold_ns)}",
        _higher(peaks),
    )


def _higher(peaks: Peaks) -> str:
    return (
        f"several causes make a tail like this: {peaks.longer(4)}, for a higher threshold, or"
        f" {_BY_CAUSE}"
    )


def threshold_stability(
    peaks: Peaks, excesses: npt.NDArray[np.float64], fitted: pareto.Pareto
) -> Diagnostic:
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
        p >= STABILITY_LEVEL,
        p,
        f"shape {fitted.shape:.2f}, but {shape:.2f} over a threshold with half the peaks",
        _higher(peaks),
    )


def usable_shape(peaks: Peaks, fitted: pareto.Pareto) -> Diagnostic:
    """Likelihood theory fails below -0.5 (Smith, Biometrika 72, 1985); no mean exists from 1 on."""
    return Diagnostic(
        "usable shape",
        -0.5 < fitted.shape < 1,
        None,
        f"shape {fitted.shape:.2f}; it must lie between -0.5 and 1",
        "the largest values crowd at an end: count those above a limit in place of a fit"
        if fitted.shape < 0
        else _higher(peaks),
    )
