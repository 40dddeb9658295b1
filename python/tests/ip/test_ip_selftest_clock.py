"""The clock that a board says it has, against one that is known."""

import pytest

from latenz.ip.instance import open_instances
from latenz.ip.selftest import clock_check
from latenz.ip.simulated import simulated_board
from latenz.ip.target import open_target

CYCLE_NS = 10
"""A cycle of a simulated board, whatever it says of its clock."""
WATCHED = 40_000
"""Cycles: the readings around them are some thirty, or 750 ppm."""


def checked(says_hz, drift_ppm=0, **generics):
    """Check T1's clock by a clock that is T2's, read as one reads a wall clock."""
    generics |= {"identification_g": True, "clock_frequency_hz_g": says_hz}
    with simulated_board("latency_bench", generics) as path, open_target(f"unix:{path}") as link:
        first, second = open_instances(link)

        def now_ns():
            low = second.register("time_low")
            ticks = second.register("time_high") << 32 | low
            return ticks * CYCLE_NS * (1_000_000 + drift_ppm) // 1_000_000

        return clock_check(first, now_ns, WATCHED)


@pytest.mark.boots
def test_the_clock_that_is_there_is_right():
    found = checked(100_000_000, time_stamp_g=True)
    assert found.result == "right", found


@pytest.mark.boots
@pytest.mark.parametrize("says_hz", [99_000_000, 101_000_000])
def test_a_clock_that_is_not_there_is_wrong(says_hz):
    found = checked(says_hz, time_stamp_g=True)
    assert found.result == "wrong", found
    assert found.found.startswith(f"{says_hz} Hz are said, 99")


@pytest.mark.boots
def test_crystals_may_differ():
    assert checked(100_000_000, drift_ppm=900, time_stamp_g=True).result == "right"
    assert checked(100_000_000, drift_ppm=2_000, time_stamp_g=True).result == "wrong"


@pytest.mark.boots
def test_without_time_stamps_nobody_knows():
    found = checked(100_000_000)
    assert found.result == "not there"
    assert "time_stamp_g" in found.found
