"""Experiments whose systems the hypervisor executes, beside the simulator."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.boots

ROOT = Path(__file__).parents[3]
FILE = """
name = "short"
description = "The evaluation of beckert2014 with few interrupts"
seed = 1

[probe.plain]
engine = "simulation"
mode = "plain"
irqs = 600
seed = 1
system = "SYSTEMS/beckert2014-10-percent.toml"

[probe.monitored]
engine = "simulation"
mode = "paper"
irqs = 600
seed = 1
system = "SYSTEMS/beckert2014-10-percent.toml"

[probe.adhering]
engine = "simulation"
mode = "carry"
irqs = 600
seed = 1
system = "SYSTEMS/beckert2014-adhering-10-percent.toml"

[probe.learned]
engine = "simulation"
mode = "paper"
system = "SYSTEMS/beckert2014-ecu.toml"
learn = { fraction = 0.1, length = 5, allow = 0.25 }

[matrix]
bench = ["simulation", "hypervisor"]
probe = ["plain", "monitored", "adhering", "learned"]
name = "{bench}-{probe}"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hypervisor-bench")
    path = folder / "short.toml"
    path.write_text(FILE.replace("SYSTEMS", str(ROOT / "experiments" / "systems")))
    command = [sys.executable, "-m", "latenz", "run", path, "-o", folder / "run", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    sets = {each["name"]: each for each in json.loads(done.stdout)["sample_sets"]}
    accounts = json.loads((folder / "run" / "run.json").read_text())["conditions"]
    return sets, {each["condition"]: each for each in accounts}


@pytest.mark.parametrize("probe", ["plain", "monitored", "adhering", "learned"])
def test_every_interrupt_is_handled_as_simulated_and_within_its_bound(run, probe):
    sets, accounts = run
    [system] = accounts[f"hypervisor-{probe}"]["systems"]
    compared = system["compared"]
    assert compared["alike"] == compared["irqs"] >= 600
    assert compared["exceeding"] == 0
    assert all(limit is not None for limit in compared["bounds_ns"].values())
    for name, executed in sets.items():
        if name.startswith(f"hypervisor-{probe}/"):
            assert executed["time_base"] == "virtual"
            simulated = sets[name.replace("hypervisor", "simulation", 1)]
            assert executed["handled"] == simulated["handled"]
            assert executed["n"] == simulated["n"]


def test_interrupts_that_keep_their_distance_are_never_delayed(run):
    sets, _ = run
    plain, adhering = (sets[f"hypervisor-{name}/timer"] for name in ("plain", "adhering"))
    assert adhering["handled"]["delayed"] == 0
    assert plain["mean_ns"] >= 16 * adhering["mean_ns"]


def test_the_hypervisor_learns_what_the_analysis_learns(run):
    _, accounts = run
    [system] = accounts["hypervisor-learned"]["systems"]
    [source] = system["statistics"]["sources"]
    wanted = list(system["learned"]["ecu"]["distances_ns"])
    for length in range(1, len(wanted)):  # closed: what shorter distances imply
        wanted[length] = max(
            wanted[length], *(wanted[part] + wanted[length - part - 1] for part in range(length))
        )
    assert source["learned_ticks"] == wanted  # a tick is a nanosecond
