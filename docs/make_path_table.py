"""Prints the paths of a run, and what the model makes of them, as tables for the docs.

.venv/bin/python docs/make_path_table.py RUN
"""

import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from latenz.path.calibration import calibrations, compare
from latenz.path.model import FILE_NAME, InterruptPath, PathFile
from latenz.path.software import Term


def write(line: str) -> None:
    """Write a line."""
    sys.stdout.write(f"{line}\n")


def row(*cells: object) -> None:
    """Write a row of a table."""
    write(f"| {' | '.join(map(str, cells))} |")


def terms(usual: Mapping[str, InterruptPath]) -> None:
    """Print the terms of each condition."""
    row("condition", "t_irq", "t_hyp", "t_os", "t_user", "instructions", "measured")
    row(*["---"] * 7)
    for name, path in usual.items():
        row(f"`{name}`", *path.terms().values(), path.instructions, f"{path.latency_ns} ns")


def hypervisors(usual: Mapping[str, InterruptPath]) -> None:
    """Print what the instructions of hypervisors are for."""
    spent: dict[str, Counter[str]] = {}
    for name, path in usual.items():
        for segment in path.segments:
            if segment.term is Term.HYP:
                counts = spent.setdefault(name, Counter())
                counts[segment.category] += segment.instructions
    row("instructions for", *(f"`{name}`" for name in spent))
    row("---", *["---"] * len(spent))
    for category, _ in sum(spent.values(), Counter()).most_common():
        row(category, *(counts[category] for counts in spent.values()))


def estimates(usual: Mapping[str, InterruptPath]) -> None:
    """Print what the model makes of the paths."""
    row("condition", "published", "model", "off by", "use")
    row(*["---"] * 5)
    for core in calibrations().values():
        for each in compare(core, usual):
            off = "" if each.fitted else f"{each.error_percent:+.1f} %"
            use = "fitted" if each.fitted else "predicted"
            total = f"{each.estimate.total_ns:.0f} ns"
            row(f"`{each.condition}`", f"{each.published_ns:.2f} ns", total, off, use)


def main(run: Path) -> None:
    """Print all tables for the run folder."""
    found = {each.parent.name: PathFile.load(each).paths[0] for each in run.rglob(FILE_NAME)}
    usual = dict(sorted(found.items(), key=lambda each: each[1].instructions))
    for print_table in (terms, hypervisors, estimates):
        print_table(usual)
        write("")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
