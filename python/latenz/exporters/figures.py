"""What exporters need to know of a set besides its rows: how many, how large, on average.

Formats without a column for skipped activations have these among their values, by how long they
waited, where the source counts them: who reads such a file takes its values for all there were.
"""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.statistics import Activations, Summary, summarize

MOST_VALUES = 4_000_000
"""Distinct values that a format without time stamps keeps in memory; more are refused."""


@dataclass(frozen=True)
class Figures:
    """Figures of all activations of a set as due, None where its source cannot tell.

    Attributes:
        n: Number of activations: samples, those beyond the range of a histogram included, and
            skipped ones.
        skipped: How many of them were skipped; None where the source does not count them.
        unknown: How many of these have a latency that nobody knows.
        min_ns: Smallest latency.
        max_ns: Largest latency.
        mean_ns: Mean, exact where every value is known, otherwise as printed.
    """

    n: int | None
    skipped: int | None
    unknown: int
    min_ns: int | None
    max_ns: int | None
    mean_ns: Fraction | None


def figures(sample_set: SampleSet) -> Figures:
    """Return a set's figures; the printed ones where a histogram or summary knows no better."""
    summary = summarize(sample_set)
    return Figures(
        n=summary.n if summary.n_due is None else summary.n_due,
        skipped=summary.missed_periods,
        unknown=summary.skipped_unknown,
        min_ns=summary.min_ns,
        max_ns=summary.max_ns,
        mean_ns=_mean(sample_set, summary),
    )


def _mean(sample_set: SampleSet, summary: Summary) -> Fraction | None:
    """Return the mean; exact where every value is known, as a sum of large values needs it."""
    if summary.mean_ns is None:
        return None
    if sample_set.form != "samples":
        return Fraction(repr(float(summary.mean_ns)))
    n = total = 0
    for values in Activations(sample_set).latencies():
        n += len(values)
        total += _sum(values)
    return Fraction(total, n)


def _sum(values: np.ndarray) -> int:
    """Sum 64-bit values exactly, in halves that cannot overflow."""
    return (int((values >> 32).sum()) << 32) + int((values & 0xFFFFFFFF).sum())


def tally(sample_set: SampleSet) -> tuple[Counter[int], set[int]]:
    """Count how often each value occurs among the activations; return that and all widths."""
    counted: Counter[int] = Counter()
    widths: set[int] = set()
    for values, width, counts in Activations(sample_set):
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
