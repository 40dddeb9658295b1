"""Statistics of latencies: summaries, verdicts, sample sizes, histograms, tails."""

from latenz.statistics.conditions import Diagnostic
from latenz.statistics.exceedance import exceedance_upper
from latenz.statistics.histogram import Histogram
from latenz.statistics.intervals import (
    Interval,
    order_statistics,
    quantile_interval_ranks,
    quantile_intervals,
)
from latenz.statistics.sample_size import sample_size_for_proportion, sample_size_for_quantile
from latenz.statistics.summary import QUANTILES, Summary, quantile_rank, summarize
from latenz.statistics.tail import (
    Estimate,
    TailFit,
    TailRefusal,
    fit_peaks,
    fit_tail,
)
from latenz.statistics.verdict import Evidence, Verdict, judge

__all__ = [
    "QUANTILES",
    "Diagnostic",
    "Estimate",
    "Evidence",
    "Histogram",
    "Interval",
    "Summary",
    "TailFit",
    "TailRefusal",
    "Verdict",
    "exceedance_upper",
    "fit_peaks",
    "fit_tail",
    "judge",
    "order_statistics",
    "quantile_interval_ranks",
    "quantile_intervals",
    "quantile_rank",
    "sample_size_for_proportion",
    "sample_size_for_quantile",
    "summarize",
]
