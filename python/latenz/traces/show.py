"""Causes as terminal tables."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from latenz.console import Console
from latenz.durations import format_duration
from latenz.traces.explaining import Explained

_PIPE_WIDTH = 160
_OTHERS_SHOWN = 3
_TUNINGS_SHOWN = 3


def print_causes(explained: Explained, title: str = "", console: Console | None = None) -> None:
    """Print why the worst moments of a trace were late."""
    causes = [each.to_json() for each in explained.causes]
    _print(causes, explained.notes, title or "why the worst were late", console)


def print_accounts(accounts: Sequence[dict[str, Any]], console: Console | None = None) -> None:
    """Print why the worst samples of each traced condition of a run were late."""
    for account in accounts:
        if "traces" in account:
            title = f"{account['condition']}: why the worst were late"
            _print(account["causes"], account["trace_notes"], title, console)


def _print(
    causes: Sequence[dict[str, Any]],
    notes: Sequence[str],
    title: str,
    console: Console | None,
) -> None:
    console = console or Console()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    if causes:
        console.print(_table(causes, title))
    elif notes:
        console.print(title, style="italic")
    for note in notes:
        console.print(note, style="dim")


def _table(causes: Sequence[dict[str, Any]], title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="italic", box=box.SIMPLE_HEAD)
    table.pad_edge = False
    table.add_column("latency", justify="right", no_wrap=True)
    for heading in ("what", "cause", "evidence", "tunings"):
        table.add_column(heading, overflow="fold")
    for each in causes:
        table.add_row(
            format_duration(each["latency_ns"]),
            f"{each['guest']}: {each['what']}" if each.get("guest") else each["what"],
            _cause(each),
            _evidence(each),
            _remedies(each),
        )
    return table


def _cause(cause: dict[str, Any]) -> str:
    doubt = "" if cause["confidence"] == "certain" else f" ({cause['confidence']})"
    return f"{_where(cause)}{cause['cause']}{doubt}"


def _where(told: dict[str, Any]) -> str:
    return f"{told['side']}: " if told.get("side") else ""


def _evidence(cause: dict[str, Any]) -> str:
    others = [
        f"{_where(share)}{share['cause']} {format_duration(share['share_ns'])}"
        for share in cause["shares"][1 : 1 + _OTHERS_SHOWN]
    ]
    told = "; then ".join([cause["evidence"], *([", ".join(others)] if others else [])])
    if cause.get("alternatives"):
        told += f". Or: {', or '.join(cause['alternatives'])}"
    if cause.get("record"):
        told += f". To know: record {', '.join(cause['record'])}"
    return told


def _remedies(cause: dict[str, Any]) -> str:
    tunings = cause["tunings"]
    more = [f"and {len(tunings) - _TUNINGS_SHOWN} more"] if len(tunings) > _TUNINGS_SHOWN else []
    advice = [cause["advice"]] if cause["advice"] else []
    return "\n".join([*tunings[:_TUNINGS_SHOWN], *more, *advice])
