"""Tails: known ones are recovered, and what must not be extrapolated is refused with the reason."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from made_sets import histogram, metadata
from scipy.stats import genpareto

from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.statistics import TailFit, TailRefusal, fit_tail, pareto

Make = Callable[[np.random.Generator, int], np.ndarray]
N = 50_000


def sample_set(values: np.ndarray, **changes: object) -> SampleSet:
    return SampleSet.from_columns(metadata(**changes), latency_ns=values.astype(np.int64))


def generalised_pareto(shape: float) -> Make:
    return lambda rng, n: genpareto.rvs(shape, 10_000, 5000, n, random_state=rng)


def two_causes(rng: np.random.Generator, n: int) -> np.ndarray:
    """One wake-up in 5000 meets something that takes 0.2 ms."""
    values = 10_000 + rng.exponential(2000, n)
    rare = rng.random(n) < 2e-4
    values[rare] = rng.normal(200_000, 10_000, rare.sum())
    return values


def rising(rng: np.random.Generator, n: int) -> np.ndarray:
    """Latencies that grow by 20 % over the run."""
    return 10_000 + rng.exponential(5000, n) * np.linspace(1, 1.2, n)


def outcomes(make: Make, repetitions: int = 5) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in range(repetitions):
        tail = fit_tail(sample_set(make(np.random.default_rng(seed), N)))
        found["fit" if isinstance(tail, TailFit) else tail.reason.split(":")[0]] += 1
    return found


@pytest.mark.parametrize(
    "make",
    [
        generalised_pareto(-0.2),
        generalised_pareto(0.2),
        lambda rng, n: rng.lognormal(9, 0.3, n),
        lambda rng, n: (10_000 + rng.exponential(5000, n)) // 1000 * 1000,  # a 1 us clock
    ],
)
def test_sound_tails_are_seldom_refused(make: Make) -> None:
    assert outcomes(make)["fit"] >= 4  # of 5; about 19 of 20 are accepted


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (two_causes, "goodness of fit"),
        (rising, "stationary rate"),
    ],
)
def test_what_breaks_a_condition_is_refused_for_it(make: Make, reason: str) -> None:
    found = outcomes(make)
    assert found["fit"] == 0  # of 5
    assert found[reason] >= 4


def test_values_too_coarse_for_their_tail_are_refused() -> None:
    coarse = (10_000 + np.random.default_rng(1).exponential(5000, N)) // 5000 * 5000
    tail = fit_tail(sample_set(coarse))
    assert isinstance(tail, TailRefusal)
    assert tail.reason.startswith("fine enough values: they step by 5000 ns")


@pytest.mark.parametrize(
    "values", [[7], list(range(200)), [5] * 100_000, [5] * 100_000 + list(range(6, 50))]
)
def test_too_few_exceedances_are_refused(values: list[int]) -> None:
    tail = fit_tail(sample_set(np.array(values)))
    assert isinstance(tail, TailRefusal)
    assert "enough" in tail.reason


def test_sets_without_order_are_refused() -> None:
    tail = fit_tail(histogram({5: 10**6}))
    assert isinstance(tail, TailRefusal)
    assert "only a histogram" in tail.reason
    with pytest.raises(BadInput, match="holds no samples"):
        fit_tail(sample_set(np.array([])))


def test_a_limit_beyond_the_end_of_a_short_tail_has_no_probability() -> None:
    tail = fit_tail(sample_set(generalised_pareto(-0.3)(np.random.default_rng(5), N)))
    assert isinstance(tail, TailFit)
    assert tail.end_ns == pytest.approx(10_000 + 5000 / 0.3, rel=0.05)
    far = tail.exceedance(1e6)
    assert (far.value, far.lower) == (0, 0)
    assert far.upper < 1e-12
    with pytest.raises(BadInput, match="below the threshold"):
        tail.exceedance(tail.threshold_ns)
    with pytest.raises(BadInput, match="below the threshold"):
        tail.return_level(2)


def test_the_same_samples_always_give_the_same_fit() -> None:
    values = generalised_pareto(0.2)(np.random.default_rng(3), N)
    first, second = fit_tail(sample_set(values)), fit_tail(sample_set(values))
    assert isinstance(first, TailFit)
    assert isinstance(second, TailFit)
    assert first.fitted == second.fitted


@pytest.mark.parametrize("shape", [-0.4, -0.1, 0.0, 0.3, 0.8])
def test_maximum_likelihood_equals_scipy(shape: float) -> None:
    excesses = genpareto.rvs(shape, 0, 1000, 800, random_state=4)
    fitted = pareto.fit(excesses)
    their_shape, _, their_scale = genpareto.fit(excesses, floc=0)
    theirs = genpareto.logpdf(excesses, their_shape, 0, their_scale).sum()
    assert fitted.log_likelihood >= theirs - 1e-3
    assert fitted.shape == pytest.approx(their_shape, abs=2e-3)
    assert fitted.scale == pytest.approx(their_scale, rel=2e-3)
    ours = genpareto.logpdf(excesses, fitted.shape, 0, fitted.scale).sum()
    assert fitted.log_likelihood == pytest.approx(ours, rel=1e-9)
    survival = genpareto.logsf(excesses, fitted.shape, 0, fitted.scale)
    row = np.array([fitted.shape]), np.array([fitted.scale])
    assert pareto.log_survival(excesses[np.newaxis, :], *row)[0] == pytest.approx(survival)


@pytest.mark.parametrize("missed", [-1, 2**62])
def test_counts_of_skipped_activations_that_cannot_be_right_are_refused(missed: int) -> None:
    values = np.arange(1000)
    counts = np.where(values == 500, missed, 0)
    damaged = SampleSet.from_columns(metadata(period_ns=1000), latency_ns=values, missed=counts)
    with pytest.raises(BadInput, match="column missed"):
        fit_tail(damaged)
