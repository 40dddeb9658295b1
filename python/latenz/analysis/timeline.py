"""What the processor did in a part of a simulation: as a picture, and for trace viewers."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from latenz.analysis.simulate import ACTIVITIES, HANDLINGS, Irqs, Segments, Simulator
from latenz.durations import format_duration
from latenz.errors import BadInput
from latenz.files import replacing
from latenz.system import System

ColumnsT = TypeVar("ColumnsT", Segments, Irqs)

_MOST_DRAWN = 20_000
_STEPS = 1 << 14
_CYCLES_AFTER = 10
_LONGEST_NS = 2**61


@dataclass(frozen=True, slots=True)
class Timeline:
    """A part of a simulation.

    Attributes:
        system: What was simulated.
        start_ns: Where the part begins.
        end_ns: Where it ends.
        segments: What the processor did; those at the edges may reach beyond the part.
        irqs: Interrupts that arrived in the part and ended at most ten cycles after it.
    """

    system: System
    start_ns: int
    end_ns: int
    segments: Segments
    irqs: Irqs

    def slots(self) -> Iterator[tuple[int, int, int]]:
        """Yield the owner's number in `System.partitions`, start and end of each slot."""
        system = self.system
        start_ns = self.start_ns // system.cycle_ns * system.cycle_ns
        while start_ns < self.end_ns:
            for slot in system.slots:
                end_ns = start_ns + slot.length_ns
                if end_ns > self.start_ns and start_ns < self.end_ns:
                    yield system.partitions.index(slot.partition), start_ns, end_ns
                start_ns = end_ns


def timeline(simulator: Simulator, start_ns: int, end_ns: int) -> Timeline:
    """Run a fresh simulator that watches segments, and return the part asked for.

    Raises:
        BadInput: The part is empty.
    """
    if not 0 <= start_ns < end_ns <= _LONGEST_NS:
        remedy = f"end after the start and by {_LONGEST_NS} ns"
        raise BadInput(f"from {start_ns} to {end_ns} ns is not a time", "--window", remedy)
    last_ns = end_ns + _CYCLES_AFTER * simulator.system.cycle_ns
    segments: list[Segments] = []
    irqs: list[Irqs] = []
    done = False
    while not done and simulator.now_ns < last_ns:
        done = simulator.run(_STEPS)
        taken, ended = simulator.take_segments(), simulator.take_irqs()
        segments.append(_chosen(taken, (taken.end_ns > start_ns) & (taken.start_ns < end_ns)))
        irqs.append(_chosen(ended, (ended.arrival_ns >= start_ns) & (ended.arrival_ns < end_ns)))
    return Timeline(simulator.system, start_ns, end_ns, _joined(segments), _joined(irqs))


def telling_part(system: System, irqs: Irqs) -> tuple[int, int]:
    """Return start and end of two cycles that show how a system handles its interrupts.

    Args:
        system: Gives the cycle.
        irqs: Some interrupts: the first that is interposed, else the first, is in the first cycle.
    """
    interposed = irqs.arrival_ns[irqs.handling == HANDLINGS.index("interposed")]
    chosen = interposed if len(interposed) else irqs.arrival_ns
    first_ns = int(chosen.min()) if len(chosen) else 0
    start_ns = first_ns // system.cycle_ns * system.cycle_ns
    return start_ns, start_ns + 2 * system.cycle_ns


def drawable(part: Timeline) -> Timeline:
    """Return the part, cut in halves until it is not more than a picture can show."""
    segments = part.segments
    end_ns = part.end_ns
    while len(segments.start_ns) > _MOST_DRAWN:
        end_ns = part.start_ns + (end_ns - part.start_ns) // 2
        segments = _chosen(segments, segments.start_ns < end_ns)
    irqs = _chosen(part.irqs, part.irqs.arrival_ns < end_ns)
    return Timeline(part.system, part.start_ns, end_ns, segments, irqs)


def _chosen(columns: ColumnsT, mask: Any) -> ColumnsT:
    return type(columns)(*(getattr(columns, field.name)[mask] for field in fields(columns)))


def _joined(parts: list[ColumnsT]) -> ColumnsT:
    kind = type(parts[0])
    return kind(
        *(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(kind))
    )


# --- trace viewers --------------------------------------------------------------------------------

_SLOTS, HYPERVISOR_TRACK, _FIRST_PARTITION = 1, 2, 3


def write_trace(part: Timeline, path: Path, more: Iterable[dict[str, Any]] = ()) -> None:
    """Write a part as Chrome's trace event JSON, which Perfetto reads too, in order of time.

    One track shows the slots, one the hypervisor (slot switches, top handlers, interposing), one
    each partition's bottom handlers; every interrupt is a span of its own from arrival to end.

    Args:
        part: What happened.
        path: The file.
        more: Further events, see `trace_span`.

    Raises:
        BadInput: The file cannot be written.
    """
    write_events([*trace_events(part), *more], path)


def write_events(events: Iterable[dict[str, Any]], path: Path) -> None:
    """Write Chrome's trace event JSON of events, in order of time.

    Raises:
        BadInput: The file cannot be written.
    """
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ns", "traceEvents": [\n')
        in_order = sorted(events, key=lambda event: event.get("ts", -1))
        for number, event in enumerate(in_order):
            file.write((",\n" if number else "") + json.dumps(event))
        file.write("\n]}\n")


def trace_events(part: Timeline) -> Iterator[dict[str, Any]]:
    """Yield the events of a part, all of process 1; see `write_trace`."""
    partitions = part.system.partitions
    tracks = ["slots", "hypervisor", *partitions]
    for number, name in enumerate(tracks, _SLOTS):
        yield {"ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": {"name": name}}
        yield {
            "ph": "M",
            "pid": 1,
            "tid": number,
            "name": "thread_sort_index",
            "args": {"sort_index": number},
        }
    for owner, start_ns, end_ns in part.slots():
        yield trace_span(partitions[owner], _SLOTS, start_ns, end_ns)
    for activity, partition, source, start_ns, end_ns in _rows(part.segments):
        bottom = "bottom handler" in ACTIVITIES[activity]
        track = _FIRST_PARTITION + partition if bottom else HYPERVISOR_TRACK
        yield trace_span(_label(part.system, activity, partition, source), track, start_ns, end_ns)
    for number, (source, handling, arrival_ns, top_start_ns, end_ns) in enumerate(_rows(part.irqs)):
        name = part.system.sources[source].name
        common = {
            "cat": "irq",
            "id": number,
            "pid": 1,
            "tid": HYPERVISOR_TRACK,
            "name": f"IRQ {name}",
        }
        arguments = {"handling": HANDLINGS[handling], "latency_ns": end_ns - arrival_ns}
        yield {**common, "ph": "b", "ts": trace_time(arrival_ns), "args": arguments}
        yield {**common, "ph": "n", "ts": trace_time(top_start_ns), "args": {"at": "top handler"}}
        yield {**common, "ph": "e", "ts": trace_time(end_ns)}


def trace_span(name: str, track: int, start_ns: int, end_ns: int) -> dict[str, Any]:
    """Return an event that lasts, on a track such as `HYPERVISOR_TRACK`."""
    times = {"ts": trace_time(start_ns), "dur": trace_time(end_ns - start_ns)}
    return {"ph": "X", "pid": 1, "tid": track, "name": name, **times}


def trace_time(nanoseconds: int) -> float | int:
    """Return microseconds, the unit of the format, exact to the nanosecond for 100 days."""
    return nanoseconds // 1000 if nanoseconds % 1000 == 0 else nanoseconds / 1000


def _label(system: System, activity: int, partition: int, source: int) -> str:
    name = ACTIVITIES[activity]
    if name == "slot switch":
        return f"{name} to {system.partitions[partition]}"
    return f"{name} {system.sources[source].name}"


def _rows(columns: Segments | Irqs) -> Iterator[tuple[int, ...]]:
    names = (field.name for field in fields(columns))
    return zip(*(getattr(columns, name).tolist() for name in names), strict=True)


# --- the picture ----------------------------------------------------------------------------------

_LANE, _BAR, _LEFT, _WIDTH, _MARGIN, _RIGHT = 36, 20, 150, 1000, 16, 32
_COLOURS = ("#4c78a8", "#e39c37", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#8a8a8a")
_CLASSES = ("switch", "top", "bottom", "interposing", "interposed")  # as ACTIVITIES
_STYLE = """
text { font: 12px sans-serif; fill: #222 }
.axis { stroke: #888; stroke-width: 1 }
.slot { fill-opacity: 0.22 }
.switch { fill: #9a9a9a }
.top { fill: #333 }
.interposing { fill: #d0d0d0; stroke: #888; stroke-width: 0.5 }
.interposed { stroke: #000; stroke-width: 1 }
.arrival { stroke: #c00; stroke-width: 1.2; marker-end: url(#head) }
.latency { stroke: #c00; stroke-width: 0.8; stroke-dasharray: 3 2 }
"""


def schedule_picture(part: Timeline) -> str:
    """Return an SVG picture of a part, in the manner of Figs. 3 and 5 of beckert2014.

    Slots are bands over all lanes in their partition's colour; above stand the hypervisor's slot
    switches and top handlers, below a lane for each partition with its bottom handlers, those that
    are interposed with a black edge. An arrow marks each arrival; a dashed line under it lasts as
    long as its latency.

    Raises:
        BadInput: There is more to draw than one can see.
    """
    if len(part.segments.start_ns) > _MOST_DRAWN:
        raise BadInput(
            f"{len(part.segments.start_ns)} things happen in that time",
            "--window",
            f"choose a shorter one, with at most {_MOST_DRAWN}",
        )
    return _Picture(part).drawn()


class _Picture:
    """Draws one picture."""

    def __init__(self, part: Timeline) -> None:
        self.part = part
        self.lanes = ["hypervisor", *part.system.partitions]
        self.height = _MARGIN * 2 + _LANE * len(self.lanes) + 60

    def drawn(self) -> str:
        width = _LEFT + _WIDTH + _RIGHT
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {self.height}" '
                f'width="{width}" height="{self.height}" role="img">',
                f"<style>{_STYLE}</style>",
                '<defs><marker id="head" markerWidth="6" markerHeight="6" refX="5" refY="3" '
                'orient="auto"><path d="M0,0 L6,3 L0,6 z" fill="#c00"/></marker></defs>',
                *self._slots(),
                *self._lanes(),
                *self._segments(),
                *self._irqs(),
                *self._axis(),
                "</svg>\n",
            ]
        )

    def _x(self, time_ns: int) -> float:
        inside_ns = min(max(time_ns, self.part.start_ns), self.part.end_ns)
        share = (inside_ns - self.part.start_ns) / (self.part.end_ns - self.part.start_ns)
        return round(_LEFT + _WIDTH * share, 2)

    @staticmethod
    def _y(lane: int) -> int:
        return _MARGIN + 14 + _LANE * lane

    def _box(
        self, css: str, colour: str, start_ns: int, end_ns: int, y: int, height: int, title: str
    ) -> str:
        x = self._x(start_ns)
        width = max(round(self._x(end_ns) - x, 2), 0.6)
        fill = f' fill="{colour}"' if colour else ""
        return (
            f'<rect class="{css}" x="{x}" y="{y}" width="{width}" height="{height}"{fill}>'
            f"<title>{escape(title)}</title></rect>"
        )

    def _slots(self) -> Iterator[str]:
        bottom = self._y(len(self.lanes)) - 8
        for owner, start_ns, end_ns in self.part.slots():
            name = self.part.system.partitions[owner]
            title = f"slot of {name}, {format_duration(end_ns - start_ns)}"
            colour = _COLOURS[owner % len(_COLOURS)]
            yield self._box("slot", colour, start_ns, end_ns, _MARGIN, bottom - _MARGIN, title)
            middle = (self._x(start_ns) + self._x(end_ns)) / 2
            if self._x(end_ns) - self._x(start_ns) > 8 * len(name):
                place = f'x="{middle}" y="{_MARGIN + 11}" text-anchor="middle"'
                yield f"<text {place}>{escape(name)}</text>"

    def _lanes(self) -> Iterator[str]:
        for lane, name in enumerate(self.lanes):
            y = self._y(lane) + _BAR
            yield f'<line class="axis" x1="{_LEFT}" x2="{_LEFT + _WIDTH}" y1="{y}" y2="{y}"/>'
            yield f'<text x="{_LEFT - 8}" y="{y - 5}" text-anchor="end">{escape(name[:22])}</text>'

    def _segments(self) -> Iterator[str]:
        for activity, partition, source, start_ns, end_ns in _rows(self.part.segments):
            what = _label(self.part.system, activity, partition, source)
            title = f"{what}: {format_duration(end_ns - start_ns)} from {start_ns} ns"
            name = ACTIVITIES[activity]
            bottom = "bottom handler" in name
            lane = 1 + partition if bottom or name == "interposing" else 0
            colour = _COLOURS[partition % len(_COLOURS)] if bottom else ""
            yield self._box(
                _CLASSES[activity], colour, start_ns, end_ns, self._y(lane), _BAR, title
            )

    def _irqs(self) -> Iterator[str]:
        numbers = {name: number for number, name in enumerate(self.part.system.partitions)}
        for source, handling, arrival_ns, _, end_ns in _rows(self.part.irqs):
            described = self.part.system.sources[source]
            y = self._y(1 + numbers[described.partition]) + _BAR
            x, end = self._x(arrival_ns), self._x(end_ns)
            title = (
                f"{described.name}: {HANDLINGS[handling]}, "
                f"latency {format_duration(end_ns - arrival_ns)}"
            )
            yield f"<g><title>{escape(title)}</title>"
            yield f'<line class="arrival" x1="{x}" x2="{x}" y1="{y - _LANE + 6}" y2="{y - 2}"/>'
            yield f'<line class="latency" x1="{x}" x2="{end}" y1="{y + 4}" y2="{y + 4}"/></g>'

    def _axis(self) -> Iterator[str]:
        y = self._y(len(self.lanes)) + 10
        step_ns = _tick_ns(self.part.end_ns - self.part.start_ns)
        first_ns = -(-self.part.start_ns // step_ns) * step_ns
        for time_ns in range(first_ns, self.part.end_ns + 1, step_ns):
            x = self._x(time_ns)
            yield f'<line class="axis" x1="{x}" x2="{x}" y1="{y - 18}" y2="{y - 12}"/>'
            yield f'<text x="{x}" y="{y}" text-anchor="middle">{format_duration(time_ns)}</text>'
        yield (
            f'<text x="{_LEFT}" y="{y + 24}">arrow: arrival; dashed: its latency; black edge: '
            "interposed; light grey: scheduler and context switches</text>"
        )


def _tick_ns(length_ns: int) -> int:
    """Return the distance of the ticks: 1, 2 or 5 times a power of ten, about ten of them."""
    power: int = 10 ** max(len(str(length_ns // 10)) - 1, 0)
    return power * next(step for step in (1, 2, 5, 10) if length_ns <= 12 * step * power)
