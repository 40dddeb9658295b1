"""Prints figures of `python bench/icc.py --json` as tables for the docs.

.venv/bin/python docs/make_intercore_table.py FIGURES.json
"""

import json
import sys
from pathlib import Path
from typing import Any


def row(*cells: object) -> None:
    """Write a row of a table."""
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")


def ratios(cases: list[dict[str, Any]]) -> None:
    """Print multiples of the raw limit, one row for each channel and peer."""
    sizes = sorted({case["bytes"] for case in cases if case["bytes"]})
    row("through", *(f"{size} B" for size in sizes))
    row("---", *["---:"] * len(sizes))
    for through in dict.fromkeys(case["through"] for case in cases if case["bytes"]):
        found = {case["bytes"]: case["ratio"] for case in cases if case["through"] == through}
        row(f"`{through}`", *(_multiple(found[size]) for size in sizes))


def _multiple(ratio: float) -> str:
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2f}"


def nanoseconds(cases: list[dict[str, Any]]) -> None:
    """Print nanoseconds, which are those of one machine at one moment."""
    columns = ("median_ns", "p99_ns", "p99_9_ns", "max_ns", "worst_index", "raw_median_ns", "n")
    row("through", "bytes", *(each.removesuffix("_ns").replace("_", " ") for each in columns))
    row("---", *["---:"] * (len(columns) + 1))
    for case in cases:
        row(f"`{case['through']}`", case["bytes"], *(f"{case[each]:,}" for each in columns))


def bars(found: list[dict[str, Any]]) -> None:
    """Print what was aimed at."""
    row("aim", "at most", "measured", "met")
    row("---", "---:", "---:", "---")
    for each in found:
        row(each["aim"], each["at_most"], each["ratio"], "yes" if each["met"] else "no")


def main(path: Path) -> None:
    """Print all tables."""
    told = json.loads(path.read_text())
    told = told.get("icc", told)  # alone, or among all benchmarks
    for table in (ratios, nanoseconds):
        table(told["cases"])
        sys.stdout.write("\n")
    bars(told["bars"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
