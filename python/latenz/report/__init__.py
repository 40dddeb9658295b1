"""The report: one HTML file that holds everything it shows and asks nothing of the network."""

from latenz.report.page import ReportedRun, open_runs, open_sides, write_report

__all__ = ["ReportedRun", "open_runs", "open_sides", "write_report"]
