"""The file `windows.json` of a run: the longest windows of a kernel, and what was checked of it.

The recorder writes addresses; `name_places` puts the names of functions in their place, which a
reader finds in `windows.json`.
"""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from latenz.errors import BadInput
from latenz.linux_bound.layout import Preemption
from latenz.linux_bound.model import TERMS, Source, Steps, Terms
from latenz.path.symbols import SymbolTable

WINDOWS_FILE = "windows.json"
_LARGEST = 8 << 20
Whole = Annotated[int, Field(ge=0, lt=2**63)]
Step = tuple[Whole, Whole]
Name = Annotated[str, Field(max_length=200)]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True)


class SiteTold(_Told):
    """Where windows began and ended.

    Attributes:
        n: How many did.
        longest_ns: The longest.
        begin: Function and offset of the first instruction, and who called that function.
        end: Likewise.
    """

    n: Whole
    longest_ns: Whole
    first_wake_up: Whole = 0
    begin: tuple[Name, Name]
    end: tuple[Name, Name]

    def __str__(self) -> str:
        begin, end = (f"{at} < {caller}" if caller else at for at, caller in (self.begin, self.end))
        return begin if self.begin == self.end else f"{begin} .. {end}"


class TermTold(_Told):
    """What was seen of one kind of window."""

    n: Whole
    longest_ns: Whole
    histogram: tuple[Whole, ...] = ()
    sites: Whole = 0
    seen_once: Whole = 0
    longest_sites: tuple[SiteTold, ...] = ()


class SourceTold(_Told):
    """What was seen of one interrupt."""

    hwirq: Whole | None
    name: Name = ""
    n: Whole
    longest_ns: Whole
    horizon_ns: Whole | None = None
    distances_ns: tuple[Whole, ...] = ()
    sums_ns: tuple[Whole, ...] = ()
    steps: tuple[Step, ...] = ()

    def source(self) -> Source:
        """Return it as the theorem takes it."""
        name = self.name or ("other" if self.hwirq is None else f"hwirq {self.hwirq}")
        steps = Steps.of(self.steps, self.horizon_ns)
        return Source(name, self.n, self.longest_ns, steps, self.distances_ns, self.sums_ns)


class InterruptsTold(_Told):
    """What was seen of all interrupts together."""

    n: Whole
    longest_ns: Whole
    horizon_ns: Whole | None
    steps: tuple[Step, ...]
    sources: tuple[SourceTold, ...]


class RivalTold(_Told):
    """A thread at or above the measured one's priority, that ran."""

    pid: int
    name: Annotated[str, Field(max_length=64)]
    priority: int
    times: Whole


class ChecksTold(_Told):
    """What shows whether the theorem's conditions held."""

    schedules: Whole = 0
    wrong_counts: Whole = 0
    preempted_in_kernel: Whole = 0
    passed_over: Whole = 0
    lost: dict[Annotated[str, Field(max_length=100)], Whole] = Field(default_factory=dict)
    rivals: tuple[RivalTold, ...] = ()


class SegmentTold(_Told):
    """Wake-ups one after the other."""

    wake_ups: Whole
    longest_latency_ns: Whole
    longest_ns: Annotated[tuple[Whole, ...], Field(min_length=len(TERMS), max_length=len(TERMS))]
    steps: tuple[Step, ...]

    def terms(self) -> Terms:
        """Return its longest windows."""
        return Terms(*self.longest_ns)


class WakeUpTold(_Told):
    """One of the latest wake-ups."""

    due_ns: Whole
    latency_ns: Whole


class LatencyTold(_Told):
    """The wake-up latencies that the recorder saw itself, from due to running."""

    histogram: tuple[Whole, ...] = ()
    longest: tuple[WakeUpTold, ...] = ()


class InstructionsTold(_Told):
    """Every executed instruction."""

    all: Whole
    thread: Whole
    interrupt: Whole
    repeated: Whole = 0


class TimerlatTold(_Told):
    """What the kernel's tracer timerlat measured itself, in one of its contexts."""

    n: Whole
    longest_ns: Whole


class TraceTold(_Told):
    """What is told of windows that come from a trace of a kernel's tracepoints.

    Attributes:
        clock: That the trace was recorded with.
        events: In the trace.
        cpu: Whose windows they are.
        thread: Whose wake-ups were measured; -1: nobody was woken by a timer.
        thread_name: Its name.
        claimed: Whether the user said how the kernel preempts.
        entry_ns: The longest way from a timer's interrupt to its first event; None: never seen.
        from_sleep_ns: The same out of sleep.
        entries: Interrupts, whose ways in and out are taken as long as that.
        stolen: Events that tell of time that this kernel did not have: NMI, SMI.
        ignored_points: How often a point did not call the scheduler though it was needed.
        resolution_ns: Of the trace's times.
        inner_ns: Of each term the longest between the events themselves.
        unseen: What the trace does not show, with what to record.
        sources: Kinds of events, with how many there are.
        timerlat: By context (irq, thread, user-ret).
    """

    clock: Annotated[str, Field(max_length=64)] = ""
    events: Whole = 0
    cpu: Whole = 0
    thread: int = -1
    thread_name: Annotated[str, Field(max_length=64)] = ""
    claimed: bool = False
    entry_ns: Whole | None = None
    from_sleep_ns: Whole | None = None
    entries: Whole = 0
    stolen: Whole = 0
    ignored_points: Whole = 0
    resolution_ns: Whole = 1
    inner_ns: dict[str, Whole] = Field(default_factory=dict)
    unseen: dict[str, str] = Field(default_factory=dict)
    sources: tuple[tuple[str, Whole], ...] = ()
    timerlat: dict[Annotated[str, Field(max_length=16)], TimerlatTold] = Field(default_factory=dict)


class Windows(_Told):
    """A whole file."""

    format: Annotated[int, Field(ge=1, le=1)]
    preemptible: bool
    preemption: Preemption = "none"
    kernel: Annotated[str, Field(max_length=200)] = ""
    time_base: Annotated[str, Field(max_length=20)] = "virtual"
    condition: Annotated[str, Field(max_length=200)] = ""
    load: Annotated[str, Field(max_length=200)] = ""
    priority: int
    wake_ups: Whole
    missed: Whole = 0
    observed_ns: Whole
    instructions: InstructionsTold | None = None
    asleep_ns: Whole = 0
    checks: ChecksTold
    terms: dict[str, TermTold]
    interrupts: InterruptsTold
    latency: LatencyTold
    segments: tuple[SegmentTold, ...]
    trace: TraceTold | None = None

    def longest(self) -> Terms:
        """Return the longest windows of the whole observation."""
        return Terms(**{name: self.terms[name].longest_ns for name in TERMS})

    def joint(self) -> Steps:
        """Return what all interrupts took together."""
        return Steps.of(self.interrupts.steps, self.interrupts.horizon_ns)

    def sources(self) -> tuple[Source, ...]:
        """Return what each interrupt took."""
        return tuple(each.source() for each in self.interrupts.sources)

    @property
    def longest_latency_ns(self) -> int:
        """The largest wake-up latency seen, from due to running."""
        return max((each.longest_latency_ns for each in self.segments), default=0)


def read_windows(path: Path) -> Windows:
    """Read a file of windows.

    Raises:
        BadInput: It cannot be read, or is none.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    try:
        if len(content) > _LARGEST:
            raise ValueError("it is larger than any")
        windows = Windows.model_validate(json.loads(content))
    except (ValueError, RecursionError) as error:
        told = error.errors()[0] if isinstance(error, ValidationError) else None
        where = ".".join(map(str, told["loc"])) if told else ""
        what = f"holds no windows of a kernel ({where + ': ' if where else ''}"
        what += f"{told['msg'] if told else 'it is not JSON of that form'})"
        raise BadInput(what, str(path), "record them again, with windows = true") from None
    if missing := [name for name in TERMS if name not in windows.terms]:
        raise BadInput(f"says nothing of {missing[0]}", str(path), "record them again")
    return windows


def name_places(recorded: Path, named: Path, symbols: SymbolTable, **known: Any) -> Windows:
    """Turn what the recorder wrote into `windows.json`.

    Args:
        recorded: The recorder's file.
        named: What is written.
        symbols: The kernel's functions.
        known: What the recorder cannot know: kernel, preemption, condition, load.

    Raises:
        BadInput: The recorder wrote nothing that can be read.
    """
    try:
        content = json.loads(recorded.read_bytes())
        for term in content["terms"].values():
            for site in term["longest_sites"]:
                for end in ("begin", "end"):
                    site[end] = [_named(symbols, address) for address in site[end]]
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(recorded)) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadInput("is not a recording of windows", str(recorded), "record again") from None
    named.write_text(json.dumps({**content, **known}, separators=(",", ":")))
    return read_windows(named)


def _named(symbols: SymbolTable, address: int) -> str:
    if not address:
        return ""
    symbol = symbols.at(address)
    if symbol is None:
        return "user mode" if address < 1 << 48 else hex(address)
    offset = address - symbol.address
    return f"{symbol.name}+{offset:#x}" if offset else symbol.name
