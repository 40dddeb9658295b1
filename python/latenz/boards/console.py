"""What a board sends over its serial lines: frames with results, and lines for people."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from latenz._core import EndFrame, FileFrame, FrameReader, SamplesFrame, TextFrame

_DISASTERS = re.compile(
    r"Kernel panic - not syncing.*|Panic on CPU \d+:?.*|Xen BUG at .*|Unable to handle kernel .*"
    r"|Internal error: .*|Attempted to kill init.*|FATAL TRAP.*|\bnot found; boot stopped.*"
)
_KEPT_LINES = 2000


@dataclass
class Stream:
    """Samples of one interrupt source, as they were received.

    Attributes:
        latency_ticks: One for each interrupt, in ticks of the source's timer.
        interarrival_ticks: Ticks from the event before to each event.
        sender: Who sent them.
        gaps: Whether samples in between are missing.
        complete: Whether the sender's own count and checksum confirm them.
    """

    latency_ticks: list[int] = field(default_factory=list)
    interarrival_ticks: list[int] = field(default_factory=list)
    sender: int = 0
    gaps: bool = False
    complete: bool = False


@dataclass
class Received:
    """Everything that a board has sent.

    Attributes:
        hello: What the firmware says of itself: program, board, timer and its frequency.
        streams: Samples by the number of their stream.
        files: Whole files by name, as programs under Linux send them.
        notes: What programs tell in passing, in order.
        faults: What ended a program of ours: exceptions with their registers.
        fault_sender: Who told the first of them; None: nobody.
        disasters: Lines that tell of the end of a kernel or a hypervisor.
        lines: The last lines for people.
        damaged: Frames that arrived with errors.
        missing: Frames that did not arrive at all.
        frames: Frames that arrived whole.
        ended: Senders whose last frame has come.
    """

    hello: dict[str, Any] | None = None
    streams: dict[int, Stream] = field(default_factory=dict)
    files: dict[str, bytearray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    fault_sender: int | None = None
    disasters: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    damaged: int = 0
    missing: int = 0
    frames: int = 0
    ended: set[int] = field(default_factory=set)

    @property
    def last_words(self) -> str:
        """The last line for people that is not empty."""
        return next((line for line in reversed(self.lines) if line), "the board said nothing")

    @property
    def disaster(self) -> str | None:
        """What ended the software on the board before it was done; None if nothing did."""
        return next(iter([*self.faults, *self.disasters]), None)


class Collector:
    """Turns what comes over the serial lines of a board into what was received.

    Args:
        lines: How many serial lines there are.

    Attributes:
        received: All so far.
    """

    def __init__(self, lines: int = 1) -> None:
        self.received = Received()
        self._readers = [FrameReader() for _ in range(lines)]
        self._unread = 0

    def feed(self, data: Iterable[tuple[int, bytes]]) -> None:
        """Take what has come, with the number of the line."""
        for line, characters in data:
            for each in self._readers[line].feed(characters):
                self._take(each)
        self._count()

    def finish(self) -> None:
        """Take what stands in unfinished lines; nothing more will come."""
        for reader in self._readers:
            for each in reader.finish():
                self._take(each)
        self._count()

    def _count(self) -> None:
        self.received.damaged = self._unread + sum(reader.damaged for reader in self._readers)
        self.received.missing = sum(reader.missing for reader in self._readers)

    def _take(self, found: "str | TextFrame | SamplesFrame | FileFrame | EndFrame") -> None:
        if isinstance(found, str):
            self._take_line(found)
            return
        self.received.frames += 1
        if isinstance(found, TextFrame):
            self._take_text(found)
        elif isinstance(found, SamplesFrame):
            stream = self.received.streams.setdefault(found.stream, Stream(sender=found.sender))
            stream.gaps |= found.first != len(stream.latency_ticks)
            stream.latency_ticks += found.latency_ticks.tolist()
            stream.interarrival_ticks += found.interarrival_ticks.tolist()
        elif isinstance(found, FileFrame):
            # A piece that is missing is counted as such; what follows it is not kept.
            files = self.received.files
            if found.offset == len(files.get(found.name, b"")):
                files.setdefault(found.name, bytearray()).extend(found.data)
        else:
            self._take_end(found)

    def _take_line(self, line: str) -> None:
        self.received.lines.append(line)
        del self.received.lines[:-_KEPT_LINES]
        if disaster := _DISASTERS.search(line):
            _keep(self.received.disasters, disaster.group())

    def _take_text(self, found: TextFrame) -> None:
        if found.kind == "note":
            _keep(self.received.notes, found.text)
        elif found.kind == "fault":
            if not self.received.faults:
                self.received.fault_sender = found.sender
            _keep(self.received.faults, found.text)
        else:
            try:
                hello = json.loads(found.text)
            except (ValueError, RecursionError):
                self._unread += 1
                return
            self.received.hello = hello if isinstance(hello, dict) else None

    def _take_end(self, found: EndFrame) -> None:
        self.received.ended.add(found.sender)
        for number in found.samples:
            if number in self.received.streams:
                self.received.streams[number].complete = found.complete


def _keep(texts: list[str], text: str) -> None:
    """Keep a text, unless the board tells without end."""
    if len(texts) < _KEPT_LINES:
        texts.append(text)
