"""What it costs not to trust other partitions: `enforced_ns` over `wcrt_ns`.

Run by `make bench`, or alone: `python bench/enforced.py`. Of the shipped systems, and of random
ones whose sources keep their monitors: two to six partitions with slots of 0.5 to 6 ms, two to
twelve sources with periods of 2 to 50 ms, monitors that grant what is up to a fifth closer, and the
costs of the evaluation of beckert2014.
"""

import json
import random
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path

from latenz.analysis import bound
from latenz.system import Mode, Monitor, Periodic, Platform, Slot, Source, System, read_system

US, MS = 1_000, 1_000_000
MODES: tuple[Mode, ...] = ("plain", "paper", "carry")
RANDOM_SYSTEMS = 1000
SHIPPED = Path(__file__).parents[1] / "experiments" / "systems"


def random_system(source: random.Random) -> System:
    names = [f"P{number}" for number in range(source.randint(2, 6))]
    slots = tuple(Slot(name, source.randint(5, 60) * 100 * US) for name in names)
    sources = []
    for number in range(source.randint(2, 12)):
        period_ns = source.randint(2 * MS, 50 * MS)
        monitor = Monitor((period_ns * source.randint(80, 100) // 100,))
        sources.append(
            Source(
                f"s{number}",
                source.choice(names),
                5 * US,
                source.randint(10, 100) * US,
                Periodic(period_ns),
                monitor if source.random() < 0.7 else None,
            )
        )
    return System(Platform(50 * US, 640, 4_385, 50 * US), slots, tuple(sources))


def ratios(systems: Iterable[System], mode: Mode) -> Iterator[float]:
    """Yield the ratio of every source that has both bounds."""
    for system in systems:
        for each in bound(system, mode).sources:
            if each.wcrt_ns is not None and each.enforced_ns is not None:
                yield each.enforced_ns / each.wcrt_ns


def run() -> dict[str, float]:
    source = random.Random(1)
    drawn = [random_system(source) for _ in range(RANDOM_SYSTEMS)]
    shipped = [read_system(path) for path in sorted(SHIPPED.glob("*.toml"))]
    figures: dict[str, float] = {}
    for kind, systems in (("shipped", shipped), ("random", drawn)):
        for mode in MODES:
            found = sorted(ratios(systems, mode))
            figures[f"{kind}_{mode}_sources"] = len(found)
            figures[f"{kind}_{mode}_median"] = round(statistics.median(found), 4)
            figures[f"{kind}_{mode}_p95"] = round(found[len(found) * 95 // 100], 4)
            figures[f"{kind}_{mode}_most"] = round(found[-1], 4)
    return figures


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
