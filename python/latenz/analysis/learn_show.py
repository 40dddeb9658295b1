"""What was learned, as terminal tables and as lines for a system file."""

from latenz.analysis.learn import Learned, LearnedSource
from latenz.analysis.show import console_for_tables, plain_table, print_titled
from latenz.console import Console
from latenz.durations import format_duration
from latenz.system.writer import distances_text

_MOST_DISTANCES = 8  # columns that fit a page; --json has all


def print_learned(learned: Learned) -> None:
    """Print the distances of each source, how they converge, and what the rest says."""
    console = console_for_tables()
    for source in learned.sources:
        if source.observed_ns:
            _print_distances(console, source)
            _print_convergence(console, source)
            _print_hold_out(console, source)


def system_lines(learned: Learned) -> str:
    """Return a monitor for each source, ready to be pasted into a system file."""
    lines = []
    for source in learned.sources:
        if not source.distances_ns or source.distances_ns[-1] == 0:
            lines.append(f"# {source.name}: no monitor, see the warnings")
            continue
        lines.append(
            f"# {source.name}: observed in {source.learned_from} activations, a sample and no bound"
        )
        lines.append(f"monitor = {{ distances = {distances_text(source.distances_ns)} }}")
    return "\n".join(lines)


def _print_distances(console: Console, source: LearnedSource) -> None:
    table = plain_table("q", "observed", "after bounding")
    for q, pair in enumerate(zip(source.observed_ns, source.distances_ns, strict=True), 2):
        table.add_row(str(q), *map(format_duration, pair))
    title = (
        f"{source.name}: least time from the first to the last of q activations, learned from "
        f"{source.learned_from:,} of {source.activations:,}"
    )
    print_titled(console, title, table)


def _print_convergence(console: Console, source: LearnedSource) -> None:
    shown = min(len(source.observed_ns), _MOST_DISTANCES)
    table = plain_table("of the trace", "activations", *(f"q = {q}" for q in range(2, shown + 2)))
    for step in source.convergence:
        distances = [format_duration(each) for each in step.observed_ns[:shown]]
        empty = ["-"] * (shown - len(distances))
        table.add_row(f"{step.percent} %", f"{step.activations:,}", *distances, *empty)
    print_titled(console, f"{source.name}: what more of the trace would have shown", table)


def _print_hold_out(console: Console, source: LearnedSource) -> None:
    rest = source.hold_out
    if not rest.activations:
        console.print(f"{source.name}: nothing is left of the trace to judge by\n")
        return
    console.print(
        f"{source.name}: of the {rest.activations:,} later activations "
        f"{rest.closer_than_observed:,} ({rest.closer_than_observed / rest.activations:.2%}) come "
        f"closer than observed, and a monitor with these distances denies {rest.denied:,} "
        f"({rest.denied / rest.activations:.2%})\n",
        highlight=False,
    )
