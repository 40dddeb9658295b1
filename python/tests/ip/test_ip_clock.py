from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.durations import parse_frequency
from latenz.errors import BadInput
from latenz.ip.clock import FASTEST_HZ, Clock

hertz = st.integers(1, FASTEST_HZ) | st.sampled_from([10**8, 333_333_333, 10**9, 3 * 10**8])


@given(hertz, st.lists(st.integers(0, 2**48 - 1), min_size=1, max_size=20))
def test_cycles_become_nanoseconds_as_in_exact_arithmetic(rate, cycles):
    cycles = [each % (2**63 * rate // 10**9) for each in cycles]
    exact = [Fraction(each * 10**9, rate) for each in cycles]
    clock = Clock(rate)
    assert clock.all_to_ns(np.array(cycles, dtype=np.uint64)).tolist() == [int(e) for e in exact]
    assert [clock.to_ns(each) for each in cycles] == [int(each) for each in exact]
    assert clock.is_whole == (Fraction(10**9, rate).denominator == 1)
    for cycle in cycles:  # a value v stands for [v, v + resolution)
        assert Fraction((cycle + 1) * 10**9, rate) <= clock.to_ns(cycle) + clock.resolution_ns


@given(hertz, st.integers(0, 10**12), st.integers(0, 10**7))
def test_an_alarm_is_exceeded_exactly_by_what_is_longer_than_it(rate, limit_ns, cycles):
    limit = Clock(rate).to_cycles(limit_ns)
    assert (cycles > limit) == (Fraction(cycles * 10**9, rate) > limit_ns)


def test_what_does_not_fit_in_64_bits_is_refused():
    assert Clock(1).to_ns(9_223_372_036) == 9_223_372_036 * 10**9
    with pytest.raises(BadInput, match="64 bits"):
        Clock(1).to_ns(9_223_372_037)
    with pytest.raises(BadInput, match="64 bits"):
        Clock(10**8).all_to_ns(np.array([2**64 - 1], dtype=np.uint64))


@pytest.mark.parametrize("rate", [0, -5, FASTEST_HZ + 1])
def test_no_clock_is_that_fast_or_slow(rate):
    with pytest.raises(BadInput, match="not a clock frequency"):
        Clock(rate)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("100MHz", 10**8), ("33.333333 MHz", 33_333_333), ("1 Hz", 1), ("2GHz", 2 * 10**9)],
)
def test_frequencies_are_read_exactly(text, wanted):
    assert parse_frequency(text) == wanted


@pytest.mark.parametrize("text", ["", "100", "MHz", "0 Hz", "-1 MHz", "0.5 Hz", "1e3 Hz", "1 THz"])
def test_what_is_no_frequency_is_refused(text):
    with pytest.raises(BadInput, match="not a frequency"):
        parse_frequency(text, "--clock")
