"""Summaries and verdicts as terminal tables; values of different time bases in different tables."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from latenz.console import Console
from latenz.durations import format_duration
from latenz.measuring.condition import Condition
from latenz.model import HANDLINGS, Handling
from latenz.provenance import Origin, in_words
from latenz.robot_account import Control
from latenz.statistics import Figures, Summary, Verdict, views_in_words
from latenz.statistics.joint import jointly, over_runs

_ORIGINS = 8  # lines about where sample sets come from; more are counted
_NAMED = 3  # sets of a note; more are counted
_PIPE_WIDTH = 160  # where no terminal says how wide it is, nothing need be cut
_VERDICT_STYLE = {"meets": "green", "violates": "bold red", "not shown": "yellow"}
_TIME_BASE = {
    "silicon": "silicon: a real clock on real hardware",
    "virtual": "virtual: instructions counted by an emulator, not silicon time",
    "simulated": "simulated: computed from a system description or a hardware design",
    "published": "published: printed in a publication",
}


def print_summaries(summaries: Sequence[Summary], console: Console | None = None) -> None:
    """Print tables of statistics and of verdicts for each time base, and all notes."""
    console = console or Console()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    ordered = sorted(summaries, key=lambda summary: summary.time_base)
    for time_base, group in groupby(ordered, key=lambda summary: summary.time_base):
        shown = list(group)
        console.print(_statistics(_TIME_BASE[time_base], shown))
        if told := views_in_words([(each.name, each.view) for each in shown]):
            console.print(told, style="dim")
    judged = [summary for summary in ordered if summary.deadlines]
    for time_base, group in groupby(judged, key=lambda summary: summary.time_base):
        console.print(_verdicts(time_base, list(group)))
    for line in _notes(summaries):
        console.print(line, style="dim")
    for sentence in together(summaries):  # last: what one came for
        console.print(sentence, highlight=False)


def print_origins(known: Sequence[Origin], console: Console | None = None) -> None:
    """Print which file or run the sample sets are of, and what is known of their measurement."""
    console = console or Console()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    total = sum(len(each.sets) for each in known)
    for each in known[:_ORIGINS]:
        console.print(f"{_of(each.sets, total)}: {in_words(each)}", style="dim", highlight=False)
    if len(known) > _ORIGINS:
        console.print(f"and {len(known) - _ORIGINS} more sources: --json lists them", style="dim")


def _notes(summaries: Sequence[Summary]) -> list[str]:
    """Return each note once, with the sets that it is of."""
    names: dict[str, list[str]] = {}
    for summary in summaries:
        for note in dict.fromkeys(summary.notes):
            names.setdefault(note, []).append(summary.name)
    return [f"{_of(sets, len(summaries))}: {note}" for note, sets in names.items()]


def _of(names: Sequence[str], all_sets: int) -> str:
    """Return names of sets in few words."""
    if len(names) == all_sets > 1:
        return "all sets"
    further = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + further


def together(summaries: Sequence[Summary]) -> list[str]:
    """Return what all verdicts show together, and what repeated runs do; empty without verdicts."""
    joint = jointly([verdict for summary in summaries for verdict in summary.deadlines])
    if joint is None:
        return []
    repeated = over_runs((each.name, each.condition, each.deadlines) for each in summaries)
    return [
        joint.sentence,
        *(f"{each.name}, {each.deadline}: {each.sentence}" for each in repeated),
    ]


def print_controls(controls: Sequence[tuple[str, Control]], console: Console | None = None) -> None:
    """Print how well robots were controlled, by condition; nothing if there are none."""
    if not controls:
        return
    console = console or Console()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    table = _table("control of the robot; errors in µrad, times in µs", "condition")
    for heading in (
        "cycles",
        "missed",
        "safe stops",
        "error rms",
        "error max",
        "jitter rms",
        "jitter max",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for label, control in controls:
        table.add_row(
            label,
            _count(control.cycles),
            _count(control.missed),
            _count(control.safe_stops),
            _count(control.error_rms_urad),
            _count(control.error_max_urad),
            f"{control.jitter_rms_ns / 1_000:,.2f}",
            f"{control.jitter_max_ns / 1_000:,.2f}",
        )
    console.print(table)


def print_targets(conditions: Sequence[Condition], environment: Mapping[str, Any]) -> None:
    """Print where the targets are that conditions name; nothing if there are none.

    Args:
        conditions: What was asked for.
        environment: What each place told of itself; a target out of reach told nothing.
    """
    urls = {each.target: each.target_url for each in conditions if each.target}
    if not urls:
        return
    console = Console()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    table = _table("targets", "name")
    for heading in ("where", "kernel", "processor", "CPUs"):
        table.add_column(heading, overflow="fold")
    for name, url in urls.items():
        told = environment.get(name, {})
        kernel, cpu = told.get("kernel", {}), told.get("cpu", {})
        found = (kernel.get("release"), cpu.get("model"), cpu.get("online"))
        table.add_row(name, url, *(str(each or "-") for each in found))
    console.print(table)


def _table(title: str, first: str = "sample set") -> Table:
    table = Table(title=title, title_justify="left", title_style="italic", box=box.SIMPLE_HEAD)
    table.pad_edge = False
    table.add_column(first, overflow="fold", min_width=12)
    return table


def _statistics(title: str, summaries: Sequence[Summary]) -> Table:
    unit, size = _unit(summaries)
    table = _table(f"{title}; times in {unit}")
    for heading in ("n", "avg", "median", "max", "jitter", "dev", "min", "p99.9"):
        table.add_column(heading, justify="right", no_wrap=True)
    extras = [
        (heading, field)
        for heading, field in (
            ("missed", "missed_periods"),
            ("beyond range", "beyond_range"),
            ("elsewhere", "elsewhere"),
        )
        if any(getattr(summary, field) for summary in summaries)
    ]
    handled = HANDLINGS if any(summary.handled for summary in summaries) else ()
    for heading in (*(heading for heading, _ in extras), *handled):
        table.add_column(heading, justify="right", no_wrap=True)
    for summary in summaries:
        n = summary.n if summary.n_due is None else summary.n_due
        table.add_row(
            summary.name,
            _count(n),
            *_times(summary, summary.max_ns, size),
            *(_count(getattr(summary, field)) for _, field in extras),
            *(_share(summary, handling) for handling in handled),
        )
        if summary.n_due not in (None, summary.n):
            sampled = _times(summary.sampled, summary.max_ns, size)
            table.add_row("  as sampled", _count(summary.n), *sampled, style="dim")
    return table


def _times(figures: Summary | Figures, max_ns: int | None, size: int) -> list[str]:
    """Return the figures of one view in the order of the table."""
    times = (
        figures.mean_ns,
        figures.median_ns,
        max_ns,
        figures.jitter_ns,
        figures.stdev_ns,
        figures.min_ns,
        figures.quantiles_ns["0.999"],
    )
    return ["-" if time is None else f"{time / size:,.{2 if size > 1 else 0}f}" for time in times]


def _unit(summaries: Sequence[Summary]) -> tuple[str, int]:
    """Return microseconds as the field writes them, or nanoseconds where all is below one."""
    largest = max((summary.max_ns or summary.mean_ns or 0 for summary in summaries), default=0)
    return ("µs", 1_000) if largest >= 1_000 else ("ns", 1)


def _verdicts(time_base: str, summaries: Sequence[Summary]) -> Table:
    confidence = next(v.confidence for summary in summaries for v in summary.deadlines)
    table = _table(f"verdicts, {time_base}; bounds at {100 * confidence:.4g} % confidence each")
    table.add_column("deadline", overflow="fold", min_width=6)
    table.add_column("verdict", min_width=9)
    for heading in ("limit", "allowed", "max", "late"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("what it rests on", min_width=30)
    for summary in summaries:
        for verdict in summary.deadlines:
            table.add_row(
                summary.name,
                verdict.name,
                _outcome(verdict),
                format_duration(verdict.limit_ns),
                verdict.allowed,
                "-" if verdict.max_ns is None else format_duration(verdict.max_ns),
                _late(verdict),
                verdict.sentence,
            )
    return table


def _late(verdict: Verdict) -> str:
    """Return how many activations were late: from the surely late to the possibly late."""
    if not verdict.undecided:
        return f"{verdict.exceeding:,}"
    return f"{verdict.exceeding:,} to {verdict.exceeding + verdict.undecided:,}"


def _outcome(verdict: Verdict) -> Text:
    """Return a verdict in its colour: none where it is met in emulated time only."""
    if verdict.emulated and verdict.verdict == "meets":
        return Text("meets, emulated")
    return Text(verdict.verdict, _VERDICT_STYLE[verdict.verdict])


def _share(summary: Summary, handling: Handling) -> str:
    share = (summary.handled or {}).get(handling)
    return "-" if share is None else f"{share:.1%}"


def _count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"
