"""attach.json, which `latenz-attach` keeps while it measures."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from latenz.errors import BadInput
from latenz.files import file_in
from latenz.model import Line

ACCOUNT_FILE = "attach.json"
_LARGEST = 64 << 20
Number = Annotated[int, Field(ge=-(2**63), lt=2**64)]
Count = Annotated[int, Field(ge=0, lt=2**64)]
FolderName = Annotated[str, Field(pattern=r"^([A-Za-z0-9_+=@][A-Za-z0-9_+=@.-]{0,79})?$")]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Segment(_Told):
    """A stretch of a cycle's time; `docs/attach.md` tells what its parts mean."""

    what: Literal["late", "ready", "run", "blocked"]
    t_ns: Number
    length_ns: Number
    cpu: int
    stolen_ns: Number = 0
    tid: int = 0
    comm: Line = ""
    priority: int = -2
    by: Literal["timer", "interrupt", "softirq", "thread"] = "thread"
    number: Number = 0
    call: Number = -1
    argument_0: Number = 0
    argument_1: Number = 0


class Story(_Told):
    """One of the worst cycles with all that happened in it."""

    number: Count
    due_ns: Number
    latency_ns: Number
    response_ns: Number
    run_ns: Number
    blocked_ns: Number
    timer_late_ns: Number
    stolen_ns: Number
    preemptions: Count
    blocks: Count
    faults: Count
    migrations: Count
    own_priority: int
    reclaim_ns: Number
    forks: Count
    copies: Count = 0
    forker: int = 0
    forker_name: Line = ""
    clock_step_ns: Number = 0
    lowest_khz: Count = 0
    highest_khz: Count = 0
    is_cut: bool
    fault_addresses: tuple[Number, ...] = ()
    segments: tuple[Segment, ...]

    @property
    def ready_ns(self) -> int:
        """How long the thread was ready without a CPU."""
        return self.response_ns - self.timer_late_ns - self.run_ns - self.blocked_ns


class Grid(_Told):
    """What is regular in a thread's wake-ups."""

    period_ns: Annotated[int, Field(gt=0, lt=2**62)]
    phase_ns: Number
    is_exact: bool
    wakes_a_cycle: Count
    by: Literal["timer", "deadline", "event", "mark"]
    call: Number
    function: Line
    clock: Literal["monotonic", "realtime", "boottime", "tai"]
    waker: int
    waker_name: Line


class Sleeps(_Told):
    """How often a thread slept in one system call."""

    call: Number
    n: Count
    within_cycles: Count
    argument_0: Number
    argument_1: Number


class Thread(_Told):
    """One watched thread; without a folder its cycles are not recorded."""

    tid: int
    pid: int
    comm: Line
    folder: FolderName
    gone: bool
    wakes: Count
    grid: Grid | None
    n: Count
    partial: Count
    missed: Count
    unended: Count = 0
    """Of the partial ones, those without the mark of their end."""
    inferred: Count
    preemptions: Count
    blocks: Count
    faults: Count
    migrations: Count
    largest_ns: Number | None
    largest_response_ns: Number | None
    recent_ns: Number | None = None
    """Largest latency since the account was last written."""
    first_due_ns: Number
    last_due_ns: Number
    usual_run_ns: Number
    usual_response_ns: Number
    ran_on: dict[int, Count]
    sleeps: tuple[Sleeps, ...]
    calls: dict[int, Count]
    """How often the thread made each system call while it was recorded; empty: not known."""
    worst: tuple[Story, ...]


class Cost(_Told):
    """Run time of one of our programs in the kernel, as the kernel accounts for it."""

    tracepoint: Line
    runs: Count
    total_ns: Count


class Account(_Told):
    """The whole file."""

    program_version: str
    status: str
    source: Literal["bpf", "ftrace", "trace"]
    clock: Line
    started_ns: Number
    lost: Count
    absent: tuple[Line, ...]
    notes: tuple[Line, ...]
    costs: tuple[Cost, ...]
    threads: tuple[Thread, ...]

    @classmethod
    def of(cls, folder: Path) -> "Account":
        """Read the account beside the recordings.

        Raises:
            BadInput: It is not there, or is damaged.
        """
        path = file_in(folder, ACCOUNT_FILE)
        try:
            with (path or folder / ACCOUNT_FILE).open("rb") as file:
                return cls.model_validate_json(file.read(_LARGEST))
        except (OSError, ValidationError):
            raise BadInput(
                "is not an account of latenz-attach", str(folder / ACCOUNT_FILE)
            ) from None

    @property
    def recorded(self) -> tuple[Thread, ...]:
        """The threads whose cycles are recorded."""
        return tuple(each for each in self.threads if each.folder)
