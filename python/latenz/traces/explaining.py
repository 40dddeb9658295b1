"""From a trace to the causes of its worst moments."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from latenz.durations import format_duration
from latenz.errors import BadInput
from latenz.traces.causes import Cause
from latenz.traces.explanation import explain_wait
from latenz.traces.join import Late, samples_of, within
from latenz.traces.opening import open_trace
from latenz.traces.scene import Scene
from latenz.traces.wakeups import Window, clock_shift_ns, window_of

if TYPE_CHECKING:
    from latenz.traces.model import Candidate, Event, Summary, Trace

_ENOUGH_EVENTS = 300
_SMALLEST_MARGIN_NS, _LARGEST_MARGIN_NS = 1_000_000, 10_000_000
_MOST_EVENTS = 100_000  # of all waits; so many are gone through in some two seconds
_FEWEST_EVENTS = 500  # of each wait, however many there are
_SAME_CLOCK_NS = 50_000
_OF_WAITS = ("sched_switch", "sched_waking", "sched_wakeup")


@dataclass(frozen=True)
class Explained:
    """Why the worst moments of a trace were late.

    Attributes:
        causes: The longest wait first.
        notes: What could not be told, and why; one sentence each.
    """

    causes: tuple[Cause, ...]
    notes: tuple[str, ...] = ()


def explain(trace: "Trace", worst: int = 10, samples: Path | None = None) -> Explained:
    """Tell why the worst moments of a trace were late.

    Args:
        trace: What was recorded.
        worst: How many to explain.
        samples: A run, or a file of samples: explain its worst samples in place of what the trace
            itself shows.

    Raises:
        BadInput: The samples or the trace cannot be read.
    """
    if samples is not None:
        late = samples_of(samples, worst)
        if not late:
            raise BadInput(
                "has no samples with times of a traced machine's own clock",
                str(samples),
                "give a run of the engine wakeup on that machine, not in a virtual one or a board",
            )
        return explain_late(trace, late)
    summary = trace.summary(worst)
    candidates = [window_of(each) for each in summary.worst if believable(each, summary)]
    waits = [each for each in candidates if each.kind != "gap"]
    gaps = [each for each in candidates if each.kind == "gap"]
    found, notes = _explained(trace, summary, chosen(waits, worst))
    more, _ = _explained(trace, summary, chosen(gaps, worst))
    sure = [each for each in more if not found or _is_sure_gap(each)]
    causes = tuple(ranked([*found, *sure])[:worst])
    return Explained(causes, tuple(notes) if causes else (*notes, *_why_none(summary)))


def _why_none(summary: "Summary") -> list[str]:
    """Return which events a trace lacks without which nobody's wait can be told."""
    if summary.names is None:
        return []
    missing = [each for each in _OF_WAITS if each not in summary.names]
    if "sched_switch" not in missing and len(missing) < 2:
        return []
    names = ", ".join(missing)
    return [
        f"nobody's wait can be told without events ({names}): record sched, irq, irq_vectors, "
        "timer and power:cpu_idle"
    ]


def explain_late(trace: "Trace", late: Sequence[Late]) -> Explained:
    """Tell why samples were late that were measured while a trace was recorded.

    Args:
        trace: What was recorded.
        late: The samples, by CLOCK_MONOTONIC.
    """
    known, unplaced = _placed(late)
    causes, notes = _covered(trace, known)
    missing = _missing(len(late), len(known) - len(causes), notes)
    return Explained(tuple(causes), (*unplaced, *notes, *missing))


def explain_in(paths: Sequence[Path], late: Sequence[Late]) -> Explained:
    """Tell why samples were late, each by the first of several traces that has it.

    Without samples whose times are known: why the worst moments of the first trace were late.

    Raises:
        BadInput: A trace cannot be read.
    """
    if not late:
        return explain(open_trace(paths[0])) if paths else Explained(())
    rest, unplaced = _placed(late)
    causes: list[Cause] = []
    notes: list[str] = []
    for path in paths if rest else ():
        found, more = _covered(open_trace(path), rest)
        causes += found
        notes += more
        told = {(cause.t_ns, cause.cpu) for cause in found}
        rest = [each for each in rest if (each.t_ns, each.cpu) not in told]
    notes += _missing(len(late), len(rest), notes)
    return Explained(tuple(ranked(causes)), (*unplaced, *notes))


def _placed(late: Sequence[Late]) -> tuple[list[Late], list[str]]:
    """Return the samples that tell their CPU, and a note about the others."""
    known = [each for each in late if each.cpu is not None]
    if len(known) == len(late):
        return known, []
    count = f"{len(late) - len(known)} of the {len(late)} worst samples"
    return known, [f"{count} do not tell their CPU: keep what measures on one (cpus = [1])"]


def _covered(trace: "Trace", late: Sequence[Late]) -> tuple[list[Cause], list[str]]:
    """Explain those samples that lie in a trace."""
    summary = trace.summary(1)
    reason = _clocks_differ(trace, summary)
    if reason is not None:
        return [], [f"the samples cannot be found in the trace: {reason}"]
    covered = within(late, summary.start_ns, summary.end_ns)
    return _explained(trace, summary, [each.window() for each in covered])


def _missing(samples: int, missing: int, notes: Sequence[str]) -> list[str]:
    if not missing or notes:
        return []
    return [f"{missing} of the {samples} worst samples are not in the trace"]


def believable(candidate: "Candidate", summary: "Summary") -> bool:
    """Return whether it was late at all, and no timer that may have been cancelled untraced."""
    is_late = candidate.latency_ns > 0  # what took less than the clock's resolution is not
    return is_late and (candidate.kind != "gap" or "hrtimer_cancel" in (summary.names or {}))


def _clocks_differ(trace: "Trace", summary: "Summary") -> str | None:
    """Return why samples' times mean nothing in a trace; None if its clock is CLOCK_MONOTONIC."""
    clock = summary.clock
    if clock == "mono":
        return None
    first_second = (summary.start_ns, summary.start_ns + 1_000_000_000)
    events = list(trace.events([first_second], _MOST_EVENTS))
    shift_ns = clock_shift_ns(events)
    known = f"its clock is {clock}" if clock else "its clock is not told"
    if shift_ns is None:
        return f"{known}, and it has no timer events to compare with; record it with -C mono"
    if abs(shift_ns) > _SAME_CLOCK_NS:
        apart = format_duration(abs(shift_ns))
        return f"{known}, {apart} away from CLOCK_MONOTONIC; record it with -C mono"
    return None


def chosen(windows: Sequence[Window], most: int) -> list[Window]:
    """Return the longest windows, without those that are a part of another one's story."""
    kept: list[Window] = []
    for each in sorted(windows, key=lambda window: -window.latency_ns):
        told = any(
            other.pid == each.pid
            and other.start_ns <= each.start_ns
            and each.end_ns <= other.end_ns
            for other in kept
            if each.pid is not None
        )
        if not told and len(kept) < most:
            kept.append(each)
    return kept


def _explained(
    trace: "Trace", summary: "Summary", windows: Sequence[Window]
) -> tuple[list[Cause], list[str]]:
    """Explain windows in the order of their lengths, reading the trace once.

    Of windows with very many events only the beginning is looked at, so that time and memory stay
    bounded: each has its share of the events, whatever the others take.
    """
    most = most_events(windows)
    found, notes = [], []
    for window, looked in zip(windows, looked_at(trace, summary, windows, most), strict=True):
        end_ns = None
        if looked.length_ns < window.latency_ns:
            end_ns = window.start_ns + looked.length_ns
            length, part = format_duration(window.latency_ns), format_duration(looked.length_ns)
            notes.append(f"{window.what()}: of {length} only the first {part} were looked at")
        scene = Scene(looked.events, looked.start_ns, summary.losses, end_ns)
        found.append(explain_wait(scene, window, 0, looked.length_ns))
    return ranked(found), notes


def most_events(windows: Sequence[Window]) -> int:
    """Return how many events of each window are looked at."""
    return max(_FEWEST_EVENTS, _MOST_EVENTS // max(1, len(windows)))


def ranked(causes: Sequence[Cause]) -> list[Cause]:
    """Return causes with their ranks, the longest wait first."""
    ordered = sorted(causes, key=lambda cause: -cause.latency_ns)
    return [replace(each, rank=rank) for rank, each in enumerate(ordered, 1)]


def _is_sure_gap(cause: Cause) -> bool:
    """Return whether the CPU was surely gone; else nobody waited for its timer who matters."""
    return cause.first.cause == "smi-like-gap" and cause.first.confidence != "perhaps"


def _surroundings(window: Window, summary: "Summary") -> tuple[int, int]:
    """Return a window with enough around it to see who ran and how busy the other CPUs are."""
    length_ns = summary.end_ns - summary.start_ns
    enough_ns = _ENOUGH_EVENTS * length_ns // max(1, summary.events)
    margin_ns = min(_LARGEST_MARGIN_NS, max(_SMALLEST_MARGIN_NS, enough_ns))
    start_ns = max(summary.start_ns, window.start_ns - margin_ns)
    return min(start_ns, window.start_ns), max(
        window.end_ns, min(summary.end_ns, window.end_ns + margin_ns // 2)
    )


class Looked(NamedTuple):
    """What is looked at of a wait, and around it."""

    events: "Sequence[Event]"
    start_ns: int  # when they begin, a while before the window
    length_ns: int  # how much of the window they cover


def looked_at(
    trace: "Trace", summary: "Summary", windows: Sequence[Window], most: int
) -> Iterator[Looked]:
    """Yield the first events of each window, after those of the time before, read in one go."""
    spans = [_surroundings(each, summary) for each in windows]
    parts = [
        part
        for window, (start_ns, end_ns) in zip(windows, spans, strict=True)
        for part in ((start_ns, window.start_ns - 1), (window.start_ns, end_ns))
        if part[0] <= part[1]
    ]
    events = sorted(trace.events(parts, most), key=lambda event: event.t_ns)  # damaged ones go back
    times = [event.t_ns for event in events]
    for window, (start_ns, end_ns) in zip(windows, spans, strict=True):
        first, begin = bisect_left(times, start_ns), bisect_left(times, window.start_ns)
        if begin - first >= most:  # perhaps not up to where the window begins
            first, start_ns = begin, window.start_ns
        end, length_ns = bisect_right(times, end_ns), window.latency_ns
        if end - begin >= most:
            end = begin + most
            length_ns = min(length_ns, times[end - 1] - window.start_ns)
        yield Looked(events[first:end], start_ns, length_ns)
