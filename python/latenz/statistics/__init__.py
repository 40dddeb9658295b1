"""Statistics of latencies: summaries, verdicts, sample sizes, histograms, tails."""

from latenz.statistics.conditions import Diagnostic
from latenz.statistics.due import Activations, View, latencies_as_due, view_of, views_in_words
from latenz.statistics.evidence import Evidence
from latenz.statistics.extrapolation import Estimate, TailFit
from latenz.statistics.figures import QUANTILES, Figures, carries_quantile, quantile_rank
from latenz.statistics.histogram import Histogram
from latenz.statistics.intervals import (
    Interval,
    order_statistics,
    quantile_interval_ranks,
    quantile_intervals,
)
from latenz.statistics.judge import judge
from latenz.statistics.sample_size import duration_for_allowance, sample_size_for_proportion
from latenz.statistics.summary import Summary, summarize
from latenz.statistics.tail import TailRefusal, fit_peaks, fit_tail
from latenz.statistics.verdict import Verdict

__all__ = [
    "QUANTILES",
    "Activations",
    "Diagnostic",
    "Estimate",
    "Evidence",
    "Figures",
    "Histogram",
    "Interval",
    "Summary",
    "TailFit",
    "TailRefusal",
    "Verdict",
    "View",
    "carries_quantile",
    "duration_for_allowance",
    "fit_peaks",
    "fit_tail",
    "judge",
    "latencies_as_due",
    "order_statistics",
    "quantile_interval_ranks",
    "quantile_intervals",
    "quantile_rank",
    "sample_size_for_proportion",
    "summarize",
    "view_of",
    "views_in_words",
]
