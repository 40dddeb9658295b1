"""The ring of a run that goes on: nothing is read twice, and nothing is missed without a word."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from latenz.hypervisor.live import LiveTrace, Seen, oldest_first
from latenz.hypervisor.trace import RECORD, Kind
from latenz.system import Periodic, Platform, Slot, Source, System

ROOM, OFFSET, UNSURE = 200, 4096, 64
US = 1_000


def records(numbers):
    """Number them by `value`; two at a time have the same start."""
    made = np.zeros(len(numbers), RECORD)
    made["value"] = numbers
    made["start"] = 1000 + np.asarray(numbers) // 2 * 10
    made["kind"] = Kind.TOP_HANDLER
    return made


@settings(max_examples=200, deadline=None)
@example(bursts=[65, 135])
@given(bursts=st.lists(st.integers(0, 300), min_size=1, max_size=20))
def test_each_record_comes_once_and_in_order(bursts):
    with TemporaryDirectory() as folder:
        memory = Path(folder) / "memory"
        memory.write_bytes(bytes(OFFSET + ROOM * RECORD.itemsize))
        ring = np.memmap(memory, RECORD, "r+", OFFSET, (ROOM,))
        trace = LiveTrace(memory, OFFSET, ROOM)
        written, expected = 0, 0
        for burst in bursts:
            numbers = np.arange(written, written + burst)
            ring[numbers[-ROOM:] % ROOM] = records(numbers[-ROOM:])
            written += burst
            gaps = trace.gaps
            found = trace.new()["value"].astype(np.int64)
            assert (np.diff(found) == 1).all()
            if len(found):
                assert found[-1] == written - 2, "all but the newest, which may be half written"
                assert (found[0] == expected) == (trace.gaps == gaps)
                assert found[0] >= expected
                expected = found[-1] + 1
            else:
                assert written - 1 <= expected or burst == 0


def test_what_may_be_in_work_is_left_out():
    ring = records(np.concatenate([np.arange(ROOM, ROOM + 50), np.arange(50, ROOM)]))
    ordered, unsure = oldest_first(ring)
    assert unsure == UNSURE
    assert ordered["value"].tolist() == list(range(50, ROOM + 49))
    assert len(oldest_first(np.zeros(ROOM, RECORD))[0]) == 0


def system():
    source = Source("timer", "two", 5 * US, 20 * US, Periodic(1000 * US))
    return System(Platform(), (Slot("one", 300 * US), Slot("two", 700 * US)), (source,))


def record(kind, start, duration=0, value=0, partition=0, source=0, detail=0):
    made = np.zeros(1, RECORD)
    made[0] = (start, duration, value, kind, partition, source, detail)
    return made


def test_what_a_slot_loses_is_the_sections_and_the_jobs_of_others():
    tick, seen = 16, Seen(system())  # a counter of 62.5 MHz
    seen.add(
        np.concatenate(
            [
                record(Kind.SLOT_SWITCH, 0, duration=50),
                record(Kind.TOP_HANDLER, 1000, duration=30, partition=1, detail=1),
                record(Kind.JOB_START, 1030, duration=20, partition=1),
                record(Kind.BOTTOM_END, 2000, duration=5, value=1000, partition=1, detail=1),
                record(Kind.JOB_END, 2000, duration=25, value=900, partition=1),
                record(Kind.PROGRESS, 18750, value=7, source=2 + (3 << 2)),
                record(Kind.SLOT_SWITCH, 18752, duration=40, value=2, partition=1, detail=1),
            ]
        )
    )
    one, two = seen.partitions
    assert one.lost_ns == one.most_lost_ns == (50 + 30 + 20 + 5 + 25 + 900) * tick
    assert (one.slots, one.progress, one.state, one.faults) == (1, 7, "off", 3)
    assert (two.slots, seen.time_ns, seen.slot, seen.cycles) == (0, 300 * US, 1, 0)
    (timer,) = seen.sources
    assert (timer.handled, timer.latest_ns) == ([0, 1, 0], 1000 * tick)


def test_of_a_slot_with_a_gap_nothing_is_told():
    seen = Seen(system())
    seen.add(record(Kind.SLOT_SWITCH, 0, duration=50))
    seen.add(record(Kind.TOP_HANDLER, 900_000, duration=30), gap=True)
    seen.add(record(Kind.SLOT_SWITCH, 1_000_000, duration=50))
    assert [each.slots for each in seen.partitions] == [0, 0]
    seen.add(record(Kind.SLOT_SWITCH, 1_300_000, duration=50, partition=1, detail=1))
    assert [each.slots for each in seen.partitions] == [1, 0]
    assert seen.time_ns == 1_300 * US
