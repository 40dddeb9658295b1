"""Is B later than A? Two runs, with intervals that respect how latencies follow each other."""

from latenz.compare.comparison import compare
from latenz.compare.judge import Gate, judge
from latenz.compare.result import Comparison, Settings

__all__ = ["Comparison", "Gate", "Settings", "compare", "judge"]
