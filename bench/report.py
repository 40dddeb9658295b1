"""How long `latenz report` takes, what memory it needs and how large the page is, by samples.

Run alone: .venv/bin/python bench/report.py [SAMPLES...]
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from latenz.model import Deadline, Metadata, SampleSet, TimeBase
from latenz.store.parquet import write_parquet

SIZES = (10**5, 10**6, 10**7, 10**8)
BATCH = 10**6
PERIOD_NS = 100_000


def synthetic(n: int) -> SampleSet:
    """Return n latencies as a wake-up probe records them: log-normal with a few late ones."""

    def batches(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        random = np.random.default_rng(1)
        for start in range(0, n, BATCH):
            size = min(BATCH, n - start)
            late = random.random(size) < 1e-5
            latency_ns = random.lognormal(8.4, 0.25, size) * np.where(late, 40, 1)
            columns = {
                "latency_ns": latency_ns.astype(np.int64),
                "t_ns": PERIOD_NS * np.arange(start, start + size),
                "missed": np.zeros(size, dtype=np.int64),
            }
            yield pa.RecordBatch.from_pydict({name: columns[name] for name in wanted})

    metadata = Metadata(
        name="synthetic/cpu0",
        time_base=TimeBase.SIMULATED,
        period_ns=PERIOD_NS,
        deadlines=(Deadline(name="3 ms", limit_ns=3_000_000),),
    )
    return SampleSet(metadata, "samples", batches, ("latency_ns", "t_ns", "missed"))


def measure(n: int, folder: Path) -> dict[str, float]:
    """Report n samples once, in a process of its own."""
    source, page = folder / f"{n}.parquet", folder / f"{n}.html"
    write_parquet(synthetic(n), source)
    command = [sys.executable, "-m", "latenz", "report", str(source), "-o", str(page)]
    started = time.monotonic()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.monotonic() - started
    if process.returncode != 0:
        raise RuntimeError(f"{command} failed with {process.returncode}")
    source.unlink()
    return {
        "samples": n,
        "seconds": round(seconds, 3),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 3),
        "peak_rss_mib": round(usage.ru_maxrss / 1024, 1),
        "html_bytes": page.stat().st_size,
    }


def run(sizes: tuple[int, ...] = SIZES) -> dict[str, object]:
    """Measure every size; bars: 10^8 samples within 30 s, a page below 8 MB."""
    with tempfile.TemporaryDirectory(prefix="latenz-bench-") as folder:
        return {"report": [measure(n, Path(folder)) for n in sizes]}


if __name__ == "__main__":
    print(json.dumps(run(tuple(map(int, sys.argv[1:])) or SIZES), indent=1))
