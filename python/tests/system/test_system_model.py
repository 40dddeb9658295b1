"""The model of a system: what is sound, and that each mistake names the attribute."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.errors import BadInput
from latenz.system import (
    Distances,
    Exponential,
    Monitor,
    Periodic,
    Platform,
    RecordedTrace,
    Slot,
    Source,
    System,
)

LONGEST = 2**63 - 1
CAN = Source("can", "P1", 5_000, 40_000, Periodic(5_000_000), Monitor((1_000_000,)))
SOUND = System(
    platform=Platform(50_000, 640, 4_385, 50_000),
    slots=(Slot("P1", 6_000_000), Slot("P2", 6_000_000), Slot("P1", 2_000_000)),
    sources=(CAN, replace(CAN, name="lin", partition="P2", monitor=None)),
    mode="carry",
)


def test_what_follows_from_a_system():
    assert SOUND.cycle_ns == 14_000_000
    assert SOUND.partitions == ("P1", "P2")
    assert SOUND.latency_from == "arrival"
    assert hash(SOUND) == hash(replace(SOUND))
    assert System(Platform(), [Slot("P1", 1)], [CAN]).slots == (Slot("P1", 1),)


MISTAKES = [
    (lambda: Periodic(0), "Periodic.period_ns: is 0 ns; give 1 ns or more"),
    (lambda: Periodic(-5), "Periodic.period_ns: is -5 ns; give 1 ns or more"),
    (lambda: Periodic(2**63), "Periodic.period_ns: is 9223372036854775808 ns; give at most"),
    (lambda: Periodic(1.5), "Periodic.period_ns: 1.5 is not an integer"),
    (lambda: Periodic("5 ms"), "Periodic.period_ns: '5 ms' is not an integer"),
    (lambda: Periodic(True), "Periodic.period_ns: True is not an integer"),
    (lambda: Periodic(5, jitter_ns=-1), "Periodic.jitter_ns: is -1 ns"),
    (lambda: Periodic(5, min_distance_ns=-1), "Periodic.min_distance_ns: is -1 ns"),
    (lambda: Periodic(5, 0, 6), "Periodic.min_distance_ns: 6 ns is longer than the period, 5 ns"),
    (lambda: Distances(()), "Distances.distances_ns: has 0 distances; give 1 to 64"),
    (lambda: Distances((1,) * 65), "Distances.distances_ns: has 65 distances"),
    (lambda: Distances((3, 2)), "Distances.distances_ns[1]: 2 ns comes after 3 ns"),
    (lambda: Distances((-1, 2)), "Distances.distances_ns[0]: is -1 ns"),
    (lambda: Distances((0, 0)), "Distances.distances_ns: every distance is 0"),
    (lambda: Distances((1, 2.0)), "Distances.distances_ns[1]: 2.0 is not an integer"),
    (lambda: Distances(5), "Distances.distances_ns: 5 is not a vector"),
    (lambda: Distances("12"), "Distances.distances_ns: '12' is not a vector"),
    (lambda: Distances((2**63,)), "Distances.distances_ns[0]: is 9223372036854775808 ns"),
    (lambda: Monitor((0, 0)), "Monitor.distances_ns: every distance is 0, which limits nothing"),
    (lambda: Monitor((5, 4)), "Monitor.distances_ns[1]: 4 ns comes after 5 ns"),
    (lambda: Exponential(0), "Exponential.mean_ns: is 0 ns"),
    (lambda: Exponential(5, -1), "Exponential.min_distance_ns: is -1 ns"),
    (lambda: Exponential(5, seed=-1), "Exponential.seed: is -1; give 0 or more"),
    (lambda: Exponential(5, seed=2**63), "Exponential.seed: is 9223372036854775808; give at most"),
    (lambda: RecordedTrace([3, 2, 5], 1), "RecordedTrace.times_ns[1]: 2 comes after 3"),
    (lambda: RecordedTrace([-3, 2], 1), "RecordedTrace.times_ns[0]: -3 is negative"),
    (lambda: RecordedTrace([0.5, 2], 1), "RecordedTrace.times_ns: is not a row of integers"),
    (lambda: RecordedTrace([[1], [2]], 1), "RecordedTrace.times_ns: is not a row of integers"),
    (lambda: RecordedTrace([[1], [2, 3]], 1), "RecordedTrace.times_ns: is not a row of integers"),
    (lambda: RecordedTrace([2**63], 1), "RecordedTrace.times_ns: a time does not fit"),
    (lambda: RecordedTrace([1, 2, 3], 0), "RecordedTrace.length: is 0; give 1 or more"),
    (lambda: RecordedTrace([1, 2, 3], 65), "RecordedTrace.length: is 65; give at most 64"),
    (lambda: RecordedTrace([1, 2, 3], 3), "3 arrivals do not show 3 distances; give at most 2"),
    (lambda: RecordedTrace([], 1), "0 arrivals do not show 1 distances; record more arrivals"),
    (lambda: RecordedTrace([1, 1, 1, 9], 2), "3 arrivals have the same time"),
    (lambda: Slot("P1", 0), "Slot.length_ns: is 0 ns"),
    (lambda: Slot("", 5), "Slot.partition: '' is not a name"),
    (lambda: Slot(["P1"], 5), "Slot.partition: ['P1'] is not a name"),
    (lambda: Slot("P\x1b[2J", 5), r"Slot.partition: 'P\x1b[2J' is not a name"),
    (lambda: replace(CAN, name="a,b"), "Source.name: 'a,b' is not a name; use letters, digits"),
    (lambda: replace(CAN, name="../../etc"), "Source.name: '../../etc' is not a name"),
    (lambda: replace(CAN, name=" a"), "Source.name: ' a' is not a name"),
    (lambda: replace(CAN, name="a" * 101), "Source.name: 'aaaa"),
    (lambda: replace(CAN, name=7), "Source.name: 7 is not a name"),
    (lambda: replace(CAN, partition=None), "Source.partition: None is not a name"),
    (lambda: replace(CAN, top_ns=-1), "Source.top_ns: is -1 ns; give 0 ns or more"),
    (lambda: replace(CAN, bottom_ns=0), "Source.bottom_ns: is 0 ns; give 1 ns or more"),
    (lambda: replace(CAN, arrival=5), "Source.arrival: 5 is not an arrival; Periodic, Distances"),
    (lambda: Platform(slot_switch_ns=-1), "Platform.slot_switch_ns: is -1 ns"),
    (lambda: Platform(monitor_ns=-1), "Platform.monitor_ns: is -1 ns"),
    (lambda: Platform(schedule_ns=-1), "Platform.schedule_ns: is -1 ns"),
    (lambda: Platform(context_switch_ns=-1), "Platform.context_switch_ns: is -1 ns"),
    (lambda: replace(SOUND, slots=()), "System.slots: there is no slot; give at least one"),
    (lambda: replace(SOUND, sources=()), "System.sources: there is no source"),
    (lambda: replace(SOUND, mode="fast"), "System.mode: 'fast' is not a mode; plain, paper, carry"),
    (lambda: replace(SOUND, latency_from="end"), "System.latency_from: 'end' is no place"),
    (
        lambda: replace(SOUND, sources=(CAN, replace(CAN, top_ns=1))),
        "System.sources[1].name: a second source is named 'can'; give each its own name",
    ),
    (
        lambda: replace(SOUND, sources=(replace(CAN, partition="p1"),)),
        "System.sources[0].partition: 'p1' has no slot for the bottom handler of 'can'; choose",
    ),
    (
        lambda: replace(SOUND, slots=(*SOUND.slots, Slot("P3", 50_000))),
        "System.slots[3].length_ns: 50000 ns is used up by the slot switch, 50000 ns",
    ),
    (
        lambda: replace(SOUND, slots=(Slot("P1", LONGEST), Slot("P2", 50_001))),
        "System.slots: the TDMA cycle does not fit in 64 bits",
    ),
    (
        lambda: replace(SOUND, sources=(replace(CAN, bottom_ns=LONGEST - 5_000),)),
        "System.sources[0].bottom_ns: top and bottom handler with the platform's costs",
    ),
]


@pytest.mark.parametrize(("build", "says"), MISTAKES, ids=[says for _, says in MISTAKES])
def test_each_mistake_is_one_line_that_names_the_attribute(build, says):
    with pytest.raises(BadInput) as mistake:
        build()
    assert says in str(mistake.value)
    assert str(mistake.value).startswith(str(mistake.value.where))
    assert "\n" not in str(mistake.value)


def test_edges_are_sound():
    Periodic(1, LONGEST, 1)
    Periodic(LONGEST, 0, LONGEST)
    Distances((0, 0, 1))
    Distances(tuple(range(64)))
    Monitor((1,) * 64)
    Monitor((0, 5))
    Exponential(1, LONGEST, LONGEST)
    RecordedTrace([0, LONGEST], 1)
    RecordedTrace([5, 5, 6], 2)
    Slot("Motor (left) #2: a.b_c+d-e", LONGEST)
    replace(CAN, name="Drehzahlgeber-Süd", top_ns=0, bottom_ns=1)
    System(Platform(slot_switch_ns=4), (Slot("P1", 5),), (CAN,))


def test_integers_of_other_types_become_plain_ones():
    period = Periodic(np.int64(7), np.uint8(3))
    assert period == Periodic(7, 3)
    assert type(period.period_ns) is type(period.jitter_ns) is int
    vector = Distances([np.int32(1), 2])
    assert vector == Distances((1, 2))
    assert all(type(each) is int for each in vector.distances_ns)
    assert hash(vector) == hash(Distances((1, 2)))


def test_a_trace_is_a_copy_that_nobody_changes():
    mine = np.array([1, 5, 9])
    trace = RecordedTrace(mine, 2)
    mine[0] = 8
    assert trace.times_ns.tolist() == [1, 5, 9]
    with pytest.raises(ValueError, match="read-only"):
        trace.times_ns[0] = 8
    assert trace == RecordedTrace((1, 5, 9), 2)
    assert hash(trace) == hash(RecordedTrace((1, 5, 9), 2))
    assert trace != RecordedTrace((1, 5, 9), 1)
    assert trace != "trace"


any_value = st.one_of(
    st.integers(-(2**64), 2**64),
    st.integers(-3, 3),
    st.sampled_from([True, 1.5, "1", None, np.int64(3), np.float64(3), LONGEST, b"x"]),
)
CHECKED = [
    (Periodic, ("period_ns", "jitter_ns", "min_distance_ns")),
    (Exponential, ("mean_ns", "min_distance_ns", "seed")),
    (Platform, ("slot_switch_ns", "monitor_ns", "schedule_ns", "context_switch_ns")),
]


def built_or_none(kind, *values):
    try:
        return kind(*values)
    except BadInput:
        return None


def sound_whole(value, least):
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and least <= value <= LONGEST


@given(st.data(), st.sampled_from(CHECKED))
def test_numbers_are_taken_or_refused_by_the_rules(data, checked):
    """The fast comparison and the field by field one must agree with the rules as written."""
    kind, names = checked
    values = data.draw(st.tuples(*(any_value for _ in names)))
    least = [1 if name in ("period_ns", "mean_ns") else 0 for name in names]
    sound = all(map(sound_whole, values, least))
    if kind is Periodic:
        sound = sound and values[2] <= values[0]
    built = built_or_none(kind, *values)
    assert (built is not None) == sound
    if built is not None:
        assert [getattr(built, name) for name in names] == list(values)


@given(st.lists(any_value, max_size=66) | st.lists(st.integers(0, 9), max_size=9).map(sorted))
def test_vectors_are_taken_or_refused_by_the_rules(values):
    sound = (
        1 <= len(values) <= 64
        and all(sound_whole(each, 0) for each in values)
        and sorted(values) == values
    )
    for kind in (Distances, Monitor):
        built = built_or_none(kind, tuple(values))
        assert (built is not None) == (sound and values[-1] > 0)
        if built is not None:
            assert list(built.distances_ns) == values


@given(st.lists(st.integers(-2, 30), max_size=12), st.integers(0, 5))
def test_traces_are_taken_or_refused_by_the_rules(times, length):
    spans = [b - a for a, b in zip(times, times[length:], strict=False)]
    sound = (
        sorted(times) == times
        and all(each >= 0 for each in times)
        and length >= 1
        and len(spans) >= 1
        and min(spans, default=0) > 0
    )
    built = built_or_none(RecordedTrace, times, length)
    assert (built is not None) == sound
    if built is not None:
        assert built.times_ns.tolist() == times
