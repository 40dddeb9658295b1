"""What waiting for a peer costs: a call's time and the processor time, for each wait policy.

`python bench/icc_wait.py` prints JSON. A client calls a server through an `Exchange` once a period,
the policies in turns, each figure the median of the rounds. Polling sides burn a processor each, so
with fewer processors than sides they also wait for each other's time slices. Beside it 10^7
messages of each channel and each kind of bell between processes that sleep until they are woken:
one lost wake-up fails this. They share one processor there, so that nearly each message is slept
for.
"""

import argparse
import json
import os
import statistics
import subprocess
from pathlib import Path

from latenz import environment

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "build/host/icc/latenz-icc-sleep"
POLICIES = ("pause", "yield", "sleep")
BELLS = ("futex", "eventfd", "c")
CHANNELS = ("mailbox", "exchange", "ring")
CALLS, PERIOD_US, ROUNDS, MESSAGES = 3_000, 1_000, 5, 10_000_000


def build() -> None:
    """Compile the program."""
    for command in (
        ["cmake", "--preset", "host"],
        ["cmake", "--build", "--preset", "host", "--target", PROGRAM.name],
    ):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def told(*words: object) -> dict[str, int]:
    """Run the program; the figures that it prints."""
    done = subprocess.run(
        [PROGRAM, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(json.loads(done.stdout))


def costs(rounds: int) -> list[dict[str, object]]:
    """Return each policy's times of a call, and both sides' processor time for one."""
    runs = [[told("cost", policy, CALLS, PERIOD_US) for policy in POLICIES] for _ in range(rounds)]
    figures = []
    for policy, rows in zip(POLICIES, zip(*runs, strict=True), strict=True):
        cost: dict[str, object] = {"policy": policy}
        for key in ("p50_ns", "p99_ns", "max_ns"):
            cost[key] = round(statistics.median(row[key] for row in rows))
        cost["cpu_ns_per_call"] = round(statistics.median(row["cpu_ns"] / CALLS for row in rows))
        figures.append(cost)
    return figures


def figures(rounds: int, messages: int) -> dict[str, object]:
    """Return what waiting costs, and how many messages, sleeps and rings went without a loss."""
    build()
    cpu = max(os.sched_getaffinity(0))
    return {
        "machine": environment.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "period_us": PERIOD_US,
        "calls": CALLS,
        "rounds": rounds,
        "policies": costs(rounds),
        "torture": {
            f"{channel} by {bell}": told("torture", bell, channel, messages, cpu)
            for bell in BELLS
            for channel in CHANNELS
        },
    }


def run() -> dict[str, object]:
    return figures(ROUNDS, MESSAGES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--messages", type=int, default=MESSAGES)
    arguments = parser.parse_args()
    print(json.dumps(figures(arguments.rounds, arguments.messages), indent=1))


if __name__ == "__main__":
    main()
