import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest, norm

from latenz.model import Metadata, SampleSet, TimeBase
from latenz.report.distribution import (
    CellCounter,
    Distribution,
    exceedance,
    histogram_bins,
    histogram_distribution,
    violin,
)

ANY = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-3000, 3000),
    st.builds(lambda bits, off: 2**bits + off, st.integers(0, 62), st.integers(-3, 3)),
)
LATENCIES = arrays(np.int64, st.integers(1, 200), elements=ANY)


def counted(latency_ns: np.ndarray, resolution_ns: int = 1) -> Distribution:
    counter = CellCounter()
    for part in np.array_split(latency_ns, 3):
        counter.add(part)
    return counter.distribution(resolution_ns)


@given(LATENCIES)
@settings(max_examples=300, deadline=None)
def test_every_value_is_in_the_cell_that_counts_it(latency_ns: np.ndarray) -> None:
    found = counted(latency_ns)
    assert found.n == len(latency_ns)
    assert found.max_ns == latency_ns.max()
    exact = [int(value) for value in latency_ns if value > -(2**62) and value < 2**62]
    cells = [
        (int(low), int(up), int(count))
        for low, up, count in zip(found.lowest, found.upper, found.count, strict=True)
        if abs(int(low)) < 2**62
    ]
    assert all(second[0] >= first[1] for first, second in itertools.pairwise(cells))
    for low, up, count in cells:
        assert count == sum(low <= value < up for value in exact)
        assert up - low <= max(1, max(abs(low), abs(up)) / 1000)


@given(LATENCIES)
@settings(max_examples=200, deadline=None)
def test_the_exceedance_curve_counts_as_brute_force_does(latency_ns: np.ndarray) -> None:
    latency_ns = latency_ns[np.abs(latency_ns // 4) < 2**60]
    if not len(latency_ns):
        return
    curve = exceedance(counted(latency_ns), 1000, 0.95)
    assert curve.n == len(latency_ns)
    for x, k in zip(curve.latency_ns, curve.at_or_above, strict=True):
        assert k <= (latency_ns >= x).sum()
    inner = curve.latency_ns[:-1]
    for x, k in zip(inner, curve.at_or_above, strict=False):
        assert k == (latency_ns >= x).sum()
    assert curve.latency_ns[-1] == latency_ns.max() or curve.at_or_above[-1] >= 1


def test_the_band_is_the_exact_interval_of_another_implementation() -> None:
    latency_ns = np.random.default_rng(3).lognormal(9, 0.4, 3_000).astype(np.int64)
    curve = exceedance(counted(latency_ns), 40, 0.95)
    for k, lower, upper in zip(curve.at_or_above, curve.lower, curve.upper, strict=True):
        reference = binomtest(int(k), curve.n).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose([lower, upper], reference, rtol=1e-9)


def test_thinning_keeps_the_tail_and_the_whole() -> None:
    latency_ns = np.random.default_rng(4).pareto(1.5, 200_000) * 10_000 + 2_000
    found = counted(latency_ns.astype(np.int64))
    curve = exceedance(found, 120, 0.95)
    assert len(curve.latency_ns) <= 122
    assert curve.at_or_above[0] == 200_000
    assert curve.latency_ns[-1] == int(latency_ns.max())
    late = np.sort(latency_ns.astype(np.int64))[-10:]
    assert all(np.abs(curve.latency_ns / value - 1).min() < 1e-3 for value in late)


@given(arrays(np.int64, st.integers(1, 300), elements=st.integers(1, 10**9)))
@settings(max_examples=200, deadline=None)
def test_histogram_bars_lose_and_split_nothing(latency_ns: np.ndarray) -> None:
    bins = histogram_bins(counted(latency_ns))
    assert bins.count.sum() == len(latency_ns)
    assert (bins.right > bins.left).all()
    assert (bins.left[1:] >= bins.right[:-1]).all()
    for left, right, count in zip(bins.left, bins.right, bins.count, strict=True):
        assert count == ((latency_ns >= left) & (latency_ns < right)).sum()


def test_values_at_or_below_zero_are_named_not_lost() -> None:
    found = counted(np.array([-5, 0, 0, 7, 9]))
    assert found.not_drawable == 3
    assert histogram_bins(found).count.sum() == 2
    assert found.n == 5
    microseconds = counted(np.array([0, 0, 1000]), resolution_ns=1000)
    assert microseconds.not_drawable == 0
    assert histogram_bins(microseconds).count.tolist() == [2, 1]


def test_only_nonpositive_values_draw_nothing_and_do_not_fail() -> None:
    found = counted(np.array([-5, 0]))
    assert len(histogram_bins(found).count) == 0
    assert len(violin(found).width) == 0


def test_a_violin_has_the_shape_of_the_density_it_was_drawn_from() -> None:
    sigma = 0.15
    draw = np.random.default_rng(8).normal(4, sigma, 200_000)
    outline = violin(counted((10**draw).astype(np.int64)))
    expected = norm.pdf(np.log10(outline.latency_ns), 4, sigma)
    np.testing.assert_allclose(outline.width, expected / expected.max(), atol=0.04)


def test_a_violin_of_one_value_stands_there() -> None:
    outline = violin(counted(np.full(50, 1234)))
    assert outline.width.max() == 1
    assert 1234 <= outline.latency_ns[0] < outline.latency_ns[-1] <= 1235


def test_a_histogram_keeps_what_lies_beyond_its_range() -> None:
    metadata = Metadata(
        name="h",
        time_base=TimeBase.SILICON,
        resolution_ns=1000,
        beyond_range=4,
        beyond_range_from_ns=3000,
    )
    sample_set = SampleSet.from_columns(
        metadata, latency_ns=[1000, 2000], width_ns=[1000, 1000], count=[90, 6]
    )
    found = histogram_distribution(sample_set)
    curve = exceedance(found, 100, 0.95)
    assert curve.n == 100
    assert curve.latency_ns.tolist() == [1000, 2000, 3000]
    assert curve.at_or_above.tolist() == [100, 10, 4]
