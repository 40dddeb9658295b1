"""Measures how long it takes to bound a long trace, and in how much memory.

Usage: .venv/bin/python docs/measure_trace_reading.py [SECONDS] [PERIOD_US]

Writes a trace.dat of so many seconds (3,600 unless told) of a simulated kernel, whose real-time
thread is woken each PERIOD_US (1,000) on a CPU that is idle otherwise, bounds it, and prints one
line for each figure. An hour at 1,000 us takes 7 GB of room where temporary files go.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "python/tests/linux_bound"))

from traced_dat import Recording  # noqa: E402
from traced_kernel import Kernel  # noqa: E402

WAKE_UPS = 1000  # of them it is made, one after the other


def main(seconds: int = 3600, period_us: int = 1000) -> None:
    """Print the figures."""
    period_ns = period_us * 1000
    gap = (period_ns, 9 * period_ns)
    same = random.Random(1)  # noqa: S311 - each time the same trace
    kernel = Kernel(same, period=period_ns, device_gap=gap)
    recording = Recording(kernel.run(WAKE_UPS).splitlines())
    times = -(-seconds * 10**9 // recording.length_ns)
    with tempfile.TemporaryDirectory() as name:
        path = recording.write(Path(name) / "trace.dat", times)
        size = path.stat().st_size
        command = [sys.executable, "-P", "-m", "latenz", "bound", "--linux", str(path)]
        command += ["--preemption", "rt", "--json"]
        began_s = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        took_s = time.monotonic() - began_s
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        sys.exit(f"latenz bound ended with {os.waitstatus_to_exitcode(status)}")
    events = recording.events * times
    cpu_s = used.ru_utime + used.ru_stime
    for line in (
        f"{seconds:,} s of a thread that is woken each {period_us:,} us: {events:,} events,"
        f" {events / seconds:,.0f} a second, {size / 1e6:,.0f} MB",
        f"bounded in {took_s:.1f} s ({cpu_s:.1f} s of CPU time), {events / cpu_s / 1e6:.2f} million"
        " events a second of CPU time",
        f"memory of the largest process: {used.ru_maxrss / 1024:.0f} MiB",
    ):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
