"""Statistics of latencies: summaries, verdicts, sample sizes, histograms, tails."""

from latenz.statistics.exceedance import exceedance_upper
from latenz.statistics.summary import QUANTILES, Summary, quantile_rank, summarize
from latenz.statistics.verdict import Evidence, Verdict, judge

__all__ = [
    "QUANTILES",
    "Evidence",
    "Summary",
    "Verdict",
    "exceedance_upper",
    "judge",
    "quantile_rank",
    "summarize",
]
