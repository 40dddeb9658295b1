"""Prints the paths of a run, and what the model makes of them, as tables for the docs.

.venv/bin/python docs/make_path_table.py RUN
"""

import sys
from pathlib import Path

from latenz.explain.calibration import calibrations, compare
from latenz.explain.model import FILE_NAME, PathFile


def write(line: str) -> None:
    """Write a line."""
    sys.stdout.write(f"{line}\n")


def main(run: Path) -> None:
    """Print both tables for the run folder."""
    usual = {each.parent.name: PathFile.load(each).paths[0] for each in run.rglob(FILE_NAME)}
    write("| condition | t_irq | t_hyp | t_os | t_user | instructions | measured |")
    write("| --- | --- | --- | --- | --- | --- | --- |")
    for name, path in sorted(usual.items(), key=lambda each: each[1].instructions):
        terms = " | ".join(str(count) for count in path.terms().values())
        write(f"| `{name}` | {terms} | {path.instructions} | {path.latency_ns} ns |")
    write("\n| condition | published | model | off by | use |")
    write("| --- | --- | --- | --- | --- |")
    for core in calibrations().values():
        for row in compare(core, usual):
            off = "" if row.fitted else f"{row.error_percent:+.1f} %"
            use = "fitted" if row.fitted else "predicted"
            total = f"{row.estimate.total_ns:.0f} ns"
            write(f"| `{row.condition}` | {row.published_ns:.2f} ns | {total} | {off} | {use} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
