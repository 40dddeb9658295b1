"""`latenz show` on 10^5 to 10^8 samples: wall time, memory, and whether the cost is linear.

Run by `make bench`, or alone: `python bench/sample_statistics.py`. Each figure is that of a whole
command, start of the interpreter included, reading a file that Latenz wrote.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from latenz.model import Metadata, SampleSet, TimeBase
from latenz.statistics import summarize
from latenz.store.parquet import open_parquet, write_parquet

SIZES = (10**5, 10**6, 10**7, 10**8)
BATCH = 1 << 20
PERIOD_NS = 100_000
SEED = 1
REPETITIONS = 3

Latencies = Callable[[np.random.Generator, int], np.ndarray]


def wake_ups(rng: np.random.Generator, n: int) -> np.ndarray:
    """Around 11 us with a heavy tail into milliseconds: what a loaded machine gives."""
    values = rng.lognormal(9.2, 0.35, n) + 1500
    late = rng.random(n) < 2e-4
    values[late] += rng.pareto(1.5, late.sum()) * 300_000
    return values.astype(np.int64)


def spread(rng: np.random.Generator, n: int) -> np.ndarray:
    """Anything up to 1000 s: hardly two alike, so that a second pass is needed."""
    return rng.integers(0, 10**12, n)


def stalls(rng: np.random.Generator, n: int) -> np.ndarray:
    """Wake-ups of which one in 20,000 comes up to 200 ms late: a twentieth of all is skipped."""
    values = wake_ups(rng, n)
    late = rng.random(n) < 5e-5
    values[late] = rng.integers(0, 200_000_000, late.sum())
    return values


def sample_set(latencies: Latencies, n: int) -> SampleSet:
    def batches(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        rng = np.random.default_rng(SEED)
        due_ns = 0
        for start in range(0, n, BATCH):
            values = latencies(rng, min(BATCH, n - start))
            missed = values // PERIOD_NS if latencies is stalls else np.zeros_like(values)
            until = due_ns + np.cumsum(missed + 1) * PERIOD_NS
            columns = {
                "latency_ns": values,
                "t_ns": np.concatenate([[due_ns], until[:-1]]),
                "missed": missed,
            }
            due_ns = int(until[-1])
            yield pa.record_batch({name: columns[name] for name in wanted})

    metadata = Metadata(name="bench", time_base=TimeBase.SIMULATED, period_ns=PERIOD_NS)
    return SampleSet(metadata, "samples", batches, ("latency_ns", "t_ns", "missed"))


def measured(*command: str) -> dict[str, float]:
    """Run a program; wall time, processor time and largest resident memory."""
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as program:
        _, status, usage = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
    if program.returncode:
        raise SystemExit(f"{' '.join(command)} failed with exit code {program.returncode}")
    return {
        "wall_s": round(time.perf_counter() - started, 3),
        "processor_s": round(usage.ru_utime + usage.ru_stime, 3),
        "resident_mib": round(usage.ru_maxrss / 1024, 1),
    }


def shown(latencies: Latencies, n: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "samples.parquet"
        write_parquet(sample_set(latencies, n), path)
        show = measured(sys.executable, "-m", "latenz", "show", str(path), "--json")
        return {
            "n": n,
            "file_mib": round(path.stat().st_size / 2**20, 1),
            **show,
            "summarize_s": round(min(summarized(path) for _ in range(REPETITIONS)), 4),
        }


def summarized(path: Path) -> float:
    """Processor time of the statistics alone, reading of the file included."""
    started = time.process_time()
    summarize(open_parquet(path))
    return time.process_time() - started


def run() -> dict[str, object]:
    """Measure; times in seconds, memory in MiB, per sample in processor time."""
    start_up = measured(sys.executable, "-m", "latenz", "--help")
    show = [shown(wake_ups, n) for n in SIZES]
    per_sample = [
        round(
            (larger["summarize_s"] - smaller["summarize_s"]) / (larger["n"] - smaller["n"]) * 1e9, 2
        )
        for smaller, larger in pairwise(show)
    ]
    return {
        "start_up": start_up,
        "show": show,
        "ns_per_further_sample": per_sample,
        "show_two_passes": shown(spread, SIZES[-2]),
        "show_skipped": shown(stalls, SIZES[-1]),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
