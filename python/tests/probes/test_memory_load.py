"""Runs the real memory load, briefly."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from latenz.programs import probe_program

CPU = min(os.sched_getaffinity(0))
# Read and written by each kernel for each element of 8 bytes, as STREAM counts.
ARRAYS = {"copy": 2, "scale": 2, "add": 3, "triad": 3}


def load(*options: str) -> subprocess.Popen[str]:
    command = [str(probe_program("latenz-memory-load")), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_until_busy(process: subprocess.Popen[str]) -> None:
    """Wait until a load has had some processor time, whatever else the machine does."""
    limit = time.monotonic() + 60
    ticks = 0
    while ticks < os.sysconf("SC_CLK_TCK") // 2:
        assert time.monotonic() < limit
        time.sleep(0.05)
        words = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(words[11]) + int(words[12])


def test_all_kernels_run_in_turn_and_are_counted_in_whole_arrays() -> None:
    process = load(f"--cpus={CPU}", "--array-bytes=65536")
    wait_until_busy(process)
    process.send_signal(signal.SIGINT)
    text, errors = process.communicate(timeout=600)
    assert (process.returncode, errors) == (0, "")
    told = json.loads(text)
    kernels = told["threads"][0]["kernels"]
    assert told["bytes"] == sum(kernel["bytes"] for kernel in kernels.values())
    rounds = [kernels[name]["bytes"] // (65536 * arrays) for name, arrays in ARRAYS.items()]
    assert all(kernels[name]["bytes"] % (65536 * arrays) == 0 for name, arrays in ARRAYS.items())
    assert max(rounds) - min(rounds) <= 1
    assert min(rounds) > 0


def test_its_duration_is_its_normal_end() -> None:
    process = load(f"--cpus={CPU}", "--array-bytes=65536", "--duration=200000000")
    text, errors = process.communicate(timeout=600)
    assert (process.returncode, errors) == (0, "")
    assert json.loads(text)["duration_ns"] >= 200_000_000


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_its_normal_end(number: signal.Signals) -> None:
    process = load(f"--cpus={CPU}", "--array-bytes=1048576", "--kernel=triad")
    wait_until_busy(process)
    process.send_signal(number)
    text, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    kernels = json.loads(text)["threads"][0]["kernels"]
    assert kernels["triad"]["bytes_per_s"] > 0
    assert kernels["copy"]["bytes"] == 0


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("--array-bytes=1000000000000", "--array-bytes: three arrays"),
        ("--array-bytes=1", "--array-bytes: '1'"),
        ("--kernel=all", "--kernel: 'all'"),
        ("--cpus=9999", "--cpus: "),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(option: str, place: str) -> None:
    process = load(option)
    text, errors = process.communicate(timeout=600)
    assert (process.returncode, text) == (2, "")
    assert errors.startswith(f"latenz-memory-load: {place}")
    assert len(errors.splitlines()) == 1
