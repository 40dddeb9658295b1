"""`compare` of two sides made by the same process: how often do they seem to differ?

Not among the figures of `make bench`: run it as `python bench/compare_alike.py [PAIRS]`. It prints
the tables of docs/compare.md: in how many pairs an interval of 95 % excludes zero, of how many
that have one; and in how many pairs a true difference is found.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from latenz.compare import compare
from latenz.model import SampleSet

sys.path.insert(0, str(Path(__file__).parents[1] / "python/tests/compare"))
from processes import KHZ, PROCESSES, Process, run_of

STATISTICS = ("mean", "median", "p90", "p99", "p99.9", "stdev", "block_max")
SHIFTED = ("independent", "independent, heavy tail", "busy 10 ms, quiet 1 s")
SEED = 100


def runs(process: Process, seconds: int, repetitions: int, factor: float, seed: int) -> list:
    """Make one side: a single run, or repetitions."""
    random = np.random.default_rng([SEED, seed])
    return [
        run_of(
            "idle" if repetitions == 1 else f"idle-r{i + 1}",
            process(random, seconds * KHZ) * factor,
        )
        for i in range(repetitions)
    ]


def outcomes(a: list[SampleSet], b: list[SampleSet]) -> dict[str, bool | None]:
    """Tell for each statistic whether its interval excludes zero; None if there is none."""
    [pair] = compare(a, b).pairs
    found = {}
    for name in STATISTICS:
        effect = pair.statistics[name]
        told = effect.low is not None and effect.high is not None
        found[name] = not effect.low <= 0 <= effect.high if told else None
    return found


def table(
    names: Iterator[str] | tuple[str, ...],
    seconds: int,
    repetitions: int,
    factor: float,
    pairs: int,
) -> None:
    """Print a table with one row for each process."""
    print(f"\n{repetitions} x {seconds} s each, B {factor:g} times A, {pairs} pairs:\n")
    print("| process |", " | ".join(STATISTICS), "|")
    print("| --- |", " | ".join("---" for _ in STATISTICS), "|")
    for name in names:
        count = {statistic: [0, 0] for statistic in STATISTICS}
        for pair in range(pairs):
            a, b = (
                runs(PROCESSES[name], seconds, repetitions, f, 2 * pair + side)
                for side, f in enumerate((1, factor))
            )
            for statistic, outcome in outcomes(a, b).items():
                count[statistic][0] += outcome is True
                count[statistic][1] += outcome is not None
        cells = (f"{wrong} of {told}" for wrong, told in count.values())
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


def main() -> None:
    """Print all tables."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    table(tuple(PROCESSES), 60, 1, 1, pairs)
    table(tuple(PROCESSES), 10, 3, 1, pairs)
    table(tuple(PROCESSES), 10, 6, 1, pairs)
    table(tuple(PROCESSES), 600, 1, 1, pairs // 4)
    table(SHIFTED, 60, 6, 1.1, pairs // 2)


if __name__ == "__main__":
    main()
