"""`latenz hypervisor watch` shows what `run` tells afterwards, and changes nothing of it."""

import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path

import pytest
from small_guests import assembled

from latenz.hypervisor.run import ensure_built

LATENZ = Path(sys.executable).parent / "latenz"
SYSTEM = """
[policy]
mode = "carry"
[[slot]]
partition = "P1"
length = "1 ms"
[[slot]]
partition = "P2"
length = "1 ms"
[[source]]
name = "can"
partition = "P1"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "3 ms", jitter = "500 us" }}
monitor = {{ distances = ["2 ms"] }}
[[partition]]
name = "P2"
guest = "{guest}"
{more}
"""
GONE = """
    ldr     x0, =0xdead0000
    ldr     x0, [x0]
"""


@pytest.fixture
def path(tmp_path):
    ensure_built()
    made = tmp_path / "system.toml"
    made.write_text(SYSTEM.format(guest="victim", more=""))
    return made


def told(*arguments):
    done = subprocess.run(
        [LATENZ, "hypervisor", *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("bench", ["virt", "zcu102"])
def test_it_ends_with_what_a_run_tells(path, bench):
    options = (path, "--irqs", "200", "--bench", bench, "--json")
    documents = [json.loads(line) for line in told("watch", *options).splitlines()]
    last, run = documents[-1], json.loads(told("run", *options))
    assert last["gaps"] == 0
    (seen,), (source,) = last["sources"], run["sources"]
    for way in ("direct", "interposed", "delayed"):
        assert seen[way] == source[way]
    assert seen["interposed"] > 20
    tick_ns = 16 if bench == "zcu102" else 1
    assert abs(seen["latest_ns"] - source["max_ns"]) <= tick_ns
    assert run["counted"]["cycles"] - last["cycles"] in (0, 1), "the last slot has no end"
    for watched, counted in zip(last["partitions"], run["counted"]["partitions"], strict=True):
        assert (watched["name"], watched["state"]) == (counted["name"], counted["state"])
        assert watched["most_lost_ns"] >= watched["lost_ns"] > 0
    assert last["partitions"][1]["most_lost_ns"] > 1000, "an interposed job of a few us"
    times = [each["time_ns"] for each in documents]
    assert times == sorted(times)


def test_a_fault_is_seen_and_told_at_the_end(tmp_path, path):
    guest = assembled(tmp_path, GONE)
    path.write_text(SYSTEM.format(guest=guest, more='on_fault = "restart"\nrestarts = 2'))
    *lines, health, ending = told("watch", path, "--irqs", "50").splitlines()
    assert "P1 running, P2 stopped (3 faults)" in lines[-1]
    assert health == "P2 was stopped: 3 faults, 2 restarts"
    assert re.fullmatch(r"the run is over: \d+ cycles", ending)


def until(descriptor, wanted):
    """Read until the terminal has been sent something."""
    found, limit_s = b"", time.monotonic() + 60
    while wanted not in found and time.monotonic() < limit_s:
        found += os.read(descriptor, 65536)
    assert wanted in found
    return found


def test_it_fits_60_columns_and_ends_by_control_c(path):
    main, other = pty.openpty()
    ioctl(other, termios.TIOCSWINSZ, struct.pack("4H", 40, 60, 0, 0))
    command = [LATENZ, "hypervisor", "watch", path, "--irqs", "100000"]
    with subprocess.Popen(command, stdout=other, stderr=other, stdin=other) as running:
        os.close(other)
        screen = until(main, b"Ctrl-C ends it")
        running.send_signal(signal.SIGINT)
        assert running.wait(30) == 130
    text = re.sub(rb"\x1b\[[0-9;?]*[a-zA-Z]", b"", screen).decode()
    assert "latest" in text
    assert "not in 60 columns" not in text
    assert "Traceback" not in text
    os.close(main)
