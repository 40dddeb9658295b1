"""Measures what recording a kernel's windows costs: CPU time, and the size of what it leaves.

Usage: .venv/bin/python docs/measure_kernel_recorder.py [WAKE_UPS] [PERIOD_US]

Runs linux-rt without load twice, without and with windows (which boots it once more), and prints
one line for each figure. With 1,000,000 wake-ups each 100 us it takes some minutes.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

EXPERIMENT = """
name = "recorder"
duration = "{duration} us"
seed = 1
[probe.cyclictest]
engine = "cyclictest"
period = "{period} us"
priority = 95
windows = {windows}
[matrix]
bench = ["virt"]
stack = ["linux-rt"]
stressor = ["none"]
probe = ["cyclictest"]
"""


def measured(folder: Path, wake_ups: int, period: int, windows: bool) -> float:
    """Return the CPU time in seconds of a run."""
    experiment = folder / "recorder.toml"
    told = {"duration": wake_ups * period, "period": period, "windows": str(windows).lower()}
    experiment.write_text(EXPERIMENT.format(**told))
    run = folder / f"run-{windows}-{wake_ups}"
    command = [sys.executable, "-P", "-m", "latenz", "run", str(experiment), "-o", str(run)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"latenz run ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


def main(wake_ups: int = 1_000_000, period: int = 100) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured(folder, 100, period, windows=True)  # what is made once is made now
        plain_s = measured(folder, wake_ups, period, windows=False)
        both_s = measured(folder, wake_ups, period, windows=True)
        [windows] = folder.glob(f"run-True-{wake_ups}/*/windows.json")
        size = windows.stat().st_size
    for line in (
        f"{wake_ups:,} wake-ups, {period} us apart, without load",
        f"CPU time: {plain_s:.1f} s plain, {both_s - plain_s:.1f} s with the recorder,"
        f" {(both_s - plain_s) / plain_s:.2f} times",
        f"windows.json: {size:,} bytes",
    ):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
