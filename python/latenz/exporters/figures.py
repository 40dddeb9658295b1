"""What exporters need to know of a set besides its rows: how many, how large, on average."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from latenz.errors import BadInput
from latenz.model import SampleSet

MOST_VALUES = 4_000_000
"""Distinct values that a format without time stamps keeps in memory; more are refused."""


def cells(sample_set: SampleSet) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Give the set in batches of lowest values, widths and counts; a sample is a cell of its own.

    A sample's width is the resolution of the set: its value v stands for [v, v + resolution).
    """
    step = sample_set.metadata.resolution_ns
    for batch in sample_set.batches("latency_ns", "width_ns", "count"):
        values = batch.column("latency_ns").to_numpy()
        if sample_set.form == "histogram":
            yield values, batch.column("width_ns").to_numpy(), batch.column("count").to_numpy()
        else:
            yield values, np.full(len(values), step), np.ones(len(values), dtype=np.int64)


@dataclass(frozen=True)
class Figures:
    """Figures of a set, None where its source cannot tell.

    Attributes:
        n: Number of samples, those beyond the range of a histogram included.
        min_ns: Smallest latency.
        max_ns: Largest latency.
        mean_ns: Mean, exact where every value is known, otherwise as printed.
    """

    n: int | None
    min_ns: int | None
    max_ns: int | None
    mean_ns: Fraction | None


def figures(sample_set: SampleSet) -> Figures:
    """Return a set's figures; the printed ones where a histogram or summary knows no better."""
    known = sample_set.metadata
    printed = known.reported
    n, total = 0, 0
    lowest: int | None = None
    highest: int | None = None
    for values, _, counts in cells(sample_set):
        filled = values[counts > 0]
        if len(filled):
            low, high = int(filled.min()), int(filled.max())
            lowest = low if lowest is None else min(lowest, low)
            highest = high if highest is None else max(highest, high)
        n += int(counts.sum())
        total += _sum(values) if sample_set.form == "samples" else _weighted_sum(values, counts)
    if sample_set.form == "samples":
        return Figures(n, lowest, highest, Fraction(total, n) if n else None)
    if known.beyond_range:
        highest = None
    mean = Fraction(total, n) if n and not known.beyond_range else None
    if printed is None:
        return Figures(n + known.beyond_range or None, lowest, highest, mean)
    return Figures(
        printed.n if printed.n is not None else (n + known.beyond_range or None),
        lowest if printed.min_ns is None else printed.min_ns,
        highest if printed.max_ns is None else printed.max_ns,
        mean if printed.mean_ns is None else Fraction(repr(float(printed.mean_ns))),
    )


def _sum(values: np.ndarray) -> int:
    """Sum 64-bit values exactly, in halves that cannot overflow."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def _weighted_sum(values: np.ndarray, counts: np.ndarray) -> int:
    return sum(map(int.__mul__, values.tolist(), counts.tolist()))


def tally(sample_set: SampleSet) -> tuple[Counter[int], set[int]]:
    """Count how often each value occurs; return that and the widths of the cells."""
    counted: Counter[int] = Counter()
    widths: set[int] = set()
    for values, width, counts in cells(sample_set):
        widths.update(np.unique(width).tolist())
        distinct, where = np.unique(values, return_inverse=True)
        sums = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(sums, where, counts)
        counted.update(dict(zip(distinct.tolist(), sums.tolist(), strict=True)))
        if len(counted) > MOST_VALUES:
            raise BadInput(
                f"{sample_set.metadata.name} has more than {MOST_VALUES} distinct latencies",
                "",
                "export it to parquet or hlog",
            )
    return counted, widths
