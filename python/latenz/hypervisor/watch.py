"""A run of the hypervisor while it goes on: as a table that changes, lines, or JSON."""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from latenz.analysis.show import duration_or_dash, plain_table
from latenz.boards.console import Received
from latenz.console import Console
from latenz.durations import format_duration
from latenz.files import scratch_place
from latenz.hypervisor.build import Built
from latenz.hypervisor.configuration import TRACE_RECORD_BYTES
from latenz.hypervisor.live import LiveTrace, SeenTogether
from latenz.hypervisor.memory import MEMORY_BEGIN
from latenz.hypervisor.run import MEMORY_MIB, counted, is_done, received_from
from latenz.hypervisor.trace import Statistics

RECORDS = 1 << 14
"""Of the trace so many are kept: several times what comes from one look to the next."""
_MEMORY_BEGINS = {"virt": MEMORY_BEGIN, "virt-gicv3": MEMORY_BEGIN}
"""Where boards have their memory, if not from 0 on."""
_MIB = 1 << 20
_LINE_EVERY_S, _TABLE_EVERY_S = 1.0, 0.2
_STYLES = {"stopped": "red", "off": "dim"}


def watch(
    built: Built, bench: str, *, stopped: Callable[[], bool], json: bool = False
) -> Statistics | None:
    """Boot an image and show what goes on, to its end.

    Args:
        built: The image, with a trace of `RECORDS`.
        bench: Where it is booted; an emulator.
        stopped: Asked now and then; True ends it.
        json: A line of JSON a second, and one at the end, rather than tables or lines.

    Returns:
        What the hypervisor counted; None if it was stopped before it told that.

    Raises:
        BadInput: The board failed, or said something damaged.
    """
    with tempfile.TemporaryDirectory(prefix="latenz-watch-", dir=scratch_place()) as name:
        memory = Path(name) / "memory"
        memory.touch()
        os.truncate(memory, MEMORY_MIB[bench] * _MIB)  # takes room only where it is written
        (trace,) = (each for each in built.regions if each.name == "the trace")
        begin = _MEMORY_BEGINS.get(bench, 0)
        looker = _Looker(built, bench, _traces(built, memory, trace.begin - begin), json)
        with looker.screen:
            received, _ = received_from(built, bench, None, stopped, looker.look, memory)
            looker.show()
    return counted(received)[0] if is_done(received) else None


def _traces(built: Built, memory: Path, offset: int) -> dict[int, LiveTrace]:
    """Return the trace of each processor: one lies behind the other."""
    found = {}
    for processor, kept in sorted(built.kept.items()):
        found[processor] = LiveTrace(memory, offset, kept.records)
        offset += kept.records * TRACE_RECORD_BYTES
    return found


class _Looker:
    """Takes what is new now and then, and shows it."""

    def __init__(self, built: Built, bench: str, traces: dict[int, LiveTrace], json: bool) -> None:
        self._bench, self._traces, self._json = bench, traces, json
        self._seen = SeenTogether(built.system)
        self._shown_s = 0.0
        self._live: Live | None = None
        if not json and sys.stdout.isatty():
            self._live = Live(Text("booting"), console=Console(), auto_refresh=False)
        self._every_s = _TABLE_EVERY_S if self._live else _LINE_EVERY_S
        self.screen = self._live or nullcontext()

    def look(self, received: Received) -> None:
        """Take new records, and show what there is if it is time to."""
        if received.hello is not None:
            return  # the run is over, and is being told
        self._take()
        now_s = time.monotonic()
        if self._seen.has_begun and now_s - self._shown_s >= self._every_s:
            self._shown_s = now_s
            self._show()

    def show(self) -> None:
        """Show the last of it."""
        self._take()
        if self._seen.has_begun:
            self._show()

    def _take(self) -> None:
        for processor, trace in self._traces.items():
            gaps = trace.gaps
            records = trace.new()
            self._seen.processors[processor].add(records, gap=trace.gaps > gaps)

    @property
    def _gaps(self) -> int:
        return sum(trace.gaps for trace in self._traces.values())

    def _show(self) -> None:
        if self._live:
            self._live.update(table(self._seen, self._bench, self._gaps), refresh=True)
        elif self._json:
            import json

            print(json.dumps(document(self._seen, self._gaps)), flush=True)  # noqa: T201
        else:
            print(line(self._seen, self._gaps), flush=True)  # noqa: T201


def table(seen: SeenTogether, bench: str, gaps: int) -> RenderableType:
    """Return what was seen as tables of at most 60 columns, if names are short."""
    partitions = plain_table("partition", "slots", "lost", "most", "faults", "state")
    for each in seen.partitions:
        times = (each.lost_ns, each.most_lost_ns) if each.slots else (None, None)
        state = Text(each.state, style=_STYLES.get(each.state, "green"))
        lost, most = map(duration_or_dash, times)
        row = (f"{each.slots:,}", lost, most, f"{each.faults:,}", state)
        partitions.add_row(Text(each.name), *row)
    partitions.padding = (0, 1, 0, 0)
    sources = plain_table("source", "direct", "interposed", "delayed", "masked", "latest")
    sources.padding = (0, 1, 0, 0)
    for source in seen.sources:
        counts = (f"{count:,}" for count in (*source.handled, source.masked))
        sources.add_row(Text(source.name), *counts, duration_or_dash(source.latest_ns or None))
    when = format_duration(seen.time_ns)
    head = Text(f"{bench}: {when} of virtual time, {_cycles(seen)}{_told(gaps)}")
    return Group(head, partitions, sources, Text("Ctrl-C ends it", style="dim"))


def line(seen: SeenTogether, gaps: int) -> str:
    """Return what was seen as one line."""
    handled = [sum(each.handled[way] for each in seen.sources) for way in range(3)]
    lost = max((each.most_lost_ns for each in seen.partitions), default=0)
    health = ", ".join(
        f"{each.name} {each.state}" + (f" ({each.faults} faults)" if each.faults else "")
        for each in seen.partitions
    )
    return (
        f"{format_duration(seen.time_ns)}: {_cycles(seen)}; {handled[0]} direct, "
        f"{handled[1]} interposed, {handled[2]} delayed; most lost of a slot "
        f"{format_duration(lost)}; {health}{_told(gaps)}"
    )


def document(seen: SeenTogether, gaps: int) -> dict[str, Any]:
    """Return what was seen as JSON has it."""
    sources = []
    for each in seen.sources:
        direct, interposed, delayed = each.handled
        counts = {"direct": direct, "interposed": interposed, "delayed": delayed}
        own = {"masked": each.masked, "latest_ns": each.latest_ns}
        sources.append({"name": each.name, **counts, **own})
    first = next(iter(seen.processors.values()))
    return {
        "time_base": "virtual",
        "time_ns": seen.time_ns,
        "cycles": first.cycles,
        "slot": first.slot,
        "processors": [
            {"processor": at, "time_ns": x.time_ns, "cycles": x.cycles, "slot": x.slot}
            for at, x in seen.processors.items()
        ],
        "gaps": gaps,
        "partitions": [asdict(each) for each in seen.partitions],
        "sources": sources,
    }


def _cycles(seen: SeenTogether) -> str:
    told = [f"{each.cycles:,}" for each in seen.processors.values()]
    return f"{' and '.join(told)} cycles"


def _told(gaps: int) -> str:
    return f"; {gaps} times records were overwritten unread" if gaps else ""
