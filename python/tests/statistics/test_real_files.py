"""Summaries of real tools' files against a computation in fractions that shares no code."""

import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from latenz import importers
from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.statistics import QUANTILES, summarize

FILES = sorted(
    each
    for each in (Path(__file__).parents[1] / "data/importers").glob("[!R]*")
    if not each.name.startswith("sigrok-")  # its signals must be named
)
REFUSED = {
    "cyclicdeadline-v2.4.txt",
    "hwlatdetect-below-threshold.txt",
    "rtla-osnoise-top-v6.1.txt",
}


def counted(sample_set: SampleSet) -> list[tuple[int, int]]:
    """Values in order, with how often each stands in the file."""
    found: Counter[int] = Counter()
    for batch in sample_set.batches():
        for row in batch.to_pylist():
            found[row["latency_ns"]] += row.get("count", 1)
    return sorted(found.items())


def smallest(values: list[tuple[int, int]], rank: int) -> int:
    for value, count in values:
        rank -= count
        if rank <= 0:
            return value
    raise AssertionError("the rank lies beyond the values")


def assert_equal(sample_set: SampleSet) -> None:
    summary = summarize(sample_set)
    beyond = sample_set.metadata.beyond_range
    values = counted(sample_set)
    known = sum(count for _, count in values)
    n = known + beyond
    assert (summary.n, summary.beyond_range) == (n, beyond)
    for p in QUANTILES:
        rank = math.ceil(Fraction(p) * n)
        if n * (1 - Fraction(p)) < 1:
            assert summary.quantiles_ns[p] is None
        elif rank <= known:
            assert summary.quantiles_ns[p] == smallest(values, rank)
    if beyond:
        return
    mean = Fraction(sum(value * count for value, count in values), n)
    assert abs(Fraction(summary.mean_ns) - mean) <= abs(mean) / 10**12
    middle = smallest(values, (n + 1) // 2) + smallest(values, n // 2 + 1)
    assert summary.median_ns == Fraction(middle, 2)
    lowest, highest = values[0][0], values[-1][0]
    assert (summary.min_ns, summary.max_ns) == (lowest, highest)
    jitter = max(highest - mean, mean - lowest)
    assert abs(Fraction(summary.jitter_ns) - jitter) <= jitter / 10**12
    if n > 1:
        variance = sum(count * (value - mean) ** 2 for value, count in values) / (n - 1)
        assert summary.stdev_ns == pytest.approx(float(variance) ** 0.5, rel=1e-12)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_file_summarizes_to_what_its_values_give(path: Path) -> None:
    if path.name in REFUSED:
        with pytest.raises(BadInput):
            importers.read(path)
        return
    sets = importers.read(path)
    assert sets
    for sample_set in sets:
        if sample_set.form == "summary":
            assert summarize(sample_set).max_ns == sample_set.metadata.reported.max_ns
        else:
            assert_equal(sample_set)
