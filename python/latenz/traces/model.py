"""What a trace tells: events, exits of virtual CPUs, and what took longest.

All times are int64 nanoseconds of the clock that the trace was recorded with.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

IDLE_REASONS = frozenset({"HLT", "hlt", "idle-halt", "WFx", "MWAIT_INSTRUCTION", "mwait"})
"""Exits by which a guest that has nothing to do waits: their time is not lost."""


@dataclass(frozen=True)
class Event:
    """One event. Fields have the names of the kernel's format files, numbers are integers.

    Whatever the file, `kvm_exit` has `reason` as its name, and `kvm_exit` and `kvm_entry` have
    `vcpu_id` (older kernels tell it only on entry); `sched_switch` has `prev_state` as letters
    (R, R+, S, D ...). Events from text have all of it as `text`, too. Addresses of functions are
    told by name; `kernel_stack` and `user_stack` have `stack`, the innermost function first.

    Attributes:
        flags: As ftrace prints them (`latenz.traces.flags`), empty if the file does not tell.
    """

    t_ns: int
    cpu: int
    pid: int
    comm: str
    name: str
    fields: dict[str, int | str]
    flags: str = ""


@dataclass(frozen=True)
class Exits:
    """Exits of one virtual CPU for one reason.

    The cost of an exit runs from `kvm_exit` to the next `kvm_entry` of the same thread. `open`
    exits have no entry in the trace: they count, but are in nothing that follows.

    Attributes:
        userspace: Those that went on to the virtual machine monitor (QEMU).
        slept: Those during which the thread slept; `slept_ns` is the part of their time.
        preempted: Those during which it made way for another thread, likewise.
    """

    vcpu: str
    reason: str
    count: int
    total_ns: int
    max_ns: int
    min_ns: int | None = None
    open: int = 0
    max_at_ns: int | None = None
    userspace: int = 0
    userspace_ns: int = 0
    slept: int = 0
    slept_ns: int = 0
    preempted: int = 0
    preempted_ns: int = 0

    @property
    def idle(self) -> bool:
        """Is it the guest's waiting, which costs it nothing?"""
        return self.reason in IDLE_REASONS

    @property
    def mean_ns(self) -> float | None:
        """Of those that ended; None if none did."""
        ended = self.count - self.open
        return self.total_ns / ended if ended else None


@dataclass(frozen=True)
class VirtualCpu:
    """A virtual CPU and the thread that runs it, from its first to its last event."""

    vcpu: str
    pid: int
    comm: str
    entries: int
    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Candidate:
    """Something that took long, from start to end.

    Kinds: `exit` (not those of an idle guest), `wakeup` (woken until it ran), `timer` (the timer
    that woke it was due until it ran), `ready` (had to make way until it ran again; these three
    of real-time threads and of virtual CPUs), `blocked` (a real-time thread slept for something
    that another thread held, until it ran), `timerlat` (that tracer's sample) and `gap` (a
    timer was due until its interrupt came, or time that the hwlat tracer found missing).
    """

    kind: str
    start_ns: int
    end_ns: int
    latency_ns: int
    cpu: int
    pid: int
    comm: str
    vcpu: str | None
    what: str


@dataclass(frozen=True)
class Lost:
    """Events that were lost while recording, at so many places; 0 events: nobody counted."""

    events: int
    places: int


@dataclass(frozen=True)
class Loss:
    """A time in which events of a CPU were lost: what happened there is not known."""

    cpu: int
    start_ns: int
    end_ns: int


class Losses:
    """Losses of all CPUs, passed in the order of time.

    Args:
        losses: Those of a trace.
    """

    def __init__(self, losses: Iterable[Loss]) -> None:
        self._of: dict[int, deque[Loss]] = defaultdict(deque)
        for each in sorted(losses, key=lambda loss: loss.end_ns):
            self._of[each.cpu].append(each)

    def passed(self, event: Event) -> Loss | None:
        """Return the loss that ended with this event of its CPU or since the one before."""
        found = None
        rest = self._of.get(event.cpu)
        while rest and rest[0].end_ns <= event.t_ns:
            found = rest.popleft()
        return found


@dataclass(frozen=True)
class RecordedGuest:
    """A guest that was recorded together with the host that a file is of.

    Attributes:
        name: As trace-cmd was told it.
        id: Of the guest's file.
        vcpus: The host's thread by the number of the guest's CPU.
    """

    name: str
    id: str
    vcpus: dict[int, int]


@dataclass(frozen=True)
class Session:
    """What trace-cmd writes into files that were recorded together.

    Attributes:
        id: Of this file, in hex; `0x0`: it has none.
        peer: Of the host's file, if this one is a guest's.
        has_shifts: It tells how its clock becomes the host's.
        tsc_multiplier: Times are cycles, (cycles * multiplier) >> shift are ns; 0: they are not.
        tsc_shift: See there.
        guests: Those of a host.
    """

    id: str = "0x0"
    peer: str = "0x0"
    has_shifts: bool = False
    tsc_multiplier: int = 0
    tsc_shift: int = 0
    guests: tuple[RecordedGuest, ...] = ()


@dataclass(frozen=True)
class Summary:
    """All that one pass over a trace tells."""

    format: str
    events: int
    exits: tuple[Exits, ...]
    truncated_at: str | None = None
    version: str = ""
    compression: str = ""
    clock: str = ""
    buffers: tuple[str, ...] = ()
    damages: int = 0
    notes: tuple[str, ...] = ()
    start_ns: int = 0
    end_ns: int = 0
    lost: Lost = Lost(0, 0)
    losses: tuple[Loss, ...] = ()
    backwards: int = 0
    cpus: dict[int, int] | None = None
    names: dict[str, int] | None = None
    vcpus: tuple[VirtualCpu, ...] = ()
    worst: tuple[Candidate, ...] = ()
    session: Session = Session()

    @property
    def has_exit_events(self) -> bool:
        """Were exits recorded at all? Not every kernel has these events."""
        return bool(self.exits) or (self.names or {}).keys() >= {"kvm_exit"}


class Trace(Protocol):
    """A trace that can be asked."""

    def summary(self, worst: int = 10) -> Summary:
        """Read all of it once; `worst`: at least so many candidates of each kind."""

    def events(
        self, windows: Sequence[tuple[int, int]], most: int | None = None
    ) -> Iterator[Event]:
        """Give the events in windows of time (ns, both ends included), by time.

        `most`: of each window only so many, the first ones.
        """
