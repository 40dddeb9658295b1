"""The trace of a run that goes on: a ring of records in the memory of an emulated board."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from latenz.hypervisor.trace import HANDLING_MASK, RECORD, Kind, Records, Times
from latenz.system import System
from latenz.system.processors import parts, slots_of

_BEING_WRITTEN = 64
"""So many of the oldest records may have been written over while the ring was read."""
_STATES = ("running", "stopped", "off")
_CONDITION_BITS, _STATE_MASK = 2, 3
_SECOND_NS = 1_000_000_000


class LiveTrace:
    """Reads a ring while the hypervisor writes it, which it does not notice.

    Args:
        memory: The file that holds the board's memory.
        offset: Where in it the ring begins.
        records: How many it has room for.
    """

    def __init__(self, memory: Path, offset: int, records: int) -> None:
        self._ring = np.memmap(memory, RECORD, "r", offset, (records,))
        self._last: bytes | None = None
        self._last_start = 0
        self.gaps = 0
        """How often records were written over before they were read."""

    def new(self) -> Records:
        """Return whole records that came since, oldest first; the newest may not be whole yet."""
        ring = np.array(self._ring)
        ordered, unsure = oldest_first(ring)
        found = ordered[unsure:]
        if self._last is None:
            self.gaps += int(ring["kind"].all())  # gone round before the first look
        elif ordered[:unsure][-1:].tobytes() != self._last:
            found = self._unread(found)
        if len(found):
            self._last, self._last_start = found[-1].tobytes(), int(found[-1]["start"])
        return found

    def _unread(self, found: Records) -> Records:
        """Leave out what was read before; count if the last one of then is there no more."""
        first = int(np.searchsorted(found["start"], self._last_start, "left"))
        behind = int(np.searchsorted(found["start"], self._last_start, "right"))
        for at in range(behind - 1, first - 1, -1):
            if found[at].tobytes() == self._last:
                return found[at + 1 :]
        self.gaps += 1 if len(found) else 0
        return found[behind:]


def oldest_first(ring: Records) -> tuple[Records, int]:
    """Return the records of a copied ring but the one written last, oldest first.

    Returns:
        The records, and how many of the first may have been in work: of a ring that has gone round.
    """
    unused = ring["kind"] == 0
    if unused.any():
        return ring[: max(int(np.argmax(unused)) - 1, 0)], 0
    drops = np.flatnonzero(ring["start"][1:] < ring["start"][:-1])
    newest = int(drops[0]) if drops.size else len(ring) - 1
    return np.concatenate([ring[newest + 1 :], ring[:newest]]), _BEING_WRITTEN


@dataclass(slots=True)
class PartitionSeen:
    """A partition so far.

    Attributes:
        name: Its own.
        slots: How many of its slots have ended.
        lost_ns: What it lost of its last slot, to the hypervisor's work and to others' jobs.
        most_lost_ns: The most that it lost of a slot.
        progress: At the end of its last slot.
        state: Of then: running, stopped or off.
        faults: Of then, at most 16,383.
    """

    name: str
    slots: int = 0
    lost_ns: int = 0
    most_lost_ns: int = 0
    progress: int = 0
    state: str = "running"
    faults: int = 0


@dataclass(slots=True)
class SourceSeen:
    """A source so far: interrupts by their handling, and what came of them.

    Attributes:
        name: Its own.
        handled: Direct, interposed and delayed ones.
        masked: Times that it exceeded its limit.
        latest_ns: The longest latency, from the arrival to the bottom handler's end.
    """

    name: str
    handled: list[int] = field(default_factory=lambda: [0, 0, 0])
    masked: int = 0
    latest_ns: int = 0


class Seen:
    """What the trace of a processor has told so far.

    Args:
        system: What runs.
        processor: The processor, if several have slots.
    """

    def __init__(self, system: System, processor: int | None = None) -> None:
        self._slots_of_cycle = system.slots if processor is None else slots_of(system, processor)
        own = {slot.partition for slot in self._slots_of_cycle}
        names = enumerate(system.partitions)
        self._partitions = {at: PartitionSeen(name) for at, name in names if name in own}
        self._numbers = {each.name: at for at, each in self._partitions.items()}
        self._sources = {
            at: SourceSeen(each.name)
            for at, each in enumerate(system.sources)
            if each.partition in own
        }
        self.partitions = list(self._partitions.values())
        self.sources = list(self._sources.values())
        self.cycles = 0
        self.time_ns = 0
        """Virtual time of the last slot's start, from the first one's."""
        self.slot: int | None = None
        """The slot that has begun last, by its place in the table."""
        self._first_tick: int | None = None
        self._tick, self._slots = 0, 0
        self._hz = _SECOND_NS
        self._lost_ticks = 0
        self._latest_ticks = [0 for _ in system.sources]

    def add(self, records: Records, *, gap: bool = False) -> None:
        """Take records, oldest first.

        Args:
            records: Those that follow the last ones.
            gap: Whether some between are missing: of the slot of then nothing is told.
        """
        if gap:
            self.slot = None
        switches = np.flatnonzero(records["kind"] == Kind.SLOT_SWITCH)
        begin = 0
        for end in switches.tolist():
            self._add_work(records[begin:end])
            self._begin_slot(records[end])
            begin = end
        self._add_work(records[begin:])
        self._add_interrupts(records)

    def _begin_slot(self, switch: Records) -> None:
        """End a slot and begin the next."""
        slots = self._slots_of_cycle
        at = int(switch["detail"]) % len(slots)
        start = int(switch["start"]) - int(switch["value"])
        if self.slot is not None:
            self._calibrate(start, slots[self.slot].length_ns)
            self._end_slot(slots[self.slot].partition)
        self.slot, self._tick, self._lost_ticks = at, start, 0
        if self._first_tick is None:
            self._first_tick = start
        self.time_ns = self._ns(start - self._first_tick)

    def _end_slot(self, owner: str) -> None:
        own = self._partitions[self._numbers[owner]]
        own.slots += 1
        own.lost_ns = self._ns(self._lost_ticks)
        own.most_lost_ns = max(own.most_lost_ns, own.lost_ns)
        self.cycles += self.slot == len(self._slots_of_cycle) - 1

    def _calibrate(self, start: int, length_ns: int) -> None:
        """Learn the counter's frequency from the first slot, whose length the system has."""
        if self._slots == 0:
            self._hz = round((start - self._tick) * _SECOND_NS / length_ns)
        self._slots += 1

    def _add_work(self, records: Records) -> None:
        """Take what happened in a slot: its owner lost the sections, and others' jobs."""
        if self.slot is None:
            return
        owner = self._numbers[self._slots_of_cycle[self.slot].partition]
        jobs = records[(records["kind"] == Kind.JOB_END) & (records["partition"] != owner)]
        self._lost_ticks += int(records["duration"].sum(dtype=np.int64))
        self._lost_ticks += int(jobs["value"].sum(dtype=np.int64))

    def _add_interrupts(self, records: Records) -> None:
        tops = records[records["kind"] == Kind.TOP_HANDLER]
        ends = records[records["kind"] == Kind.BOTTOM_END]
        limits = records[records["kind"] == Kind.LIMIT]
        for number, source in self._sources.items():
            handled = tops["detail"][tops["source"] == number] & HANDLING_MASK
            for way in range(3):
                source.handled[way] += int((handled == way).sum())
            source.masked += int((limits["source"] == number).sum())
            latencies: Times = ends["value"][ends["source"] == number].astype(np.int64)
            latest = max(self._latest_ticks[number], int(latencies.max(initial=0)))
            self._latest_ticks[number], source.latest_ns = latest, self._ns(latest)
        last = {int(each["partition"]): each for each in records[records["kind"] == Kind.PROGRESS]}
        for number, record in last.items():
            if number in self._partitions:
                self._note(self._partitions[number], record)

    @staticmethod
    def _note(partition: PartitionSeen, record: Records) -> None:
        condition = int(record["source"])
        partition.progress = int(record["value"]) | int(record["detail"]) << 32
        partition.state = _STATES[min(condition & _STATE_MASK, len(_STATES) - 1)]
        partition.faults = condition >> _CONDITION_BITS

    def _ns(self, ticks: int) -> int:
        return ticks * _SECOND_NS // self._hz


class SeenTogether:
    """What the traces of all processors with slots have told so far.

    Args:
        system: What runs.
    """

    def __init__(self, system: System) -> None:
        self.processors = {x.processor: Seen(system, x.processor) for x in parts(system)}
        sources = {x.name: x for each in self.processors.values() for x in each.sources}
        partitions = {x.name: x for each in self.processors.values() for x in each.partitions}
        self.sources = [sources[source.name] for source in system.sources]
        self.partitions = [partitions[name] for name in system.partitions]

    @property
    def time_ns(self) -> int:
        """How far time has come where it has come farthest, from the first cycle on."""
        return max(each.time_ns for each in self.processors.values())

    @property
    def has_begun(self) -> bool:
        """Whether a slot has begun."""
        return any(each.slot is not None for each in self.processors.values())
