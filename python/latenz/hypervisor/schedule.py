"""What the processor did in a run, from its trace: for pictures and trace viewers."""

from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from latenz.analysis.simulate import ACTIVITIES, Irqs, Segments
from latenz.analysis.timeline import (
    HYPERVISOR_TRACK,
    Timeline,
    trace_events,
    trace_span,
    trace_time,
    write_events,
)
from latenz.hypervisor.results import Measured, OnProcessor
from latenz.hypervisor.trace import Kind, Records
from latenz.system import System
from latenz.system.processors import Part, parts

_SWITCH, _TOP, _BOTTOM, _INTERPOSING, _INTERPOSED = range(len(ACTIVITIES))
_ACTIVITY_OF = {
    Kind.SLOT_SWITCH: _SWITCH,
    Kind.TOP_HANDLER: _TOP,
    Kind.LIMIT: _TOP,
    Kind.JOB_START: _INTERPOSING,
    Kind.JOB_END: _INTERPOSING,
}


class _Step(NamedTuple):
    """What the processor did for a while, in ticks."""

    activity: int
    partition: int
    source: int
    start: int
    end: int


class _Processor:
    """Follows a trace: who ran between the sections of the hypervisor, and which handler."""

    def __init__(self, partitions: int) -> None:
        self.queues: list[deque[int]] = [deque() for _ in range(partitions)]
        self.owner: int | None = None
        self.job: int | None = None
        self.since = 0

    def steps(self, records: Records) -> Iterator[_Step]:
        """Yield what happened, in order of time."""
        for start, duration, _, number, partition, source, _ in records.tolist():
            kind = Kind(number)
            yield from self._guest(start)
            if kind in _ACTIVITY_OF:
                yield _Step(_ACTIVITY_OF[kind], partition, source, start, start + duration)
            self._follow(kind, partition, source)
            self.since = start + duration

    def _guest(self, until: int) -> Iterator[_Step]:
        runs = self.owner if self.job is None else self.job
        if runs is not None and self.queues[runs] and until > self.since:
            activity = _BOTTOM if self.job is None else _INTERPOSED
            yield _Step(activity, runs, self.queues[runs][0], self.since, until)

    def _follow(self, kind: Kind, partition: int, source: int) -> None:
        if kind is Kind.SLOT_SWITCH:
            self.owner = partition
        elif kind is Kind.TOP_HANDLER:
            self.queues[partition].append(source)
        elif kind is Kind.BOTTOM_END:
            self.queues[partition].popleft()
        elif kind is Kind.JOB_START:
            self.job = partition
        elif kind is Kind.JOB_END:
            self.job = None


def each_processor(system: System, run: Measured) -> Iterator[tuple[System, OnProcessor]]:
    """Yield what a run showed on each processor that has sources, as of a system of its own."""
    for part, own in zip(parts(system), run.processors, strict=True):
        if part.system is system:
            yield system, own
        elif part.system is not None:
            yield part.system, _renumbered(system, part, own)


def _renumbered(system: System, part: Part[System], own: OnProcessor) -> OnProcessor:
    """Return it with partitions and sources by their numbers on the processor."""
    assert part.system is not None  # noqa: S101 - the caller has looked
    partitions = np.zeros(len(system.partitions), np.uint8)
    sources = np.zeros(len(system.sources), np.uint16)
    for number, name in enumerate(part.system.partitions):
        partitions[system.partitions.index(name)] = number
    sources[list(part.sources)] = range(len(part.sources))
    records = own.records.copy()
    records["partition"] = partitions[records["partition"]]
    of_source = ~np.isin(records["kind"], [Kind.PROGRESS, Kind.SLOT_SWITCH])
    records["source"][of_source] = sources[records["source"][of_source]]
    irqs = replace(own.irqs, source=sources[own.irqs.source].astype(np.int64))
    return replace(own, records=records, irqs=irqs)


def segments(system: System, run: Measured | OnProcessor) -> Segments:
    """Return what the processor did, as a simulation gives it; of a system of one processor.

    Ends of bottom handlers and traps of guests are the hypervisor's work, too, but none that a
    simulation knows; there is nothing in their place.
    """
    steps = list(_Processor(len(system.partitions)).steps(run.records))
    columns = np.array(steps, dtype=np.int64).reshape(-1, len(_Step._fields)).T
    activity, partition, source, start, end = columns
    clock = run.clock
    return Segments(activity, partition, source, clock.times_ns(start), clock.times_ns(end))


def timeline_of(
    system: System, run: Measured | OnProcessor, start_ns: int, end_ns: int
) -> Timeline:
    """Return a part of a run, of a system of one processor."""
    whole, irqs = segments(system, run), run.irqs
    shown = (whole.end_ns > start_ns) & (whole.start_ns < end_ns)
    arrived = (irqs.arrival_ns >= start_ns) & (irqs.arrival_ns < end_ns)
    return Timeline(
        system,
        start_ns,
        end_ns,
        Segments(*(getattr(whole, name)[shown] for name in Segments.__slots__)),
        Irqs(*(getattr(irqs, name)[arrived] for name in Irqs.__slots__)),
    )


def export_trace(
    system: System, run: Measured, path: Path, window: tuple[int, int] | None = None
) -> None:
    """Write a run for Perfetto or Chrome's trace viewer (trace event JSON).

    Tracks show the slots, the hypervisor and each partition's bottom handlers; counters show the
    progress that guests report. See `latenz.analysis.timeline.write_trace`. If several processors
    have sources, each is a process.

    Args:
        system: What was run.
        run: What it showed.
        path: The file.
        window: Start and end in nanoseconds; None: everything.

    Raises:
        BadInput: The file cannot be written.
    """
    events: list[dict[str, Any]] = []
    each = list(each_processor(system, run))
    for number, (own, shown) in enumerate(each, 1):
        if len(each) > 1:
            name = {"name": f"processor {shown.processor}"}
            events.append({"ph": "M", "pid": number, "name": "process_name", "args": name})
        found = _events(own, shown, window or (0, _end_ns(shown)))
        events += (_of_process(event, number) for event in found)
    write_events(events, path)


def _of_process(event: dict[str, Any], number: int) -> dict[str, Any]:
    """Return an event as one of another process; those of the first are as they are."""
    if number == 1:
        return event
    return event | {"pid": number} | ({"id": f"{number}.{event['id']}"} if "id" in event else {})


def _events(system: System, run: OnProcessor, window: tuple[int, int]) -> Iterator[dict[str, Any]]:
    yield from trace_events(timeline_of(system, run, *window))
    yield from _further_events(system, run, *window)


def _end_ns(run: OnProcessor) -> int:
    last = run.records[-1:]
    return int(run.clock.times_ns(last["start"] + last["duration"]).max(initial=1))


def _further_events(
    system: System, run: OnProcessor, start_ns: int, end_ns: int
) -> Iterator[dict[str, Any]]:
    """Yield what simulations do not know."""
    starts = run.clock.times_ns(run.records["start"])
    ends = run.clock.times_ns(run.records["start"] + run.records["duration"])
    shown = (starts >= start_ns) & (starts < end_ns)
    names = system.partitions
    chosen = zip(run.records[shown].tolist(), starts[shown], ends[shown], strict=True)
    for (_, _, value, kind, partition, source, detail), start, end in chosen:
        begins_ns, ends_ns = int(start), int(end)
        if kind == Kind.BOTTOM_END:
            name = f"bottom handler's end {system.sources[source].name}"
            yield trace_span(name, HYPERVISOR_TRACK, begins_ns, ends_ns)
        elif kind == Kind.PROGRESS and (turns := value | detail << 32):
            name = f"progress {names[partition]}"
            common = {"pid": 1, "name": name, "ts": trace_time(begins_ns)}
            yield {"ph": "C", **common, "args": {"turns": turns}}
