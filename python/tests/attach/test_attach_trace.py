"""Cycles out of recorded traces: against made-up schedules whose every share is known."""

import json
import random
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from latenz.store.run import Run

US = 1000
PERIOD = 1000 * US
LOOP, OTHER, WAKER = 100, 200, 300


@dataclass
class Told:
    """What was made up of one cycle."""

    due: int
    late: int
    ready: int = 0
    run: int = 0
    blocked: int = 0
    preemptions: int = 0
    blocks: int = 0
    first_run: int = 0


@dataclass
class Schedule:
    """A text trace of one CPU, and the cycles in it."""

    lines: list[str] = field(default_factory=list)
    cycles: list[Told] = field(default_factory=list)

    def event(self, t_ns: int, running: int, text: str) -> None:
        name = {LOOP: "loop", OTHER: "other", WAKER: "waker", 0: "<idle>"}[running]
        stamp = f"{t_ns // 10**9}.{t_ns % 10**9 // 1000:06d}"
        self.lines.append(f"{name:>16}-{running:<6} [000] d..2. {stamp}: {text}")

    def switch(self, t_ns: int, before: int, state: str, after: int) -> None:
        names = {LOOP: "loop", OTHER: "other", WAKER: "waker", 0: "swapper/0"}
        priorities = {LOOP: 59, OTHER: 9, WAKER: 120, 0: 120}
        self.event(
            t_ns,
            before,
            f"sched_switch: prev_comm={names[before]} prev_pid={before}"
            f" prev_prio={priorities[before]} prev_state={state} ==>"
            f" next_comm={names[after]} next_pid={after} next_prio={priorities[after]}",
        )

    def text(self) -> str:
        return "# tracer: nop\n#\n" + "\n".join(self.lines) + "\n"


def made_up(seed: int, cycles: int) -> Schedule:
    """Make up cycles of a loop that sleeps by a timer, is preempted, and blocks."""
    draw = random.Random(seed)
    made = Schedule()
    timer = "ffff888100000000"
    due = 5_000_000 * US
    t = due - 500 * US
    made.switch(t - 10 * US, 0, "R", LOOP)
    for _ in range(cycles):
        made.event(
            t,
            LOOP,
            f"hrtimer_start: hrtimer={timer} function=hrtimer_wakeup expires={due}"
            f" softexpires={due} mode=ABS",
        )
        made.switch(t + 1 * US, LOOP, "S", 0)
        late = draw.randint(1, 40) * US
        told = Told(due, late)
        t = due + late
        made.event(
            t, 0, f"hrtimer_expire_entry: hrtimer={timer} function=hrtimer_wakeup now={t - 500}"
        )
        made.event(t, 0, "sched_waking: comm=loop pid=100 prio=59 target_cpu=000")
        made.event(t, 0, f"hrtimer_expire_exit: hrtimer={timer}")
        before = 0
        for part in range(draw.randint(1, 4)):
            wait = draw.randint(1, 60) * US
            told.ready += wait
            t += wait
            made.switch(t, before, "R" if before == 0 else "S", LOOP)
            told.first_run = told.first_run or t
            work = draw.randint(1, 30) * US
            told.run += work
            t += work
            if part == 3:
                break
            if draw.random() < 0.5:
                told.preemptions += 1
                made.switch(t, LOOP, "R", OTHER)
                before = OTHER
            else:
                told.blocks += 1
                made.switch(t, LOOP, "S", WAKER)
                pause = draw.randint(1, 50) * US
                told.blocked += pause
                t += pause
                made.event(t, WAKER, "sched_waking: comm=loop pid=100 prio=59 target_cpu=000")
                before = WAKER
        else:
            wait = draw.randint(1, 9) * US
            told.ready += wait
            t += wait
            made.switch(t, before, "R", LOOP)
            told.run += 2 * US
            t += 2 * US
        told.run += 1 * US  # from setting the timer until it leaves the CPU
        made.cycles.append(told)
        due += PERIOD
    made.switch(t + 1 * US, LOOP, "S", 0)
    return made


def attach(trace: Path, run: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latenz", "attach", *arguments, "--from", str(trace)]
    return subprocess.run(
        [*command, "-o", str(run), "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("seed", range(3))
def test_every_share_of_every_cycle_is_as_it_was_made_up(seed: int, tmp_path: Path) -> None:
    made = made_up(seed, 300)
    trace = tmp_path / "trace.txt"
    trace.write_text(made.text(), encoding="utf-8")
    done = attach(trace, tmp_path / "run", "loop")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    (thread,) = told["threads"]
    assert (thread["period_ns"], thread["missed"], thread["partial"]) == (PERIOD, 0, 0)
    (found,) = Run.open(tmp_path / "run").sample_sets
    (batch,) = found.batches()
    values = {name: batch.column(name).to_numpy() for name in found.columns}
    known = made.cycles[-len(values["t_ns"]) :]
    assert len(known) >= len(made.cycles) - 1
    wanted = {
        "t_ns": [each.due for each in known],
        "latency_ns": [each.first_run - each.due for each in known],
        "timer_late_ns": [each.late for each in known],
        "ready_ns": [each.ready for each in known],
        "execution_ns": [each.run for each in known],
        "blocked_ns": [each.blocked for each in known],
        "preemptions": [each.preemptions for each in known],
        "blocks": [each.blocks for each in known],
    }
    for name, column in wanted.items():
        np.testing.assert_array_equal(values[name], column, err_msg=name)


def test_lost_events_make_partial_cycles_and_never_wrong_ones(tmp_path: Path) -> None:
    made = made_up(7, 300)
    draw = random.Random(7)
    kept = [line for line in made.lines if draw.random() > 0.01]
    trace = tmp_path / "trace.txt"
    made.lines = kept
    trace.write_text(made.text(), encoding="utf-8")
    done = attach(trace, tmp_path / "run", "loop")
    assert done.returncode == 0, done.stderr
    (thread,) = json.loads(done.stdout)["threads"]
    assert thread["partial"] > 0
    (found,) = Run.open(tmp_path / "run").sample_sets
    (batch,) = found.batches("t_ns", "latency_ns")
    latency = {each.due: each.first_run - each.due for each in made.cycles}
    wrong = sum(
        latency.get(due) != value
        for due, value in zip(*(batch.column(i).to_pylist() for i in range(2)), strict=True)
    )
    # a switch that is missing on both sides of a residence leaves no sign of itself
    assert wrong <= 3
    assert thread["n"] + thread["missed"] + thread["partial"] >= 290


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nobody",), "no thread has such a name or number"),
        (("999",), "no thread has such a name or number"),
        (("other",), "wakes up periodically"),
        (("--unit", "x"), "has no units"),
    ],
)
def test_what_a_trace_does_not_hold_is_refused(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text(made_up(1, 40).text(), encoding="utf-8")
    done = attach(trace, tmp_path / "run", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b"no trace\n" * 100, b"\x17\x08\x44tracing6"]
)
def test_damaged_traces_are_refused(content: bytes, tmp_path: Path) -> None:
    trace = tmp_path / "trace.dat"
    trace.write_bytes(content)
    done = attach(trace, tmp_path / "run")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_clock_that_is_set_is_told_in_an_emulated_trace(tmp_path: Path) -> None:
    """A loop by the time of day, which is set back by 20 ms."""
    real = 1_764_000_000 * 10**9
    made = Schedule()
    timer, t, ahead = "ffff888100000000", 5_000_000 * US, real
    made.switch(t, 0, "R", LOOP)
    due = t + ahead
    for cycle in range(300):
        due += PERIOD
        made.event(
            t + 1 * US,
            LOOP,
            f"hrtimer_start: hrtimer={timer} function=hrtimer_wakeup expires={due}"
            f" softexpires={due} mode=ABS",
        )
        made.switch(t + 2 * US, LOOP, "S", 0)
        ahead -= 20_000 * US if cycle == 100 else 0
        t = max(due - ahead, t + 100 * US) + 5 * US
        made.event(
            t, 0, f"hrtimer_expire_entry: hrtimer={timer} function=hrtimer_wakeup now={t + ahead}"
        )
        made.event(t, 0, "sched_waking: comm=loop pid=100 prio=59 target_cpu=000")
        made.event(t, 0, f"hrtimer_expire_exit: hrtimer={timer}")
        made.switch(t + 3 * US, 0, "R", LOOP)
        t += 20 * US
    trace = tmp_path / "trace.txt"
    trace.write_text(made.text(), encoding="utf-8")
    done = attach(trace, tmp_path / "run", "loop")
    assert done.returncode == 0, done.stderr
    first, second = json.loads(done.stdout)["causes"][:2]
    assert first["cause"] == "clock-step"
    assert "the clock of its timer was set back by 20 ms" in first["sentence"]
    # due by the clock as it was, so late by the step, the timer's 5 us and 3 us to run
    assert abs(first["latency_ns"] - 20_008 * US) <= 2 * US
    assert second["latency_ns"] <= 10 * US  # from then on, by the clock as it is


def test_a_frequency_that_rises_late_is_told_in_an_emulated_trace(tmp_path: Path) -> None:
    """One cycle of 300 runs at a quarter of the frequency: its work takes four times as long."""
    made = Schedule()
    timer, due, late_cycle = "ffff888100000000", 5_000_000 * US, 150
    made.switch(due - 900 * US, 0, "R", LOOP)
    t = due - 850 * US
    made.event(t, LOOP, "cpu_frequency: state=3200000 cpu_id=0")
    for cycle in range(300):
        made.event(
            t,
            LOOP,
            f"hrtimer_start: hrtimer={timer} function=hrtimer_wakeup expires={due}"
            f" softexpires={due} mode=ABS",
        )
        made.switch(t + 1 * US, LOOP, "S", 0)
        t = due + 5 * US
        if cycle == late_cycle:
            made.event(t - 100 * US, 0, "cpu_frequency: state=800000 cpu_id=0")
        made.event(
            t, 0, f"hrtimer_expire_entry: hrtimer={timer} function=hrtimer_wakeup now={t - 500}"
        )
        made.event(t, 0, "sched_waking: comm=loop pid=100 prio=59 target_cpu=000")
        made.event(t, 0, f"hrtimer_expire_exit: hrtimer={timer}")
        made.switch(t + 3 * US, 0, "R", LOOP)
        t += 403 * US if cycle == late_cycle else 103 * US
        if cycle == late_cycle:
            made.event(t - 1 * US, LOOP, "cpu_frequency: state=3200000 cpu_id=0")
        due += PERIOD
    made.switch(t + 1 * US, LOOP, "S", 0)
    trace = tmp_path / "trace.txt"
    trace.write_text(made.text(), encoding="utf-8")
    done = attach(trace, tmp_path / "run", "loop")
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)["causes"][0]
    assert first["cause"] == "low-frequency"
    assert "its CPU went at 800 MHz, which has gone at 3200 MHz" in first["sentence"]
    assert abs(first["share_ns"] - 300 * US) <= 20 * US  # the usual work is known to 1/16
