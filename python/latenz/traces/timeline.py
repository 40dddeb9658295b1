"""A trace as a timeline that Perfetto and Chrome open: who had which CPU, exits, and the worst.

Format: Chrome's Trace Event Format, the JSON object form. Slices are complete events (`ph` "X"), of
which those on one track nest or are apart, as the format demands; the names of tracks are metadata
events (`M`), the worst moments also instant events (`i`). Times are microseconds since the first
event, with three decimals: nanoseconds, nothing is rounded.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from latenz.files import replacing
from latenz.traces.causes import Cause
from latenz.traces.model import Losses
from latenz.traces.occupancy import function_of, interrupt_of, number
from latenz.traces.wakeups import could_run

if TYPE_CHECKING:
    from latenz.traces.model import Event, Loss, Trace

_CPUS, _VIRTUAL_CPUS, _THREADS, _WORST = 1, 2, 3, 4
_PROCESSES = {
    _CPUS: "CPUs",
    _VIRTUAL_CPUS: "virtual CPUs",
    _THREADS: "real-time threads",
    _WORST: "worst moments",
}
_AWAKE = (2**32 - 1, -1)
_REAL_TIME = 100  # priorities below, as the kernel counts, are real-time
_Row = dict[str, Any]


def write_timeline(trace: "Trace", path: Path, causes: Sequence[Cause] = ()) -> int:
    """Write a trace as a timeline; return how many slices it has.

    Args:
        trace: What to show.
        path: The file to write; it appears only when it is whole.
        causes: The worst moments, which get markers and a track each.

    Raises:
        BadInput: The trace cannot be read, or the file cannot be written.
    """
    summary = trace.summary(1)
    first_ns, last_ns = summary.start_ns, summary.end_ns
    events = trace.events([(first_ns, last_ns)])
    with replacing(path) as partial, partial.open("w", encoding="utf-8") as file:
        return _write(file, rows(events, first_ns, last_ns, causes, summary.losses))


def _write(file: TextIO, written: Iterable[_Row]) -> int:
    file.write('{"displayTimeUnit":"ns","traceEvents":[\n')
    slices = 0
    for place, row in enumerate(written):
        file.write(",\n" if place else "")
        file.write(json.dumps(row, separators=(",", ":")))
        slices += row["ph"] == "X"
    file.write("\n]}\n")
    return slices


def rows(
    events: "Iterable[Event]",
    first_ns: int,
    last_ns: int,
    causes: Sequence[Cause] = (),
    losses: "Sequence[Loss]" = (),
) -> Iterator[_Row]:
    """Yield the rows of a timeline.

    Args:
        events: In the order of their times.
        first_ns: Time of the first one: the timeline's zero.
        last_ns: Time of the last one: what is not over then ends there.
        causes: The worst moments.
        losses: Where events are missing: nothing goes on across such a time.
    """
    timeline = _Timeline(first_ns, losses)
    for event in events:
        yield from timeline.take(event)
    yield from timeline.end(last_ns)
    for cause in causes:
        yield from _marked(cause, first_ns)
    tracks = timeline.tracks | {(_WORST, each.rank): f"#{each.rank}" for each in causes}
    for process in sorted({process for process, _ in tracks}):
        yield _named("process_name", process, 0, _PROCESSES[process])
    for (process, thread), name in sorted(tracks.items()):
        yield _named("thread_name", process, thread, name)


@dataclass
class _Open:
    """A slice that is not over."""

    name: str
    category: str
    since_ns: int
    cpu: int
    arguments: dict[str, Any] = field(default_factory=dict)


class _Timeline:
    def __init__(self, first_ns: int, losses: "Sequence[Loss]") -> None:
        self.first_ns = first_ns
        self._losses = Losses(losses)
        self._cpu = 0  # of the event that is taken
        self.tracks: dict[tuple[int, int], str] = {}
        self._open: dict[tuple[int, int], list[_Open]] = {}  # of a track, the innermost last

    def take(self, event: "Event") -> Iterator[_Row]:
        """Yield the slices that end with an event."""
        cpu = (_CPUS, event.cpu)
        self._cpu = event.cpu
        if (loss := self._losses.passed(event)) is not None and cpu in self.tracks:
            yield from self._lost(cpu, loss)
        if not self._open.get(cpu):
            self._begin(cpu, f"CPU {event.cpu}", _task(event.comm, event.pid), "task", event.t_ns)
        if event.name == "sched_switch":
            yield from self._switch(cpu, event)
        elif event.name == "sched_waking":
            self._waking(event)
        elif event.name == "cpu_idle":
            yield from self._idle(cpu, event)
        elif event.name.startswith("kvm_"):
            yield from self._virtual(event)
        elif event.name == "hrtimer_expire_entry":
            self._begin(cpu, "", function_of(event), "timer", event.t_ns)
        elif event.name == "hrtimer_expire_exit":
            yield from self._end_category(cpu, "timer", event.t_ns)
        elif event.name == "nmi_handler":
            yield _instant("non-maskable interrupt", cpu, event.t_ns - self.first_ns)
        else:
            yield from self._interrupt(cpu, event)

    def _lost(self, cpu: tuple[int, int], loss: "Loss") -> Iterator[_Row]:
        """End what went on on a CPU when its events were lost."""
        for track, slices in self._open.items():
            if slices and slices[-1].cpu == loss.cpu:
                yield from self._close(track, 0, loss.start_ns)
        yield _instant("events were lost", cpu, loss.start_ns - self.first_ns)

    def end(self, t_ns: int) -> Iterator[_Row]:
        """Yield all slices that are still open."""
        for track in list(self._open):
            yield from self._close(track, 0, t_ns)

    def _begin(
        self, track: tuple[int, int], name: str, slice_name: str, category: str, t_ns: int
    ) -> _Open:
        self.tracks.setdefault(track, name)
        opened = _Open(slice_name, category, t_ns, self._cpu)
        self._open.setdefault(track, []).append(opened)
        return opened

    def _close(self, track: tuple[int, int], depth: int, t_ns: int) -> Iterator[_Row]:
        """End all slices of a track below a depth, the innermost first."""
        slices = self._open.get(track, [])
        while len(slices) > depth:
            yield _slice(slices.pop(), track, t_ns, self.first_ns)

    def _end_category(self, track: tuple[int, int], category: str, t_ns: int) -> Iterator[_Row]:
        slices = self._open.get(track, [])
        for depth in range(len(slices) - 1, -1, -1):
            if slices[depth].category == category:
                yield from self._close(track, depth, t_ns)
                return

    def _switch(self, cpu: tuple[int, int], event: "Event") -> Iterator[_Row]:
        yield from self._close(cpu, 0, event.t_ns)
        pid, name = number(event, "next_pid", 0), str(event.fields.get("next_comm", "?"))
        self._begin(cpu, "", _task(name, pid), "task", event.t_ns)
        previous = (_THREADS, number(event, "prev_pid", 0))
        yield from self._close(previous, 0, event.t_ns)
        able = could_run(event.fields.get("prev_state"))
        if able and number(event, "prev_prio", _REAL_TIME) < _REAL_TIME:
            shown = _task(str(event.fields.get("prev_comm")), previous[1])
            self._begin(previous, shown, "ready", "ready", event.t_ns)
        if pid != 0 and number(event, "next_prio", _REAL_TIME) < _REAL_TIME:
            own = (_THREADS, pid)
            yield from self._close(own, 0, event.t_ns)
            self._begin(own, _task(name, pid), f"CPU {event.cpu}", "running", event.t_ns)

    def _waking(self, event: "Event") -> None:
        own = (_THREADS, number(event, "pid", 0))
        known = self._open.get(own)  # it runs, or was woken before
        if number(event, "prio", _REAL_TIME) < _REAL_TIME and not known:
            name = _task(str(event.fields.get("comm")), own[1])
            self._begin(own, name, "ready", "ready", event.t_ns)

    def _idle(self, cpu: tuple[int, int], event: "Event") -> Iterator[_Row]:
        state = number(event, "state", -1)
        yield from self._end_category(cpu, "idle", event.t_ns)
        if state not in _AWAKE:
            self._begin(cpu, "", f"idle state {state}", "idle", event.t_ns)

    def _interrupt(self, cpu: tuple[int, int], event: "Event") -> Iterator[_Row]:
        edge = interrupt_of(event)
        if edge is None:
            return
        kind, name, begins = edge
        if begins:
            self._begin(cpu, "", name, kind, event.t_ns)
        else:
            yield from self._end_category(cpu, kind, event.t_ns)

    def _virtual(self, event: "Event") -> Iterator[_Row]:
        """The track of a virtual CPU's thread: guest, exits, and user space within exits."""
        track = (_VIRTUAL_CPUS, event.pid)
        fields = event.fields
        if event.name in ("kvm_exit", "kvm_entry"):
            yield from self._close(track, 0, event.t_ns)
            vcpu = fields.get("vcpu_id", "?")
            name = f"vCPU {vcpu} ({_task(event.comm, event.pid)})"
            leaves = event.name == "kvm_exit"
            shown = str(fields.get("reason", "exit")) if leaves else "guest"
            opened = self._begin(track, name, shown, "exit" if leaves else "guest", event.t_ns)
            opened.arguments = {key: fields[key] for key in ("rip", "info1") if key in fields}
        elif event.name == "kvm_userspace_exit" and track in self.tracks:
            yield from self._end_category(track, "user", event.t_ns)
            self._begin(track, "", str(fields.get("reason", "user space")), "user", event.t_ns)


def _task(comm: str, pid: int) -> str:
    return "idle" if pid == 0 else f"{comm or '?'}-{pid}"


def _microseconds(nanoseconds: int) -> float:
    return nanoseconds / 1000


def _slice(opened: _Open, track: tuple[int, int], end_ns: int, first_ns: int) -> _Row:
    row: _Row = {
        "ph": "X",
        "name": opened.name,
        "cat": opened.category,
        "pid": track[0],
        "tid": track[1],
        "ts": _microseconds(opened.since_ns - first_ns),
        "dur": _microseconds(end_ns - opened.since_ns),
    }
    return {**row, "args": opened.arguments} if opened.arguments else row


def _instant(name: str, track: tuple[int, int], t_ns: int) -> _Row:
    process, thread = track
    return {
        "ph": "i",
        "name": name,
        "s": "t",
        "pid": process,
        "tid": thread,
        "ts": _microseconds(t_ns),
    }


def _named(kind: str, process: int, thread: int, name: str) -> _Row:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": {"name": name}}


def _marked(cause: Cause, first_ns: int) -> Iterator[_Row]:
    """A worst moment: a slice on a track of its own, and a marker across all tracks."""
    told = cause.to_json()
    name = f"#{cause.rank} {told['cause']}"
    opened = _Open(name, "worst", cause.t_ns, cause.cpu)
    opened.arguments = {
        key: told[key] for key in ("what", "latency_ns", "evidence", "confidence", "tunings")
    }
    track = (_WORST, cause.rank)
    yield _slice(opened, track, cause.t_ns + cause.latency_ns, first_ns)
    yield {**_instant(name, track, cause.t_ns - first_ns), "s": "g"}
