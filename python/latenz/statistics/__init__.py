"""Statistics of latencies: summaries, verdicts, sample sizes, histograms, tails."""

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
from latenz.statistics.verdict import Evidence, Verdict, judge

__all__ = [
    "QUANTILES",
    "Evidence",
    "Histogram",
    "Interval",
    "Summary",
    "Verdict",
    "exceedance_upper",
    "judge",
    "order_statistics",
    "quantile_interval_ranks",
    "quantile_intervals",
    "quantile_rank",
    "sample_size_for_proportion",
    "sample_size_for_quantile",
    "summarize",
]
