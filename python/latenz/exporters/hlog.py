"""HdrHistogram log (`.hlog`, format 1.3): one interval for each set, tagged with its name.

Values keep three significant digits. As HdrHistogram's readers expect of corrected recordings,
skipped activations are recorded by how long they waited, where the source counts them; a comment
line says so. An HdrHistogram has no place for samples known only to lie beyond a range, nor for
skipped activations whose latency nobody knows: these are recorded at the set's known maximum, so
that no quantile comes out smaller than it was, and a comment line says how many. Times count from
the start of the recording.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from latenz.columns import as_numpy
from latenz.errors import BadInput
from latenz.exporters.figures import figures
from latenz.model import SampleSet
from latenz.statistics import Histogram, view_of

_HOUR_NS = 3_600_000_000_000
_NS_PER_S = 1_000_000_000
_NS_PER_MS = 1_000_000
_HEAD = """\
#[Histogram log format version 1.3]
#[Latenz: latencies in nanoseconds, Interval_Max in milliseconds]
#[StartTime: 0.000 (seconds since epoch), unknown: times count from the start of each recording]
"""
_LEGEND = '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'


def write(sample_sets: Sequence[SampleSet], path: Path) -> None:
    """Write one interval line for each set that keeps values."""
    kept = [sample_set for sample_set in sample_sets if sample_set.form != "summary"]
    if not kept:
        raise BadInput(
            "only printed figures are known, no latencies", "--to hlog", "export to openmetrics"
        )
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_HEAD)
        for sample_set in sample_sets:
            file.writelines(_comments(sample_set))
        file.write(_LEGEND)
        for sample_set in kept:
            file.write(_interval(sample_set))


def _tag(sample_set: SampleSet) -> str:
    return re.sub(r"[\s,]+", "_", sample_set.metadata.name)


def _comments(sample_set: SampleSet) -> list[str]:
    metadata, known = sample_set.metadata, figures(sample_set)
    told = [f"time base {metadata.time_base.value}"]
    if sample_set.form == "summary":
        told.append("left out, only printed figures are known")
    if metadata.beyond_range:
        told.append(
            f"{metadata.beyond_range} samples beyond the range of the source's histogram are"
            " recorded at the maximum"
        )
    if view_of(sample_set) == "of samples only":
        told.append("of samples only, the source does not count skipped activations")
    if waited := (known.skipped or 0) - known.unknown:
        told.append(f"{waited} skipped activations are recorded by how long they waited")
    if known.unknown:
        told.append(
            f"{known.unknown} skipped activations, of which nobody knows how late they were, are"
            " recorded at the maximum"
        )
    return [f"#[{_tag(sample_set)}: {each}]\n" for each in told]


def _interval(sample_set: SampleSet) -> str:
    name, known = sample_set.metadata.name, figures(sample_set)
    beyond = sample_set.metadata.beyond_range + known.unknown
    highest = known.max_ns
    if highest is None:
        raise BadInput(
            f"{name} has {beyond} activations beyond its range and no known maximum",
            "--to hlog",
            "export to csv or parquet",
        )
    if (known.min_ns or 0) < 0 or highest > 2**61:
        raise BadInput(
            f"{name} reaches from {known.min_ns} to {highest} ns",
            "--to hlog",
            "an HdrHistogram holds 0 to 2^61 ns; export to csv or parquet",
        )
    histogram = Histogram.of(sample_set, max(_HOUR_NS, highest))
    if beyond:
        histogram.record_counts(np.array([highest]), np.array([beyond]))
        histogram.unrecorded -= beyond
    if histogram.unrecorded:
        raise BadInput(f"{histogram.unrecorded} latencies of {name} do not fit", "--to hlog")
    return (
        f"Tag={_tag(sample_set)},0.000,{_span_ns(sample_set) / _NS_PER_S:.3f},"
        f"{highest / _NS_PER_MS:.6f},{histogram.encode()}\n"
    )


def _span_ns(sample_set: SampleSet) -> int:
    """Return the time from the first sample to the last, 0 if the set does not know."""
    first: int | None = None
    last = 0
    for batch in sample_set.batches("t_ns"):
        if batch.num_columns and batch.num_rows:
            times = as_numpy(batch.column(0))
            first = int(times[0]) if first is None else first
            last = int(times[-1])
    return 0 if first is None else max(0, last - first)
