"""`latenz explore` on 10^5 candidates of a system with three sources, on all processors.

Run by `make bench`, or alone: `python bench/explore.py`. Whole explorations are timed: start of the
processes, bounds, files of all chunks, their merging, and the systems of the front.
"""

import json
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from latenz.analysis.explore import Plan, explore
from latenz.system import read_system

SYSTEM = Path(__file__).parent.parent / "experiments/systems/can-gateway.toml"
CANDIDATES = 100_000
SMALL = 2_000


def plan(candidates: int) -> Plan:
    """Three sources of three partitions, all monitored or with a deadline."""
    system = read_system(SYSTEM)
    sources = tuple(each for each in system.sources if each.name != "can-comfort")
    limits = {"can-engine": 300_000, "ethernet": 3_000_000, "door": 5_000_000}
    return Plan(replace(system, sources=sources), limits, candidates=candidates)


def timed(candidates: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        started, before = time.perf_counter(), os.times()
        found = explore(plan(candidates), Path(folder) / "explored")
        wall_s, after = time.perf_counter() - started, os.times()
    processor_s = sum(after[:4]) - sum(before[:4])
    return {
        "possible": found.possible,
        "evaluated": found.evaluated,
        "feasible": found.feasible,
        "front": len(found.front),
        "wall_s": round(wall_s, 2),
        "processor_s": round(processor_s, 2),
        "processor_us_per_candidate": round(processor_s / found.evaluated * 1e6, 1),
    }


def run() -> dict[str, object]:
    """Measure; the small exploration shows what does not grow with the candidates."""
    return {
        "processors": len(os.sched_getaffinity(0)),
        "small": timed(SMALL),
        "large": timed(CANDIDATES),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
