"""Finds where the path of an interrupt begins, and cuts it into segments."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from latenz.path.model import InterruptPath, Segment
from latenz.path.recording import Accessed, Event, Ran
from latenz.path.software import Software, Term

_WFI = {bytes.fromhex("7f2003d5"), bytes.fromhex("03f020e3"), bytes.fromhex("30bf")}
_ERET = bytes.fromhex("e0039fd6")
_WAKE_REACH = 256
"""Code between a wake-up and the interrupt that caused it is not longer than this."""


def paths(
    captures: Sequence[tuple[Event, ...]],
    software: Software,
    latencies_ns: Sequence[int] | None = None,
    tick_ns: float = 1.0,
) -> list[InterruptPath]:
    """Return the different paths of some interrupts, the most frequent first.

    Args:
        captures: The events before each interrupt's first action.
        software: What the instructions belong to.
        latencies_ns: Measured latency of each interrupt; there may be more or fewer.
        tick_ns: Tick of the timer that measured them.
    """
    found: dict[tuple[tuple[Event, ...], int], list[int]] = {}
    begins: dict[tuple[tuple[Event, ...], int], _Begin] = {}
    for number, events in enumerate(captures):
        known = latencies_ns is not None and number < len(latencies_ns)
        latency_ns = latencies_ns[number] if latencies_ns is not None and known else None
        begin = _Search(events, software).begin(latency_ns, tick_ns)
        key = (events[begin.event :], begin.instructions)
        found.setdefault(key, []).append(number)
        begins.setdefault(key, begin)
    made: list[InterruptPath] = []
    for key, numbers in found.items():
        path = _path(key[0], software, numbers, begins[key], latencies_ns, tick_ns)
        for number, each in enumerate(made):  # the emulator may cut the same code into other blocks
            if (each.begin, each.segments) == (path.begin, path.segments):
                both = each.interrupts + path.interrupts
                made[number] = each.model_copy(update={"interrupts": both})
                break
        else:
            made.append(path)
    return sorted(made, key=lambda path: (-path.interrupts, path.first))


@dataclass(frozen=True)
class _Begin:
    """Where a path begins: with an event, and with how many instructions from there to the end."""

    event: int
    instructions: int
    how: Literal["exception", "wake", "counted"]


class _Search:
    """Looks for the beginning of a path, from its end backwards."""

    def __init__(self, events: tuple[Event, ...], software: Software) -> None:
        self._events = events
        self._software = software
        self._vcpu = events[-1].vcpu
        self._before: list[Ran | None] = []  # what the interrupted CPU executed before each event
        last = None
        for event in events:
            self._before.append(last)
            if isinstance(event, Ran) and event.vcpu == self._vcpu:
                last = event

    def begin(self, latency_ns: int | None, tick_ns: float) -> _Begin:
        if latency_ns is None:
            return self._without_latency()
        # A latency in nanoseconds is rounded, hence one more at both ends.
        fitting = [
            each
            for each in self._candidates(latency_ns + tick_ns + 1)
            if each.instructions >= latency_ns - 1
        ]
        return fitting[-1] if fitting else self._counted(max(1, latency_ns))

    def _without_latency(self) -> _Begin:
        """Take the first exception that was no virtual one, and a wake-up right before it."""
        chosen = None
        for each in self._candidates(float("inf")):
            if chosen is None:
                before = self._before[each.event]
                if each.how == "wake" or (before and before.last != _ERET):
                    chosen = each
            elif each.how == "wake" and each.instructions - chosen.instructions <= _WAKE_REACH:
                return each
            else:
                return chosen
        return chosen or self._counted(1 << 62)

    def _candidates(self, most: float) -> Iterator[_Begin]:
        """Yield the places where the interrupted CPU was interrupted, the latest first."""
        instructions = 0
        for number in range(len(self._events) - 1, -1, -1):
            event = self._events[number]
            if not isinstance(event, Ran):
                continue
            instructions += event.executed
            if instructions > most:
                return
            before = self._before[number] if event.vcpu == self._vcpu else None
            if before is None:
                continue
            if before.last in _WFI and before.next_address == event.block.address:
                yield _Begin(number, instructions, "wake")
            elif _enters(self._software, before, event):
                yield _Begin(number, instructions, "exception")

    def _counted(self, wanted: int) -> _Begin:
        """Return the place so many instructions before the end, maybe in the middle of a block."""
        instructions, number = 0, len(self._events)
        while number > 0 and instructions < wanted:
            number -= 1
            event = self._events[number]
            instructions += event.executed if isinstance(event, Ran) else 0
        return _Begin(number, min(wanted, instructions), "counted")


def _enters(software: Software, before: Ran, event: Ran) -> bool:
    """Whether an exception was taken between two runs of a CPU."""
    last = before.next_address - len(before.last)
    return software.is_vector(event.block.address) and not software.in_vectors(last)


def _path(
    events: tuple[Event, ...],
    software: Software,
    numbers: list[int],
    begin: _Begin,
    latencies_ns: Sequence[int] | None,
    tick_ns: float,
) -> InterruptPath:
    first = numbers[0]
    known = latencies_ns is not None and first < len(latencies_ns)
    latency_ns = int(latencies_ns[first]) if latencies_ns is not None and known else None
    segments = _Cutter(software, events[-1].vcpu).cut(events, begin.instructions)
    instructions = sum(segment.instructions for segment in segments)
    return InterruptPath(
        first=first,
        interrupts=len(numbers),
        latency_ns=latency_ns,
        instructions=instructions,
        begin=begin.how,
        unaccounted_ns=_unaccounted(instructions, latency_ns, tick_ns),
        segments=tuple(segments),
    )


def _unaccounted(instructions: int, latency_ns: int | None, tick_ns: float) -> int:
    if latency_ns is None or latency_ns - 1 <= instructions <= latency_ns + tick_ns + 1:
        return 0
    return latency_ns - instructions


@dataclass
class _Growing:
    """A segment that is being cut."""

    program: str
    category: str
    term: Term
    symbols: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    entries: int = 0
    returns: int = 0

    def done(self) -> Segment:
        return Segment(
            program=self.program,
            category=self.category,
            term=self.term,
            instructions=self.symbols.total(),
            symbols=dict(self.symbols),
            exception_entries=self.entries,
            exception_returns=self.returns,
            device_reads=dict(self.reads),
            device_writes=dict(self.writes),
        )


class _Cutter:
    """Cuts events into segments."""

    def __init__(self, software: Software, vcpu: int) -> None:
        self._software = software
        self._vcpu = vcpu
        self._segments: list[_Growing] = []
        self._latest: dict[int, Ran] = {}
        self._caller: _Growing | None = None  # what the interrupted CPU did last

    def cut(self, events: tuple[Event, ...], instructions: int) -> list[Segment]:
        total = sum(event.executed for event in events if isinstance(event, Ran))
        skipped = total - instructions  # in the middle of the first block
        for event in events:
            if isinstance(event, Accessed):
                segment = self._at(event.vcpu, event.address)
                (segment.writes if event.store else segment.reads)[event.device] += 1
            else:
                self._run(event, skipped)
                skipped = 0
        return [segment.done() for segment in self._segments]

    def _run(self, event: Ran, skipped: int) -> None:
        executed = list(zip(event.block.addresses(), event.block.code, strict=True))
        for number, (address, code) in enumerate(executed[skipped : event.executed]):
            segment = self._at(event.vcpu, address)
            segment.symbols[self._software.place(address).symbol] += 1
            segment.entries += number == 0 and self._entered(event)
            segment.returns += code == _ERET
        self._latest[event.vcpu] = event

    def _entered(self, event: Ran) -> bool:
        before = self._latest.get(event.vcpu)
        if before is None:  # the path itself may begin with an exception
            return self._software.is_vector(event.block.address)
        return _enters(self._software, before, event)

    def _at(self, vcpu: int, address: int) -> _Growing:
        """Return the segment that an instruction belongs to: the last one, or a new one."""
        place = self._software.place(address)
        last = self._segments[-1] if self._segments else None
        term, category = place.term, place.category
        if vcpu != self._vcpu:
            term, category = Term.OTHER_CPU, f"CPU {vcpu} has its turn"
        elif category is None:  # a helper counts for its caller
            caller = self._caller
            category = place.symbol
            if caller is not None and caller.program == place.program:
                term, category = caller.term, caller.category
        if last is None or (last.program, last.category, last.term) != (
            place.program,
            category,
            term,
        ):
            last = _Growing(place.program, category, term)
            self._segments.append(last)
        if vcpu == self._vcpu:
            self._caller = last
        return last
