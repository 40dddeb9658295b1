"""A replay that takes long is announced, or refused with a clock that does not."""

import re
import subprocess
import sys
from pathlib import Path


def replay(folder: Path, rows: int, *options: str) -> subprocess.CompletedProcess[str]:
    """Replay latencies of odd nanoseconds, one each millisecond."""
    text = "".join(f"{i}000,{10 + i % 7}.{i % 1000:03}\n" for i in range(1, rows + 1))
    (folder / "latency.csv").write_text(f"time_us,latency_us\n{text}")
    command = [sys.executable, "-m", "latenz", "ip", "replay", folder / "latency.csv"]
    return subprocess.run(
        [*command, "-o", folder / "run", *options], capture_output=True, text=True, timeout=600
    )


def test_a_replay_of_an_hour_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    done = replay(tmp_path, 5_000)
    assert done.returncode == 2
    assert re.search(r"clock cycles take about \d+ (min|h) to simulate", done.stderr)
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
