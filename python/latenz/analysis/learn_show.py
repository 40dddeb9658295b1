"""What was learned, as terminal tables and as lines for a system file."""

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from rich.console import Console

from latenz.analysis.learn import Learned, LearnedSource, Times
from latenz.analysis.show import console_for_tables, plain_table, print_titled
from latenz.durations import NANOSECONDS, format_duration
from latenz.files import replacing
from latenz.system.trace import COLUMNS

_MOST_DISTANCES = 8  # columns that fit a page; --json has all
_UNITS = ("s", "ms", "us", "ns")


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
        distances = ", ".join(f'"{exact_duration(each)}"' for each in source.distances_ns)
        lines.append(f"monitor = {{ distances = [{distances}] }}")
    return "\n".join(lines)


def exact_duration(nanoseconds: int) -> str:
    """Return a duration as system files take it, in the largest unit that needs no fraction."""
    unit = next(each for each in _UNITS if nanoseconds % NANOSECONDS[each] == 0)
    return f"{nanoseconds // NANOSECONDS[unit]} {unit}"


def write_arrivals(path: Path, times_by_source: Mapping[str, Times]) -> None:
    """Write activations as a CSV trace that begins at time 0, whatever format they came from.

    Raises:
        BadInput: The file cannot be written.
    """
    names = list(times_by_source)
    times = np.concatenate(list(times_by_source.values()))
    owners = np.repeat(np.arange(len(names)), [len(each) for each in times_by_source.values()])
    order = np.argsort(times, kind="stable")
    begin_ns = int(times[order[0]])
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for at in order:
            writer.writerow((names[owners[at]], int(times[at]) - begin_ns))


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
        console.print(f"{source.name}: nothing is left of the trace to judge by\n", markup=False)
        return
    console.print(
        f"{source.name}: of the {rest.activations:,} later activations "
        f"{rest.closer_than_observed:,} ({rest.closer_than_observed / rest.activations:.2%}) come "
        f"closer than observed, and a monitor with these distances denies {rest.denied:,} "
        f"({rest.denied / rest.activations:.2%})\n",
        markup=False,
        highlight=False,
    )
