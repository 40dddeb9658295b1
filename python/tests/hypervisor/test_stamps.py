"""How late stamps of devices can be, where the hypervisor has not to be booted for it."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from latenz.analysis import Simulator, bound
from latenz.analysis.simulate import ACTIVITIES
from latenz.hypervisor.stamps import as_stamped, shortest_distance_ns, stamps_of
from latenz.hypervisor.work import longest_work_ns
from latenz.system import (
    Device,
    Distances,
    Exponential,
    Monitor,
    Partition,
    Periodic,
    Platform,
    Slot,
    Source,
    System,
)

US, MS = 1_000, 1_000_000
PLATFORM = Platform(20 * US, 1 * US, 2 * US, 5 * US, 3 * US)
ALARM = Source("alarm", "A", 4 * US, 20 * US, Periodic(10 * MS), Monitor((9 * MS,)), interrupt=70)
OWNER = Partition("A", guest="alarm.bin", devices=(Device(0x0901_0000, 4096, (70,)),))


def beside(*sources, slots=((5 * MS, "A"), (5 * MS, "B")), platform=PLATFORM):
    return System(
        platform,
        tuple(Slot(name, length_ns) for length_ns, name in slots),
        (ALARM, *sources),
        hosted=(OWNER,),
    )


def test_a_visit_can_bring_a_slot_switch_and_all_top_handlers_at_once():
    pair = Source("pair", "B", 6 * US, 10 * US, Distances((0, 1 * MS)))
    random = Source("random", "B", 2 * US, 10 * US, Exponential(30 * MS))
    top_ns = (4 + 1) + 2 * (6 + 1) + (2 + 1)
    masking_ns = 3 * 3 * 2  # of each source two: one before and one after a slot's start
    system = beside(pair, random)
    assert longest_work_ns(system, "plain", {}) == (20 + top_ns + masking_ns) * US
    jobs_ns = 5 + (2 + 2 * 5)  # the end of one, start and end of another that finds nothing
    soon = dict.fromkeys(["alarm", "pair", "random"], 1 * MS)
    assert longest_work_ns(system, "paper", {}) == (20 + top_ns + masking_ns + jobs_ns) * US
    assert longest_work_ns(system, "carry", soon) == (20 + top_ns + masking_ns + jobs_ns) * US


def test_what_comes_while_the_hypervisor_works_counts_as_well():
    """Two of them take longer than the short slot, so that there are two switches."""
    often = Source("often", "B", 25 * US, 10 * US, Distances((40 * US, 5 * MS)))
    system = beside(often, slots=((5 * MS, "A"), (60 * US, "B")), platform=Platform(20 * US))
    assert longest_work_ns(system, "plain", {}) == (2 * 20 + 4 + 2 * 25) * US


def test_work_without_an_end_is_told_as_such():
    flood = Source("flood", "B", 25 * US, 10 * US, Periodic(20 * US))
    assert longest_work_ns(beside(flood), "plain", {}) == 2**63 - 1


def test_a_device_that_comes_while_the_one_before_is_at_work_waits_for_it():
    """The bound alone is shorter than the distance, with what the hypervisor is at it is not."""
    system = beside(platform=Platform())
    (source,) = bound(system).sources
    assert source.wcrt_ns == 5 * MS + 24 * US
    for distance_ns, waits in ((5 * MS + 28 * US, False), (5 * MS + 27 * US, True)):
        alarm = replace(ALARM, arrival=Distances((distance_ns,)), monitor=None)
        nearer = replace(system, sources=(alarm,))
        stamps = stamps_of(nearer, "plain")
        assert (stamps.late_ns["alarm"] > stamps.work_ns) == waits


@given(
    st.integers(50, 5_000), st.integers(1, 400), st.integers(0, 9_000), st.sampled_from(["A", "B"])
)
def test_how_late_stamps_are_is_right_for_the_bound_that_they_lead_to(
    period_us, bottom_us, jitter_us, partition
):
    """Stamps that lie closer lead to longer latencies, for which the next one has to wait."""
    other = Source("other", partition, 5 * US, bottom_us * US, Periodic(20 * MS, jitter_us * US))
    alarm = replace(ALARM, arrival=Periodic(period_us * US), monitor=None)
    system = replace(beside(other), sources=(alarm, other))
    stamps = stamps_of(system, "plain")
    late_ns, work_ns = stamps.late_ns["alarm"], stamps.work_ns
    found = bound(as_stamped(system, "plain"), "plain").of("alarm")
    if found.wcrt_ns is not None and work_ns + found.wcrt_ns > shortest_distance_ns(alarm.arrival):
        assert late_ns == work_ns + found.wcrt_ns
    elif found.wcrt_ns is not None:
        assert late_ns == work_ns


def test_slots_of_any_order_begin_as_often_as_they_do():
    """Against every window of a long table of starts."""
    lengths_us = [300, 700, 20, 400, 25]
    slots = tuple((length_us * US, "AB"[at % 2]) for at, length_us in enumerate(lengths_us))
    starts_us = [0]
    for cycle in range(4 * len(lengths_us)):
        starts_us.append(starts_us[-1] + lengths_us[cycle % len(lengths_us)])
    gaps_us = [after - before for before, after in pairwise(starts_us)]
    assert min(gaps_us) == 20
    for switch_us in (8, 11, 15, 19):
        most = (
            longest_work_ns(beside(slots=slots, platform=Platform(switch_us * US)), "plain", {})
            // US
            - 4
        )
        window_us = most + 4
        counts = [sum(at <= x < at + window_us for x in starts_us) for at in starts_us[:-5]]
        assert most == max(counts) * switch_us


def longest_stretch_ns(system, mode, times_us):
    """Return how long the simulated hypervisor is at work at a stretch, at most."""
    arrivals = [np.array(each, dtype=np.int64) * US for each in times_us]
    simulator = Simulator(system, mode, arrivals=arrivals, watch="segments")
    longest_ns = begin_ns = last_ns = 0
    done = False
    while not done:
        done = simulator.run()
        found = simulator.take_segments()
        for activity, start_ns, end_ns in zip(
            found.activity, found.start_ns, found.end_ns, strict=True
        ):
            if "bottom handler" in ACTIVITIES[activity]:
                continue
            begin_ns = begin_ns if start_ns == last_ns else start_ns
            last_ns = end_ns
            longest_ns = max(longest_ns, last_ns - begin_ns)
    return int(longest_ns)


LONG = Source("long", "A", 1 * US, 100 * US, Periodic(9 * MS), Monitor((8 * MS,)))
SHORT = Source("short", "A", 1 * US, 10 * US, Distances((0, 0, 9 * MS)), Monitor((0, 0, 8 * MS)))
OTHER = Source("other", "B", 3 * US, 30 * US, Periodic(2 * MS), Monitor((1 * MS,)))


@given(
    st.lists(st.integers(0, 30_000), max_size=4),
    st.lists(st.integers(0, 30_000), max_size=12),
    st.lists(st.integers(0, 30_000), max_size=12),
    st.sampled_from([(1_000, 400, 300), (2_000, 200), (500, 500, 500, 120)]),
    st.sampled_from(["plain", "paper", "carry"]),
)
@example([1900], [1960, 1961, 1962], [], (2_000, 200), "carry")
def test_a_simulated_hypervisor_is_never_longer_at_work(long, short, other, slots, mode):
    """In the example the long one's budget is enough for three more, whose jobs find nothing."""
    owners = ["AB"[at % 2] for at in range(len(slots))]
    system = System(
        PLATFORM,
        tuple(Slot(name, length_us * US) for name, length_us in zip(owners, slots, strict=True)),
        (LONG, SHORT, OTHER),
    )
    times_us = [sorted(each) for each in (long, short, other)]
    found_ns = longest_stretch_ns(system, mode, times_us)
    assert found_ns <= stamps_of(system, mode).work_ns
    if times_us == [[1900], [1960, 1961, 1962], []]:
        assert found_ns >= 3 * (2 + 2 * 5) * US
