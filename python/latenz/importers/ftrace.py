"""Traces of the kernel's timerlat, osnoise and hwlat tracers, as text from tracefs.

timerlat prints every latency, so these sets hold samples; `t_ns` is the trace's time stamp, in
its microseconds. osnoise prints, for each period, the longest single interruption. hwlat prints
the longest gap inside and between its two time stamps. Other events in the trace are passed over.
"""

import re
from dataclasses import dataclass, field

from latenz.importers.sets import Spool
from latenz.importers.source import Source
from latenz.model import SampleSet

NAME = "ftrace"
_EVENT = re.compile(r".{0,200}?\[(\d+)\] +\S+ +(\d+\.\d+): +(\S.*)")
_TIMERLAT = re.compile(r"#(\d+) +context +(irq|thread|user) +timer_latency +(\d+) ns\s*")
_OSNOISE = re.compile(r"(\d+) +(\d+) +(\d+\.\d+) +(\d+)((?: +\d+){5})\s*")
_HWLAT = re.compile(
    r"#(\d+) +inner/outer\(us\): *(\d+)/(\d+) +ts:(\d+\.\d+)(?: +count:(\d+))?(?: +.*)?"
)
_LOST = re.compile(r"CPU:(\d+) \[LOST (\d+) EVENTS\]")
_EVENTS = {
    "irq": ("timer expiry due", "timer interrupt handler runs"),
    "thread": ("timer expiry due", "thread runs"),
    "user": ("timer expiry due", "thread back in user space"),
    "max-single": ("thread interrupted", "thread runs again"),
    "inner": ("first time stamp", "second time stamp"),
    "outer": ("second time stamp", "next first time stamp"),
}
_SECOND = 1_000_000_000


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is a trace with latencies."""
    return (
        re.search(
            rb"^# tracer: (?:timerlat|osnoise|hwlat)\s*$|#\d+ +context +(?:irq|thread|user) +"
            rb"timer_latency|#\d+ +inner/outer\(us\):",
            head,
            re.MULTILINE,
        )
        is not None
    )


@dataclass
class _Trace:
    tracer: str = ""
    sets: dict[tuple[int, str], Spool] = field(default_factory=dict)
    next_id: dict[tuple[int, str], int] = field(default_factory=dict)
    gaps: dict[tuple[int, str], int] = field(default_factory=dict)
    lost: int = 0


def read(source: Source) -> list[SampleSet]:
    """Read one set for each CPU and kind of latency."""
    trace = _Trace()
    for line, content in source.lines():
        if content.startswith("# tracer:"):
            trace.tracer = content[9:].strip()
        elif match := _LOST.search(content):
            trace.lost += source.count(match[2], line, "the number of lost events")
        elif match := _EVENT.fullmatch(content):
            _take_event(source, trace, line, match)
        elif "timer_latency" in content or "inner/outer" in content:
            raise source.bad("the trace line is damaged", line)
    return [_set(source, trace, cpu, kind) for cpu, kind in sorted(trace.sets)]


def _take_event(source: Source, trace: _Trace, line: int, match: re.Match[str]) -> None:
    cpu = source.count(match[1], line, "the CPU")
    text = match[3]
    t_ns = source.whole(match[2], _SECOND, line, "the time stamp")
    if found := _TIMERLAT.fullmatch(text):
        latency_ns = source.count(found[3], line, "the latency")
        _note_gap(trace, (cpu, found[2]), source.count(found[1], line, "the activation"))
        _append(trace, cpu, found[2], t_ns, latency_ns)
    elif found := _HWLAT.fullmatch(text):
        when = source.whole(found[4], _SECOND, line, "ts")
        for kind, group in (("inner", 2), ("outer", 3)):
            _append(trace, cpu, kind, when, source.whole(found[group], 1000, line, kind))
    elif trace.tracer == "osnoise" and (found := _OSNOISE.fullmatch(text)):
        single = source.whole(found[4], 1000, line, "the longest single noise")
        _append(trace, cpu, "max-single", t_ns, single)
    elif "timer_latency" in text or "inner/outer" in text:
        raise source.bad("the trace line is damaged", line)


def _append(trace: _Trace, cpu: int, kind: str, t_ns: int, latency_ns: int) -> None:
    spool = trace.sets.setdefault((cpu, kind), Spool("t_ns", "latency_ns"))
    spool.append(t_ns, latency_ns)


def _note_gap(trace: _Trace, key: tuple[int, str], activation: int) -> None:
    expected = trace.next_id.get(key, activation)
    trace.gaps[key] = trace.gaps.get(key, 0) + max(0, activation - expected)
    trace.next_id[key] = activation + 1


def _set(source: Source, trace: _Trace, cpu: int, kind: str) -> SampleSet:
    spool = trace.sets[cpu, kind]
    begin, end = _EVENTS[kind]
    notes = []
    if gap := trace.gaps.get((cpu, kind), 0):
        notes.append(f"{gap} activations are not in the trace")
    if trace.lost:
        notes.append(f"the kernel lost {trace.lost} events of this trace")
    if kind == "max-single":
        notes.append("one value for each period of osnoise: its longest interruption")
    return spool.sample_set(
        source.metadata(
            f"cpu{cpu}/{kind}",
            cpu=cpu,
            tool=f"{trace.tracer or 'timerlat'} tracer",
            from_event=begin,
            to_event=end,
            resolution_ns=1 if kind in ("irq", "thread", "user") else 1000,
            notes=tuple(notes),
        )
    )
