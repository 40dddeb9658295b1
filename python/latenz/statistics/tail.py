"""Tail extrapolation by peaks over threshold, which refuses when its conditions do not hold.

Excesses over a high threshold tend to a generalised Pareto distribution (Pickands, Annals of
Statistics 3, 1975) if the latencies are independent and all of one kind. On computers they are
neither: late samples come in clusters, so the peaks of clusters are fitted; and a tail made of
several causes looks fine until the rare cause appears, while a Gumbel or exponential model chosen
for convenience can lie on the unsafe side (Lima and Bate, RTSS 2017). So the shape is always
estimated, and each condition is tested: where none of the thresholds passes, there is no fit.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from latenz._core import MOST_SKIPPED
from latenz.durations import format_duration
from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.statistics import pareto
from latenz.statistics.clusters import Exceedances, decluster
from latenz.statistics.conditions import (
    BEFORE_FITTING,
    FEWEST_PEAKS,
    SURE_LEVEL,
    Diagnostic,
    Peaks,
    enough_peaks,
    good_fit,
    step_of,
    tells_kinds_apart,
    threshold_stability,
    usable_shape,
)
from latenz.statistics.extrapolation import TailFit
from latenz.statistics.mixture import MixedTail
from latenz.statistics.scan import cannot_count, columns, known_period, scan_samples

MOST_EXCEEDANCES = 100_000
LARGEST_SHARE = 0.1
FIT_LEVEL = 0.1
"""The lowest threshold is taken at which the Anderson-Darling test gives at least this p-value."""
_WANTED_EXCEEDANCES = 1000
_WANTED_PEAKS = 100
_REPETITIONS = 199
_SEED = 2017  # the same samples always give the same fit


@dataclass(frozen=True)
class TailRefusal:
    """Why the tail must not be extrapolated from these samples.

    Attributes:
        reason: The condition that failed, with what was found and what would make it hold.
        diagnostics: All tests made until then.
    """

    reason: str
    diagnostics: tuple[Diagnostic, ...]


def fit_tail(
    sample_set: SampleSet, causes: Mapping[int, str] | None = None
) -> TailFit | MixedTail | TailRefusal:
    """Fit the tail of a sample set, or say why not; two passes, in bounded memory.

    Args:
        sample_set: Latencies in the form `samples`: cells and printed figures have lost the order
            that the clusters and the tests of independence and stationarity need.
        causes: Why samples were late, by their `t_ns`, as `latenz explain` tells. Where no single
            tail fits, each cause gets one of its own, above the latest sample without a cause.
    """
    found = exceedances_of(sample_set, timed=bool(causes))
    if isinstance(found, TailRefusal):
        return found
    resolution_ns = sample_set.metadata.resolution_ns
    tail = fit_peaks(found, resolution_ns)
    if isinstance(tail, TailFit) or not causes or found.t_ns is None:
        return tail
    return _fit_by_cause(found, causes, resolution_ns)


def exceedances_of(sample_set: SampleSet, timed: bool = False) -> Exceedances | TailRefusal:
    """Return the latest samples of a set: at most `LARGEST_SHARE` and `MOST_EXCEEDANCES`.

    Args:
        sample_set: Latencies.
        timed: Also tell when they were due.

    Raises:
        BadInput: The set holds no samples, or damaged ones.
    """
    if sample_set.form != "samples":
        return _refusal(
            "samples in recorded order",
            f"the source kept only a {sample_set.form}",
            "record every sample",
        )

    def rank(n: int) -> list[int]:
        return [n - min(MOST_EXCEEDANCES, int(n * LARGEST_SHARE))] if n > 10 else []

    if (scan := scan_samples(sample_set, rank, ())) is None:
        raise BadInput("the sample set holds no samples", sample_set.metadata.name)
    if not scan.order:
        return _refusal("enough samples", f"there are only {scan.moments.n}", "measure longer")
    (threshold_ns,) = scan.order.values()
    return _above(sample_set, threshold_ns, timed)


def _above(sample_set: SampleSet, threshold_ns: int, timed: bool) -> Exceedances:
    period_ns = known_period(sample_set.metadata)
    counted = period_ns > 0 and "missed" in sample_set.columns
    names = ("latency_ns", "missed", "t_ns") if timed or not counted else ("latency_ns", "missed")
    parts: list[tuple[npt.NDArray[np.int64], ...]] = []
    n = 0
    ends: list[int] = []
    for values in columns(sample_set, *names):
        latency_ns = values["latency_ns"]
        missed = values.get("missed", np.zeros_like(latency_ns))
        above = np.flatnonzero(latency_ns > threshold_ns)
        at = n + above
        n += len(latency_ns)
        if missed.any():
            if missed.min() < 0 or missed.sum(dtype=np.float64) > MOST_SKIPPED:
                raise cannot_count(sample_set.metadata)
            until = np.cumsum(missed)
            at += (until - missed)[above]
            n += int(until[-1])
        t_ns = values.get("t_ns", np.empty(0, np.int64))  # no view, which would keep its batch
        parts.append((latency_ns[above], at, missed[above], t_ns[above] if len(t_ns) else t_ns))
        ends += t_ns[[0, -1]].tolist() if len(t_ns) else []
    latencies, positions, skipped, due = (np.concatenate(part) for part in zip(*parts, strict=True))
    spanned = ends[-1] - ends[0] if ends and not counted else n * period_ns
    return Exceedances(
        threshold_ns,
        latencies,
        positions,
        skipped,
        n,
        period_ns,
        spanned if spanned > 0 else None,
        due if len(due) == len(latencies) else None,
    )


def _fit_by_cause(
    exceedances: Exceedances, causes: Mapping[int, str], resolution_ns: int
) -> MixedTail | TailRefusal:
    """Fit a tail for each cause; which samples have one must not depend on how late they were."""
    times = [] if exceedances.t_ns is None else exceedances.t_ns.tolist()
    names = np.array([causes.get(t_ns, "") for t_ns in times], dtype=np.str_)
    unknown = exceedances.latency_ns[names == ""]
    floor_ns = int(unknown.max()) if len(unknown) else exceedances.threshold_ns
    known = exceedances.latency_ns > floor_ns
    parts: dict[str, TailFit] = {}
    for name in np.unique(names[known]).tolist():
        tail = fit_peaks(exceedances.where(known & (names == name), floor_ns), resolution_ns)
        if isinstance(tail, TailRefusal):
            return TailRefusal(f"cause {name}: {tail.reason}", tail.diagnostics)
        parts[name] = tail
    if not parts:
        return _refusal(
            "causes known",
            "the latest sample of all has no cause",
            "explain the latest samples, some hundreds of them",
        )
    return MixedTail(parts)


def fit_peaks(exceedances: Exceedances, resolution_ns: int = 1) -> TailFit | TailRefusal:
    """Fit the tail from the samples above a threshold, or say why not.

    Thresholds are tried from the lowest up, until all tests pass or one finds a trend, which is
    one at any threshold. After one with two kinds of lateness, only those count that would show
    two. The failure that got furthest through the tests tells the reason.

    Args:
        exceedances: The latest samples.
        resolution_ns: Step of the values.
    """
    if (count := len(exceedances.latency_ns)) < FEWEST_PEAKS:
        return _refusal(
            "enough exceedances",
            f"{count} of {exceedances.n} activations are above"
            f" {format_duration(exceedances.threshold_ns)}, {FEWEST_PEAKS} are needed",
            f"explain or measure {math.ceil(1.25 * FEWEST_PEAKS / max(count, 1))} times as many",
        )
    step_ns = step_of(exceedances.latency_ns, resolution_ns)
    rng = np.random.default_rng(_SEED)
    furthest: list[Diagnostic] = []
    two_kinds = False
    for peaks in _candidates(exceedances, step_ns):
        if two_kinds and not tells_kinds_apart(peaks.clusters):
            continue
        found = _fit(peaks, rng)
        if isinstance(found, TailFit):
            return found
        if len(found) > len(furthest):
            furthest = found
        two_kinds |= found[-1].name == "one kind" and (found[-1].p_value or 0) < SURE_LEVEL
        if found[-1].name.startswith("stationary"):
            break
    return _refused(furthest)


def _candidates(exceedances: Exceedances, step_ns: int) -> list[Peaks]:
    """Return what can be fitted, over higher and higher thresholds.

    The lowest threshold is the highest that leaves enough for narrow intervals: the lower it lies,
    the less it tells about the tail.
    """
    descending = np.sort(exceedances.latency_ns)[::-1]
    found: list[Peaks] = []
    for count in _counts(len(descending)):
        above = exceedances
        if count < len(descending):
            above = exceedances.above(int(descending[count]))
        if len(above.latency_ns) >= 2:
            found.append(Peaks.of(decluster(above), step_ns))
            if count >= _WANTED_EXCEEDANCES and len(found[-1].chosen) >= _WANTED_PEAKS:
                break
    return found[::-1]


def _counts(available: int) -> list[int]:
    """Numbers of exceedances to try, each half as many again, up to what there is."""
    counts = [available]
    while counts[-1] / 1.5 >= FEWEST_PEAKS:
        counts.append(int(counts[-1] / 1.5))
    return counts[::-1]


def _fit(peaks: Peaks, rng: np.random.Generator) -> TailFit | list[Diagnostic]:
    """Fit the peaks above one threshold, or tell the tests until the first that failed."""
    diagnostics: list[Diagnostic] = []
    for test in (enough_peaks, *BEFORE_FITTING):
        diagnostics.append(test(peaks))
        if not diagnostics[-1].passed:
            return diagnostics
    # a value stands for a whole step: spread evenly within it, or ties would spoil the fit tests
    excesses = peaks.excesses + peaks.step_ns * (rng.random(len(peaks.chosen)) - 1)
    fitted = pareto.fit(excesses)
    p = pareto.goodness_of_fit(excesses, fitted, rng, _REPETITIONS)
    diagnostics.append(good_fit(peaks, p, FIT_LEVEL))
    if diagnostics[-1].passed:
        diagnostics += [threshold_stability(peaks, excesses, fitted), usable_shape(peaks, fitted)]
    if not all(each.passed for each in diagnostics):
        return diagnostics
    above = peaks.clusters.exceedances
    return TailFit(
        n=above.n,
        threshold_ns=above.threshold_ns + peaks.step_ns,
        excesses_ns=excesses,
        fitted=fitted,
        diagnostics=tuple(diagnostics),
        exceedances=int(above.lengths.sum()),
        sizes=peaks.sizes,
        spread=peaks.spread,
        extremal_index=peaks.clusters.extremal_index,
        run=peaks.clusters.run,
        duration_ns=above.duration_ns,
    )


def _refused(diagnostics: Sequence[Diagnostic]) -> TailRefusal:
    failed = next(diagnostic for diagnostic in diagnostics if not diagnostic.passed)
    return TailRefusal(f"{failed.name}: {failed.detail}; {failed.remedy}", tuple(diagnostics))


def _refusal(name: str, detail: str, remedy: str) -> TailRefusal:
    return _refused([Diagnostic(name, False, None, detail, remedy)])
