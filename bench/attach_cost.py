"""What `latenz-attach` costs the measured thread, by the kernel's own account (bpf_stats).

Two of it run at once: one watches a loop, the other one a thread that sleeps. Both see all events
of the machine, so what else goes on costs both the same; what the one takes beyond the other is
the loop's, and what each run costs the other is what it costs before it is known that nobody is
watched. They take turns in who comes first. The kernel's account costs time itself, which is in the
figures. `python bench/attach_cost.py` prints those of `run()` as JSON; it needs root.
"""

import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LOOP = ROOT / "python/tests/attach/rhythm.c"
ATTACH = Path(os.environ.get("LATENZ_ATTACH", ROOT / "build/host/probes/latenz-attach"))
TURNS = 12
TURN_S = 4
RUNS_A_CYCLE = {
    "timer/hrtimer_start": 1,
    "timer/hrtimer_expire_entry": 1,
    "timer/hrtimer_expire_exit": 1,
    "sched/sched_waking": 1,
    "sched/sched_switch": 2,
    "raw_syscalls/sys_enter": 1,
}
"""What one cycle of a `clock_nanosleep` loop on an idle CPU runs into."""


class Seen(NamedTuple):
    """The account at one moment."""

    cycles: int
    costs: dict[str, tuple[int, int]]


def seen(folder: Path) -> Seen:
    """Read what latenz-attach keeps; it is replaced as a whole each second."""
    account = json.loads((folder / "attach.json").read_text())
    costs = {each["tracepoint"]: (each["runs"], each["total_ns"]) for each in account["costs"]}
    return Seen(sum(each["n"] for each in account["threads"]), costs)


def turn(loop: int, sleeper: int, folder: Path, *, loop_first: bool) -> dict[str, float]:
    """Watch both threads for a while; return what a cycle of the loop costs by tracepoint."""
    order = [(loop, folder / "loop"), (sleeper, folder / "sleeper")]
    watching = []
    for pid, output in order if loop_first else reversed(order):
        shutil.rmtree(output, ignore_errors=True)
        command = [str(ATTACH), f"--output={output}", f"--processes={pid}", "--count-cost"]
        watching.append(subprocess.Popen([*command, f"--learning={10**12}"]))
        time.sleep(0.2)
    before = counted(order)
    time.sleep(TURN_S)
    after = counted(order)
    for each in watching:
        each.terminate()
        each.wait()
    cycles = after[0].cycles - before[0].cycles
    found = {}
    for name, runs_a_cycle in RUNS_A_CYCLE.items():
        own, other = (
            (b.costs[name][0] - a.costs[name][0], b.costs[name][1] - a.costs[name][1])
            for a, b in zip(before, after, strict=True)
        )
        unwatched_ns = other[1] / max(other[0], 1)
        beyond_ns = own[1] - own[0] * unwatched_ns
        found[name] = beyond_ns / cycles + runs_a_cycle * unwatched_ns
    return found


def counted(order: list[tuple[int, Path]]) -> list[Seen]:
    """Wait until both have written an account, in which the loop's cycles are counted."""
    for _, output in order:
        while not (output / "attach.json").exists():
            time.sleep(0.05)
    while seen(order[0][1]).cycles == 0:
        time.sleep(0.05)
    return [seen(output) for _, output in order]


def interval(sums: list[float]) -> tuple[float, float]:
    """The 95 % interval of the mean, by resampling the turns."""
    chance = random.Random(1)
    means = sorted(statistics.fmean(chance.choices(sums, k=len(sums))) for _ in range(2000))
    return means[50], means[-50]


def measured(program: Path, period_ns: int, folder: Path) -> dict[str, object]:
    """Measure a loop of this period."""
    stamps = folder / "stamps"
    cpu = str(max(os.sched_getaffinity(0)))
    loop = subprocess.Popen(
        [program, "absolute", str(period_ns), "1000000", stamps],
        env={**os.environ, "RHYTHM_CPU": cpu},
    )
    sleeper = subprocess.Popen(["sleep", "3600"])
    time.sleep(0.3)
    costs: dict[str, list[float]] = {name: [] for name in RUNS_A_CYCLE}
    try:
        for number in range(TURNS):
            told = turn(loop.pid, sleeper.pid, folder, loop_first=number % 2 == 0)
            for name, cost_ns in told.items():
                costs[name].append(cost_ns)
    finally:
        for each in (loop, sleeper):
            each.kill()
            each.wait()
    sums = [sum(each) for each in zip(*costs.values(), strict=True)]
    low, high = interval(sums)
    return {
        "cycle_ns": round(statistics.fmean(sums)),
        "cycle_median_ns": round(statistics.median(sums)),
        "interval_ns": [round(low), round(high)],
        "tracepoints_ns": {name: round(statistics.median(each)) for name, each in costs.items()},
        "turns": TURNS,
    }


def run() -> dict[str, object]:
    """Measure both loops."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "attach-cost"
        subprocess.run(["cc", "-O2", "-o", program, LOOP, "-lpthread"], check=True)
        return {
            "load_average": os.getloadavg()[0],
            "1 kHz": measured(program, 1_000_000, folder),
            "4 kHz": measured(program, 250_000, folder),
        }


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
