"""Learning against a search through all windows, and the laws of what is learned."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Times, least_spans

from latenz import _core
from latenz.analysis.learn import PERCENTS, learn
from latenz.errors import BadInput

GAPS = st.lists(st.integers(0, 30) | st.integers(0, 10**12), min_size=1, max_size=60)


def at_times(gaps: list[int]) -> Times:
    return np.cumsum([0, *gaps]).astype(np.int64)


def learned_of(times: Times | list[int], length: int, fraction: object = 1, **more: object):
    return learn({"irq": times}, length, fraction, **more).of("irq")


@given(GAPS, st.integers(1, 64), st.fractions(0, 1))
def test_observed_are_the_least_spans_of_the_first_part(
    gaps: list[int], length: int, fraction: Fraction
) -> None:
    times = at_times(gaps)
    part = times[: int(len(times) * fraction)]
    if len(part) < 2:
        with pytest.raises(BadInput):
            learned_of(times, length, fraction or Fraction(1, 1000))
        return
    source = learned_of(times, length, fraction)
    assert source.observed_ns == source.distances_ns == least_spans(part, length)
    assert (source.activations, source.learned_from) == (len(times), len(part))


@given(GAPS)
def test_observed_are_super_additive(gaps: list[int]) -> None:
    observed = learned_of(at_times(gaps), 64).observed_ns
    assert list(observed) == _core.DistanceVector(observed).closed()
    for one, first in enumerate(observed, 1):
        for other, second in enumerate(observed[: len(observed) - one], 1):
            assert observed[one + other - 1] >= first + second


@given(GAPS, st.integers(1, 10), st.sampled_from(["0.1", "0.5", "0.9", "1"]))
def test_convergence_and_hold_out_are_those_of_a_search(
    gaps: list[int], length: int, fraction: str
) -> None:
    times = at_times(gaps)
    part = int(len(times) * Fraction(fraction))
    if part < 2:
        return
    source = learned_of(times, length, fraction, allow="0.5")
    for percent, step in zip(PERCENTS, source.convergence, strict=True):
        seen = times[: len(times) * percent // 100]
        assert (step.percent, step.activations) == (percent, len(seen))
        assert step.observed_ns == least_spans(seen, length)
    assert all(
        after <= before
        for one, other in pairwise(source.convergence)
        for before, after in zip(one.observed_ns, other.observed_ns, strict=False)
    )
    later = times[part:].tolist()
    closer = sum(
        any(
            at - later[i - back] < distance
            for back, distance in enumerate(source.observed_ns, 1)
            if i >= back
        )
        for i, at in enumerate(later)
    )
    accepted: list[int] = []
    for at in later:
        keeps = all(
            at - accepted[-back] >= distance
            for back, distance in enumerate(source.distances_ns, 1)
            if len(accepted) >= back
        )
        accepted += [at] if keeps else []
    assert source.hold_out.activations == len(later)
    assert source.hold_out.closer_than_observed == closer
    assert source.hold_out.denied == len(later) - len(accepted)


@given(GAPS, st.integers(1, 64))
def test_a_monitor_denies_nothing_of_what_it_was_learned_from(gaps: list[int], length: int) -> None:
    times = at_times(gaps)
    monitor = _core.DistanceMonitor(learned_of(times, length).distances_ns)
    assert all(monitor.accept(at) for at in times.tolist())


def test_nothing_is_measured_against_time_zero() -> None:
    """As printed, Algorithm 1 compares the first events with a buffer of zeros."""
    times = [100, 4800, 10_000, 15_100, 20_200, 25_300]
    source = learned_of(times, 5)
    assert source.observed_ns == (4700, 9900, 15_000, 20_100, 25_200)
    buffer, printed = [0] * 5, [2**63 - 1] * 5
    for time in times:
        printed = [min(each, time - old) for each, old in zip(printed, buffer, strict=True)]
        buffer = [time, *buffer[:-1]]
    assert printed == [100] * 5


@pytest.mark.parametrize(
    ("fraction", "n", "learned_from"),
    [
        ("0.3", 10, 3),
        (0.3, 10, 3),
        ("0.1", 29, 2),
        (Fraction(2, 3), 9, 6),
        (0.7, 10, 7),
        ("1", 4, 4),
    ],
)
def test_the_learning_part_is_counted_exactly(fraction: object, n: int, learned_from: int) -> None:
    """0.3 times 10 is 3, though the nearest binary number to 0.3 is below it."""
    assert learned_of(np.arange(n) * 5, 1, fraction).learned_from == learned_from


@given(GAPS, st.integers(1, 8), st.decimals("0.001", 1, places=3))
def test_allowed_load_scales_distances_exactly(gaps: list[int], length: int, share: object) -> None:
    source = learned_of(at_times(gaps), length, allow=share)
    for observed, distance in zip(source.observed_ns, source.distances_ns, strict=True):
        assert distance >= Fraction(str(share)) ** -1 * observed > distance - 1


@pytest.mark.parametrize(("share", "factor"), [("1", 1), ("0.25", 4), ("0.125", 8), ("0.0625", 16)])
def test_shares_of_the_publication(share: str, factor: int) -> None:
    times = np.cumsum([0, 1300, 869_700, 10_001])
    assert learned_of(times, 2, allow=share).observed_ns == (1300, 871_000)
    assert learned_of(times, 2, allow=share).distances_ns == (factor * 1300, factor * 871_000)


@given(GAPS, st.lists(st.integers(0, 10**6), min_size=1, max_size=6))
def test_distances_are_raised_to_those_allowed(gaps: list[int], allowed: list[int]) -> None:
    allowed.sort()
    times = at_times(gaps)
    source = learned_of(times, 8, at_least=allowed)
    assert list(source.distances_ns) == sorted(source.distances_ns)
    for observed, distance, least in zip(
        source.observed_ns, source.distances_ns, allowed, strict=False
    ):
        assert distance == max(observed, least)
    literal = [max(pair) for pair in zip(source.observed_ns, allowed, strict=False)]
    literal += source.observed_ns[len(literal) :]
    one, other = _core.DistanceMonitor(literal), _core.DistanceMonitor(source.distances_ns)
    if len(allowed) >= len(source.observed_ns):
        assert literal == list(source.distances_ns)
    assert [one.accept(at) for at in times.tolist()] == [other.accept(at) for at in times.tolist()]


def test_a_short_part_shows_a_short_vector_and_says_so() -> None:
    learned = learn({"many": np.arange(100) * 7, "few": [3, 9, 11], "one": [5]}, 5, 1)
    assert learned.of("few").observed_ns == (2, 8)
    assert learned.of("one").observed_ns == learned.of("one").distances_ns == ()
    assert learned.of("one").hold_out.denied == 0
    assert "never a bound" in learned.warnings[0]
    assert [each.split(":")[0] for each in learned.warnings[1:]] == ["few", "one"]


def test_distances_of_zero_are_told() -> None:
    learned = learn({"burst": [5, 5, 5, 9]}, 2, 1)
    assert learned.of("burst").observed_ns == (0, 0)
    assert "no monitor can have" in learned.warnings[1]
    assert learn({"burst": [5, 5, 5, 9]}, 2, 1, at_least=[0, 4]).of("burst").distances_ns == (0, 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"length": 0}, "--length: 0 is not a length"),
        ({"length": 65}, "--length: 65 is not a length"),
        ({"fraction": "0"}, "--fraction: '0' is not a share"),
        ({"fraction": 1.5}, "--fraction: 1.5 is not a share"),
        ({"fraction": "1e-999999999"}, "--fraction: '1e-999999999' is not a share"),
        ({"fraction": float("nan")}, "--fraction: nan is not a share"),
        ({"allow": "-1"}, "--allow: '-1' is not a share"),
        ({"allow": "a"}, "--allow: 'a' is not a share"),
        ({"allow": "1e-80"}, "does not fit in 64 bits"),
        ({"allow": 1, "at_least": [1]}, "exclude each other"),
        ({"at_least": []}, "0 distances for a vector of 2"),
        ({"at_least": [1, 2, 3]}, "3 distances for a vector of 2"),
        ({"at_least": [2, 1]}, "1 ns follows 2 ns"),
        ({"at_least": [-1]}, "-1 ns follows 0 ns"),
        ({"fraction": "0.2"}, "no source has two activations"),
        ({"times": [1, 3, 2]}, "source irq: activation 2: 2 ns comes after 3 ns"),
        ({"times": [-1, 3]}, "source irq: a time is negative"),
        ({"times": np.array([2**63], np.uint64)}, "does not fit in 64 bits"),
        ({"times": [0.5, 1]}, "no row of integers"),
        ({"times": [[1, 2]]}, "no row of integers"),
        ({"times": []}, "no source has two activations"),
    ],
)
def test_mistakes_are_one_line(arguments: dict[str, object], message: str) -> None:
    known = {"times": [1, 4, 9, 20], "length": 2, "fraction": 1, **arguments}
    with pytest.raises(BadInput) as mistake:
        learn({"irq": known.pop("times")}, **known)
    assert message in str(mistake.value)
    assert "\n" not in str(mistake.value)
