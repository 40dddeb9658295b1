"""Emulated boards give the samples that they gave before, bit by bit."""

import json

import golden
import pytest

from latenz.experiment.progress import Progress
from latenz.experiment.runner import run_experiment
from latenz.experiment.schema import Experiment
from latenz.store.run import Run

pytestmark = pytest.mark.boots

EXPERIMENT = """
name = "golden"
seed = 1
[probe.poll]
engine = "interrupt"
[probe.asleep]
engine = "interrupt"
wait = "wfi"
optimization = "O2"
[probe.drawn]
engine = "interrupt"
arrivals = "exponential"
min_distance = 20000
[matrix]
bench = ["virt", "mps3-an536"]
stack = ["standalone"]
probe = ["poll", "asleep", "drawn"]
"""


@pytest.fixture(scope="module")
def accounts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("golden")
    (folder / "golden.toml").write_text(EXPERIMENT)
    experiment = Experiment.read(folder / "golden.toml")
    run_experiment(experiment, folder / "run", experiment.conditions, Progress(wanted=False))
    return {each["condition"]: each for each in Run.open(folder / "run").info.conditions}


@pytest.mark.parametrize("bench", ["virt", "mps3-an536"])
@pytest.mark.parametrize("probe", ["poll", "asleep", "drawn"])
def test_samples_are_those_that_are_known(accounts, bench, probe):
    account = accounts[f"{bench}-{probe}"]
    assert account["state"] == "measured"
    same = golden.compare(account)
    if same is None and golden.tools() != json.loads(golden.FILE.read_text())["tools"]:
        pytest.skip("other versions of emulator or compilers")
    assert same is not None, "the firmware has changed: write down what it gives now"
    assert same
