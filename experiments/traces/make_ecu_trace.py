"""Makes ecu.csv: a synthetic trace of task activations in an engine control unit.

The appendix of beckert2014 uses a recorded trace of about 11,000 activations, which was never
published. This one is made up in its place, of what is common in such units:

- seven periodic tasks of 5 ms to 1 s. Each is due on a grid of its own with a random phase and
  late by up to 2 % of its period, uniformly.
- one task for each ignition: its distances follow the engine's speed, which swings between the
  two ends of 10 and 20 ms once in 8 s, with up to 2 % of scatter.

Every activation raises the same interrupt source. The result is the same on every machine.

Usage: .venv/bin/python experiments/traces/make_ecu_trace.py [-o ecu.csv]
"""

import argparse
import random
from collections.abc import Iterator
from heapq import merge
from itertools import islice
from math import cos, pi
from pathlib import Path

ACTIVATIONS = 11_000
PERIODS_US = (5_000, 10_000, 10_000, 20_000, 50_000, 100_000, 1_000_000)
SHORTEST_US, LONGEST_US = 10_000, 20_000
SWING_US = 8_000_000
JITTER = 0.02
SEED = 2014


def periodic(period_us: int, random_numbers: random.Random) -> Iterator[int]:
    """Give the activations of a periodic task in nanoseconds."""
    due_us = random_numbers.random() * period_us
    while True:
        yield round(1000 * (due_us + JITTER * period_us * random_numbers.random()))
        due_us += period_us


def ignition(random_numbers: random.Random) -> Iterator[int]:
    """Give the activations of the task that follows the engine's speed, in nanoseconds."""
    at_us = random_numbers.random() * LONGEST_US
    while True:
        yield round(1000 * at_us)
        swing = (1 - cos(2 * pi * at_us / SWING_US)) / 2
        distance_us = SHORTEST_US + (LONGEST_US - SHORTEST_US) * swing
        at_us += distance_us * (1 + JITTER * (random_numbers.random() - 0.5))


def trace(seed: int = SEED) -> list[int]:
    """Return the activations of all tasks in nanoseconds, sorted."""
    tasks = [
        periodic(period_us, random.Random(f"{seed}/{task}"))  # noqa: S311 - no secret
        for task, period_us in enumerate(PERIODS_US)
    ]
    tasks.append(ignition(random.Random(f"{seed}/ignition")))  # noqa: S311 - no secret
    return list(islice(merge(*tasks), ACTIVATIONS))


def main() -> None:
    """Write the trace."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent / "ecu.csv")
    given = parser.parse_args()
    rows = "".join(f"ecu,{time_ns}\n" for time_ns in trace())
    given.output.write_text(f"source,time_ns\n{rows}", encoding="utf-8")


if __name__ == "__main__":
    main()
