"""Events of the Linux kernel as text: of tracefs, trace-cmd report, perf script.

The sources of `irq_handler_entry` are interrupt handlers, named `name (irq N)`. For some other
events the source is what their fields name, for all others the event itself.
"""

import re

from latenz.analysis.activations.text import (
    Collected,
    Recorded,
    printable,
    read_lines,
)
from latenz.errors import BadInput, shown
from latenz.importers import ftrace as latency_tracers
from latenz.importers.source import INT64_MAX, Source

NAME = "ftrace"
IRQ = "irq_handler_entry"
_SECOND_NS = 1_000_000_000
_BEFORE_FIELDS = (
    r".{0,200}?\[(\d{1,9})\] +(?:\S{1,40} +)?(\d{1,10})\.(\d{1,9}): +(?:\w{1,99}:)?(\w{1,99}):"
)
_EVENT = re.compile(_BEFORE_FIELDS + r"(.{0,2000})")
_HEAD = re.compile(f"^{_BEFORE_FIELDS}".encode(), re.M)
_LOST = re.compile(r"CPU:\d+ \[(?:LOST )?(?:(\d+) )?EVENTS(?: DROPPED)?\]\s*")
_BEGINS_LATE = re.compile(r"##### CPU (\d+) buffer started ####\s*")
_NAMES = {
    IRQ: "{name} (irq {irq})",
    "softirq_raise": "softirq {action}",
    "softirq_entry": "softirq {action}",
    "hrtimer_expire_entry": "{function} (cpu {cpu})",
    "local_timer_entry": "local timer (cpu {cpu})",
    "sched_wakeup": "{comm} (pid {pid})",
    "sched_waking": "{comm} (pid {pid})",
}
_FIELD_END = r"=(.*?)\]?(?= \[?\w+=|$)"
_EXAMPLE = "a line looks like: can-12 [000] d.h1. 34.567890: irq_handler_entry: irq=5 name=can0"
_CLOCK = "time stamps must be seconds: trace with the clock local, global, mono or boot"


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this holds events of the kernel.

    Traces of the latency tracers (timerlat, osnoise, hwlat) are sample sets.
    """
    if latency_tracers.matches(head):
        return False
    return head.startswith(b"# tracer:") or _HEAD.search(head) is not None


def read(source: Source, event: str) -> Recorded:
    """Read the activations by one kind of event."""
    if not re.fullmatch(r"\w{1,99}", event):
        raise BadInput(f"{shown(event)} is not an event", "--event", f"write for example {IRQ}")
    trace = _Trace(source, event)
    cut_off = read_lines(source, trace.take)
    return Recorded(
        trace.found.by_source(),
        [*cut_off, *trace.gaps()],
        f"there is no event {event}; choose with --event among: {_events(source)}",
    )


def _events(source: Source) -> str:
    """Return the kinds of events at the beginning of a trace."""
    kinds = {match[4].decode() for match in _HEAD.finditer(source.head())}
    return ", ".join(sorted(kinds)[:20]) or "none was found"


class _Trace:
    def __init__(self, source: Source, event: str) -> None:
        self.source = source
        self.event = event
        self.found = Collected()
        self.last_ns: dict[str, int] = {}
        self.names: dict[tuple[str, ...], str] = {}
        self.template = _NAMES.get(event, event)
        wanted = re.findall(r"{(\w+)}", self.template)
        self.by_cpu = "cpu" in wanted
        self.fields = {
            key: re.compile(rf"(?:^|[ \[]){key}{_FIELD_END}") for key in wanted if key != "cpu"
        }
        self.lost = 0
        self.losses = 0
        self.late_cpus: set[str] = set()

    def take(self, line: int, content: str) -> None:
        if self.event not in content:
            self._take_gap(line, content)
            return
        match = _EVENT.fullmatch(content)
        if match is None:
            if f"{self.event}:" in content:
                remedy = _CLOCK if re.search(r"\] +(\S+ +)?\d+: ", content) else _EXAMPLE
                raise self.source.bad(f"{shown(content.strip())} is damaged", line, remedy)
            return
        cpu, seconds, decimals, event, text = match.groups()
        if event != self.event:
            return
        time_ns = int(seconds) * _SECOND_NS + int(decimals.ljust(9, "0"))
        if time_ns > INT64_MAX:
            what = f"the time stamp is {seconds}.{decimals}"
            raise self.source.bad(what, line, "it must fit in 64 bits of ns")
        if time_ns < self.last_ns.get(cpu, 0):
            what = f"{time_ns} ns comes after {self.last_ns[cpu]} ns on CPU {cpu}"
            raise self.source.bad(what, line, "time stamps of a CPU must not decrease")
        self.last_ns[cpu] = time_ns
        self.found.add(self._name(line, cpu, text), time_ns)

    def _name(self, line: int, cpu: str, text: str) -> str:
        key = (cpu, text) if self.by_cpu else (text,)
        name = self.names.get(key)
        if name is None:
            name = self._new_name(line, cpu, text)
            if len(self.names) < 10_000:  # events whose every line is new would fill the memory
                self.names[key] = name
        return name

    def _new_name(self, line: int, cpu: str, text: str) -> str:
        values = {"cpu": str(int(cpu))}
        for field, pattern in self.fields.items():
            match = pattern.search(text.rstrip())
            if match is None or not match[1]:
                what = f"{self.event} has no field {field}"
                raise self.source.bad(what, line, _EXAMPLE)
            values[field] = match[1].strip()
        return printable(self.template.format(**values))

    def _take_gap(self, line: int, content: str) -> None:
        if content.startswith("CPU:") and (match := _LOST.fullmatch(content)):
            self.losses += 1
            self.lost += self.source.count(match[1] or "0", line, "the number of lost events")
        elif content.startswith("#####") and (match := _BEGINS_LATE.fullmatch(content)):
            self.late_cpus.add(match[1])

    def gaps(self) -> list[str]:
        """Return what the trace says about events it does not hold."""
        found = []
        if self.losses:
            many = f"{self.lost} events" if self.lost else "events"
            found.append(
                f"{many} were lost in {self.losses} places of the trace: distances may be shorter "
                "than observed"
            )
        if self.late_cpus:
            cpus = ", ".join(sorted(self.late_cpus, key=int))
            found.append(
                f"the recording of CPU {cpus} begins late: what came on it before is missing"
            )
        return found
