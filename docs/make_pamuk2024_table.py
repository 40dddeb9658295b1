"""Prints the rows of a run of experiments/pamuk2024.toml as tables for the docs.

.venv/bin/python docs/make_pamuk2024_table.py RUN
"""

import json
import sys
from pathlib import Path

from latenz.statistics import summarize
from latenz.store.run import Run


def write(line: str) -> None:
    """Write a line."""
    sys.stdout.write(f"{line}\n")


def row(*cells: object) -> None:
    """Write a row of a table."""
    write(f"| {' | '.join(map(str, cells))} |")


def microseconds(value_ns: float | None) -> str:
    """Return nanoseconds as microseconds."""
    return "" if value_ns is None else f"{value_ns / 1000:.2f}"


def main(folder: Path) -> None:
    """Print a row for each condition, in the order of the file."""
    told = json.loads((folder / "run.json").read_text())
    order = told["condition_order"]
    found = {each.metadata.condition: each for each in Run.open(folder).sample_sets}
    row("condition", "time base", "samples", "min µs", "mean µs", "max µs", "missed periods")
    row(*["---"] * 7)
    for name in (name for name in order if name in found):
        known = found[name].metadata
        figures = summarize(found[name])
        row(
            f"`{name}`",
            known.time_base,
            figures.n,
            microseconds(figures.min_ns),
            microseconds(figures.mean_ns),
            microseconds(figures.max_ns),
            sum(v for batch in found[name].batches("missed") for v in batch.column(0).to_pylist()),
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
