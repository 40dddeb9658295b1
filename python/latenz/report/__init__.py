"""The report: one HTML file that holds everything it shows and asks nothing of the network."""

from latenz.report.page import write_report
from latenz.report.runs import ReportedRun, open_runs, open_sides

__all__ = ["ReportedRun", "open_runs", "open_sides", "write_report"]
