"""JSON with the keys and the structure of cyclictest's `--json`, for tools that read that.

Each sample set is a thread. Values are microseconds (`resolution_in_ns` 0) if all of them are
whole microseconds, nanoseconds (1) otherwise. As in cyclictest, `cycles` counts what the cells
lack, too: samples beyond a histogram's range. Time stamps are lost. The key `latenz`, which
cyclictest does not have, keeps name, time base and origin of each set.

cyclictest itself leaves out skipped activations, and its readers cannot know how many. Where the
source counts them they are cycles here, each by how long it waited, and a note under `latenz`
says how many: no tool that reads the file takes a system for better than it was.
"""

import json
from collections.abc import Sequence
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

from latenz.errors import BadInput
from latenz.exporters.figures import Figures, figures, tally
from latenz.importers.bundle import describe
from latenz.model import SampleSet


def write(sample_sets: Sequence[SampleSet], path: Path) -> None:
    """Write one thread for each set."""
    known = [figures(sample_set) for sample_set in sample_sets]
    counted = [tally(sample_set) for sample_set in sample_sets]
    whole = all(
        value % 1000 == 0
        for (values, _), figure in zip(counted, known, strict=True)
        for value in (*values, figure.min_ns or 0, figure.max_ns or 0)
    )
    unit_ns = 1000 if whole else 1
    for sample_set, (_, widths) in zip(sample_sets, counted, strict=True):
        if sample_set.form == "histogram" and widths - {unit_ns}:
            raise BadInput(
                f"{sample_set.metadata.name} has histogram cells up to {max(widths)} ns wide",
                "--to cyclictest-json",
                f"its cells are {unit_ns} ns wide; export to csv or parquet",
            )
    threads = {
        str(number): _thread(sample_set, figure, values, unit_ns, number)
        for number, (sample_set, figure, (values, _)) in enumerate(
            zip(sample_sets, known, counted, strict=True)
        )
    }
    first = sample_sets[0].metadata
    document = {
        "file_version": 1,
        "cmdline:": "latenz export --to cyclictest-json",
        "rt_test_version:": f"latenz {version('latenz')}",
        "start_time": "",
        "end_time": "",
        "return_code": 0,
        "sysinfo": {
            "sysname": "",
            "nodename": "",
            "release": first.kernel or "",
            "version": "",
            "machine": first.machine or "",
            "realtime": int("PREEMPT_RT" in (first.kernel or "")),
        },
        "num_threads": len(sample_sets),
        "resolution_in_ns": 0 if whole else 1,
        "thread": threads,
        "latenz": {
            str(number): json.loads(describe(_as_written(sample_set, figure)))
            for number, (sample_set, figure) in enumerate(zip(sample_sets, known, strict=True))
        },
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _as_written(sample_set: SampleSet, known: Figures) -> SampleSet:
    """Return the set as the file has it: activations that were skipped are cycles like others."""
    if not known.skipped:
        return sample_set
    note = f"{known.skipped} skipped activations are among the cycles, by how long they waited"
    notes = (*sample_set.metadata.notes, note)
    return sample_set.with_metadata(missed_periods=0, notes=notes)


def _thread(
    sample_set: SampleSet, known: Figures, values: dict[int, int], unit_ns: int, number: int
) -> dict[str, Any]:
    name = sample_set.metadata.name
    for what, figure in (
        ("number of activations", known.n),
        ("minimum", known.min_ns),
        ("maximum", known.max_ns),
        ("mean", known.mean_ns),
    ):
        if figure is None:
            raise BadInput(
                f"the {what} of {name} is not known", "--to cyclictest-json", "export to csv"
            )
    cpu = sample_set.metadata.cpu
    return {
        "histogram": {str(value // unit_ns): values[value] for value in sorted(values)},
        "cycles": known.n,
        "min": (known.min_ns or 0) // unit_ns,
        "max": (known.max_ns or 0) // unit_ns,
        "avg": float((known.mean_ns or Fraction(0)) / unit_ns),
        "cpu": number if cpu is None else cpu,
        "node": -1,
    }
