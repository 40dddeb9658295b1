"""bench/hypervisor_day.py with some seconds instead of a day."""

import pytest
from bench_scripts import bench_script

pytestmark = pytest.mark.boots

SECOND_OF_HOUR = 1 / 3600

day = bench_script("hypervisor_day")


def test_nothing_drifts_and_no_interrupt_is_lost():
    """The script itself checks cycles, slots and every count."""
    told = day.day(20 * SECOND_OF_HOUR, seed=2)
    assert told["cycles"] == 1429
    assert told["lost"] == 0
    assert told["direct"] + told["interposed"] + told["delayed"] == told["irqs"] > 1500
    assert min(told["direct"], told["interposed"], told["delayed"], told["denied"]) > 100
    assert told["load"] == pytest.approx(0.01, rel=0.1)
