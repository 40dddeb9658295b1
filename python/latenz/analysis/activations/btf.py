"""The Best Trace Format of automotive tools (BTF, versions 1.0 to 2.3).

A CSV of events, `time,source,instance,targetType,target,instance,event[,note]`, after parameters
such as `#timeScale ns`. An `activate` of a task (T) or interrupt service routine (I, before 2.1.5
ISR) counts, and `mtalimitexceeded`, an activation that came while too many were pending: it came
all the same. For an interrupt service routine without any of these its `start` is taken.
"""

import re
from fractions import Fraction

from latenz.analysis.activations.text import (
    Collected,
    Recorded,
    nanoseconds,
    printable,
    read_lines,
)
from latenz.errors import shown
from latenz.importers.source import Source

NAME = "btf"
_PARAMETERS = (
    b"version|creator|creationdate|inputfile|timescale|entitytype|entitymapping|typemapping"
    b"|entitytypemapping|entitytable|entitytypetable|typetable"
)
_HEAD = re.compile(  # a parameter, after comments at most
    rb"(?:\xef\xbb\xbf)?\s*(?:#(?: [^\r\n]*)?[\r\n]\s*)*#(?:%s)\b" % _PARAMETERS, re.I
)
_PARAMETER = re.compile(r"#(-?\w+)\s+(.*)")
_SCALES: dict[str, int | Fraction] = {
    "ps": Fraction(1, 1000),
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
}
_ACTIVATE, _TOO_MANY, _START = "activate", "mtalimitexceeded", "start"
_ISR_EVENTS = (_ACTIVATE, _TOO_MANY, _START)
_COUNTED = {"T": (_ACTIVATE, _TOO_MANY), "I": _ISR_EVENTS, "ISR": _ISR_EVENTS}
_MAPPED = {  # what gives numbers a name: `#typeMapping 0 T`, or `#typeTable` and lines `#-0 T`
    "entitymapping": "entities",
    "entitytable": "entities",
    "typemapping": "types",
    "typetable": "types",
    "entitytype": "types",
}


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is a BTF trace."""
    return _HEAD.match(head) is not None


def read(source: Source, event: str | None) -> Recorded:
    """Read a trace.

    Args:
        source: The file.
        event: Only this one counts, whatever its target's type is.
    """
    trace = _Trace(source, event)
    trace.warnings = read_lines(source, trace.take)
    return trace.recorded()


class _Trace:
    def __init__(self, source: Source, event: str | None) -> None:
        self.source = source
        self.event = event
        self.unit_ns: int | Fraction | None = None
        self.names: dict[str, dict[str, str]] = {"entities": {}, "types": {}}
        self.targets: dict[str, str] = {}
        self.table: str | None = None
        self.last_ns = 0
        self.rounded = False
        self.too_many: dict[str, int] = {}
        self.activated = Collected()
        self.started = Collected()
        self.warnings: list[str] = []

    def take(self, line: int, content: str) -> None:
        if content.startswith(("#", "\ufeff#")):
            self._take_parameter(line, content.removeprefix("\ufeff"))
        elif content.strip():
            self._take_event(line, content)

    def _take_parameter(self, line: int, content: str) -> None:
        self.targets.clear()
        match = _PARAMETER.fullmatch(content.rstrip())
        if match is None:
            self.table = _MAPPED.get(content[1:].strip().lower())
            return
        key, value = match[1].lower(), match[2].strip()
        if key.startswith("-"):
            if self.table:
                self.names[self.table][key[1:]] = value
            return
        self.table = _MAPPED.get(key)
        if self.table:
            number, _, name = value.partition(" ")
            self.names[self.table][number] = name.strip()
        elif key == "timescale":
            if value.lower() not in _SCALES:
                remedy = "the time scale is one of ps, ns, us, ms, s"
                raise self.source.bad(f"{shown(value)} is not a time scale", line, remedy)
            if self.unit_ns is not None and self.unit_ns != _SCALES[value.lower()]:
                raise self.source.bad("a second time scale", line, "give one, before all events")
            self.unit_ns = _SCALES[value.lower()]

    def _take_event(self, line: int, content: str) -> None:
        fields = content.split(",", 7)
        if len(fields) < 7:
            raise self.source.bad(
                f"{shown(content)} is not an event",
                line,
                "write time,source,instance,type,target,instance,event",
            )
        kind, event = self._name("types", fields[3]), fields[6].strip()
        if self.event is not None:
            if event == self.event:
                self.activated.add(self._target(line, fields[4]), self._time_ns(line, fields[0]))
        elif event in _COUNTED.get(kind, ()):
            self._take_usual(line, fields, event)

    def _take_usual(self, line: int, fields: list[str], event: str) -> None:
        name, time_ns = self._target(line, fields[4]), self._time_ns(line, fields[0])
        if event == _START:
            self.started.add(name, time_ns)
            return
        self.activated.add(name, time_ns)
        if event == _TOO_MANY:
            self.too_many[name] = self.too_many.get(name, 0) + 1

    def _time_ns(self, line: int, text: str) -> int:
        if self.unit_ns is None:
            remedy = "write for example #timeScale ns before the first event"
            raise self.source.bad("the unit of the time stamps is not known", line, remedy)
        time_ns, exact = nanoseconds(self.source, text.strip(), self.unit_ns, line)
        if time_ns < self.last_ns:
            what = f"{time_ns} ns comes after {self.last_ns} ns"
            raise self.source.bad(what, line, "time stamps must not decrease")
        self.last_ns = time_ns
        self.rounded |= not exact
        return time_ns

    def _name(self, table: str, text: str) -> str:
        text = text.strip()
        return self.names[table].get(text, text)

    def _target(self, line: int, text: str) -> str:
        name = self.targets.get(text)
        if name is None:
            if not (found := self._name("entities", text)):
                raise self.source.bad("the target has no name", line, "the fifth field names it")
            name = self.targets[text] = printable(found)
        return name

    def recorded(self) -> Recorded:
        """Return what was read; starts stand in for activations where there are none."""
        found = self.activated.by_source()
        for name, times in self.started.by_source().items():
            if name not in found:
                found[name] = times
                self.warnings.append(
                    f"{name} has no event {_ACTIVATE}; its start is taken, which can come later"
                )
        for name, count in self.too_many.items():
            self.warnings.append(
                f"{count} of the activations of {name} came while too many were pending, and count"
            )
        if self.rounded:
            self.warnings.append("time stamps below 1 ns were cut off: distances may err by 1 ns")
        what = self.event or f"{_ACTIVATE} of a task or interrupt service routine"
        return Recorded(found, self.warnings, f"there is no event {what}; choose with --event")
