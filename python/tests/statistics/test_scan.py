"""The streaming scan against sorting: every path it takes for large and hostile sample sets."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from made_sets import metadata

from latenz._core import Histogram, Moments, SampleScan
from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.statistics import QUANTILES, order_statistics, quantile_intervals, summarize
from latenz.statistics.intervals import quantile_interval_ranks

MANY = 2_500_000  # more than the scan keeps of what lies outside its window


def in_batches(values: np.ndarray, size: int) -> SampleSet:
    def batches(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(values), size):
            yield pa.record_batch({"latency_ns": values[start : start + size]})

    return SampleSet(metadata(), "samples", batches, ("latency_ns",))


def shapes() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    near = rng.normal(20_000, 3000, MANY).astype(np.int64)
    spread = rng.integers(-(2**63), 2**63 - 1, MANY)
    stepped = near.copy()
    stepped[100_000:] -= 10**9  # the clock is set back by a second
    wide = rng.integers(0, 10**12, MANY)
    heaps = rng.choice(np.array([5, 10**10, 10**10 + 1, 2**62]), MANY)
    few_late = near.copy()
    few_late[rng.integers(0, MANY, 50_000)] += 10**8
    return {
        "near": near,
        "spread": spread,
        "stepped": stepped,
        "wide": wide,
        "heaps": heaps,
        "few late": few_late,
        "largest": np.full(MANY, 2**63 - 1),
        "smallest": np.full(MANY, -(2**63)),
    }


@pytest.mark.parametrize(("name", "values"), shapes().items())
def test_large_sets_equal_sorting(name: str, values: np.ndarray) -> None:
    summary = summarize(in_batches(values, 300_007))
    ordered = np.sort(values)
    assert summary.n == MANY
    assert (summary.min_ns, summary.max_ns) == (ordered[0], ordered[-1])
    for p in QUANTILES:
        rank = -(-int(float(p) * 10**5) * MANY // 10**5)
        assert summary.quantiles_ns[p] == ordered[rank - 1], p
    middle = [int(value) for value in ordered[MANY // 2 - 1 : MANY // 2 + 1]]
    assert summary.median_ns * 2 == sum(middle)
    assert summary.negative == np.count_nonzero(values < 0)
    # in numbers of 128 bits and more: sums of the halves of each value
    high, low = values >> 32, values & 0xFFFFFFFF
    total = (int(high.sum()) << 32) + int(low.sum())
    assert summary.mean_ns == pytest.approx(total / MANY, rel=1e-15)


def test_small_batches_equal_one_large_one() -> None:
    values = shapes()["few late"][:100_001]
    assert summarize(in_batches(values, 200)) == summarize(in_batches(values, len(values)))


def test_order_statistics_and_intervals_come_from_any_form() -> None:
    values = np.random.default_rng(2).permutation(10_000)
    samples = SampleSet.from_columns(metadata(), latency_ns=values)
    assert order_statistics(samples, lambda n: [1, n]) == {1: 0, 10_000: 9999}
    cells = SampleSet.from_columns(
        metadata(beyond_range=1), latency_ns=[5, 7], width_ns=[1, 1], count=[2, 1]
    )
    assert order_statistics(cells, lambda n: range(1, n + 1)) == {1: 5, 2: 5, 3: 7, 4: None}
    lower, upper = quantile_interval_ranks("0.9", 10_000)  # if they were independent
    interval = quantile_intervals(samples, ["0.9", "0.99999"])
    assert interval["0.9"].lower_ns <= lower - 1 < upper - 1 <= interval["0.9"].upper_ns
    assert interval["0.99999"].upper_ns is None
    assert quantile_intervals(cells, ["0.5"])["0.5"].lower_ns is None


def test_columns_that_are_no_int64_are_refused() -> None:
    def only(array: pa.Array) -> SampleSet:
        batch = pa.record_batch({"latency_ns": array})
        return SampleSet(metadata(), "samples", lambda _: iter([batch]), ("latency_ns",))

    for array in (pa.array([1.5]), pa.array([1, None]), pa.array([1], pa.int32())):
        with pytest.raises(BadInput, match="latency_ns"):
            summarize(only(array))


def test_moments_merge_and_refuse_unequal_columns() -> None:
    values = shapes()["spread"][:1000]
    whole, first, second = Moments(), Moments(), Moments()
    whole.add(values)
    first.add(values[:300])
    second.add_counts(values[300:], np.ones(700, np.int64))
    first.merge(second)
    assert (first.sum, first.sum_of_squares) == (whole.sum, whole.sum_of_squares)
    assert whole.sum == sum(values.tolist())
    assert whole.sum_of_squares == sum(value * value for value in values.tolist())
    assert Moments().mean is Moments().jitter is Moments().stdev is None
    with pytest.raises(ValueError, match="length"):
        whole.add_counts(values, values[:5])
    with pytest.raises(ValueError, match="length"):
        Histogram(1, 100, 2).record_counts(values, values[:5])


@pytest.mark.parametrize("count", [3, 100_000])
def test_ranks_that_no_sample_has_are_refused(count: int) -> None:
    scan = SampleScan([])
    scan.add(np.arange(count))
    for rank in (0, count + 1):
        with pytest.raises(IndexError):
            scan.want([rank])
