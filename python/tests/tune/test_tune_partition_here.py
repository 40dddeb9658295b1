"""The partition on this machine: made by `latenz tune apply`, measured within, and taken back.

`bench/partition.py` does it. Where control group v1 has the cpusets, as in some containers and
virtual machines, it takes them from it meanwhile, and gives them back whatever happens.
"""

import json
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[3] / "bench/partition.py"
ITS = runpy.run_path(str(PROGRAM))

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("alone")]


@pytest.fixture
def kept() -> Any:
    """What has to be as before; a reason to skip where it cannot be done."""
    if why := ITS["obstacle"]():
        pytest.skip(f"no partition can be made here: {why}")
    return ITS["kept"]()


def test_the_load_leaves_the_cpu_and_comes_back(kept: Any) -> None:
    told = json.loads(subprocess.check_output([sys.executable, PROGRAM, "1"], timeout=600))
    assert told["partition"] == "isolated"
    there = [told[when]["threads_of_the_load_there"] for when in ("before", "within", "after")]
    assert there[0] > 0
    assert there[1] == 0
    assert there[2] > 0
    assert told["within"]["fifo"]["n"] > 0
    assert told["within"]["other"]["n"] > 0
    assert told["as before"]
    assert ITS["kept"]() == kept


def test_killed_in_the_middle_it_leaves_nothing_behind(kept: Any) -> None:
    with subprocess.Popen(
        [sys.executable, PROGRAM, "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stderr
        assert "partition made: isolated" in running.stderr.readline()
        assert ITS["kept"]() != kept
        running.kill()
    for _ in range(600):
        if ITS["kept"]() == kept:
            return
        time.sleep(0.1)
    assert ITS["kept"]() == kept
