"""Systems and helpers that the tests of explore share."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from latenz.analysis.explore import Plan
from latenz.system import (
    Distances,
    Monitor,
    Periodic,
    Platform,
    Slot,
    Source,
    System,
    read_system,
)

GATEWAY = Path(__file__).parents[3] / "experiments/systems/can-gateway.toml"
SLOW = Path(__file__).with_name("slow_explore.py")
LIMITS = {"can-engine": 300_000, "ethernet": 3_000_000, "door": 5_000_000}
ARGUMENTS = [
    str(GATEWAY),
    *(f"--deadline={name}={limit_ns}ns" for name, limit_ns in LIMITS.items()),
]


def small_system() -> System:
    """Two partitions and two sources, so small a space that it can be tried as a whole."""
    return System(
        Platform(slot_switch_ns=10_000, monitor_ns=500, schedule_ns=1_000, context_switch_ns=5_000),
        (Slot("P1", 900_000), Slot("P2", 600_000)),
        (
            Source(
                "can", "P1", 2_000, 30_000, Distances((400_000, 1_500_000)), Monitor((300_000,))
            ),
            Source("timer", "P2", 3_000, 40_000, Periodic(5_000_000)),
        ),
        "carry",
    )


def gateway_plan(candidates: int, seed: int = 0) -> Plan:
    """A space far too large to be tried as a whole."""
    return Plan(read_system(GATEWAY), LIMITS, candidates=candidates, seed=seed)


def all_candidates(folder: Path) -> pa.Table:
    return parquet.read_table(folder / "candidates.parquet")


def started(*arguments: str, slow: bool = False) -> subprocess.Popen[str]:
    """Start the command as the leader of a process group, as a shell does."""
    program = [str(SLOW)] if slow else ["-m", "latenz"]
    return subprocess.Popen(
        [sys.executable, *program, "explore", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def eventually(condition: Callable[[], bool], timeout_s: float = 60) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def when_chunks(process: subprocess.Popen[str], folder: Path, chunks: int) -> None:
    """Wait until the command has written so many chunks."""
    eventually(
        lambda: process.poll() is not None or len(list(folder.glob("chunks/*.parquet"))) >= chunks
    )
    assert process.poll() is None, process.communicate()
