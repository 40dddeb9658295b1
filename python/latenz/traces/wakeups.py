"""Late moments of a trace: which thread waited, and from when to when."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

from latenz.traces.occupancy import NORMAL_PRIORITY, number

if TYPE_CHECKING:
    from latenz.traces.model import Candidate, Event

_REAL_TIME = 100  # priorities below, as the kernel counts, are real-time
WindowKind = Literal["wakeup", "timer", "ready", "exit", "timerlat", "gap", "sample"]


@dataclass(frozen=True)
class Window:
    """A time that somebody had to wait, to be explained.

    Attributes:
        kind: `wakeup` of a thread; `timer`, the same from when its timer was due; `ready`, a
            thread that was switched away from while it could have run; `exit` of a virtual CPU;
            `timerlat`, as the kernel's tracer measured it; `gap`, nothing at all was traced;
            `sample` of a run.
        start_ns: From when, in the trace's clock.
        end_ns: Until when.
        cpu: Where it is looked for.
        pid: The thread that waited; None: not known.
        comm: Its name.
        priority: As the kernel counts: below 100 real-time, smaller is more urgent, -1 deadline.
        vcpu: The virtual CPU, if it is one's thread.
        of: Reason of the exit, function of the timer, or the like.
        stolen: The host took time from the CPU around it, as somebody else was told.
    """

    kind: WindowKind
    start_ns: int
    end_ns: int
    cpu: int
    pid: int | None = None
    comm: str = ""
    priority: int = NORMAL_PRIORITY
    vcpu: str | None = None
    of: str = ""
    stolen: bool = False

    @property
    def latency_ns(self) -> int:
        """How long the wait was."""
        return self.end_ns - self.start_ns

    def what(self) -> str:
        """Return what was late, in a few words."""
        thread = f"{self.comm or 'thread'}-{self.pid}" if self.pid is not None else "a thread"
        return {
            "wakeup": f"{thread} woken on CPU {self.cpu}",
            "timer": f"{thread} due by its timer on CPU {self.cpu}",
            "ready": f"{thread} ready but not running on CPU {self.cpu}",
            "exit": f"exit {self.of} of vCPU {self.vcpu or '?'} ({thread}) on CPU {self.cpu}",
            "timerlat": f"timerlat, {self.of or 'thread'}, on CPU {self.cpu}",
            "gap": f"interrupt of CPU {self.cpu} that was due ({self.of})",
            "sample": f"sample on CPU {self.cpu} ({thread})",
        }[self.kind]


def window_of(candidate: "Candidate") -> Window:
    """Return the window of something that took long."""
    kind = cast(WindowKind, candidate.kind)
    of_interrupt = kind == "gap" or (kind == "timerlat" and candidate.what == "irq")
    return Window(
        kind,
        candidate.start_ns,
        candidate.end_ns,
        candidate.cpu,
        candidate.pid if candidate.pid > 0 and not of_interrupt else None,
        candidate.comm,
        vcpu=candidate.vcpu or None,
        of=candidate.what,
    )


class Wakings:
    """The scheduler's events of a stretch of a trace, to be asked about a window.

    Args:
        events: In the order of their times.
    """

    def __init__(self, events: "Sequence[Event]") -> None:
        self._wakings = [each for each in events if each.name in ("sched_waking", "sched_wakeup")]
        self._switches = [each for each in events if each.name == "sched_switch"]
        self._switch_times = [each.t_ns for each in self._switches]
        self._throttles = _throttles(self._switches)

    def refined(self, window: Window) -> Window:
        """Return the window with what the trace tells of its thread and priority."""
        if window.kind == "sample":
            window = self._with_thread(window)
        if window.pid is None:
            return window
        return replace(window, priority=self._priority_of(window))

    def lower_chosen_ns(self, window: Window, cpu: int, start_ns: int, end_ns: int) -> int | None:
        """Return since when a CPU ran what is less urgent by choice; None: it had no choice."""
        if window.priority >= _REAL_TIME:
            return None
        if any(since <= start_ns < until for since, until in self._throttles.get(cpu, ())):
            return start_ns
        for each in self._between(start_ns, end_ns):
            pid = number(each, "next_pid", -1)
            if each.cpu != cpu or pid == window.pid:
                continue
            if pid == 0 or _priority(each, "next_prio") > window.priority:
                return each.t_ns
        return None

    def _between(self, start_ns: int, end_ns: int) -> "Sequence[Event]":
        times = self._switch_times
        return self._switches[bisect_left(times, start_ns) : bisect_right(times, end_ns)]

    def _with_thread(self, window: Window) -> Window:
        """Find whose sample it is: the thread that last came in before the sample was taken.

        Without such a switch, which may have been lost, the real-time thread that was last woken.
        """
        for each in reversed(self._between(window.start_ns, window.end_ns)):
            pid = number(each, "next_pid", 0)
            if each.cpu == window.cpu and pid != 0:
                return replace(window, pid=pid, comm=str(each.fields.get("next_comm", "")))
        for each in reversed(self._wakings):
            if (
                window.start_ns <= each.t_ns <= window.end_ns
                and number(each, "target_cpu", -1) == window.cpu
                and _priority(each, "prio") < _REAL_TIME
            ):
                return replace(
                    window, pid=number(each, "pid", 0), comm=str(each.fields.get("comm", ""))
                )
        return window

    def _priority_of(self, window: Window) -> int:
        for each in self._switches:
            for side in ("prev", "next"):
                if number(each, f"{side}_pid", -1) == window.pid and (each.t_ns >= window.start_ns):
                    return _priority(each, f"{side}_prio")
        for each in self._wakings:
            if number(each, "pid", -1) == window.pid:
                return _priority(each, "prio")
        return NORMAL_PRIORITY


def _throttles(switches: "Sequence[Event]") -> dict[int, list[tuple[int, int]]]:
    """Return by CPU when fixed-priority threads were throttled, by the switches alone.

    It begins where one that could have gone on has to make way for what is less urgent, and lasts
    until one runs again: whichever wakes up meanwhile has to wait, too.
    """
    found: dict[int, list[tuple[int, int]]] = {}
    since: dict[int, int] = {}
    for each in switches:
        fixed = 0 <= _priority(each, "prev_prio") < _REAL_TIME and number(each, "prev_pid", 0) != 0
        if _priority(each, "next_prio") < _REAL_TIME and each.cpu in since:
            found.setdefault(each.cpu, []).append((since.pop(each.cpu), each.t_ns))
        elif (
            fixed
            and could_run(each.fields.get("prev_state"))
            and _priority(each, "next_prio") >= _REAL_TIME
        ):
            since.setdefault(each.cpu, each.t_ns)
    for cpu, start_ns in since.items():
        found.setdefault(cpu, []).append((start_ns, 2**63))
    return found


def could_run(state: object) -> bool:
    """Return whether a thread that was switched away from could have gone on: `R`, `R+`, 0."""
    if isinstance(state, int):
        return state & 0xFF == 0
    return str(state).startswith("R")


def _priority(event: "Event", name: str) -> int:
    return number(event, name, NORMAL_PRIORITY)


def clock_shift_ns(events: "Sequence[Event]") -> int | None:
    """Return how far the trace's clock is ahead of CLOCK_MONOTONIC, None if it cannot be told.

    Each expiry of a timer tells the time of the clock that the timer runs by; the least difference
    is that of the clocks, plus the microseconds until the event was written.
    """
    shifts = [
        each.t_ns - number(each, "now", 0)
        for each in events
        if each.name == "hrtimer_expire_entry" and "now" in each.fields
    ]
    return min(shifts, key=abs, default=None)
