"""Bounds and simulations as terminal tables."""

from collections.abc import Sequence

from rich import box
from rich.table import Table

from latenz.analysis.bound import Bounds, Printed, SourceBound
from latenz.analysis.judge import BoundVerdict
from latenz.analysis.simulate import Simulation
from latenz.console import Console
from latenz.durations import format_duration
from latenz.system import System
from latenz.system.processors import processor_of, shared_processors

_PIPE_WIDTH = 160  # where no terminal says how wide it is, nothing need be cut


def console_for_tables() -> Console:
    """Return a console as wide as its terminal, or wide enough."""
    console = Console()
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    return console


def plain_table(first: str, *headings: str) -> Table:
    """Return a table with one column of names and columns of figures."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def print_titled(console: Console, title: str, table: Table) -> None:
    """Print a table under a title that may be wider than it."""
    console.print(title, style="italic", highlight=False)
    console.print(table)


def duration_or_dash(nanoseconds: float | None) -> str:
    """Return a duration for people; a dash where there is none."""
    return "-" if nanoseconds is None else format_duration(nanoseconds)


def partition_label(system: System, name: str) -> str:
    """Return a partition's name, with its processor in brackets where several have slots."""
    several = len(shared_processors(system)) > 1
    return f"{name} ({processor_of(system, name)})" if several else name


def print_key_of_labels(console: Console, system: System) -> None:
    """Say what brackets behind partitions' names are, where there are any."""
    if len(shared_processors(system)) > 1:
        console.print("in brackets: the processor whose slots the partition has")


def print_bounds(
    system: System,
    bounds: Bounds,
    printed: Sequence[Printed],
    verdicts: Sequence[Sequence[BoundVerdict]],
) -> None:
    """Print the bound of each source, what it is made of, and what each partition may lose.

    Args:
        system: Whose bounds they are.
        bounds: Of each source.
        printed: The published equations' of each source.
        verdicts: On the deadlines of each source.
    """
    console = console_for_tables()
    table = plain_table(
        "source", "partition", "bound", "enforced", "Eq. (11)", "Eq. (16)", "verdict"
    )
    for source, equations, described in zip(bounds.sources, printed, system.sources, strict=True):
        table.add_row(
            source.name,
            partition_label(system, described.partition),
            duration_or_dash(source.wcrt_ns),
            duration_or_dash(source.enforced_ns),
            duration_or_dash(equations.eq11_ns),
            duration_or_dash(equations.eq16_ns),
            source.verdict,
        )
    title = f"longest latency from arrival to the bottom handler's end, mode {bounds.mode}"
    print_titled(console, title, table)
    print_key_of_labels(console, system)
    console.print("bound: if all sources keep their arrival models")
    console.print("enforced: whatever sources of other partitions do")
    console.print("Eqs. (11) and (16) of beckert2014 as printed: not sound, for comparison\n")
    for name in system.partitions:
        sources = [each for each in system.sources if each.partition == name]
        if sources:
            _print_parts(console, name, bounds.of(sources[0].name))
    _print_promises(console, system, bounds)
    for source in bounds.sources:
        if source.reason:
            console.print(f"{source.name}: {source.reason}")
        elif source.enforced_reason:
            console.print(f"{source.name}, no enforced bound: {source.enforced_reason}")
    for assumption in bounds.assumptions:
        console.print(f"assumed: {assumption}")
    for source, judged in zip(bounds.sources, verdicts, strict=True):
        for each in judged:
            _print_verdict(console, source.name, each)


def _print_verdict(console: Console, source: str, found: BoundVerdict) -> None:
    verdict = "not shown to meet" if found.verdict == "not shown" else found.verdict
    limit = f"{format_duration(found.deadline.limit_ns)} ({found.deadline.allowed})"
    console.print(f"{source}: {verdict} {limit}: {found.sentence}", highlight=False)


def _print_parts(console: Console, partition: str, source: SourceBound) -> None:
    """Print where the bound of a partition's queue comes from."""
    if source.wcrt_ns is None or source.busy_window_ns is None:
        return
    title = (
        f"{partition}: what {format_duration(source.wcrt_ns)} are made of (busy window "
        f"{format_duration(source.busy_window_ns)}; worst arrival "
        f"{format_duration(source.offset_ns)} after its start)"
    )
    table = plain_table("part", "count", "time")
    for share in source.shares:
        for what, count, time_ns in (
            ("bottom handlers", share.bottom_handlers, share.bottom_ns),
            ("top handlers", share.top_handlers, share.top_ns),
            ("interposed jobs", share.interposed, share.interposing_ns),
        ):
            if time_ns:
                table.add_row(f"{share.source}: {what}", str(count), format_duration(time_ns))
    if source.blocked_ns:
        table.add_row("foreign slots and slot switches", "", format_duration(source.blocked_ns))
    if source.switches_ns:
        table.add_row("slot switches", "", format_duration(source.switches_ns))
    if source.offset_ns:
        table.add_row("before the arrival", "", f"-{format_duration(source.offset_ns)}")
    print_titled(console, title, table)


def _print_promises(console: Console, system: System, bounds: Bounds) -> None:
    table = plain_table("partition", "share", "in each of its slots", "if models are kept")
    for promise in bounds.partitions:
        own_ns = sum(each.length_ns for each in system.slots if each.partition == promise.name)
        lost_ns = sum(promise.interference_ns_by_slot)
        table.add_row(
            partition_label(system, promise.name),
            f"{lost_ns / own_ns:.2%}",
            ", ".join(map(format_duration, promise.interference_ns_by_slot)),
            ", ".join(map(format_duration, promise.conforming_interference_ns_by_slot)),
        )
    title = (
        "what top handlers, slot switches and interposed jobs may take from a partition, whatever "
        "sources do"
    )
    print_titled(console, title, table)


def print_simulation(simulation: Simulation, how: str = "simulated") -> None:
    """Print the figures of each source.

    Args:
        simulation: The figures.
        how: Where they come from.
    """
    begin = "arrival" if simulation.latency_from == "arrival" else "top handler's start"
    table = plain_table("source", "n", "avg", "max", "min", "direct", "interposed", "delayed")
    for source in simulation.sources:
        table.add_row(
            source.name,
            str(source.n),
            *map(duration_or_dash, (source.mean_ns, source.max_ns, source.min_ns)),
            *(
                _share(part, source.n)
                for part in (source.direct, source.interposed, source.delayed)
            ),
        )
    console = console_for_tables()
    title = f"{how}: latency from {begin} to the bottom handler's end, mode {simulation.mode}"
    print_titled(console, title, table)
    if not simulation.complete:
        console.print("interrupted: figures of the interrupts that had ended")


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"
