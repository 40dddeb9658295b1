"""Prints the bounds of runs of experiments/linux-bound.toml as the table of docs/linux-bound.md.

Usage: .venv/bin/python docs/make_linux_bound_table.py RUN...
"""

import sys
from pathlib import Path

from latenz.linux_bound.evidence import Observation, linux_bound, observations_of


def write(*cells: object) -> None:
    """Write a row of a table."""
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")


def row(each: Observation) -> float:
    """Write what one condition came to; return the bound by the largest wake-up seen."""
    found = linux_bound([each])
    made = found.bound
    name = "idle_in" if made.holding == "idle" else made.holding
    site, _ = found.sites[name]
    ratio = (made.bound_ns or 0) / found.longest_ns
    write(
        each.windows.load,
        f"{each.windows.wake_ups:,}",
        f"{found.longest_ns:,}",
        f"{made.bound_ns or 0:,}",
        f"{ratio:.2f}",
        f"{made.holding} {made.holding_ns:,}",
        f"{made.scheduler_ns:,}",
        f"{made.interrupts_ns:,}",
        "yes" if each.saturation.saturated else "no",
        f"`{site}`",
    )
    return ratio


def main(runs: list[Path]) -> None:
    """Print a table for each kernel, and what all of its rows have in common."""
    observations = observations_of(runs)
    for mode in sorted({each.windows.preemption for each in observations}):
        rows = [each for each in observations if each.windows.preemption == mode]
        sys.stdout.write(f"\n{rows[0].windows.kernel} ({mode}):\n\n")
        write(
            *("load", "wake-ups", "largest seen", "bound", "ratio", "held by", "scheduler"),
            *("interrupts", "saturated", "where"),
        )
        write("---", *["---:"] * 4, "---", *["---:"] * 2, "---", "---")
        ratios = sorted(row(each) for each in rows)
        above = sum(
            each.windows.longest_latency_ns > (linux_bound([each]).bound.bound_ns or 0)
            for each in rows
        )
        middle = ratios[len(ratios) // 2]
        sys.stdout.write(
            f"\n{len(rows)} loads, {above} with a wake-up above the bound; the bound is"
            f" {ratios[0]:.2f} to {ratios[-1]:.2f} times the largest seen, {middle:.2f} in the"
            " median.\n"
        )


if __name__ == "__main__":
    main([Path(each) for each in sys.argv[1:]])
