"""The path of an interrupt: where the instructions of its latency went.

The latency of one interrupt is cut into segments by what the executed instructions belong to, and
summed up by the terms of Eq. (1) of Alonso et al., Electronics 2024, 13, 1626:
t = t_irq + t_hyp + t_os + t_user. It holds for emulated boards, whose time is the number of
executed instructions (1 ns each): the instructions of a path are exactly its latency, to within one
tick of the timer that measured it. The emulator takes no time to raise and to take an interrupt, so
t_irq is 0 here, which it is on no silicon.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from latenz.errors import BadInput
from latenz.explain.recording import Accessed, Event, Ran, read_recording
from latenz.explain.software import Software, Term
from latenz.explain.symbols import SymbolTable
from latenz.files import replacing
from latenz.programs import probe_program

FILE_NAME = "path.json"
_RECORDING = "path.txt"
_WFI = {bytes.fromhex("7f2003d5"), bytes.fromhex("03f020e3"), bytes.fromhex("30bf")}
_ERET = bytes.fromhex("e0039fd6")
_WAKE_REACH = 256
"""Code between a wake-up and the interrupt that caused it is not longer than this."""


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Segment(_Record):
    """Instructions executed one after the other that do one thing.

    Attributes:
        program: What they belong to.
        category: What they do.
        term: What they count for in Eq. (1).
        instructions: How many were executed; each is 1 ns of virtual time.
        symbols: The same, by function.
        exception_entries: How many exceptions were taken to get there.
        exception_returns: How many of them return from an exception.
        device_accesses: How many reached a device, by its name in the emulator.
    """

    program: str
    category: str
    term: Term
    instructions: int = Field(ge=0)
    symbols: dict[str, int]
    exception_entries: int = Field(default=0, ge=0)
    exception_returns: int = Field(default=0, ge=0)
    device_accesses: dict[str, int] = Field(default_factory=dict)


class InterruptPath(_Record):
    """A path, and how many of the recorded interrupts took it.

    Attributes:
        first: Number of the first interrupt that took it, from 0.
        interrupts: How many took it.
        latency_ns: Measured latency of the first one; None: not given.
        instructions: How many instructions it has; each is 1 ns of virtual time.
        begin: How its beginning was found: `exception`, where the interrupt was taken; `wake`,
            where a sleeping core woke up; `counted`, from the measured latency alone, because the
            interrupt was raised while it was masked: then it is known to within one tick.
        unaccounted_ns: How far the number of instructions lies outside of the measured latency and
            its tick; 0 unless the emulator itself loses time. 0 also if no latency was given.
        segments: In the order of execution.
    """

    first: int = Field(ge=0)
    interrupts: int = Field(ge=1)
    latency_ns: int | None
    instructions: int = Field(ge=1)
    begin: Literal["exception", "wake", "counted"]
    unaccounted_ns: int
    segments: tuple[Segment, ...]

    @model_validator(mode="after")
    def _nothing_is_lost(self) -> Self:
        for segment in self.segments:
            if sum(segment.symbols.values()) != segment.instructions:
                raise ValueError(f"the functions of {segment.category!r} do not sum up")
        if sum(segment.instructions for segment in self.segments) != self.instructions:
            raise ValueError("the segments do not sum up to the path")
        return self

    def terms(self) -> dict[Term, int]:
        """Return the instructions of each term, those of Eq. (1) always among them."""
        found = Counter(dict.fromkeys((Term.IRQ, Term.HYP, Term.OS, Term.USER), 0))
        for segment in self.segments:
            found[segment.term] += segment.instructions
        return dict(found)

    def categories(self) -> list[Segment]:
        """Return the segments with all of one category together, in the order of the first ones."""
        together: dict[tuple[str, str, Term], list[Segment]] = {}
        for segment in self.segments:
            key = (segment.program, segment.category, segment.term)
            together.setdefault(key, []).append(segment)
        return [_joined(segments) for segments in together.values()]

    @property
    def exception_entries(self) -> int:
        """How many exceptions were taken."""
        return sum(segment.exception_entries for segment in self.own())

    @property
    def exception_returns(self) -> int:
        """How many exceptions were returned from."""
        return sum(segment.exception_returns for segment in self.own())

    @property
    def device_accesses(self) -> int:
        """How many instructions reached a device."""
        return sum(sum(segment.device_accesses.values()) for segment in self.own())

    def own(self) -> Iterator[Segment]:
        """Yield the segments of the interrupted CPU."""
        return (segment for segment in self.segments if segment.term is not Term.OTHER_CPU)


class PathFile(_Record):
    """What stands in `path.json`.

    Attributes:
        format: Version of this schema.
        time_base: Always `virtual`: instructions counted by an emulator.
        tick_ns: Tick of the timer that measured the latencies.
        paths: The different paths, the most frequent one first.
    """

    format: Literal[1] = 1
    time_base: Literal["virtual"] = "virtual"
    tick_ns: float = Field(gt=0)
    paths: tuple[InterruptPath, ...]

    def save(self, folder: Path) -> Path:
        """Write `path.json` into a folder; return it.

        Raises:
            BadInput: It cannot be written.
        """
        target = folder / FILE_NAME
        with replacing(target) as partial:
            partial.write_text(self.model_dump_json(indent=1), encoding="utf-8")
        return target

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a `path.json`.

        Raises:
            BadInput: It cannot be read, or is none.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except OSError as error:
            raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            what = f"holds no paths: {place} {first['msg']}"
            raise BadInput(what, str(path), "record them again") from None


class Recorder:
    """Records paths while an emulator runs.

    Give `arguments` to the emulator; when it has ended, `read` what was recorded.

    Args:
        folder: Takes the recording.
        handlers: Addresses of the functions that handle the measured interrupt; the first counter
            or device that one reads is its first action, where the path ends.
        captures: How many interrupts are recorded at most.
        skip: How many entries into handlers go before the first measured one.
    """

    def __init__(self, folder: Path, handlers: Sequence[int], captures: int, skip: int = 0) -> None:
        if not handlers or captures < 1 or skip < 0:
            raise ValueError("handlers and captures are needed")
        self._recording = folder / _RECORDING
        self._handlers = tuple(handlers)
        self._captures = captures
        self._skip = skip

    def arguments(self) -> tuple[str, ...]:
        """Return what makes QEMU record.

        Raises:
            BadInput: The recorder is not installed.
        """
        plugin = _escaped(probe_program("latenz-path-recorder.so"))
        handlers = ",".join(f"handler={address:#x}" for address in self._handlers)
        output = _escaped(self._recording)
        counts = f"captures={self._captures},skip={self._skip}"
        return ("-plugin", f"file={plugin},{handlers},{counts},output={output}")

    def read(
        self,
        software: Software,
        latencies_ns: Sequence[int] | None = None,
        tick_ns: float = 1.0,
        keep: bool = False,
    ) -> PathFile:
        """Return the different paths of the recorded interrupts.

        Args:
            software: What the instructions belong to.
            latencies_ns: Measured latency of each interrupt, in the order of recording; they decide
                where a path begins that could begin in several places.
            tick_ns: Tick of the timer that measured them; a latency v stands for [v, v + tick).
            keep: Leave the recording in the folder.

        Raises:
            BadInput: There is no recording, or it is damaged or empty.
        """
        captures = read_recording(self._recording).captures
        if not captures:
            raise BadInput(
                "holds no interrupt", str(self._recording), "see whether the handler ever ran"
            )
        found = paths(captures, software, latencies_ns, tick_ns)
        if not keep:
            self._recording.unlink(missing_ok=True)
        return PathFile(tick_ns=tick_ns, paths=tuple(found))


def handlers(symbols: SymbolTable, pattern: str = "::on_interrupt(") -> tuple[int, ...]:
    """Return where the functions begin whose names hold a text; by default the firmware's handlers.

    Raises:
        BadInput: There is none.
    """
    found = tuple(symbol.address for symbol in symbols if pattern in symbol.name)
    if not found:
        raise BadInput(f"there is no function {pattern!r}", "the firmware", "build it again")
    return found


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
    made = [
        _path(key[0], software, numbers, begins[key], latencies_ns, tick_ns)
        for key, numbers in found.items()
    ]
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
        """Return the place so many instructions before the end, in the midst of a block maybe."""
        instructions, number = 0, len(self._events)
        while number > 0 and instructions < wanted:
            number -= 1
            event = self._events[number]
            instructions += event.executed if isinstance(event, Ran) else 0
        return _Begin(number, min(wanted, instructions), "counted")


def _enters(software: Software, before: Ran, event: Ran) -> bool:
    """Whether an exception was taken between two runs of a CPU."""
    vectors = software.vector(event.block.address)
    if vectors is None:
        return False
    last = before.next_address - len(before.last)
    return not vectors.address <= last < vectors.end


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
    devices: Counter[str] = field(default_factory=Counter)
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
            device_accesses=dict(self.devices),
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
        skipped = total - instructions  # in the midst of the first block
        for event in events:
            if isinstance(event, Accessed):
                self._at(event.vcpu, event.address).devices[event.device] += 1
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
            return self._software.vector(event.block.address) is not None
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


def _joined(segments: list[Segment]) -> Segment:
    """Return segments of one category as one."""
    symbols: Counter[str] = Counter()
    devices: Counter[str] = Counter()
    for segment in segments:
        symbols.update(segment.symbols)
        devices.update(segment.device_accesses)
    return segments[0].model_copy(
        update={
            "instructions": sum(segment.instructions for segment in segments),
            "symbols": dict(symbols),
            "exception_entries": sum(segment.exception_entries for segment in segments),
            "exception_returns": sum(segment.exception_returns for segment in segments),
            "device_accesses": dict(devices),
        }
    )


def _escaped(path: Path) -> str:
    """Write a path as a value in QEMU's options, where a comma separates."""
    return os.fspath(path).replace(",", ",,")
