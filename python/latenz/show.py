"""Summaries and verdicts as terminal tables; values of different time bases in different tables."""

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from latenz.durations import format_duration
from latenz.statistics import Summary

_VERDICT_STYLE = {"meets": "green", "violates": "bold red", "not shown": "yellow"}
_TIME_BASE = {
    "silicon": "silicon: a real clock on real hardware",
    "virtual": "virtual: instructions counted by an emulator, not silicon time",
    "simulated": "simulated: computed from a system description",
    "published": "published: printed in a publication",
}


def print_summaries(summaries: Sequence[Summary], console: Console | None = None) -> None:
    """Print one table of statistics for each time base, the verdicts, and all notes."""
    console = console or Console()
    ordered = sorted(summaries, key=lambda summary: summary.time_base)
    for time_base, group in groupby(ordered, key=lambda summary: summary.time_base):
        console.print(_statistics(_TIME_BASE[time_base], list(group)))
    if any(summary.deadlines for summary in summaries):
        console.print(_verdicts(summaries))
    for summary in summaries:
        for note in summary.notes:
            console.print(f"{escape(summary.name)}: {escape(note)}", style="dim")


def _statistics(title: str, summaries: Sequence[Summary]) -> Table:
    table = Table(title=title, title_justify="left", title_style="italic")
    table.add_column("sample set")
    for heading in ("n", "avg", "median", "max", "jitter", "dev", "min", "p99", "p99.9"):
        table.add_column(heading, justify="right", no_wrap=True)
    extras = [
        (heading, field)
        for heading, field in (("missed", "missed_periods"), ("beyond range", "beyond_range"))
        if any(getattr(summary, field) for summary in summaries)
    ]
    for heading, _ in extras:
        table.add_column(heading, justify="right", no_wrap=True)
    for summary in summaries:
        cells = [
            summary.mean_ns,
            summary.median_ns,
            summary.max_ns,
            summary.jitter_ns,
            summary.stdev_ns,
            summary.min_ns,
            summary.quantiles_ns["0.99"],
            summary.quantiles_ns["0.999"],
        ]
        counts = [getattr(summary, field) for _, field in extras]
        table.add_row(
            escape(summary.name),
            _count(summary.n),
            *(_time(cell) for cell in cells),
            *(_count(count) for count in counts),
        )
    return table


def _verdicts(summaries: Sequence[Summary]) -> Table:
    table = Table(title="verdicts", title_justify="left", title_style="italic")
    for heading in ("sample set", "deadline", "verdict"):
        table.add_column(heading)
    for heading in ("limit", "observed max", "exceeding", "exceedance below"):
        table.add_column(heading, justify="right", no_wrap=True)
    for summary in summaries:
        for verdict in summary.deadlines:
            style = _VERDICT_STYLE[verdict.verdict]
            table.add_row(
                escape(summary.name),
                escape(verdict.name),
                f"[{style}]{verdict.verdict}[/]",
                _time(verdict.limit_ns),
                _time(summary.max_ns),
                f"{verdict.exceeding:,}",
                f"{verdict.exceedance_upper:.2g} ({verdict.confidence:.4g})",
            )
    return table


def _time(nanoseconds: float | None) -> str:
    return "-" if nanoseconds is None else format_duration(nanoseconds)


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"
