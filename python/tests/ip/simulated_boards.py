"""Simulated boards: GHDL runs the design, its registers are behind a socket."""

import json
import os
import pty
import random
import re
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from latenz.ip.simulated import Answers, Scenario, simulated_board

ADDITIONS = {
    "latency_width_g": 48,
    "depth_g": 16,
    "histogram_kind_g": "log-linear",
    "histogram_sub_bits_g": 2,
    "histogram_bins_g": 64,
    "counters_g": True,
    "watchdog_g": True,
    "time_stamp_g": True,
    "snapshot_g": True,
    "sums_g": True,
    "histogram_g": True,
    "self_test_g": True,
}
CYCLE_NS = 10
PERIOD = 250
LOSE_EVERY = 20


def latenz(*arguments, code=0):
    command = [sys.executable, "-m", "latenz", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "120"}
    answer = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert answer.returncode == code, answer.stdout + answer.stderr
    return answer


def document(*arguments, code=0):
    answer = latenz("ip", *arguments, "--json", code=code)
    assert answer.stderr == ""
    return json.loads(answer.stdout)


def drawn(answers, seed, count):
    """The latencies that the simulated processor draws, by what `Answers` says."""
    generator = random.Random(seed)

    def below(limit):
        return int(generator.random() * limit)

    found = []
    for _ in range(count):
        cycles = answers.least_cycles + below(answers.spread_cycles + 1)
        if answers.late_one_in and below(answers.late_one_in) == 0:
            cycles += 1 + below(answers.late_cycles)
        found.append(cycles)
    return found


def column(sample_set, name):
    return [value for batch in sample_set.batches(name) for value in batch.column(0).to_pylist()]


def never():
    return False


def nobody(_done):
    pass


class Reading:
    """Reads without end, on a terminal whose progress bar has shown that samples come."""

    def __init__(self, target, run):
        command = [sys.executable, "-m", "latenz", "ip", "read", target, "--continuous", "-o", run]
        self._leader, follower = pty.openpty()
        self.program = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=follower, env={**os.environ, "TERM": "xterm"}
        )
        os.close(follower)
        self.said = b""
        while not re.search(rb"[1-9][0-9]{2,}/\?", self.said):
            self.said += os.read(self._leader, 4096)
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self):
        with suppress(OSError):  # of a terminal whose program has ended
            while part := os.read(self._leader, 4096):
                self.said += part

    def ended(self):
        """Wait for the end; return its exit status, and all it said."""
        status = self.program.wait(200)
        self._listener.join()
        os.close(self._leader)
        return status, self.said


@pytest.fixture(scope="module")
def bench():
    """The bench with every addition, and every twentieth interrupt lost."""
    scenario = Scenario(period_cycles=PERIOD, lose_every=LOSE_EVERY)
    with simulated_board("latency_bench", ADDITIONS, scenario) as path:
        yield f"unix:{path}"


@pytest.fixture(scope="module")
def published():
    """The IP alone, in the published configuration."""
    answers = Answers(least_cycles=20, spread_cycles=40, late_one_in=10, late_cycles=30)
    with simulated_board(
        "latencies_ip", None, Scenario(period_cycles=120, answers=answers)
    ) as path:
        yield f"unix:{path}", drawn(answers, 1, 5000)
