"""OpenMetrics 1.0 text: a histogram of latencies and the figures of each set, in seconds.

The histogram is one of activations: skipped ones are in it by how long they waited, where the
source counts them. The label `view` says whether it does: `as due`, or `of samples only`.

A bucket `le` counts the activations that are certainly at or below it: a value v of a source with
resolution r stands for [v, v + r) and is counted where all of that is within; samples beyond the
range of a histogram are counted from the known maximum on, or only in `+Inf`, and so are skipped
activations whose latency nobody knows. Nothing looks faster than it was.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from latenz.exporters.figures import Figures, figures
from latenz.model import Metadata, SampleSet
from latenz.statistics import Activations, view_of

BOUNDS_NS = tuple(digit * 10**power for power in range(2, 11) for digit in (1, 2, 5))[:-2]
"""Upper bounds of the buckets: 100 ns, 200 ns, 500 ns ... 10 s."""
_NS_PER_S = 1_000_000_000
_LATENCY = (
    "latenz_latency_seconds",
    "histogram",
    "seconds",
    "Latency of activations as due, or of samples only: see the label view.",
)
_GAUGES: tuple[tuple[str, str, str, Callable[[Metadata, Figures], int | None]], ...] = (
    ("latenz_latency_minimum_seconds", "seconds", "Smallest latency.", lambda _, f: f.min_ns),
    ("latenz_latency_maximum_seconds", "seconds", "Largest latency.", lambda _, f: f.max_ns),
    (
        "latenz_samples",
        "",
        "Number of samples, skipped activations not among them.",
        lambda _, f: None if f.n is None else f.n - (f.skipped or 0),
    ),
    (
        "latenz_missed_periods",
        "",
        "Activations without a sample of their own.",
        lambda _, f: f.skipped,
    ),
    (
        "latenz_beyond_range_samples",
        "",
        "Samples beyond the range of the source's histogram.",
        lambda m, _: m.beyond_range,
    ),
)


def write(sample_sets: Sequence[SampleSet], path: Path) -> None:
    """Write one labelled histogram and one value of each gauge for each set."""
    known = [figures(sample_set) for sample_set in sample_sets]
    labels = [_labels(sample_set) for sample_set in sample_sets]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_family(*_LATENCY))
        for sample_set, figure, label in zip(sample_sets, known, labels, strict=True):
            if sample_set.form != "summary":
                file.writelines(_histogram(sample_set, figure, label))
        for name, unit, description, value in _GAUGES:
            file.writelines(_family(name, "gauge", unit, description))
            for sample_set, figure, label in zip(sample_sets, known, labels, strict=True):
                found = value(sample_set.metadata, figure)
                if found is not None:
                    shown = found / _NS_PER_S if unit else found
                    file.write(f"{name}{{{label}}} {shown!r}\n")
        file.write("# EOF\n")


def _family(name: str, kind: str, unit: str, description: str) -> Iterator[str]:
    yield f"# TYPE {name} {kind}\n"
    if unit:
        yield f"# UNIT {name} {unit}\n"
    yield f"# HELP {name} {description}\n"


def _labels(sample_set: SampleSet) -> str:
    metadata = sample_set.metadata
    pairs = {
        "sample_set": metadata.name,
        "view": view_of(sample_set),
        "time_base": metadata.time_base.value,
        "tool": metadata.tool,
        "cpu": metadata.cpu,
        "stack": metadata.stack,
        "stressor": metadata.stressor,
        "condition": metadata.condition,
    }
    return ",".join(f'{key}="{_escaped(str(v))}"' for key, v in pairs.items() if v is not None)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _histogram(sample_set: SampleSet, known: Figures, label: str) -> Iterator[str]:
    certain = np.zeros(len(BOUNDS_NS), dtype=np.int64)
    kept = 0
    for values, widths, counts in Activations(sample_set):
        # the highest value a cell stands for, without overflow at the end of 64 bits
        upper = np.minimum(values, np.iinfo(np.int64).max - widths) + (widths - 1)
        certain += [int(counts[upper <= bound].sum()) for bound in BOUNDS_NS]
        kept += int(counts.sum())
    beyond = sample_set.metadata.beyond_range
    for bound, count in zip(BOUNDS_NS, certain.tolist(), strict=True):
        within = beyond if known.max_ns is not None and known.max_ns <= bound else 0
        le = bound / _NS_PER_S
        yield f'latenz_latency_seconds_bucket{{{label},le="{le!r}"}} {count + within}\n'
    n = kept + beyond + known.unknown
    yield f'latenz_latency_seconds_bucket{{{label},le="+Inf"}} {n}\n'
    # a sum stands for all samples; with values below zero it may not be given
    if known.mean_ns is not None and (known.min_ns or 0) >= 0:
        yield f"latenz_latency_seconds_count{{{label}}} {n}\n"
        yield f"latenz_latency_seconds_sum{{{label}}} {float(known.mean_ns * n / _NS_PER_S)!r}\n"
