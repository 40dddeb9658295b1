"""What the hypervisor tells of a run: hypervisor/src/core/trace.hpp, and its statistics."""

import json
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from latenz.errors import BadInput
from latenz.installation import remedy

Times = npt.NDArray[np.int64]
Records = npt.NDArray[Any]
"""Trace records, of the type `RECORD`."""

RECORD = np.dtype(
    [
        ("start", "<u8"),
        ("duration", "<u4"),
        ("value", "<u4"),
        ("kind", "u1"),
        ("partition", "u1"),
        ("source", "<u2"),
        ("detail", "<u4"),
    ]
)
TRACE_FILE, STATISTICS_FILE = "trace.bin", "statistics.json"
_SECOND_NS = 1_000_000_000


class Kind(IntEnum):
    """What a record tells, `TraceKind`."""

    SLOT_SWITCH = 1
    TOP_HANDLER = 2
    JOB_START = 3
    JOB_END = 4
    BOTTOM_END = 5
    CATCH_UP = 6
    LIMIT = 7
    PROGRESS = 8
    """Its field `source` has the partition's state in two bits, above them its faults."""


HANDLING_MASK, ACCEPTED, ASKED, MONITOR_SHIFT = 0x3, 1 << 2, 1 << 3, 16
"""Bits of the detail of top handlers, `TopDetail`."""


def trace_file(processor: int) -> str:
    """Return the name of the file of a processor's trace."""
    return f"trace-{processor}.bin" if processor else TRACE_FILE


MOST_TICKS = 1 << 62
"""What no time of the system counter reaches, at 1 GHz in 146 years."""
Ticks = Annotated[int, Field(gt=-MOST_TICKS, lt=MOST_TICKS)]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True)  # a later hypervisor may tell more


class SourceStatistics(_Told):
    """What the hypervisor counted of a source."""

    name: str
    raised: int
    completed: int
    direct: int = 0
    interposed: int = 0
    delayed: int = 0
    denied: int = 0
    overruns: int = 0
    overflowed: int = 0
    dropped: int = 0
    masked: int = 0
    """Times that it exceeded its limit; those interrupts are not counted as raised."""
    learned_ticks: tuple[int, ...] = ()


class PartitionStatistics(_Told):
    """What became of a partition."""

    name: str
    state: str
    faults: int = 0
    expiries: int = 0
    """Those of the faults that were its watchdog's."""
    restarts: int = 0
    progress: int = 0
    lost_lines: int = 0


class ProcessorStatistics(_Told):
    """What is of one processor with slots."""

    cpu: int = 0
    epoch_tick: Ticks
    """Start of the first TDMA cycle."""
    cycles: int
    trap_ticks: Ticks
    """What entering the hypervisor and leaving it takes, outside of all records."""
    longest_service_ticks: Ticks = 0
    """The longest visit that a guest caused and that no record tells: a trap, its own timer."""
    spurious_entries: int = 0
    """Interrupts that were gone when the hypervisor was entered."""
    records_written: int
    records_kept: int
    latest_slot_ticks: Ticks = 0
    """The longest from a slot's start to its switch."""


class Statistics(ProcessorStatistics):
    """The file `statistics.json`, which follows the traces.

    Its own fields are those of the first processor with slots.
    """

    counter_hz: int = Field(gt=0, le=_SECOND_NS)
    idle_errors: int = 0
    """Asynchronous errors that no guest can have caused."""
    others: tuple[ProcessorStatistics, ...] = ()
    """The other processors with slots."""
    sources: tuple[SourceStatistics, ...]
    partitions: tuple[PartitionStatistics, ...]

    @property
    def processors(self) -> tuple[ProcessorStatistics, ...]:
        """What is of each processor with slots, ascending."""
        return (self, *self.others)

    def of(self, processor: ProcessorStatistics) -> "Statistics":
        """Return these as those of one processor, and what is of all together."""
        own = {name: getattr(processor, name) for name in ProcessorStatistics.model_fields}
        return self.model_copy(update={**own, "others": ()})


@dataclass(frozen=True, slots=True)
class Clock:
    """Turns ticks of the system counter into nanoseconds.

    Attributes:
        hz: Ticks of the counter in a second, at most 10^9.
        epoch_tick: Where time 0 is.
    """

    hz: int
    epoch_tick: int

    def times_ns(self, ticks: npt.ArrayLike) -> Times:
        """Return instants as nanoseconds from the epoch, rounded down."""
        return self.durations_ns(np.asarray(ticks).astype(np.int64) - self.epoch_tick)

    def durations_ns(self, ticks: npt.ArrayLike) -> Times:
        """Return durations in nanoseconds, rounded down; seconds apart, so that all fits."""
        seconds, rest = np.divmod(np.asarray(ticks).astype(np.int64), self.hz)
        durations_ns: Times = seconds * _SECOND_NS + rest * _SECOND_NS // self.hz
        return durations_ns

    def at_least_ns(self, ticks: int) -> int:
        """Return a duration in nanoseconds, rounded up."""
        return -(-ticks * _SECOND_NS // self.hz)


def read_records(content: bytes, where: str = TRACE_FILE) -> Records:
    """Return the records of a trace, oldest first.

    Raises:
        BadInput: It does not consist of whole records of known kinds.
    """
    if len(content) % RECORD.itemsize:
        what = f"has {len(content)} bytes, not a multiple of {RECORD.itemsize}"
        raise BadInput(what, where, "the run's data are damaged; run it again")
    records = np.frombuffer(content, RECORD)
    unknown = records["kind"][~np.isin(records["kind"], list(Kind))]
    if unknown.size:
        raise BadInput(f"has a record of kind {unknown[0]}", where, remedy("boards"))
    return records


def read_statistics(content: bytes, where: str = STATISTICS_FILE) -> Statistics:
    """Return the statistics of a run.

    Raises:
        BadInput: They are damaged.
    """
    try:
        return Statistics.model_validate(json.loads(content))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise BadInput(f"is wrong at {place}: {first['msg']}", where) from None
    except ValueError as error:
        raise BadInput(f"is damaged ({str(error).splitlines()[0]})", where) from None
