"""Bounds against pyRTA (response-time-analysis), whose theory is verified in PROSA.

The models overlap where one queue is served first in, first out: exactly on a processor of its own,
and in a TDMA slot, which pyRTA knows only as a rate and a delay, from one side.
"""

from random import Random

import pytest
from response_time_analysis import model as pyrta
from response_time_analysis.analysis import fifo

from latenz.analysis import bound
from latenz.system import Distances, Periodic, Platform, Slot, Source, System
from latenz.system.arrivals import Arrival

HORIZON_NS = 20_000


def random_queue(rng: Random) -> tuple[list[tuple[Arrival, int]], list[pyrta.Task]]:
    """Return the same arrivals and execution times for both."""
    ours: list[tuple[Arrival, int]] = []
    theirs: list[pyrta.Task] = []
    for _ in range(rng.randint(1, 4)):
        cost = rng.randint(1, 15)
        period = rng.randint(60, 400)
        jitter = rng.choice((0, 0, rng.randint(1, 900)))
        vector = sorted(rng.randint(20, 3 * period) for _ in range(rng.randint(1, 3)))
        arrival: Arrival
        if rng.random() < 0.3:
            arrival = Distances(tuple(vector))
            # an arrival curve would do; a copy, as pyRTA lengthens the list that it is given
            model = pyrta.MinimumSeparationVector(list(vector))
        else:
            arrival = Periodic(period, jitter)
            model = pyrta.PeriodicWithJitter(period, jitter)
        ours.append((arrival, cost))
        theirs.append(pyrta.Task(model, pyrta.FullyPreemptive(pyrta.WCET(cost))))
    return ours, theirs


def system_of(queue: list[tuple[Arrival, int]], slots: tuple[Slot, ...]) -> System:
    sources = tuple(
        Source(f"s{number}", slots[0].partition, 0, cost, arrival)
        for number, (arrival, cost) in enumerate(queue)
    )
    return System(Platform(), slots, sources)


@pytest.mark.parametrize("batch", range(5))
def test_a_queue_with_a_processor_of_its_own(batch: int) -> None:
    """Equal for periodic arrivals; with vectors pyRTA does not close them, so ours may be less."""
    rng = Random(f"ideal {batch}")
    equal = 0
    for _ in range(100):
        queue, tasks = random_queue(rng)
        theirs = fifo.rta(pyrta.TaskSet(tasks), pyrta.IdealProcessor(), HORIZON_NS)
        ours = bound(system_of(queue, (Slot("P", 1000),)), horizon_ns=HORIZON_NS).sources[0]
        if not theirs.bound_found():
            continue
        assert ours.wcrt_ns is not None
        if any(isinstance(arrival, Distances) for arrival, _ in queue):
            assert ours.wcrt_ns <= theirs.response_time_bound
        else:
            assert ours.wcrt_ns == theirs.response_time_bound
            assert ours.busy_window_ns == theirs.busy_window_bound
            equal += 1
    assert equal > 10


@pytest.mark.parametrize("batch", range(3))
def test_a_queue_in_a_slot_is_never_worse_than_by_rate_and_delay(batch: int) -> None:
    rng = Random(f"slot {batch}")
    compared = 0
    for _ in range(60):
        queue, tasks = random_queue(rng)
        own, foreign = rng.randint(200, 800), rng.randint(1, 400)
        supply = pyrta.RateDelayModel(own + foreign, own, foreign)
        theirs = fifo.rta(pyrta.TaskSet(tasks), supply, HORIZON_NS)
        if not theirs.bound_found():
            continue
        slots = (Slot("P", own), Slot("Q", foreign))
        ours = bound(system_of(queue, slots), horizon_ns=HORIZON_NS).sources[0]
        assert ours.wcrt_ns is not None
        assert ours.wcrt_ns <= theirs.response_time_bound, (queue, slots)
        compared += 1
    assert compared > 10
