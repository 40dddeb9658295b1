"""The block bootstrap against another implementation, brute force, and simulated truth."""

import numpy as np
import pytest
from autocorrelated import latencies, sample_set
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.signal import lfilter

from latenz.compare import Settings, compare
from latenz.compare.blocks import (
    CELLS,
    _politis_white,
    block_length,
    draw_blocks,
    quantile_replicates,
)
from latenz.compare.side import Side, resample
from latenz.statistics import quantile_rank

# Circular block lengths that arch 8.0.0 (arch.bootstrap.optimal_block_length) finds for the series
# of `autoregressive(7, n, phi)`: the same rule, written by others.
ARCH = {
    (0.0, 500): 1.39,
    (0.0, 5000): 1.45,
    (0.3, 500): 5.42,
    (0.3, 5000): 15.35,
    (0.5, 500): 9.43,
    (0.5, 5000): 26.31,
    (0.7, 500): 20.49,
    (0.7, 5000): 40.69,
    (0.9, 500): 30.73,
    (0.9, 5000): 106.1,
}


def autoregressive(seed: int, n: int, phi: float) -> np.ndarray:
    return lfilter([1], [1, -phi], np.random.default_rng(seed).standard_normal(n))


@pytest.mark.parametrize(("phi", "n"), ARCH)
def test_block_length_is_that_of_another_implementation(phi: float, n: int) -> None:
    expected = ARCH[phi, n]
    assert _politis_white(autoregressive(7, n, phi)) == pytest.approx(expected, rel=0.12, abs=1.5)


def test_block_length_grows_with_dependence_and_with_the_series() -> None:
    lengths = [block_length(latencies(3, 20_000, phi)) for phi in (0.0, 0.5, 0.9, 0.99)]
    assert lengths == sorted(lengths)
    assert lengths[0] < 30 < lengths[-1]
    assert block_length(latencies(3, 2_000, 0.9)) < lengths[2]


@pytest.mark.parametrize(
    "values",
    [
        np.full(1000, 7),
        np.array([1]),
        np.array([1, 2, 3, 4, 5]),
        np.arange(5000),
        np.r_[np.full(999, 5), 2**62],
        np.tile([1, 2], 500),
    ],
)
def test_block_length_of_odd_series_is_possible(values: np.ndarray) -> None:
    assert 1 <= block_length(values.astype(np.int64)) <= len(values)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 2**32), st.integers(1, 50))
def test_replicates_are_the_statistics_of_series_of_blocks(
    n: int, length: int, seed: int, spread: int
) -> None:
    """Rebuild each replicate value by value and compute its figures plainly."""
    random = np.random.default_rng(seed)
    values = random.integers(-spread, spread, n)
    drawn = draw_blocks(n, length, 7, random)
    quantiles = {
        p: quantile_replicates(values, np.sort(values), p, drawn) for p in ("0.5", "0.9", "0.99")
    }
    sums = drawn.sums(values.astype(float))
    for row, weights in enumerate(drawn.weights.astype(int)):
        rebuilt: list[int] = []
        for start, times in enumerate(weights):
            cells = [(start + offset) % drawn.cells for offset in range(drawn.span)]
            block = [value for cell in cells for value in values[drawn.cell == cell]]
            rebuilt += block * times
        assert sums[row] == sum(rebuilt)
        for p, found in quantiles.items():
            wanted = sorted(rebuilt)[quantile_rank(p, len(rebuilt)) - 1]
            assert abs(found[row] - wanted) == 0


def test_cells_of_a_long_series_hold_all_values_in_order() -> None:
    n = 3 * CELLS + 17
    drawn = draw_blocks(n, 10, 2, np.random.default_rng(1))
    counts = np.bincount(drawn.cell)
    assert len(counts) == CELLS
    assert set(counts) == {3, 4}
    assert (np.diff(drawn.cell) >= 0).all()
    assert drawn.block_length >= 10


def test_independent_samples_get_the_interval_of_scipy() -> None:
    random = np.random.default_rng(11)
    a, b = (np.exp(random.normal(8, 0.4, 3000)).astype(np.int64) for _ in range(2))
    [pair] = compare([sample_set("a", a)], [sample_set("b", b)], Settings(replicates=4000)).pairs
    functions = {
        "mean": np.mean,
        "median": np.median,
        "stdev": lambda x, axis: np.std(x, axis=axis, ddof=1),
        "p90": lambda x, axis: np.quantile(x, 0.9, axis=axis, method="inverted_cdf"),
    }
    for name, function in functions.items():
        peer = stats.bootstrap(
            (b.astype(float), a.astype(float)),
            lambda x, y, axis, f=function: f(x, axis=axis) - f(y, axis=axis),
            n_resamples=2000,
            method="percentile",
            rng=np.random.default_rng(5),
        ).confidence_interval
        effect = pair.statistics[name]
        width = peer.high - peer.low
        assert effect.low == pytest.approx(peer.low, abs=0.15 * width), name
        assert effect.high == pytest.approx(peer.high, abs=0.15 * width), name


def covered(runs: int) -> dict[str, float]:
    """Share of pairs of series without any difference whose 95 % interval holds zero."""
    held = {"mean": 0, "median": 0, "p90": 0}
    for run in range(runs):
        replicates = []
        for side in (0, 1):
            series = latencies(1000 * side + run, 1000, 0.7)
            drawn = resample(
                Side.of(sample_set("x", series), None), 300, np.random.default_rng([run, side])
            )
            replicates.append(drawn.replicates)
        for name in held:
            low, high = np.quantile(replicates[1][name] - replicates[0][name], [0.025, 0.975])
            held[name] += int(low <= 0 <= high)
    return {name: count / runs for name, count in held.items()}


def test_intervals_cover_the_truth_of_dependent_series(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = covered(200)
    assert all(share >= 0.88 for share in blocks.values()), blocks
    monkeypatch.setattr("latenz.compare.side.block_length", lambda _values: 1)
    single = covered(100)
    assert all(share < 0.8 for share in single.values()), single
