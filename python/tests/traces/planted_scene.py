"""A scene in which something makes a thread late, as the kernel would have traced it.

CPU 1 runs `app` (ordinary) when the timer of `rt` (SCHED_FIFO 90) is due at 1 ms; CPU 0 is busy.
What is planted adds what happens until `rt` runs, with the flags that Linux on x86 writes.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from latenz.traces.causes import Cause
from latenz.traces.explaining import explain, explain_late
from latenz.traces.join import Late
from latenz.traces.opening import open_trace

DUE_US = 1000
Thread = tuple[str, int, int]
RT: Thread = ("rt", 50, 9)
APP: Thread = ("app", 40, 120)
IDLE: Thread = ("swapper/1", 0, 120)
LOW: Thread = ("low", 60, 120)
MID: Thread = ("mid", 61, 79)
MAKE: Thread = ("make", 301, 120)


@dataclass
class Scene:
    """Events of both CPUs; `running` is who has CPU 1, `late` is who has to wait for it."""

    chance: random.Random
    running: Thread = APP
    rows: list[tuple[float, str]] = field(default_factory=list)
    is_sample: bool = False
    late: Thread = RT
    lacks: str = "$^"
    """Events that were not recorded: a regular expression."""

    def add(self, at_us: float, event: str, flags: str = ".....", cpu: int = 1) -> None:
        name, pid, _ = self.running if cpu == 1 else MAKE
        shown = "<idle>" if pid == 0 else name
        stamp = f"1000.{round(at_us * 1000):09}"
        self.rows.append((at_us, f"{shown:>16}-{pid:<5} [{cpu:03}] {flags} {stamp}: {event}"))

    def switch(self, at_us: float, to: Thread, state: str = "R+") -> None:
        name, pid, priority = self.running
        state = "R" if pid == 0 else state
        self.add(
            at_us,
            f"sched_switch: prev_comm={name} prev_pid={pid} prev_prio={priority} "
            f"prev_state={state} ==> next_comm={to[0]} next_pid={to[1]} next_prio={to[2]}",
            "d..2.",
        )
        self.running = to

    def wake(self, at_us: float, thread: Thread, flags: str = "dNh4.") -> None:
        told = f"comm={thread[0]} pid={thread[1]} prio={thread[2]} target_cpu=001"
        self.add(at_us, f"sched_waking: {told}", flags.replace("N", "."))
        self.add(at_us + 0.4, f"sched_wakeup: {told}", flags)

    def wake_from_other(self, at_us: float, thread: Thread, queued_us: float = 0.4) -> None:
        """Wake a thread of CPU 1 up from CPU 0."""
        told = f"comm={thread[0]} pid={thread[1]} prio={thread[2]} target_cpu=001"
        self.add(at_us, f"sched_waking: {told}", "d..2.", cpu=0)
        self.add(at_us + queued_us, f"sched_wakeup: {told}", "d..3.", cpu=0)

    def stack(self, at_us: float, *frames: str, flags: str = "dNh2.") -> None:
        """What the thread of CPU 1 was in, the innermost first."""
        self.add(at_us, "\n".join(["<stack trace>", *(f" => {each}" for each in frames)]), flags)

    def timer(self, at_us: float, depth: str = ".") -> None:
        """Take the timer's interrupt, which wakes `rt`; depth: of preemption before it."""
        self.add(at_us, "local_timer_entry: vector=236", f"d.h{depth}.")
        now_ns = 1000 * 10**9 + round(at_us * 1000)
        told = f"hrtimer=000000004a5a8d0d function=hrtimer_wakeup now={now_ns}"
        self.add(at_us + 0.5, f"hrtimer_expire_entry: {told}", f"d.h{depth}.")
        self.wake(at_us + 0.8, RT)
        self.add(at_us + 1.5, "hrtimer_expire_exit: hrtimer=000000004a5a8d0d", f"dNh{depth}.")
        self.add(at_us + 2, "local_timer_exit: vector=236", f"dNh{depth}.")

    def lines(self) -> list[str]:
        rows = sorted(self.rows, key=lambda row: row[0])
        return [row for _, row in rows if not re.search(self.lacks, row)]


Plant = Callable[[Scene], float]
"""Adds what happens; returns when the late thread runs."""


def explained(plant: Plant, seed: int, folder: Path) -> Cause:
    """Return why the worst moment of a scene was late."""
    cause = explained_if_seen(plant, seed, folder)
    assert cause is not None
    return cause


def explained_if_seen(plant: Plant, seed: int, folder: Path) -> Cause | None:
    scene = Scene(random.Random(seed))
    at_us = 0.0
    while at_us < 20_000:  # CPU 0
        at_us += scene.chance.randrange(3, 40)
        scene.add(at_us, "sys_enter: NR 1 (1, 7f00, 8)", cpu=0)
    for tick_us in range(0, 20_000, 4000):  # its ticks
        scene.add(tick_us, "local_timer_entry: vector=236", "d.h..", cpu=0)
        scene.add(tick_us + 1.5, "local_timer_exit: vector=236", "d.h..", cpu=0)
        scene.add(tick_us + 1.7, "softirq_entry: vec=7 [action=SCHED]", "..s..", cpu=0)
        scene.add(tick_us + 2.5, "softirq_exit: vec=7 [action=SCHED]", "..s..", cpu=0)
    expires = f"expires={1000 * 10**9 + DUE_US * 1000}"
    start = f"hrtimer=000000004a5a8d0d function=hrtimer_wakeup {expires} softexpires=1 mode=ABS"
    scene.running = RT
    scene.switch(21, APP, "S")
    ran_us = plant(scene)
    if scene.running != scene.late:
        scene.switch(ran_us, scene.late)
    if scene.late == RT:
        row = f"{'rt':>16}-50    [001] d..1. 1000.000020000: hrtimer_start: {start}"
        scene.rows.append((20, row))
    scene.switch(ran_us + 30, APP, "S")
    scene.switch(ran_us + 900, IDLE, "S")
    path = folder / "trace.txt"
    path.write_text("# tracer: nop\n#\n" + "\n".join(scene.lines()) + "\n")
    if scene.is_sample:
        late = Late(round((ran_us - DUE_US) * 1000), 1000 * 10**9 + DUE_US * 1000, 1, "x")
        return next(iter(explain_late(open_trace(path), [late]).causes), None)
    return next(iter(explain(open_trace(path)).causes), None)
