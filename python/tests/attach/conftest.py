"""Programs with loops of known kinds, which stamp themselves."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

Stamps = npt.NDArray[np.int64]
SOURCE = Path(__file__).parent / "rhythm.c"
MS = 1_000_000


class Rhythm:
    """A running program that is measured, and its own stamps once it has ended."""

    def __init__(self, process: subprocess.Popen[bytes], stamps: Path) -> None:
        self.process = process
        self.path = stamps

    @property
    def pid(self) -> int:
        return self.process.pid

    def stamps(self) -> Stamps:
        """End it; a row for each cycle: due, first and last reading of the clock."""
        self.process.send_signal(signal.SIGUSR1)
        assert self.process.wait(120) == 0
        return np.fromfile(self.path, dtype="<i8").reshape(-1, 3)


@pytest.fixture(scope="session")
def rhythm_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rhythm") / "rhythm"
    command = [
        "cc",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-o",
        str(path),
        str(SOURCE),
        "-lpthread",
    ]
    subprocess.run(command, check=True)
    return path


@pytest.fixture
def start_rhythm(rhythm_program: Path, tmp_path: Path) -> Iterator[Callable[..., Rhythm]]:
    """Start a loop: its kind, how many cycles, their distance, what it does beside."""
    started: list[subprocess.Popen[bytes]] = []

    def start(
        kind: str, cycles: int = 200_000, period_ns: int = MS, work_ns: int = 0, **environment: str
    ) -> Rhythm:
        stamps = tmp_path / f"stamps-{len(started)}"
        command = [
            str(rhythm_program),
            kind,
            str(period_ns),
            str(cycles),
            str(stamps),
            str(work_ns),
        ]
        process = subprocess.Popen(command, env={**os.environ, **environment})
        started.append(process)
        for _ in range(500):
            with suppress(OSError):
                if Path(f"/proc/{process.pid}/comm").read_text().strip() == "rhythm":
                    break
            time.sleep(0.01)
        return Rhythm(process, stamps)

    yield start
    for each in started:
        each.kill()
        each.wait()
