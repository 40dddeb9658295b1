"""Intervals of differences and ratios against other implementations and their own definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from latenz.compare.estimate import (
    Contrast,
    Mean,
    fewest_repetitions,
    of_pairs,
    of_repetitions,
)

VALUES = st.lists(st.integers(100, 10**6), min_size=3, max_size=8)


@pytest.mark.filterwarnings("ignore:Precision loss")  # scipy, of equal values
@settings(deadline=None)
@given(VALUES, VALUES, st.sampled_from([0.8, 0.95, 0.99]))
def test_differences_of_repetitions_are_welchs(a: list, b: list, confidence: float) -> None:
    """With the degrees of freedom of the shorter side: never narrower than by scipy's."""
    found = of_repetitions(a, b).difference(confidence)
    if found is None:
        assert 2.0 ** (1 - len(a) - len(b)) > 1 - confidence
        return
    error = np.hypot(stats.sem(a), stats.sem(b))
    reach = stats.t.ppf((1 + confidence) / 2, min(len(a), len(b)) - 1) * error
    middle = np.mean(b) - np.mean(a)
    assert found == (pytest.approx(middle - reach), pytest.approx(middle + reach))
    if error > 1:
        peer = stats.ttest_ind(b, a, equal_var=False).confidence_interval(confidence)
        assert found[0] <= peer.low + 1e-6 * error
        assert found[1] >= peer.high - 1e-6 * error


def test_ratios_are_fiellers() -> None:
    """All r for which b - r a is not significantly different from zero, found by search."""
    random = np.random.default_rng(3)
    a, b = random.normal(100, 4, 7), random.normal(120, 4, 7)
    covariance = np.cov(a, b) / 7
    for contrast, shared in (
        (of_pairs(a.tolist(), b.tolist()), covariance[0, 1]),
        (of_repetitions(a.tolist(), b.tolist()), 0.0),
    ):
        factor = contrast.a.factor(0.95)

        def excess(r: float, shared: float = shared, factor: float = factor) -> float:
            error = covariance[1, 1] - 2 * r * shared + r * r * covariance[0, 0]
            return (b.mean() - r * a.mean()) ** 2 - factor**2 * error

        middle = b.mean() / a.mean()
        ends = optimize.brentq(excess, 0.5, middle), optimize.brentq(excess, middle, 3)
        assert contrast.ratio(0.95) == (pytest.approx(ends[0]), pytest.approx(ends[1]))


@settings(deadline=None, max_examples=300)
@given(
    *(st.floats(1, 1e6) for _ in range(2)),
    *(st.floats(1e-6, 1.5) for _ in range(4)),
    st.sampled_from([0.8, 0.95]),
)
def test_ratio_and_difference_never_contradict(
    a: float, b: float, a_down: float, a_up: float, b_down: float, b_up: float, confidence: float
) -> None:
    class Uneven:
        def __init__(self, value: float, low: float, high: float) -> None:
            self.value = value
            self._ends = low, high

        def ends(self, confidence: float) -> tuple[float, float]:
            return self._ends

    contrast = Contrast(
        Uneven(a, a * (1 - a_down), a * (1 + a_up)), Uneven(b, b * (1 - b_down), b * (1 + b_up))
    )
    low, high = contrast.difference(confidence)
    assert low < b - a < high
    ratio = contrast.ratio(confidence)
    assert (ratio is None) == (a_down >= 1)
    if ratio is not None and min(abs(low), abs(high)) > 1e-6 * a:
        assert 0 <= ratio[0] <= b / a * (1 + 1e-9)
        assert ratio[1] >= b / a * (1 - 1e-9)
        assert (ratio[0] > 1) == (low > 0)
        assert (ratio[1] < 1) == (high < 0)


def test_an_interval_ends_at_its_own_error_probability() -> None:
    contrast = Contrast(Mean(0, 1, 7), Mean(2.5, 1, 7))
    p_value = contrast.p_value()
    low, _ = contrast.difference(1 - p_value)
    assert low == pytest.approx(0, abs=1e-6)
    assert Contrast(Mean(0, 1, 7), Mean(0, 1, 7)).p_value() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize(
    ("error", "paired", "needed"),
    [(0.05, False, 3), (0.05, True, 6), (0.01, False, 4), (0.001, False, 6), (0.001, True, 11)],
)
def test_fewest_repetitions_could_all_lie_apart_by_chance(
    error: float, paired: bool, needed: int
) -> None:
    assert fewest_repetitions(error, paired) == needed
    signs = 2.0 ** (1 - needed * (1 if paired else 2))
    assert signs <= error
