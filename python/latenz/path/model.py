"""What is said about paths of interrupts, and how it is kept in `path.json`."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from latenz.errors import BadInput
from latenz.files import replacing
from latenz.path.software import Term

FILE_NAME = "path.json"


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
        device_reads: How many read a device, by its name in the emulator.
        device_writes: How many wrote one.
    """

    program: str
    category: str
    term: Term
    instructions: int = Field(ge=0)
    symbols: dict[str, int]
    exception_entries: int = Field(default=0, ge=0)
    exception_returns: int = Field(default=0, ge=0)
    device_reads: dict[str, int] = Field(default_factory=dict)
    device_writes: dict[str, int] = Field(default_factory=dict)


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
    def device_reads(self) -> int:
        """How many instructions read a device."""
        return sum(sum(segment.device_reads.values()) for segment in self.own())

    @property
    def device_writes(self) -> int:
        """How many instructions wrote a device."""
        return sum(sum(segment.device_writes.values()) for segment in self.own())

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


def _joined(segments: list[Segment]) -> Segment:
    """Return segments of one category as one."""
    symbols: Counter[str] = Counter()
    reads: Counter[str] = Counter()
    writes: Counter[str] = Counter()
    for segment in segments:
        symbols.update(segment.symbols)
        reads.update(segment.device_reads)
        writes.update(segment.device_writes)
    return segments[0].model_copy(
        update={
            "instructions": sum(segment.instructions for segment in segments),
            "symbols": dict(symbols),
            "exception_entries": sum(segment.exception_entries for segment in segments),
            "exception_returns": sum(segment.exception_returns for segment in segments),
            "device_reads": dict(reads),
            "device_writes": dict(writes),
        }
    )
