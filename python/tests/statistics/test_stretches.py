"""Means of long stretches: against brute force, other implementations and simulated truth."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.signal import lfilter

from latenz.model import Metadata, SampleSet, TimeBase
from latenz.statistics import quantile_intervals
from latenz.statistics.stretches import CELLS, DEGREES, LONG, Share, Spread, cut

pytestmark = pytest.mark.proofs


@settings(max_examples=60, deadline=None)
@given(st.integers(CELLS, 700), st.integers(1, 9), st.integers(0, 2**32), st.integers(1, 40))
def test_stretches_are_counted_as_one_by_one(n: int, parts: int, seed: int, spread: int) -> None:
    random = np.random.default_rng(seed)
    values = random.integers(-spread, spread, n)
    edges = random.integers(-spread - 2, spread + 2, 7).tolist()
    pieces = np.split(values, np.sort(random.integers(0, n, parts)))
    found = cut(pieces, n, edges, centre=3)
    borders = [i * n // CELLS for i in range(CELLS + 1)]
    for cell, (begin, end) in enumerate(pairwise(borders)):
        here = values[begin:end]
        assert found.sizes[cell] == end - begin
        assert found.sums[cell] == pytest.approx((here - 3).sum())
        assert found.squares[cell] == pytest.approx(((here - 3.0) ** 2).sum())
        for edge in edges:
            counted = found.above[cell, list(found.edges).index(edge)]
            assert counted == (here > edge).sum()
    assert found.n == n


def test_few_values_cannot_be_cut() -> None:
    assert cut([np.arange(CELLS - 1)], CELLS - 1, ()) is None


def test_the_variance_of_independent_and_of_dependent_means_is_right() -> None:
    random = np.random.default_rng(1)
    for keep in (0.0, 0.9, 0.98):
        found = []
        for _ in range(200):
            noise = random.standard_normal(CELLS * 200)
            series = lfilter([1], [1, -keep], noise)
            found.append(Spread.of(series.reshape(CELLS, -1).mean(axis=1)))
        truth = 1 / (1 - keep) ** 2 / (CELLS * 200)
        assert np.mean([each.longest for each in found]) == pytest.approx(truth, rel=0.15)
        assert np.mean([each.variance for each in found]) > truth
        assert np.mean([each.settled for each in found]) > 0.9


@pytest.mark.parametrize("memory", [3, 10, 100])
def test_what_forgets_in_several_stretches_has_not_settled(memory: int) -> None:
    random = np.random.default_rng(1)
    keep = np.exp(-1 / memory)  # in stretches
    settled = [
        Spread.of(lfilter([1], [1, -keep], random.standard_normal(10 * CELLS))[-CELLS:]).settled
        for _ in range(300)
    ]
    assert np.mean(settled) < 0.05


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_the_interval_of_a_share_is_that_of_scipy(share: float, confidence: float) -> None:
    """Exact binomial, for fewer activations: as many as Student's t makes of them."""
    n = 2000
    tail = (1 - confidence) / 2
    factor = (stats.norm.ppf(tail) / stats.t.ppf(tail, DEGREES)) ** 2
    peer = stats.binomtest(round(n * share), n).proportion_ci(confidence, "exact")
    low, high = Share(share, n / factor, 10).interval(confidence)
    assert (low, high) == (pytest.approx(peer.low), pytest.approx(peer.high))


def busy_phases(random: np.random.Generator, n: int) -> np.ndarray:
    """15 us later in phases of 0.2 s, one a second on average, at 1 kHz."""
    later = np.zeros(n, np.int64)
    begin = int(random.exponential(800))
    while begin < n:
        end = begin + int(random.exponential(200)) + 1
        later[begin:end] = 15_000
        begin = end + int(random.exponential(800)) + 1
    return (later + 15_000 + random.gamma(4, 1000, n)).astype(np.int64)


def sample_set(latency_ns: np.ndarray) -> SampleSet:
    metadata = Metadata(name="x", time_base=TimeBase.SILICON, period_ns=10**6)
    return SampleSet.from_columns(metadata, latency_ns=latency_ns)


def test_quantile_intervals_hold_the_truth_of_busy_phases() -> None:
    random = np.random.default_rng(2)
    truth = np.quantile(busy_phases(random, 10**7), [0.5, 0.9, 0.99])
    runs, held, told = 60, np.zeros(3), np.zeros(3)
    for _ in range(runs):
        found = quantile_intervals(sample_set(busy_phases(random, 120_000)), ["0.5", "0.9", "0.99"])
        for place, interval in enumerate(found.values()):
            if interval.lower_ns is not None and interval.upper_ns is not None:
                told[place] += 1
                held[place] += interval.lower_ns <= truth[place] <= interval.upper_ns
    assert all(told >= 0.8 * runs)
    assert all(held >= 0.9 * told), held / told


def test_quantiles_of_runs_that_cannot_tell_have_no_interval() -> None:
    random = np.random.default_rng(2)
    steady = np.sort(random.gamma(4, 1000, 120_000)).astype(np.int64)  # it only ever rises
    for values in (steady, random.permutation(steady)[:59_999], steady[: CELLS - 1]):
        for interval in quantile_intervals(sample_set(values), ["0.5", "0.9"]).values():
            assert (interval.lower_ns, interval.upper_ns) == (None, None)
    told = quantile_intervals(sample_set(random.permutation(steady)), ["0.5", "0.99999"])
    assert told["0.5"].lower_ns < np.median(steady) < told["0.5"].upper_ns
    assert told["0.99999"].upper_ns is None


def test_there_are_as_many_stretches_as_batches_put_together() -> None:
    assert CELLS % (2 * LONG) == 0
