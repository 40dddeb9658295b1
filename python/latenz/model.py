"""The data model: sample sets and what is known about them.

A *sample set* holds the latencies of one source under one condition. It comes in one of three
forms (`SampleSet.form`), according to what its source kept:

`samples`
    every latency: columns `latency_ns` (int64), optionally `t_ns` (int64, when), `missed`
    (int64, activations skipped right after this sample because it was late), `handling`
    (int64, number in `HANDLINGS`) and those of `CYCLE_COLUMNS` (int64);
`histogram`
    cells: columns `latency_ns` (int64, the lowest value of the cell), `width_ns` (int64) and
    `count` (int64);
`summary`
    no columns at all: only the figures a tool printed (`Metadata.reported`).
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from latenz.allowance import DEFAULT, parse_allowance
from latenz.errors import BadInput
from latenz.terminal import printable_line

if TYPE_CHECKING:
    import pyarrow as pa

Form = Literal["samples", "histogram", "summary"]
Line = Annotated[str, AfterValidator(printable_line)]
"""One line of text that people read: what could steer a terminal is written out, as `\\x1b`."""
MOST_OF_LINE = 4096
"""Characters that are kept of a line which a file gives, such as a command."""
Nanoseconds = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""A time or a latency, as it fits in 64 bits."""
Count = Annotated[int, Field(ge=0, lt=2**62)]
"""How many there are of something."""
Handling = Literal["direct", "interposed", "delayed"]
HANDLINGS: tuple[Handling, ...] = get_args(Handling)
"""How an interrupt of a partition was handled, decided when it arrives: `direct` in its own
partition's slot, `interposed` in a foreign one with the monitor's grant, `delayed` to the own one
without."""

CYCLE_COLUMNS = (
    "response_ns",
    "execution_ns",
    "ready_ns",
    "blocked_ns",
    "timer_late_ns",
    "interrupts_ns",
    "preemptions",
    "blocks",
    "faults",
    "migrations",
)
"""What is known of each cycle of a running program, beside its latency: due until done, on a CPU,
ready without one, asleep within the cycle, due until woken (these four make up the response);
how much of `execution_ns` interrupts took; and how often each thing happened."""


class TimeBase(StrEnum):
    """What kind of clock a latency was read from; values of different time bases never mix."""

    SILICON = "silicon"
    """A real clock on real hardware (a virtual machine's own clock included)."""
    VIRTUAL = "virtual"
    """Instructions counted by an emulator."""
    SIMULATED = "simulated"
    """Computed by a simulator: from a system description, or of a hardware design."""
    PUBLISHED = "published"
    """Printed in a publication."""

    @property
    def emulated(self) -> bool:
        """No clock of hardware: what is met in such a time is not shown of silicon."""
        return self in (TimeBase.VIRTUAL, TimeBase.SIMULATED)


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Deadline(_Record):
    """A limit that latencies should stay within.

    `allowed` says how much lateness counts as meeting it, as people write it: `0`, a probability
    per activation, or a rate of late episodes (`latenz.allowance`). `burst_ns` is the longest
    burst of lateness that the deadline tolerates unseen: evidence about shares comes in blocks no
    shorter than that.
    """

    name: Line
    limit_ns: int = Field(gt=0, lt=2**63)
    allowed: Line = DEFAULT
    burst_ns: int = Field(default=1_000_000_000, gt=0, lt=2**62)
    sets: Line = "*"
    """Which sample sets it judges: a pattern of names, as in `stress/cpu*`."""

    def judges(self, name: str) -> bool:
        """Tell whether a sample set of that name is judged by it."""
        return fnmatchcase(name, self.sets)

    @model_validator(mode="before")
    @classmethod
    def _of_older_runs(cls, given: Any) -> Any:
        """Runs of before had a probability only, called `exceedance`."""
        if isinstance(given, dict) and isinstance(given.get("exceedance"), float):
            kept = {key: value for key, value in given.items() if key != "exceedance"}
            return {"allowed": repr(given["exceedance"]), **kept}
        return given

    @field_validator("allowed")
    @classmethod
    def _is_an_allowance(cls, allowed: str) -> str:
        try:
            parse_allowance(allowed)
        except BadInput as mistake:
            raise ValueError(f"{mistake.what}; {mistake.remedy}") from None
        return allowed


class WorstSample(_Record):
    """One of the latest wake-ups, with what happened on its CPU since the previous one."""

    t_ns: Nanoseconds
    latency_ns: Nanoseconds
    missed: Count = 0
    context: dict[str, int | float | str] = Field(default_factory=dict)


class Reported(_Record):
    """Figures that the source printed itself, for what the kept values cannot tell."""

    n: Count | None = None
    mean_ns: float | None = None
    median_ns: float | None = None
    min_ns: Nanoseconds | None = None
    max_ns: Nanoseconds | None = None
    jitter_ns: float | None = None
    stdev_ns: float | None = None


class Metadata(_Record):
    """What a sample set is: measured from which event to which, by what, where, under what load."""

    name: Line = Field(min_length=1)
    time_base: TimeBase
    from_event: Line = "unknown"
    to_event: Line = "unknown"
    tool: Line = "unknown"
    tool_version: Line | None = None
    bench: Line | None = None
    stack: Line | None = None
    stressor: Line | None = None
    condition: Line | None = None
    cpu: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    ran_on: dict[int, int] | None = None
    """Samples by the CPU they were taken on, where that was not `cpu` alone; None: it was, or the
    source cannot tell."""
    isolation: Line | None = None
    """What keeps other programs off the CPU, such as isolcpus; None: nothing, or not known."""
    dma_latency: Line | None = None
    """What was held in /dev/cpu_dma_latency meanwhile; None: not known."""
    smis: Count | None = None
    """System Management Interrupts of the CPU meanwhile; None: not known."""
    machine: Line | None = None
    kernel: Line | None = None
    command: Line | None = None
    """How the tool was called, where that is not the run's own command."""
    measured: Line | None = None
    """When measuring began, in ISO 8601 or as the source writes it; None: not known, or the run's
    own time."""
    priority: Annotated[int, Field(ge=0, lt=2**31)] | None = None
    """Real-time priority of the measuring thread; None: not known."""
    time_base_assumed: bool = False
    """The source does not tell which clock was read; its format's usual one was taken."""
    resolution_ns: int = Field(default=1, ge=1, lt=2**62)
    """Step of the values; a value v stands for [v, v + resolution_ns)."""
    period_ns: Annotated[int, Field(gt=0, lt=2**62)] | None = None
    observed_ns: Count | None = None
    """How long was measured, as the source tells it; None: it follows from times or the period."""
    beyond_range: Count = 0
    """Samples known only to be at or above `beyond_range_from_ns`; not among the cells."""
    beyond_range_from_ns: Nanoseconds | None = None
    missed_periods: Count | None = None
    """Activations without a sample of their own, as the source counted them; None: cannot tell."""
    overlaps: Count | None = None
    orphan_ends: Count | None = None
    open_at_end: Count | None = None
    reported: Reported | None = None
    handled: dict[Handling, float] | None = None
    """Share of the interrupts by how they were handled; None: the source cannot tell."""
    phase: Literal["learning", "monitored"] | None = None
    """Where monitors learn first and then watch: in which of the two phases the samples arrived."""
    sums_up: tuple[Line, ...] = ()
    """Names of the sets of the same run that hold the samples of these figures."""
    deadlines: tuple[Deadline, ...] = ()
    worst: tuple[WorstSample, ...] = ()
    source: Line | None = None
    """The imported file, or the publication with table and row."""
    notes: tuple[Line, ...] = ()
    """What a reader of the figures must know: corrections, doubts, lost data."""

    @property
    def elsewhere(self) -> int:
        """Samples taken on other CPUs than `cpu`, which others had moved the thread to."""
        if self.cpu is None:
            return 0
        return sum(n for cpu, n in (self.ran_on or {}).items() if cpu != self.cpu)


class SampleSet:
    """Latencies of one source under one condition, readable any number of times in batches.

    Memory stays bounded however many samples there are: nothing is kept between batches.

    Args:
        metadata: What the set is.
        form: What its source kept; see the module's text.
        batches: Called for each pass; takes the wanted column names (those the set lacks are
            left out) and gives Arrow record batches in recorded order.
        columns: The columns the set has.

    Attributes:
        peaks: For a histogram that was recorded over time: the largest latency of each second.
        path: The Parquet file that holds the values, if one does.
    """

    def __init__(
        self,
        metadata: Metadata,
        form: Form,
        batches: "Callable[[list[str]], Iterator[pa.RecordBatch]]",
        columns: tuple[str, ...],
    ) -> None:
        self.metadata = metadata
        self.form = form
        self.columns = columns
        self._batches = batches
        self.peaks: SampleSet | None = None
        self.path: Path | None = None

    @classmethod
    def from_columns(cls, metadata: Metadata, **columns: object) -> "SampleSet":
        """Make a set from whole columns (sequences or arrays of int64), kept in memory.

        Give `latency_ns` (and `t_ns`, `missed`, `handling`) for samples, `latency_ns`, `width_ns`
        and `count` for a histogram, nothing for a summary.
        """
        import pyarrow as pa

        from latenz.columns import int64_column

        if not columns:
            return cls(metadata, "summary", lambda _wanted: iter(()), ())
        batch = pa.RecordBatch.from_pydict(
            {name: int64_column(values) for name, values in columns.items()}
        )
        form: Form = "histogram" if "count" in columns else "samples"
        names = tuple(columns)

        def batches(wanted: list[str]) -> "Iterator[pa.RecordBatch]":
            yield batch.select([name for name in wanted if name in names])

        return cls(metadata, form, batches, names)

    def batches(self, *wanted: str) -> "Iterator[pa.RecordBatch]":
        """Read the set once more: batches of the wanted columns (all, if none is named)."""
        return self._batches(list(wanted or self.columns))

    def with_metadata(self, **changes: object) -> "SampleSet":
        """Return the same values under changed metadata."""
        changed = Metadata.model_validate({**self.metadata.model_dump(), **changes})
        same = SampleSet(changed, self.form, self._batches, self.columns)
        same.peaks, same.path = self.peaks, self.path
        return same
