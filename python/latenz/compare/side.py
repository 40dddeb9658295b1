"""One side of a pair: its figures, and their values in resampled series."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from latenz.compare.blocks import (
    Floats,
    Resampling,
    block_length,
    draw_blocks,
    quantile_replicates,
)
from latenz.compare.series import Series, digest, read_series
from latenz.model import Deadline, SampleSet
from latenz.statistics import Summary, quantile_rank, summarize
from latenz.statistics.skipped import skipped_above

QUANTILES = {"median": "0.5", "p90": "0.9", "p99": "0.99", "p99.9": "0.999", "p99.99": "0.9999"}
FEWEST_BLOCKS = 10
"""Separate blocks that a statistic must rest on to have an interval."""
_EXTREME = "resampled series never go beyond the observed ones; see block_max"

Figures = dict[str, float | None]


@dataclass(frozen=True)
class Side:
    """A sample set with its figures.

    Attributes:
        sample_set: The set.
        limit_ns: Limit of `miss_rate`; None: only skipped activations count.
        summary: Its summary, judged by that limit.
    """

    sample_set: SampleSet
    limit_ns: int | None
    summary: Summary

    @classmethod
    def of(cls, sample_set: SampleSet, limit_ns: int | None) -> "Side":
        """Summarize a set.

        Raises:
            BadInput: The set holds no samples.
        """
        limits = () if limit_ns is None else (Deadline(name="limit", limit_ns=limit_ns),)
        return cls(sample_set, limit_ns, summarize(sample_set, limits))

    @cached_property
    def figures(self) -> Figures:
        """The statistics by name; None where the set cannot tell."""
        summary = self.summary
        quantiles = {name: summary.quantiles_ns[p] for name, p in QUANTILES.items()}
        return {
            "mean": summary.mean_ns,
            **quantiles,
            "median": summary.median_ns,
            "min": summary.min_ns,
            "max": summary.max_ns,
            "stdev": summary.stdev_ns,
            "miss_rate": self._miss_rate(),
        }

    def same_as(self, other: "Side") -> bool:
        """Tell whether both hold the same; latencies are read only if the figures agree."""
        first, second = self.sample_set, other.sample_set
        if first.form != second.form or self.figures != other.figures:
            return False
        if self.summary.n != other.summary.n:
            return False
        if self.summary.beyond_range != other.summary.beyond_range:
            return False
        if first.form == "summary":
            return first.metadata.reported == second.metadata.reported
        return digest(first) == digest(second)

    def _miss_rate(self) -> float | None:
        summary = self.summary
        if self.limit_ns is None:
            missed = summary.missed_periods
            if missed is None or not summary.n:
                return None
            return missed / (summary.n + missed)
        verdict = next(each for each in summary.deadlines if each.limit_ns == self.limit_ns)
        if verdict.undecided or not verdict.trials:
            return None
        return verdict.exceeding / verdict.trials


@dataclass(frozen=True)
class Resampled:
    """The statistics of a series in each replicate.

    Attributes:
        series: The samples in recorded order, or contiguous pieces of them.
        drawn: The blocks that were drawn.
        figures: The statistics of the series itself, computed as those of the replicates.
        replicates: Those of the replicates, by statistic.
        missing: Why a statistic has none.
    """

    series: Series
    drawn: Resampling
    figures: dict[str, float]
    replicates: dict[str, Floats]
    missing: dict[str, str]


def resample(side: Side, replicates: int, random: np.random.Generator) -> Resampled:
    """Draw replicates of a side's series and compute the statistics of each."""
    series = read_series(side.sample_set, side.summary.n or 0)
    values = series.latency_ns
    n = len(values)
    drawn = draw_blocks(n, block_length(values), replicates, random)
    found = Resampled(series, drawn, {}, {}, {"min": _EXTREME, "max": _EXTREME})
    if drawn.blocks < FEWEST_BLOCKS:
        why = f"the series is only {drawn.blocks:.3g} times as long as it resembles itself"
        found.missing.update(dict.fromkeys(side.figures, why))
        return found
    size = drawn.sums(np.ones(n))
    ordered = np.sort(values)
    for name, probability in QUANTILES.items():
        value = int(ordered[quantile_rank(probability, n) - 1])
        if name == "median" or not _too_few(found, name, values >= value):
            found.figures[name] = value
            found.replicates[name] = quantile_replicates(values, ordered, probability, drawn)
    _moments(found, size, int(ordered[n // 2]))
    _misses(side, found, size)
    return found


def _moments(found: Resampled, size: Floats, centre: int) -> None:
    """Add mean and deviation; sums of what differs from the centre stay exact enough."""
    deviation = found.series.latency_ns.astype(np.float64) - centre
    total, squares = found.drawn.sums(deviation), found.drawn.sums(deviation**2)
    found.figures["mean"] = centre + float(deviation.mean())
    found.replicates["mean"] = centre + total / size
    found.figures["stdev"] = float(deviation.std(ddof=1))
    found.replicates["stdev"] = np.sqrt(np.maximum(squares - total**2 / size, 0) / (size - 1))


def _misses(side: Side, found: Resampled, size: Floats) -> None:
    series = found.series
    if series.missed is None and side.summary.missed_periods:
        found.missing["miss_rate"] = "it is not known when activations were skipped"
        return
    missed = np.zeros_like(series.latency_ns) if series.missed is None else series.missed
    period_ns = side.sample_set.metadata.period_ns
    if side.limit_ns is None:
        late = missed
    elif period_ns or not missed.any():
        waited = skipped_above(series.latency_ns, missed, side.limit_ns, period_ns or 1)
        late = waited + (series.latency_ns > side.limit_ns)
    else:
        found.missing["miss_rate"] = "without a period, how long skipped activations waited is open"
        return
    if _too_few(found, "miss_rate", late > 0):
        return
    found.figures["miss_rate"] = float(late.sum() / (len(late) + missed.sum()))
    misses, skipped = (found.drawn.sums(each.astype(np.float64)) for each in (late, missed))
    found.replicates["miss_rate"] = misses / (size + skipped)


def _too_few(found: Resampled, name: str, marked: npt.NDArray[np.bool_]) -> bool:
    blocks = found.drawn.blocks_with(marked)
    if blocks < FEWEST_BLOCKS:
        found.missing[name] = f"only {blocks} separate blocks reach it, {FEWEST_BLOCKS} are needed"
    return blocks < FEWEST_BLOCKS
