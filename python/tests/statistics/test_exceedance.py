"""Exceedance bounds and sample sizes against exact binomial sums and printed tables."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latenz.errors import BadInput
from latenz.statistics import quantile_interval_ranks, sample_size_for_proportion
from latenz.statistics.exceedance import exceedance_upper

CONFIDENCES = st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999])


def binomial_cdf(k: int, n: int, p: Fraction) -> Fraction:
    return sum((math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1)), Fraction(0))


@given(st.integers(1, 60), st.data(), CONFIDENCES)
@settings(max_examples=80, deadline=None)
def test_the_bound_leaves_exactly_the_error_it_allows(n, data, confidence) -> None:
    k = data.draw(st.integers(0, n))
    upper = exceedance_upper(k, n, confidence)
    if k == n:
        assert upper == 1
    else:
        left = binomial_cdf(k, n, Fraction(upper))
        assert float(left) == pytest.approx(1 - confidence, rel=1e-9)


def test_nothing_exceeded_is_near_the_rule_of_three() -> None:
    assert exceedance_upper(0, 10_000) == pytest.approx(3 / 10_000, rel=2e-3)
    assert exceedance_upper(0, 0) == 1.0
    assert exceedance_upper(0, 10**18) == pytest.approx(2.995732273553991e-18, rel=1e-12)


@pytest.mark.parametrize(("exceeding", "trials"), [(-1, 5), (6, 5), (1, 0)])
def test_counts_that_do_not_fit_are_refused(exceeding: int, trials: int) -> None:
    with pytest.raises(BadInput):
        exceedance_upper(exceeding, trials)


def test_equation_3_gives_the_publications_385() -> None:
    assert sample_size_for_proportion() == 385
    assert sample_size_for_proportion(0.99, 0.01) == 16_588  # 16587.24, z = 2.5758293


def test_impossible_sample_sizes_are_refused() -> None:
    with pytest.raises(BadInput):
        sample_size_for_proportion(error=0)


@given(st.integers(1, 80), st.sampled_from(["0.1", "0.5", "0.9", "0.99"]), CONFIDENCES)
@settings(max_examples=80, deadline=None)
def test_quantile_intervals_cover_and_are_tight(n, probability, confidence) -> None:
    lower, upper = quantile_interval_ranks(probability, n, confidence)
    p, error = Fraction(probability), (1 - Fraction(str(confidence))) / 2
    slack = Fraction(1, 10**12)  # the ranks come from floating point
    if lower is not None:
        assert binomial_cdf(lower - 1, n, p) <= error + slack
    if (lower or 0) < n:
        assert binomial_cdf(lower or 0, n, p) >= error - slack
    if upper is not None:
        assert 1 - binomial_cdf(upper - 1, n, p) <= error + slack
    last = (upper or n + 1) - 1
    if last >= 1:
        assert 1 - binomial_cdf(last - 1, n, p) >= error - slack
