"""Late moments of guests, explained by what happened in them and on their host at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenz.durations import format_duration
from latenz.errors import BadInput
from latenz.traces.explaining import (
    Explained,
    Looked,
    believable,
    chosen,
    looked_at,
    most_events,
    ranked,
)
from latenz.traces.host_clock import MOST_COMPARED, HostClock, host_clock
from latenz.traces.opening import open_trace
from latenz.traces.reader import RecordedTrace
from latenz.traces.scene import Scene, with_rest
from latenz.traces.vcpu import GuestWait, VcpuTime
from latenz.traces.wakeups import Window, window_of

if TYPE_CHECKING:
    from latenz.traces.causes import Cause
    from latenz.traces.model import Summary

_WORST = 10


@dataclass(frozen=True)
class Guest:
    """A guest's trace by its host's clock.

    Attributes:
        name: As trace-cmd was told it, else that of the file.
        trace: Its events.
        summary: What one pass over it tells.
        clock: How its times became the host's.
    """

    name: str
    trace: RecordedTrace
    summary: "Summary"
    clock: HostClock

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "name": self.name,
            "path": str(self.trace.path),
            "events": self.summary.events,
            "truncated_at": self.summary.truncated_at,
            "clock": self.clock.method,
            "error_ns": self.clock.error_ns,
            "checked_events": self.clock.checked,
            "events_outside": self.clock.outside,
            "compared_at_most": MOST_COMPARED if self.clock.is_cut else None,
            "vcpus": [{"cpu": cpu, "pid": pid} for cpu, pid in sorted(self.clock.vcpus.items())],
        }

    def sentence(self) -> str:
        """Return in one sentence how the clocks were joined."""
        how = {
            "time-shift": "as trace-cmd tells it in the file",
            "tsc-offset": "by the event kvm_write_tsc_offset",
            "tsc-marks": "by that event and marks of both counters",
            "matched": "by the exits that its events lie between",
        }[self.clock.method]
        told = (
            f"{self.name}: its clock was joined with the host's {how}, to "
            f"{format_duration(self.clock.error_ns)}"
        )
        if self.clock.outside:
            told += (
                f"; {self.clock.outside:,} of {self.clock.checked:,} events lie outside of the "
                "times that it ran"
            )
        elif self.clock.checked == 0:
            told += "; none of its events lies where the host's trace could confirm that"
        if self.clock.is_cut:
            told += f"; only the first {MOST_COMPARED:,} events of each were compared"
        return told


def open_guests(host: RecordedTrace, paths: Sequence[Path], worst: int) -> list[Guest]:
    """Open guests' traces and join their clocks with the host's.

    Raises:
        BadInput: One cannot be read, or not be joined.
    """
    summary = host.summary(worst)
    guests = []
    for path in paths:
        trace = open_trace(path)
        if not isinstance(trace, RecordedTrace):
            raise BadInput("has no events", str(path), "give a recorded trace of the guest")
        of_guest = trace.summary(worst)
        clock = host_clock(host, summary, trace, of_guest)
        moved = trace.by_clock(clock.argument)
        names = {each.id: each.name for each in summary.session.guests}
        name = names.get(of_guest.session.id) or path.stem
        guests.append(Guest(name, moved, moved.summary(worst), clock))
    return guests


def explain_guests(host: RecordedTrace, guests: Sequence[Guest], worst: int) -> Explained:
    """Tell why the worst moments of guests were late, with what their host did meanwhile.

    Raises:
        BadInput: A trace cannot be read.
    """
    names = {
        pid: f"vCPU {cpu} of {guest.name}"
        for guest in guests
        for cpu, pid in guest.clock.vcpus.items()
    }
    causes: list[Cause] = []
    notes = [guest.sentence() for guest in guests]
    for guest in guests:
        found, more = _of_guest(host, guest, names, worst)
        causes += found
        notes += more
    return Explained(tuple(ranked(causes)[:worst]), tuple(notes))


def with_guests(host: Path, paths: Sequence[Path], explained: Explained) -> Explained:
    """Add why guests of a traced host were late to why the host's own worst moments were.

    A guest's trace that cannot be read or joined costs a note.
    """
    opened = open_trace(host)
    if not paths or not isinstance(opened, RecordedTrace):
        return explained
    try:
        found = explain_guests(opened, open_guests(opened, paths, _WORST), _WORST)
    except BadInput as mistake:
        note = f"the guest's trace could not be joined with the host's: {mistake.what}"
        return Explained(explained.causes, (*explained.notes, note))
    causes = ranked([*explained.causes, *found.causes])
    return Explained(tuple(causes), (*explained.notes, *found.notes))


def _of_guest(
    host: RecordedTrace, guest: Guest, names: dict[int, str], worst: int
) -> "tuple[list[Cause], list[str]]":
    """Explain the worst of one guest that the host's trace covers."""
    on_host = host.summary(worst)
    candidates = [
        window_of(each)
        for each in guest.summary.worst
        if each.kind != "gap" and believable(each, guest.summary)
    ]
    covered = [
        each
        for each in candidates
        if on_host.start_ns <= each.start_ns and each.end_ns <= on_host.end_ns
    ]
    notes = []
    if len(covered) < len(candidates):
        missing = len(candidates) - len(covered)
        notes.append(f"{guest.name}: {missing} late moments are not in the host's trace")
    windows = chosen(covered, worst)
    most = most_events(windows) // 2
    pairs = zip(
        windows,
        looked_at(guest.trace, guest.summary, windows, most),
        looked_at(host, on_host, windows, most),
        strict=True,
    )
    found = []
    for window, inside, outside in pairs:
        cause = _Story(guest, on_host, names, inside, outside).cause(window)
        found.append(replace(cause, guest=guest.name))
        length_ns = min(inside.length_ns, outside.length_ns)
        if length_ns < window.latency_ns:
            whole, part = format_duration(window.latency_ns), format_duration(length_ns)
            notes.append(f"{window.what()}: of {whole} only the first {part} were looked at")
    return found, notes


class _Story:
    """One late moment: the events of the guest and of its host around it."""

    def __init__(
        self,
        guest: Guest,
        on_host: "Summary",
        names: dict[int, str],
        inside: Looked,
        outside: Looked,
    ) -> None:
        self._guest = guest
        self._names = names
        self._on_host = on_host
        self._looked_ns = min(inside.length_ns, outside.length_ns)
        self._inside = inside
        self._outside = outside

    def cause(self, window: Window) -> "Cause":
        """Return why it was late."""
        end_ns = window.start_ns + min(self._looked_ns, window.latency_ns)
        known = replace(window, end_ns=end_ns)
        inside, outside = self._inside, self._outside
        guest = Scene(inside.events, inside.start_ns, self._guest.summary.losses, end_ns)
        host = Scene(outside.events, outside.start_ns, self._on_host.losses, end_ns)

        def vcpu_of(cpu: int) -> VcpuTime | None:
            pid = self._guest.clock.vcpus.get(cpu)
            if pid is None:
                return None
            vcpu = Window("timer", known.start_ns, known.end_ns, -1, pid, vcpu=str(cpu))
            losses = self._on_host.losses
            return VcpuTime(host, outside.events, vcpu, self._names, losses)

        cause = GuestWait(guest, guest.wakings.refined(known), vcpu_of).cause(0)
        return cause if end_ns == window.end_ns else with_rest(cause, window)
