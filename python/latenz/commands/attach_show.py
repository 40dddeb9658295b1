"""What was measured of a running program, on the terminal."""

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from latenz.console import Console
from latenz.durations import format_duration
from latenz.settings import format_cpu_list
from latenz.show import print_summaries
from latenz.statistics import Summary

_PIPE_WIDTH = 160
_CAUSES = 5
_OTHERS = 8


def print_attached(
    account: dict[str, Any], summaries: Sequence[Summary], console: Console | None = None
) -> None:
    """Print threads, findings, causes, and last the figures with the verdicts.

    Args:
        account: Of the run's only condition.
        summaries: Of its sample sets.
        console: Where to.
    """
    console = console or Console()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    attached = account.get("attach", {})
    if attached:
        console.print(_threads(attached["threads"]))
        _print_others(attached["others"], console)
        _print_findings(attached["findings"], console)
        _print_causes(account.get("causes", []), console)
    print_summaries(summaries, console)
    if account["state"] != "measured":
        console.print(f"{account['state']}: {account.get('reason', 'stopped')}")


def _threads(threads: Sequence[dict[str, Any]]) -> Table:
    table = _table("periodic threads")
    for heading in ("thread", "period", "due from", "scheduler", "CPUs", "cycles"):
        table.add_column(heading, overflow="fold")
    for each in threads:
        period = "?" if each["period_ns"] is None else format_duration(each["period_ns"])
        table.add_row(
            f"{each['comm']} ({each['tid']})",
            period,
            each["due_from"],
            each["scheduler"],
            format_cpu_list(tuple(each["cpus_allowed"])),
            _cycles(each),
        )
    return table


def _cycles(thread: dict[str, Any]) -> str:
    told = [f"{thread['n']}"]
    told += [f"{thread[name]} {name}" for name in ("missed", "partial") if thread[name]]
    return ", ".join(told)


def _print_others(others: Sequence[dict[str, Any]], console: Console) -> None:
    if not others:
        return
    named = ", ".join(map(_other, others[:_OTHERS]))
    more = f" and {len(others) - _OTHERS} more" if len(others) > _OTHERS else ""
    told = "not measured, as they are not periodic or not real-time (--thread asks for them)"
    console.print(f"{told}: {named}{more}", style="dim", highlight=False)


def _other(thread: dict[str, Any]) -> str:
    period = thread["period_ns"]
    each = "" if period is None else f", each {format_duration(period)}"
    return f"{thread['comm']} ({thread['tid']}{each})"


def _print_findings(findings: Sequence[dict[str, Any]], console: Console) -> None:
    table = _table("the program itself")
    for heading in ("finding", "where", "found", "wanted", "remedy"):
        table.add_column(heading, overflow="fold")
    shown = [each for each in findings if each["state"] == "wrong"]
    for each in shown:
        table.add_row(
            Text(each["id"], style="yellow"),
            each["where"],
            each["found"] or "",
            each["wanted"],
            each["remedy"],
        )
    if shown:
        console.print(table)
    right = sum(each["state"] == "ok" for each in findings)
    if right:
        which = "more findings" if shown else "findings on the program"
        console.print(f"{right} {which} are as they should be", style="dim", highlight=False)


def _print_causes(causes: Sequence[dict[str, Any]], console: Console) -> None:
    if not causes:
        return
    console.print("why the worst cycles were late", style="italic")
    for each in causes[:_CAUSES]:
        console.print(f"  {each['rank']}. {each['sentence']}", highlight=False)
    console.print()


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="italic", box=box.SIMPLE_HEAD)
    table.pad_edge = False
    return table
