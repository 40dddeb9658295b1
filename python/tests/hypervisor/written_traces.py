"""Traces as a hypervisor would write them that kept exactly to the simulator's schedule."""

from bisect import bisect_left
from itertools import accumulate

import numpy as np

from latenz.analysis import Simulator
from latenz.analysis.simulate import ACTIVITIES, Irqs, Segments
from latenz.hypervisor.trace import RECORD, Kind, Statistics
from latenz.system import System

SWITCH, TOP, BOTTOM, INTERPOSING, INTERPOSED = range(5)


def simulated(system: System, **options) -> tuple[Irqs, Segments]:
    """What a simulation of the system shows, whole."""
    assert len(ACTIVITIES) == 5
    simulator = Simulator(system, watch="segments", **options)
    irqs, segments, done = [], [], False
    while not done:
        done = simulator.run()
        irqs.append(simulator.take_irqs())
        segments.append(simulator.take_segments())

    def joined(kind, parts):
        names = kind.__slots__
        return kind(*(np.concatenate([getattr(part, x) for part in parts]) for x in names))

    return joined(Irqs, irqs), joined(Segments, segments)


class Writer:
    """Writes one trace.

    Attributes:
        split: Whether something came while the hypervisor went to a job or back, which then takes
            several pieces of time.
    """

    def __init__(self, system: System, irqs: Irqs, segments: Segments, hz: int, epoch: int) -> None:
        self.system, self.irqs, self.segments = system, irqs, segments
        self.hz, self.epoch = hz, epoch
        self.edges = [0, *accumulate(slot.length_ns for slot in system.slots)]
        self.records: list[tuple] = []
        self.split = False

    def tick(self, time_ns: int) -> int:
        ticks, rest = divmod(time_ns * self.hz, 10**9)
        assert rest == 0
        return ticks

    def add(self, kind, start_ns, end_ns, value, partition, source, detail) -> None:
        start, duration = self.tick(start_ns), self.tick(end_ns - start_ns)
        self.records.append((self.epoch + start, duration, value, kind, partition, source, detail))

    def trace(self) -> bytes:
        self._switches()
        self._irqs()
        self._jobs()
        # At one time an end comes first (R6); then what takes time, in the order of rule R1.
        rank = {Kind.BOTTOM_END: 0, Kind.JOB_END: 1, Kind.SLOT_SWITCH: 2, Kind.TOP_HANDLER: 3}
        self.records.sort(key=lambda record: (record[0], rank.get(record[3], 4)))
        return np.array(self.records, RECORD).tobytes()

    def statistics(self, trace: bytes) -> Statistics:
        completed = np.bincount(self.irqs.source, minlength=len(self.system.sources)).tolist()
        return Statistics(
            counter_hz=self.hz,
            epoch_tick=self.epoch,
            cycles=1,
            trap_ticks=0,
            records_written=len(trace) // 24,
            records_kept=len(trace) // 24,
            sources=[
                {"name": source.name, "raised": n, "completed": n}
                for source, n in zip(self.system.sources, completed, strict=True)
            ],
            partitions=[{"name": name, "state": "running"} for name in self.system.partitions],
        )

    def _rows(self, activity: int):
        s = self.segments
        for at in np.flatnonzero(s.activity == activity).tolist():
            yield int(s.partition[at]), int(s.source[at]), int(s.start_ns[at]), int(s.end_ns[at])

    def _switches(self) -> None:
        cycle = self.edges[-1]
        for partition, _, start, end in self._rows(SWITCH):
            # A switch may be late: its slot is the last of its owner that has begun.
            number = bisect_left(self.edges, start % cycle + 1) - 1
            while self.system.slots[number].partition != self.system.partitions[partition]:
                number -= 1
            late = (start - self.edges[number]) % cycle
            self.add(Kind.SLOT_SWITCH, start, end, self.tick(late), partition, 0, number)

    def _irqs(self) -> None:
        owner = [self.system.partitions.index(each.partition) for each in self.system.sources]
        ends = {(s, start): end for _, s, start, end in self._rows(TOP)}
        monitor_ns = self.system.platform.monitor_ns
        irqs = self.irqs
        for source, handling, arrival, top, end in zip(
            *(getattr(irqs, name).tolist() for name in Irqs.__slots__), strict=True
        ):
            asked = ends[source, top] - top > self.system.sources[source].top_ns
            detail = handling | (0x8 | self.tick(monitor_ns) << 16 if asked else 0)
            late = self.tick(top - arrival)
            self.add(Kind.TOP_HANDLER, top, ends[source, top], late, owner[source], source, detail)
            self.add(
                Kind.BOTTOM_END, end, end, self.tick(end - arrival), owner[source], source, handling
            )

    def _jobs(self) -> None:
        """Pieces of going to a job and of going back; interrupted ones count as one section."""
        costs = self.system.platform
        to_ns = costs.schedule_ns + costs.context_switch_ns
        phases = [(Kind.JOB_START, to_ns), (Kind.JOB_END, costs.context_switch_ns)]
        at, begun, left = 0, None, to_ns
        for partition, source, start, end in self._rows(INTERPOSING):
            begun = start if begun is None else begun
            left -= end - start
            assert left >= 0
            self.split |= left > 0
            if left == 0:
                kind, whole = phases[at]
                value = self.tick(costs.schedule_ns) if kind == Kind.JOB_START else 0
                self.add(kind, begun, begun + whole, value, partition, source, 0)
                at = 1 - at
                begun, left = None, phases[at][1]
