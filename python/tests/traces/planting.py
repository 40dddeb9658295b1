"""Traces as text with a cause that is known because it was planted, and noise around it.

A real-time thread on CPU 1 wakes up by its timer every millisecond. In one of its cycles something
happens that makes it late, by far the longest; in all others, and in the same one, too, smaller
things happen at random. CPU 0 is busy with something else all the time.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

RT_PID, RT_PRIORITY = 50, 9
CYCLES, WORST_CYCLE = 60, 30
_START_US = 1_000_000_000
_ORDINARY = ("worker", 71, 120)
_URGENT = ("urgent", 72, 0)


@dataclass
class Trace:
    """Events of a trace, in any order.

    Attributes:
        planted_us: How much time the planted cause takes.
        noise: Where everything random comes from.
    """

    planted_us: int
    noise: random.Random
    lines: list[tuple[int, int, str]] = field(default_factory=list)
    silent: tuple[int, int] = (0, 0)
    running: dict[int, tuple[str, int, int]] = field(
        default_factory=lambda: {0: ("busy", 70, 120), 1: ("swapper/1", 0, 120)}
    )

    def add(self, t_us: int, cpu: int, event: str, text: str) -> None:
        """Add an event of the thread that runs on a CPU."""
        comm, pid, _ = self.running[cpu]
        name = "<idle>" if pid == 0 else comm
        stamp = f"{t_us // 1_000_000}.{t_us % 1_000_000:06}"
        line = f"{name:>16}-{pid:<7} [{cpu:03}] d..2. {stamp}: {event}: {text}"
        self.lines.append((t_us, len(self.lines), line))

    def switch(self, t_us: int, cpu: int, to: tuple[str, int, int], state: str = "S") -> None:
        """Switch to another thread."""
        comm, pid, priority = self.running[cpu]
        state = "R" if pid == 0 else state
        self.add(
            t_us,
            cpu,
            "sched_switch",
            f"prev_comm={comm} prev_pid={pid} prev_prio={priority} prev_state={state} ==> "
            f"next_comm={to[0]} next_pid={to[1]} next_prio={to[2]}",
        )
        self.running[cpu] = to

    def interrupt(self, t_us: int, cpu: int, length_us: int, irq: int = 24) -> int:
        """Add a device's interrupt; return when it is over."""
        self.add(t_us, cpu, "irq_handler_entry", f"irq={irq} name=eth0")
        self.add(t_us + length_us, cpu, "irq_handler_exit", f"irq={irq} ret=handled")
        return t_us + length_us

    def softirq(self, t_us: int, cpu: int, length_us: int) -> int:
        """Add a softirq; return when it is over."""
        self.add(t_us, cpu, "softirq_entry", "vec=3 [action=NET_RX]")
        self.add(t_us + length_us, cpu, "softirq_exit", "vec=3 [action=NET_RX]")
        return t_us + length_us

    def write(self, path: Path) -> Path:
        """Write what was planted as the kernel's tracer would print it."""
        first, last = self.silent
        kept = [line for t_us, _, line in sorted(self.lines) if not first < t_us < last]
        header = "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
        path.write_text(header + "\n".join(kept) + "\n")
        return path


Planter = Callable[[Trace, int], int]
"""Adds what makes the thread late, from when its timer is due; returns when that is over."""


def trace_with(cause: str, seed: int) -> Trace:
    """Return a trace in which a cause was planted, with noise that the seed decides."""
    noise = random.Random(seed)
    trace = Trace(noise.randrange(300, 900), noise)
    _busy(trace)
    t_us = _START_US
    for cycle in range(CYCLES):
        due_us = _START_US + 1000 * (cycle + 1)
        t_us = _cycle(trace, t_us, due_us, cause if cycle == WORST_CYCLE else "")
    return trace


def _busy(trace: Trace) -> None:
    """CPU 0 is busy: something happens there every few tens of microseconds."""
    t_us = _START_US - 500
    while t_us < _START_US + 1000 * (CYCLES + 3):
        t_us += trace.noise.randrange(5, 60)
        t_us = trace.interrupt(t_us, 0, 2, irq=25)


def _cycle(trace: Trace, t_us: int, due_us: int, cause: str) -> int:
    """One wake-up of the thread: its timer, the interrupt, the switch, its work, and idle again."""
    rt = ("rt", RT_PID, RT_PRIORITY)
    timer = f"hrtimer=0000000012345678 function=hrtimer_wakeup expires={due_us * 1000}"
    trace.add(t_us + 1, 1, "hrtimer_start", f"{timer} softexpires={due_us * 1000} mode=ABS|HARD")
    before = _BEFORE.get(cause)
    if before is None:
        trace.add(t_us + 2, 1, "cpu_idle", "state=1 cpu_id=1")
        trace.add(due_us + 1, 1, "cpu_idle", "state=4294967295 cpu_id=1")
        t_us = due_us + 2
    else:
        t_us = before(trace, due_us)
    t_us = _small(trace, t_us)
    trace.add(t_us, 1, "local_timer_entry", "vector=236")
    now = f"hrtimer=0000000012345678 function=hrtimer_wakeup now={(t_us + 1) * 1000}"
    trace.add(t_us + 1, 1, "hrtimer_expire_entry", now)
    target = f"comm=rt pid={RT_PID} prio={RT_PRIORITY} target_cpu=001"
    trace.add(t_us + 2, 1, "sched_waking", target)
    trace.add(t_us + 3, 1, "hrtimer_expire_exit", "hrtimer=0000000012345678")
    trace.add(t_us + 4, 1, "local_timer_exit", "vector=236")
    t_us = _small(trace, t_us + 4)
    after = _AFTER.get(cause)
    if after is not None:
        t_us = after(trace, t_us + 1)
    trace.switch(t_us + 2, 1, rt, "R")
    t_us += 2
    running = _RUNNING.get(cause)
    if running is not None:
        t_us = running(trace, t_us + 10)
    trace.switch(t_us + 20, 1, ("swapper/1", 0, 120))
    return t_us + 20


def _small(trace: Trace, t_us: int) -> int:
    """Noise: a few interrupts and softirqs, short ones."""
    for _ in range(trace.noise.randrange(0, 3)):
        add = trace.noise.choice((trace.interrupt, trace.softirq))
        t_us = add(t_us + 1, 1, trace.noise.randrange(1, 8))
    return t_us + 1


def _storm(trace: Trace, t_us: int) -> int:
    end_us = t_us + trace.planted_us
    while t_us < end_us:
        t_us = trace.interrupt(t_us + 1, 1, trace.noise.randrange(5, 12))
        t_us = trace.softirq(t_us, 1, trace.noise.randrange(3, 9))
    return t_us


def _long_softirq(trace: Trace, t_us: int) -> int:
    return trace.softirq(t_us, 1, trace.planted_us)


def _long_interrupt(trace: Trace, t_us: int) -> int:
    return trace.interrupt(t_us, 1, trace.planted_us)


def _preempted(trace: Trace, t_us: int) -> int:
    trace.switch(t_us, 1, _URGENT, "R")
    return _small(trace, t_us + trace.planted_us)


def _not_preemptible(trace: Trace, t_us: int) -> int:
    """The thread that ran before goes on: it wakes others up, but nobody switches."""
    end_us = t_us + trace.planted_us
    while t_us < end_us:
        t_us += trace.noise.randrange(20, 90)
        trace.add(t_us, 1, "sched_waking", "comm=other pid=73 prio=120 target_cpu=000")
    return t_us


def _busy_before(trace: Trace, due_us: int, from_us: int = 300) -> None:
    trace.switch(due_us - from_us, 1, _ORDINARY)


def _interrupts_off(trace: Trace, due_us: int) -> int:
    _busy_before(trace, due_us)
    return _not_preemptible(trace, due_us - 10)


def _not_preemptible_after(trace: Trace, due_us: int) -> int:
    _busy_before(trace, due_us)
    return due_us + 1


def _gap(trace: Trace, due_us: int) -> int:
    """Nothing at all happens on any CPU."""
    trace.silent = (due_us - 5, due_us + trace.planted_us)
    _busy_before(trace, due_us)
    return due_us + trace.planted_us


def _gap_in_idle(trace: Trace, due_us: int) -> int:
    trace.silent = (due_us - 5, due_us + trace.planted_us)
    trace.add(due_us - 500, 1, "cpu_idle", "state=1 cpu_id=1")
    trace.add(due_us + trace.planted_us, 1, "cpu_idle", "state=4294967295 cpu_id=1")
    return due_us + trace.planted_us + 1


def _deep_idle(trace: Trace, due_us: int) -> int:
    trace.add(due_us - 500, 1, "cpu_idle", "state=3 cpu_id=1")
    trace.add(due_us + trace.planted_us, 1, "cpu_idle", "state=4294967295 cpu_id=1")
    return due_us + trace.planted_us + 1


def _late_timer(trace: Trace, due_us: int) -> int:
    """Interrupts are taken, but the timer's is not among them."""
    _busy_before(trace, due_us)
    t_us = due_us + 1
    while t_us < due_us + trace.planted_us:
        t_us = trace.interrupt(t_us, 1, 2) + trace.noise.randrange(60, 120)
    return t_us


def _throttled(trace: Trace, t_us: int) -> int:
    """The thread runs on and on until the scheduler gives its CPU to an ordinary one."""
    trace.switch(t_us + 100, 1, _ORDINARY, "R")
    t_us = _small(trace, t_us + 100 + trace.planted_us)
    trace.switch(t_us, 1, ("rt", RT_PID, RT_PRIORITY), "R")
    return t_us


def _throttled_to_idle(trace: Trace, t_us: int) -> int:
    trace.switch(t_us + 100, 1, ("swapper/1", 0, 120), "R")
    trace.add(t_us + 101, 1, "cpu_idle", "state=1 cpu_id=1")
    t_us += 100 + trace.planted_us
    trace.add(t_us, 1, "cpu_idle", "state=4294967295 cpu_id=1")
    trace.switch(t_us + 1, 1, ("rt", RT_PID, RT_PRIORITY), "R")
    return t_us + 1


def _non_maskable(trace: Trace, t_us: int) -> int:
    end_us = t_us + trace.planted_us
    delta = f"delta_ns: {trace.planted_us * 1000}"
    trace.add(end_us, 1, "nmi_handler", f"perf_event_nmi_handler() {delta} handled: 1")
    return end_us


_BEFORE: dict[str, Planter] = {
    "irqs-off": _interrupts_off,
    "preemption-off": _not_preemptible_after,
    "smi-like-gap": _gap,
    "smi-like-gap in idle": _gap_in_idle,
    "host-idle": _deep_idle,
    "timer-late": _late_timer,
}
_AFTER: dict[str, Planter] = {
    "interrupt-storm": _storm,
    "interrupt": _long_interrupt,
    "softirq": _long_softirq,
    "preempted": _preempted,
    "preemption-off": _not_preemptible,
    "nmi": _non_maskable,
}
_RUNNING: dict[str, Planter] = {
    "throttled": _throttled,
    "throttled to idle": _throttled_to_idle,
}
CAUSES = sorted({*_BEFORE, *_AFTER, *_RUNNING})
"""All that can be planted; what stands before " to " or " in " is the name of the cause."""
