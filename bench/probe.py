"""The wake-up probe against cyclictest: same interval and priority, in turns on this machine.

`python bench/probe.py` prints the figures of `run()` as JSON. Real-time scheduling needs root.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from latenz.programs import probe_program
from latenz.store.journal import Journal

INTERVAL_NS = 1_000_000
PRIORITY = 80
SECONDS = 6
ROUNDS = 8


@dataclass(frozen=True)
class Measured:
    """One run of one program on all CPUs."""

    median_ns: float | None
    cycles: int
    cpu_ns: int
    max_rss_kib: int | None = None

    @property
    def cpu_per_cycle_ns(self) -> float:
        """CPU time of the whole process, start and end included."""
        return self.cpu_ns / self.cycles


def measured(command: list[str]) -> tuple[str, int]:
    """Run a program; return its output and its CPU time."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} failed with code {process.returncode}")
    return text, round((usage.ru_utime + usage.ru_stime) * 1e9)


def latenz(context: str) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "run"
        options = [
            f"--output={output}",
            f"--interval={INTERVAL_NS}",
            f"--priority={PRIORITY}",
            f"--duration={SECONDS * 1_000_000_000}",
            "--warm-up=0",
            f"--context={context}",
        ]
        _, cpu_ns = measured([str(probe_program("latenz-wakeup")), *options])
        account = json.loads((output / "probe.json").read_bytes())
        if account["context"] != context:
            raise SystemExit(f"this kernel gives no {context} context")
        journals = [Journal(path) for path in output.glob("*/samples.journal")]
        latency_ns = np.concatenate([f["latency_ns"] for each in journals for f in each.frames()])
    return Measured(float(np.median(latency_ns)), len(latency_ns), cpu_ns, account["max_rss_kib"])


def cyclictest(*options: str) -> Measured:
    """Without options its own cost alone: writing out a histogram in nanoseconds costs more."""
    base = ["cyclictest", "--smp", "-d0", "-m", "-q", "-N", f"-p{PRIORITY}", f"-D{SECONDS}"]
    text, cpu_ns = measured([*base, f"-i{INTERVAL_NS // 1000}", *options])
    cells: dict[int, int] = {}
    cycles = 0
    for line in text.splitlines():
        words = line.split()
        if words and words[0].isdigit():
            cells[int(words[0])] = sum(map(int, words[1:]))
        elif line.startswith("# Total:"):
            cycles = sum(map(int, words[2:]))
        elif line.startswith("# Histogram Overflows:"):
            cycles += sum(map(int, words[3:]))
        elif line.startswith("T:"):
            cycles += int(line.split("C:")[1].split()[0])
    return Measured(histogram_median_ns(cells, cycles), cycles, cpu_ns)


def histogram_median_ns(cells: dict[int, int], n: int) -> float | None:
    seen = 0
    for value, count in sorted(cells.items()):
        seen += count
        if 2 * seen >= n:
            return float(value)
    return None


def run() -> dict[str, object]:
    programs = {
        "latenz": lambda: latenz("exact"),
        "latenz_window_context": lambda: latenz("window"),
        "cyclictest": cyclictest,
        "cyclictest_histogram": lambda: cyclictest("-h1000000"),
    }
    rounds: dict[str, list[Measured]] = {name: [] for name in programs}
    for number in range(ROUNDS):
        turns = list(programs.items())
        for name, program in turns[number % 4 :] + turns[: number % 4]:
            print(f"bench: probe, round {number + 1} of {ROUNDS}, {name}", file=sys.stderr)
            rounds[name].append(program())
    latencies = {
        name: [each.median_ns for each in found if each.median_ns is not None]
        for name, found in rounds.items()
        if name != "cyclictest"
    }
    costs = {name: [each.cpu_per_cycle_ns for each in found] for name, found in rounds.items()}
    del costs["cyclictest_histogram"]
    return {
        "interval_ns": INTERVAL_NS,
        "threads": len(os.sched_getaffinity(0)),
        "seconds": SECONDS,
        "median_ns": latencies,
        "median_ratio": ratio(latencies["latenz"], latencies["cyclictest_histogram"]),
        "median_ratio_window_context": ratio(
            latencies["latenz_window_context"], latencies["cyclictest_histogram"]
        ),
        "cpu_time_per_cycle_ns": {
            name: [round(each) for each in found] for name, found in costs.items()
        },
        "cpu_ratio": ratio(costs["latenz"], costs["cyclictest"]),
        "cpu_ratio_window_context": ratio(costs["latenz_window_context"], costs["cyclictest"]),
        "max_rss_kib": max(each.max_rss_kib or 0 for each in rounds["latenz"]),
    }


def ratio(ours: list[float], theirs: list[float]) -> float:
    """Median over the rounds of the ratio within a round, which shared the machine's state."""
    return round(statistics.median(a / b for a, b in zip(ours, theirs, strict=True)), 3)


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
