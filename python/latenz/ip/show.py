"""Reports of Latencies IPs for people and for programs."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from latenz.durations import format_duration
from latenz.ip.selftest import Check
from latenz.ip.watch import Report, Watched

_COUNTERS = ("orphans", "overlaps", "missed", "saturations", "timeouts", "stream_dropped")
_STYLES = {
    "meets": "green",
    "violates": "bold red",
    "not shown": "yellow",
    "right": "green",
    "wrong": "bold red",
    "not there": "yellow",
}


def to_json(report: Report) -> dict[str, Any]:
    """Return a report as a document; what is not known is null."""
    return {
        "board": report.board,
        "time_base": report.time_base.value,
        "instances": [_instance_json(each) for each in report.watched],
    }


def _instance_json(watched: Watched) -> dict[str, Any]:
    names = ("last_ns", "min_ns", "mean_ns", "max_ns", "jitter_ns", "alarm")
    return {
        "name": watched.name,
        "measuring": watched.is_measuring,
        "num": watched.num,
        "num_stopped": watched.num_stopped,
        "samples_per_s": watched.samples_per_s,
        **{name: getattr(watched, name) for name in names},
        "max_is_at_least": watched.is_longest,
        **{name: getattr(watched.statistics, name) for name in _COUNTERS},
        "one_moment": watched.statistics.is_whole,
        "verdict": asdict(watched.verdict) if watched.verdict else None,
    }


def table(report: Report) -> Table:
    """Return a report as a table: a row for each IP; columns that none of them has are left out."""
    title = f"{report.board}: {report.time_base.value}"
    shown = Table(title=Text(title), title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    shown.add_column("IP", no_wrap=True)
    counted = [
        name
        for name in _COUNTERS
        if any(getattr(each.statistics, name) is not None for each in report.watched)
    ]
    headings = ["num", "/s", "last", "min", "mean", "max", "jitter", "alarm"]
    judged = any(each.verdict for each in report.watched)
    for heading in (*headings, *(name.replace("_", " ") for name in counted)):
        shown.add_column(heading, justify="right", no_wrap=heading != "stream dropped")
    if judged:
        shown.add_column("verdict")
    for each in report.watched:
        shown.add_row(*_cells(each), *(_count(each, name) for name in counted), *_verdict(each))
    return shown


def _cells(watched: Watched) -> list[Text | str]:
    num = f"{watched.num:,}" + ("+" if watched.num_stopped else "")
    rate = "" if watched.samples_per_s is None else f"{watched.samples_per_s:,.0f}"
    longest = "≥ " if watched.is_longest else ""
    name = Text(watched.name) if watched.is_measuring else Text(f"{watched.name} (off)", "dim")
    return [
        name,
        num,
        rate,
        _time(watched.last_ns),
        _time(watched.min_ns),
        _time(watched.mean_ns),
        longest + _time(watched.max_ns),
        _time(watched.jitter_ns),
        Text("ALARM", "bold red") if watched.alarm else "no",
    ]


def _time(time_ns: float | None) -> str:
    return "" if time_ns is None else format_duration(time_ns)


def _count(watched: Watched, name: str) -> str:
    count = getattr(watched.statistics, name)
    return "" if count is None else f"{count:,}"


def _verdict(watched: Watched) -> list[Text]:
    if watched.verdict is None:
        return []
    return [Text(watched.verdict.verdict, _STYLES[watched.verdict.verdict])]


def checks_table(checks: Sequence[Check]) -> Table:
    """Return the results of a self test as a table."""
    shown = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("IP", "check", "result", "found"):
        shown.add_column(heading, overflow="fold")
    for each in checks:
        result = Text(each.result, _STYLES[each.result])
        shown.add_row(Text(each.instance), each.check, result, Text(each.found))
    return shown
