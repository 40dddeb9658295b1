"""Figures of all activations as they were due, against playing each activation by itself."""

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_sets import histogram, metadata, played, samples
from test_summary import assert_exact, close

from latenz.errors import BadInput
from latenz.model import Reported, SampleSet
from latenz.statistics import (
    QUANTILES,
    Activations,
    Summary,
    carries_quantile,
    quantile_rank,
    summarize,
)

PERIOD = 1000
WAKE_UPS = st.lists(st.integers(0, 7 * PERIOD), min_size=1, max_size=60)


def recorded(latencies, missed, **changes) -> SampleSet:
    known = metadata(**{"period_ns": PERIOD, **changes})
    return SampleSet.from_columns(known, latency_ns=latencies, missed=missed)


def sampled(summary: Summary) -> Summary:
    """The view of the samples in the place of that of all activations."""
    return Summary(**{**vars(summary), **vars(summary.sampled)})


def of(values: list[int], n: int, summary: Summary) -> Summary:
    assert summary.n == n
    return Summary(**{**vars(summary), "n": len(values)})


@given(WAKE_UPS)
@settings(deadline=None)
def test_both_views_of_samples_equal_an_exact_computation(wake_ups) -> None:
    latencies, missed, every = played(wake_ups, PERIOD)
    summary = summarize(recorded(latencies, missed))
    assert_exact(of(every, len(latencies), summary), every)
    assert_exact(sampled(summary), latencies)
    assert (summary.view, summary.n_due) == ("as due", len(every))
    assert (summary.missed_periods, summary.skipped_unknown) == (sum(missed), 0)


@given(WAKE_UPS)
def test_activations_come_in_the_order_they_were_due(wake_ups) -> None:
    latencies, missed, every = played(wake_ups, PERIOD)
    found = Activations(recorded(latencies, missed)).latencies()
    assert np.concatenate(list(found)).tolist() == every


@given(WAKE_UPS)
@settings(deadline=None)
def test_a_complete_histogram_gives_both_views(wake_ups) -> None:
    latencies, missed, every = played(wake_ups, PERIOD)
    cells = {latency: latencies.count(latency) for latency in latencies}
    summary = summarize(histogram(cells, period_ns=PERIOD, missed_periods=sum(missed)))
    assert_exact(of(every, len(latencies), summary), every)
    assert_exact(sampled(summary), latencies)
    assert (summary.n_due, summary.skipped_unknown) == (len(every), 0)


@given(WAKE_UPS, st.sampled_from([16, 300, 2500]))
@settings(deadline=None)
def test_wide_cells_shift_no_figure_by_more_than_their_width(wake_ups, width) -> None:
    latencies, missed, every = played(wake_ups, PERIOD)
    cells: dict[int, int] = {}
    for latency in latencies:
        lowest = latency // width * width
        cells[lowest] = cells.get(lowest, 0) + 1
    summary = summarize(histogram(cells, width, period_ns=PERIOD, missed_periods=sum(missed)))
    assert (summary.n_due, summary.skipped_unknown) == (len(every), 0)
    assert abs(summary.mean_ns - sum(every) / len(every)) <= width
    ordered = sorted(every)
    for p, found in summary.quantiles_ns.items():
        if carries_quantile(p, len(every)):
            exact = ordered[quantile_rank(p, len(every)) - 1]
            assert abs(found - exact) <= width


def stalls(rng: np.random.Generator, n: int) -> np.ndarray:
    """Stalls of up to 40 s, and so many of some milliseconds that one pass does not do."""
    latencies = rng.normal(20_000, 3000, n).astype(np.int64)
    late = rng.integers(0, n, n // 50)
    latencies[late] = rng.integers(0, 60_000_000, len(late))
    latencies[rng.integers(0, n, 20)] = rng.integers(0, 40 * 10**9, 20)
    return np.abs(latencies)


def spread(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.integers(0, 10**9, n)


@pytest.mark.parametrize(
    ("made", "n", "period_ns"),
    [(stalls, 400_000, 500_000), (stalls, 400_000, 123_457), (spread, 40_000, 10_000_007)],
)
def test_large_sets_equal_sorting(
    made: Callable[[np.random.Generator, int], np.ndarray], n: int, period_ns: int
) -> None:
    latencies = made(np.random.default_rng(5), n)
    missed = latencies // period_ns
    skipped = np.concatenate(
        [
            late - np.arange(1, count + 1) * period_ns
            for late, count in zip(latencies, missed, strict=True)
            if count
        ]
    )
    assert len(skipped) > 1_000_000  # more than is kept of what lies outside the window
    every = np.sort(np.concatenate([latencies, skipped]))
    sample_set = recorded(latencies, missed, period_ns=period_ns)
    summary = summarize(sample_set)
    assert summary.n_due == len(every)
    for p in QUANTILES:
        assert summary.quantiles_ns[p] == every[quantile_rank(p, len(every)) - 1], p
        rank = quantile_rank(p, n)
        assert summary.sampled.quantiles_ns[p] == (
            np.sort(latencies)[rank - 1] if carries_quantile(p, n) else None
        )
    assert close(summary.mean_ns, Fraction(int(every.sum()), len(every)))
    assert summary.stdev_ns == pytest.approx(float(every.std(ddof=1)), rel=1e-9)
    assert (summary.min_ns, summary.max_ns) == (every[0], every[-1])
    activations = Activations(sample_set)
    assert np.array_equal(np.sort(np.concatenate(list(activations.latencies()))), every)
    assert activations.unknown == 0


def test_a_stall_of_half_a_second_is_in_the_quantiles() -> None:
    latencies = [10_000] * 9000 + [500_000_000] + [10_000] * 499
    missed = [0] * 9000 + [500] + [0] * 499
    summary = summarize(recorded(latencies, missed, period_ns=1_000_000))
    assert (summary.n, summary.n_due) == (9500, 10_000)
    assert summary.sampled.quantiles_ns["0.99"] == 10_000
    # the hundred latest of ten thousand waited for 401 to 500 ms
    assert summary.quantiles_ns["0.99"] == 400_000_000
    assert summary.quantiles_ns["0.9"] == 10_000
    assert summary.mean_ns == (9499 * 10_000 + sum(range(501)) * 1_000_000) / 10_000


def test_a_source_that_does_not_count_has_figures_of_samples_only() -> None:
    summary = summarize(samples([1, 2, 3], period_ns=PERIOD))
    assert (summary.view, summary.n_due) == ("of samples only", None)
    assert summary.quantiles_ns == summary.sampled.quantiles_ns
    counted = summarize(samples([1, 2, 3], missed_periods=0))
    assert (counted.view, counted.n_due) == ("as due", 3)


def test_skipped_ones_of_unknown_latency_count_as_the_latest() -> None:
    for sample_set in (
        recorded([9] * 100, [1] * 100),  # nothing was due while they waited
        recorded([9] * 100, [1] * 100, period_ns=None),
        samples([9] * 100, missed_periods=100),
        histogram({9: 100}, missed_periods=100),
        histogram({9: 100}, missed_periods=100, period_ns=PERIOD),
    ):
        summary = summarize(sample_set)
        assert (summary.n, summary.n_due, summary.skipped_unknown) == (100, 200, 100)
        assert summary.quantiles_ns["0.5"] == 9
        assert summary.quantiles_ns["0.9"] is summary.quantiles_ns["0.99"] is None
        assert summary.mean_ns is summary.stdev_ns is summary.jitter_ns is None
        assert summary.sampled.quantiles_ns["0.99"] == 9
        assert any("later than all others" in note for note in summary.notes)


def test_more_counted_than_the_column_tells_are_unknown() -> None:
    summary = summarize(recorded([2500] * 10, [2] * 10, missed_periods=25))
    assert (summary.missed_periods, summary.n_due, summary.skipped_unknown) == (25, 35, 5)


def test_printed_figures_are_those_of_the_samples() -> None:
    reported = Reported(n=10, mean_ns=5.0, min_ns=1, max_ns=9)
    summary = summarize(SampleSet.from_columns(metadata(missed_periods=4, reported=reported)))
    assert (summary.n, summary.n_due, summary.mean_ns) == (10, 14, None)
    assert (summary.sampled.mean_ns, summary.max_ns) == (5.0, 9)
    none = summarize(SampleSet.from_columns(metadata(missed_periods=0, reported=reported)))
    assert (none.mean_ns, none.n_due, none.view) == (5.0, 10, "as due")


def test_quantiles_need_one_activation_beyond_them() -> None:
    for p in QUANTILES:
        enough = round(1 / (1 - Fraction(p)))
        assert carries_quantile(p, enough)
        assert not carries_quantile(p, enough - 1)
    quantiles = summarize(samples([1] * 999)).quantiles_ns
    assert (quantiles["0.99"], quantiles["0.999"]) == (1, None)


def test_json_has_both_views() -> None:
    text = summarize(recorded([2500, 7], [2, 0])).to_json()
    assert text["quantiles_ns"]["0.5"] == 500
    assert text["sampled_quantiles_ns"]["0.5"] == 7
    assert (text["view"], text["n"], text["n_due"]) == ("as due", 2, 4)
    assert (text["mean_ns"], text["sampled_mean_ns"]) == ((2500 + 1500 + 500 + 7) / 4, 1253.5)
    assert "sampled" not in text


@pytest.mark.parametrize(
    ("latency_ns", "missed"), [(2**62, 2**60), (2**62, 2**31), (5, -1), (5, 2**62)]
)
def test_counts_that_no_recording_has_are_refused_at_once(latency_ns, missed) -> None:
    hostile = recorded([latency_ns] * 4, [missed] * 4, period_ns=1)
    started = time.monotonic()
    for use in (summarize, lambda each: list(Activations(each).latencies())):
        with pytest.raises(BadInput, match="missed"):
            use(hostile)
    assert time.monotonic() - started < 30


def test_hostile_histograms_take_bounded_memory() -> None:
    cells = {2**61 + i: 2**40 for i in range(1000)}
    summary = summarize(histogram(cells, period_ns=1, missed_periods=2**61))
    assert summary.n_due == 1000 * 2**40 + 2**61
    assert summary.quantiles_ns["0.5"] is not None
    with pytest.raises(BadInput, match="64 bits"):
        summarize(histogram(cells, period_ns=1, missed_periods=2**62 - 1))


def test_a_huge_count_without_lateness_is_unknown_and_takes_no_time() -> None:
    summary = summarize(recorded([9], [10**18]))
    assert (summary.n_due, summary.skipped_unknown) == (10**18 + 1, 10**18)
    assert set(summary.quantiles_ns.values()) == {None}
