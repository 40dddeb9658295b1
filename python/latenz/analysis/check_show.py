"""What a search found, as terminal tables."""

from latenz.analysis.check import Arrivals, Check, CheckedSource
from latenz.analysis.show import (
    console_for_tables,
    duration_or_dash,
    partition_label,
    plain_table,
    print_key_of_labels,
    print_titled,
)
from latenz.console import Console
from latenz.system import System

_MOST_ARRIVALS = 6  # of a source in a row; the rest is counted


def print_check(system: System, found: Check) -> None:
    """Print the bound, the highest latency found and their ratio, and what leads to it."""
    console = console_for_tables()
    modes = list(found.sources[0].verdicts)
    table = plain_table(
        "source", "partition", "bound", "highest found", "ratio", "enforced", "highest", *modes
    )
    for source, described in zip(found.sources, system.sources, strict=True):
        table.add_row(
            source.name,
            partition_label(system, described.partition),
            duration_or_dash(source.wcrt_ns),
            duration_or_dash(source.highest_ns),
            "-" if source.ratio is None else f"{source.ratio:.3f}",
            duration_or_dash(source.enforced_ns),
            duration_or_dash(source.enforced_highest_ns),
            *source.verdicts.values(),
        )
    title = (
        f"simulated latencies against their bounds, mode {found.mode} "
        f"(at most {found.effort} simulations for each source and bound, seed {found.seed})"
    )
    print_titled(console, title, table)
    print_key_of_labels(console, system)
    console.print("bound: all sources keep their arrival models; enforced: those of other")
    console.print("partitions break them, as far as monitors and limits let them\n")
    for pattern in dict.fromkeys(each.arrivals_ns for each in found.sources):
        if pattern is not None:
            _print_pattern(console, found, pattern)
    _print_remarks(console, found)


def _print_pattern(console: Console, found: Check, pattern: Arrivals) -> None:
    """Print the arrivals of all sources that lead to the worst latencies of some."""
    targets = [each.name for each in found.sources if each.arrivals_ns == pattern]
    table = plain_table("source", "arrivals", "µs from the start of a cycle on")
    for source, times in zip(found.sources, pattern, strict=True):
        shown = ", ".join(map(_exact, times[:_MOST_ARRIVALS]))
        more = ", ..." if len(times) > _MOST_ARRIVALS else ""
        table.add_row(source.name, str(len(times)), shown + more)
    print_titled(console, f"worst arrivals for {', '.join(targets)}", table)


def _exact(time_ns: int) -> str:
    """Return a time in microseconds: one nanosecond can decide."""
    return f"{time_ns // 1000}.{time_ns % 1000:03}"


def _print_remarks(console: Console, found: Check) -> None:
    for source in found.sources:
        if source.exceeded:
            _print_exceeded(console, source)
        if source.reason:
            console.print(f"{source.name}: no bound, not searched: {source.reason}")
        elif source.enforced_reason:
            why = source.enforced_reason
            console.print(f"{source.name}: no enforced bound, not searched: {why}")
        if found.complete and source.wcrt_ns is not None and source.highest_ns is None:
            console.print(f"{source.name}: not searched: 64 bits are too few for its times")
    if not found.complete:
        console.print("interrupted: the highest latencies found until then")


def _print_exceeded(console: Console, source: CheckedSource) -> None:
    console.print(
        f"{source.name}: a simulated latency is above its bound; please report it with the system "
        "file and the worst arrivals",
    )
