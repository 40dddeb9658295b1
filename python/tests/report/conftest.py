"""A run as the report sees it: two conditions on two CPUs, a histogram, an emulated set, and a
published table."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from latenz.model import Deadline, Metadata, Reported, SampleSet, TimeBase, WorstSample
from latenz.report import open_runs, write_report
from latenz.robot_account import ACCOUNT_FILE
from latenz.store.run import RunWriter

HOSTILE = (
    "</script><script>window.taken=1</script><img src=x onerror=window.taken=2>\"'&amp;{{7*7}}"
)

CONTROLLED = {
    "program_version": "1",
    "status": HOSTILE,
    "cpu": 1,
    "policy": "fifo",
    "memory_locked": True,
    "dma_latency": "held",
    "cycles": 4988,
    "missed": 12,
    "tracked": 4900,
    "saturated": 3,
    "lost": 0,
    "safe_stops": 1,
    "stops_stale": 0,
    "stops_missed": 1,
    "error_rms_urad": 78,
    "error_max_urad": 3067,
    "joints": [{"error_rms_urad": 78, "error_max_urad": 3067}],
    "jitter_rms_ns": 91_930,
    "jitter_max_ns": 12_338_478,
    "set_point_age_max_ns": 13_520_000,
    "page_faults": 0,
    "involuntary_switches": 2,
    "max_ns": 12_345_678,
    "over_time": {"stretch_ns": 1_000_000_000, "max_urad": [70, 3067, 80], "missed": [0, 12, 0]},
}
"""What a robot's program tells of condition stress."""


@dataclass
class Example:
    page: Path
    run: Path
    latencies: dict[str, np.ndarray]


def silicon(name: str, cpu: int, latency_ns: np.ndarray, **more: object) -> SampleSet:
    missed = np.zeros(len(latency_ns), dtype=np.int64)
    t_ns = 7_000_000_000 + 1_000_000 * np.arange(len(latency_ns))
    if name == "stress/cpu1":
        latency_ns[1234] = 12_345_678
        missed[1234] = 12
        t_ns[1235:] += 12_000_000
    metadata = Metadata(
        name=name,
        condition=name.split("/")[0],
        cpu=cpu,
        time_base=TimeBase.SILICON,
        tool="latenz-wakeup",
        machine="bench <4>",
        kernel="6.1.0-rt",
        period_ns=1_000_000,
        deadlines=(
            Deadline(name="fieldbus", limit_ns=3_000_000),
            Deadline(name="drive", limit_ns=60_000, allowed="1e-6"),
        ),
        worst=(
            WorstSample(
                t_ns=int(t_ns[latency_ns.argmax()]),
                latency_ns=int(latency_ns.max()),
                context={"interrupts": 3, "note": HOSTILE},
            ),
        ),
        **more,
    )
    return SampleSet.from_columns(metadata, latency_ns=latency_ns, t_ns=t_ns, missed=missed)


def write_example(folder: Path) -> Example:
    random = np.random.default_rng(5)
    latencies = {
        f"{condition}/cpu{cpu}": random.lognormal(np.log(median), 0.2, 5_000).astype(np.int64)
        for condition, median in (("idle", 4_200), ("stress", 7_300))
        for cpu in (0, 1)
    }
    writer = RunWriter(
        folder / "run",
        command=["latenz", "run", HOSTILE],
        seed=99,
        experiment={"title": "Bench on the fourth floor"},
        environment={"cpu": {"model": HOSTILE, "count": 2}},
        published=["alonso2024.table4"],
    )
    for name, latency_ns in latencies.items():
        writer.add(silicon(name, int(name[-1]), latency_ns))
    value = np.arange(1, 31)
    writer.add(
        SampleSet.from_columns(
            Metadata(
                name="cyclictest/cpu0",
                time_base=TimeBase.SILICON,
                tool="cyclictest",
                resolution_ns=1000,
                beyond_range=25,
                beyond_range_from_ns=31_000,
                reported=Reported(max_ns=5_512_000, min_ns=1_000, mean_ns=5_400.0),
            ),
            latency_ns=1000 * value,
            width_ns=np.full(30, 1000),
            count=1000 * (31 - value),
        )
    )
    writer.add(
        SampleSet.from_columns(
            Metadata(name=HOSTILE, time_base=TimeBase.VIRTUAL, tool="qemu"),
            latency_ns=600 + np.arange(400) % 50,
        )
    )
    writer.close()
    (folder / "run" / "stress" / ACCOUNT_FILE).write_text(json.dumps(CONTROLLED))
    page = folder / "report.html"
    write_report(open_runs([folder / "run"]), page)
    return Example(page, folder / "run", latencies)


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    return write_example(tmp_path_factory.mktemp("report"))
