"""Late moments of a trace: which thread waited, and from when to when."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

from latenz.traces.occupancy import NORMAL_PRIORITY, function_of, number

if TYPE_CHECKING:
    from latenz.traces.model import Candidate, Event

_OF_DEADLINES = ("dl_task_timer", "dl_server_timer")
_OF_PERIODS = ("sched_rt_period_timer",)
_RIGHT_BEFORE_NS = 50_000  # from a timer's expiry to the switch that it leads to
_DELIVERY_NS = 10_000  # an interrupt takes less from CPU to CPU
_REAL_TIME = 100  # priorities below, as the kernel counts, are real-time
WindowKind = Literal["wakeup", "timer", "ready", "blocked", "exit", "timerlat", "gap", "sample"]


@dataclass(frozen=True)
class Window:
    """A time that somebody had to wait, to be explained.

    Attributes:
        kind: `wakeup` of a thread; `timer`, the same from when its timer was due; `ready`, a
            thread that was switched away from while it could have run; `blocked`, one that slept
            for what another held; `exit` of a virtual CPU;
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
            "blocked": f"{thread} blocked by another thread, from CPU {self.cpu}",
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


@dataclass(frozen=True)
class Choice:
    """A scheduler that ran something less urgent although a thread was ready, by choice.

    Attributes:
        since_ns: Since when.
        kind: `fair-server`: it keeps time free for ordinary threads (Linux 6.12 and later);
            `throttled`: real-time threads have had their share of a period;
            `deadline-budget`: a deadline thread has used up its run time.
        is_certain: The timer that began or ended it was seen.
    """

    since_ns: int
    kind: Literal["throttled", "fair-server", "deadline-budget"]
    is_certain: bool


class Wakings:
    """The scheduler's events of a stretch of a trace, to be asked about a window.

    Args:
        events: In the order of their times.
    """

    def __init__(self, events: "Sequence[Event]") -> None:
        self._wakings = [each for each in events if each.name in ("sched_waking", "sched_wakeup")]
        self._waking_times = [each.t_ns for each in self._wakings]
        self._switches = [each for each in events if each.name == "sched_switch"]
        self._switch_times = [each.t_ns for each in self._switches]
        self._throttles = _throttles(self._switches)
        self._tells_enqueueing = any(each.name == "sched_wakeup" for each in self._wakings)
        self._expiries = [each for each in events if each.name == "hrtimer_expire_entry"]
        self._expiry_times = [each.t_ns for each in self._expiries]
        self.tells_timers = bool(self._expiries)
        """Were expiries of timers recorded at all?"""

    def refined(self, window: Window) -> Window:
        """Return the window with what the trace tells of its thread and priority."""
        if window.kind == "sample":
            window = self._with_thread(window)
        if window.pid is None:
            return window
        return replace(window, priority=self._priority_of(window))

    def lower_chosen(self, window: Window, cpu: int, start_ns: int, end_ns: int) -> Choice | None:
        """Return how a CPU ran what is less urgent by choice; None: it had no choice.

        Args:
            window: Whose thread waited.
            cpu: On whose queue.
            start_ns: Since when, in one go.
            end_ns: Until when.
        """
        if window.priority >= _REAL_TIME:
            return None
        chosen = self._chosen_ns(window, cpu, start_ns, end_ns)
        renewed = window.priority < 0 and self.expired(_OF_DEADLINES, end_ns, cpu)
        if chosen is None:  # one that wakes up without run time stays off the queue
            return Choice(start_ns, "deadline-budget", False) if renewed else None
        since_ns, began_ns = chosen
        if window.priority < 0:
            return Choice(since_ns, "deadline-budget", renewed)
        if self.expired(_OF_DEADLINES, began_ns, cpu):
            return Choice(since_ns, "fair-server", True)
        return Choice(since_ns, "throttled", self.expired(_OF_PERIODS, end_ns))

    def expired(self, functions: Sequence[str], t_ns: int, cpu: int | None = None) -> bool:
        """Return whether one of these timers expired right before a moment, on a CPU or any."""
        first = bisect_left(self._expiry_times, t_ns - _RIGHT_BEFORE_NS)
        return any(
            function_of(each) in functions and cpu in (None, each.cpu)
            for each in self._expiries[first : bisect_right(self._expiry_times, t_ns)]
        )

    def _chosen_ns(
        self, window: Window, cpu: int, start_ns: int, end_ns: int
    ) -> tuple[int, int] | None:
        """Return since when in a window a CPU ran what is less urgent, and when that had begun."""
        throttles = self._throttles.get(cpu, [])
        place = bisect_right(throttles, start_ns, key=lambda each: each[0]) - 1
        if place >= 0 and start_ns < throttles[place][1]:
            return start_ns, throttles[place][0]
        switches = [
            each
            for each in self._between(start_ns, end_ns)
            if each.cpu == cpu and number(each, "next_pid", -1) != window.pid
        ]
        queued_ns = self._queued_ns(window, cpu, start_ns, end_ns, switches)
        for each in switches if queued_ns is not None else ():
            lower = _priority(each, "next_prio") > window.priority
            if each.t_ns > (queued_ns or 0) and (number(each, "next_pid", -1) == 0 or lower):
                return each.t_ns, each.t_ns
        return None

    def _queued_ns(
        self, window: Window, cpu: int, start_ns: int, end_ns: int, switches: "Sequence[Event]"
    ) -> int | None:
        """Return from when the scheduler of a CPU surely knew of a thread; None: it may not have.

        sched_waking is written by who wakes up, before the thread is on the queue of its CPU: what
        that CPU chooses meanwhile is not a choice. sched_wakeup comes when it is on the queue. A
        CPU that wakes up for itself has it there at once. Without either, the interrupt that brings
        the thread has surely been taken between two switches.
        """
        if any(
            each.t_ns == start_ns and number(each, "prev_pid", -1) == window.pid
            for each in switches[:1]
        ):
            return start_ns - 1  # it left itself, and never was off the queue
        first = bisect_left(self._waking_times, start_ns - _RIGHT_BEFORE_NS)
        for each in self._wakings[first : bisect_right(self._waking_times, end_ns)]:
            if number(each, "pid", -1) != window.pid:
                continue
            if each.name == "sched_wakeup" or each.cpu == cpu:
                return max(each.t_ns, start_ns)
        if self._tells_enqueueing or len(switches) < 2:
            return None
        return switches[0].t_ns if switches[1].t_ns > start_ns + _DELIVERY_NS else None

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
