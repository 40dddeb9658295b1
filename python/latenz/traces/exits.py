"""The table of exits: where the time of virtual CPUs went."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.table import Table

from latenz.console import Console
from latenz.durations import format_duration
from latenz.traces.advice import reason_named, remedy
from latenz.traces.model import Exits, Lost, Summary

_LITTLE = 0.01  # of the time that was lost
_PIPE_WIDTH = 160  # where no terminal says how wide it is, nothing need be cut


def exits_json(summary: Summary) -> list[dict[str, Any]]:
    """Return the exits as plain values, those that cost most first.

    `share`: of the time that all exits of the same virtual CPU cost, without its idle time; None
    for exits that are idle time. `tunings` and `advice`: what removes or shortens them.
    """
    lost_ns = _lost_ns(summary.exits)
    return [
        asdict(each)
        | {
            "mean_ns": each.mean_ns,
            "idle": each.idle,
            "share": None if each.idle else _share(each.total_ns, lost_ns[each.vcpu]),
            **asdict(remedy(f"exit:{each.reason}")),
        }
        for each in _sorted(summary.exits)
    ]


def print_exits(summary: Summary, console: Console | None = None) -> None:
    """Print exits per virtual CPU and reason; idle time apart; then what there is to know."""
    console = console or Console()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    console.print(_headline(summary), highlight=False)
    busy = [each for each in _sorted(summary.exits) if not each.idle]
    idle = [each for each in _sorted(summary.exits) if each.idle]
    if busy:
        console.print(_busy_table(summary, busy))
    if idle:
        console.print(_idle_table(idle))
    if not summary.names:  # without events, no worst moment tells what helps
        _print_remedies(summary.exits, console)
    if not summary.has_exit_events:
        console.print("no exit events: kvm_exit was not recorded, or this kernel has none")
    for remark in remarks(summary):
        console.print(remark, style="dim")


def _print_remedies(exits: Sequence[Exits], console: Console) -> None:
    """Print what usually brings the exits that cost most, and what removes or shortens them."""
    lost_ns = _lost_ns(exits)
    table = Table(title="what helps", title_justify="left", title_style="italic")
    table.box, table.pad_edge = box.SIMPLE_HEAD, False
    for heading in ("reason", "what usually brings it", "tunings"):
        table.add_column(heading, overflow="fold")
    costly = [each for each in exits if each.total_ns >= _LITTLE * lost_ns[each.vcpu]]
    for name in dict.fromkeys(each.reason for each in sorted(costly, key=_by_cost)):
        if reason := reason_named(name):
            told = [*reason.tunings, *([reason.advice] if reason.advice else [])]
            table.add_row(name, reason.usual, ", ".join(told))
    if table.row_count:
        console.print(table)


def _by_cost(exits: Exits) -> int:
    return -exits.total_ns


def remarks(summary: Summary) -> list[str]:
    """Return what a reader of the numbers has to know, one sentence each."""
    told = [f"truncated: {summary.truncated_at}"] if summary.truncated_at else []
    if summary.damages > 1:
        told.append(f"{summary.damages} places cannot be read; the rest was")
    if summary.lost.places:
        told.append(_missing(summary.lost))
    if still_open := sum(each.open for each in summary.exits):
        told.append(f"exits without kvm_entry in the trace: {still_open}; counted, but in no time")
    if summary.backwards:
        told.append(f"{summary.backwards} times the clock ran backwards: left out of all times")
    return [*told, *summary.notes]


def _missing(lost: Lost) -> str:
    if not lost.events:
        return f"events are missing at {lost.places} places: counts are lower limits"
    return (
        f"{lost.events:,} events were lost while recording, at {lost.places} places: "
        "counts are lower limits; record with larger buffers (trace-cmd record -b)"
    )


def _headline(summary: Summary) -> str:
    parts = [f"{summary.events:,} events", summary.format]
    if summary.end_ns > summary.start_ns:
        parts.append(format_duration(summary.end_ns - summary.start_ns))
    parts.append(f"clock {summary.clock}" if summary.clock else "clock not told")
    return ", ".join(parts)


def _sorted(exits: Sequence[Exits]) -> list[Exits]:
    return sorted(exits, key=lambda each: (each.vcpu, each.idle, -each.total_ns, each.reason))


def _lost_ns(exits: Sequence[Exits]) -> dict[str, int]:
    lost: dict[str, int] = {}
    for each in exits:
        lost[each.vcpu] = lost.get(each.vcpu, 0) + (0 if each.idle else each.total_ns)
    return lost


def _share(part_ns: int, whole_ns: int) -> float:
    return part_ns / whole_ns if whole_ns else 0.0


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="italic", box=box.SIMPLE_HEAD)
    table.pad_edge = False
    for heading in ("vCPU", "reason"):
        table.add_column(heading, overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _busy_table(summary: Summary, exits: Sequence[Exits]) -> Table:
    lost_ns = _lost_ns(summary.exits)
    table = _table(
        "exits: time that the guest lost",
        *("count", "total", "mean", "max", "of lost", "in user space", "preempted"),
    )
    for each in exits:
        table.add_row(
            *_names(each),
            f"{each.count:,}",
            *_times(each),
            f"{_share(each.total_ns, lost_ns[each.vcpu]):.1%}",
            _part(each.userspace, each.userspace_ns),
            _part(each.preempted, each.preempted_ns),
        )
    for vcpu, total_ns in lost_ns.items():
        count = sum(each.count for each in exits if each.vcpu == vcpu)
        span = next((one for one in summary.vcpus if one.vcpu == vcpu), None)
        of_all = f"{_share(total_ns, span.end_ns - span.start_ns):.1%} of its time" if span else ""
        table.add_row(
            vcpu,
            "all",
            f"{count:,}",
            format_duration(total_ns),
            "",
            "",
            of_all,
            style="bold",
        )
    return table


def _idle_table(exits: Sequence[Exits]) -> Table:
    table = _table("exits: the guest was idle", "count", "total", "mean", "max", "asleep")
    for each in exits:
        table.add_row(
            *_names(each), f"{each.count:,}", *_times(each), _part(each.slept, each.slept_ns)
        )
    return table


def _names(exits: Exits) -> tuple[str, str]:
    return exits.vcpu, exits.reason


def _times(exits: Exits) -> tuple[str, str, str]:
    if exits.mean_ns is None:
        return "-", "-", "-"
    return (
        format_duration(exits.total_ns),
        format_duration(exits.mean_ns),
        format_duration(exits.max_ns),
    )


def _part(count: int, duration_ns: int) -> str:
    return f"{count:,}, {format_duration(duration_ns)}" if count else "-"
