"""Linux and firmware side by side under the hypervisor: real Linux, real stress-ng."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from latenz.boards.console import Received, Stream
from latenz.errors import BadInput
from latenz.experiment.schema import Experiment
from latenz.model import Metadata, SampleSet, TimeBase
from latenz.stacks import STACKS, Job
from latenz.store.run import Run

pytestmark = pytest.mark.boots

LATENZ = Path(__file__).parents[3] / "latenz"
EXPERIMENT = """
name = "partitioned"
seed = 1
[probe.interrupt]
engine = "interrupt"
samples = 100
period = "250 us"
optimization = "O0"
[stressor.cpu]
kind = "stress-ng-cpu"
settle = "100 ms"
[[condition]]
name = "alone"
bench = "virt"
stack = "standalone"
probe = "interrupt"
[[condition]]
name = "idle"
bench = "virt"
stack = "partitioned"
probe = "interrupt"
[[condition]]
name = "loaded"
bench = "virt"
stack = "partitioned"
stressor = "cpu"
probe = "interrupt"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("partitioned")
    path = folder / "partitioned.toml"
    path.write_text(EXPERIMENT)
    command = [LATENZ, "run", path, "-o", folder / "run"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def latencies_ns(sample_set: SampleSet) -> list[int]:
    return [
        x for batch in sample_set.batches("latency_ns") for x in batch["latency_ns"].to_pylist()
    ]


def stack(folder: Path, condition: str = "loaded"):
    path = folder / "partitioned.toml"
    path.write_text(EXPERIMENT)
    chosen = next(x for x in Experiment.read(path).conditions if x.name == condition)
    metadata = Metadata(name=condition, time_base=TimeBase.VIRTUAL)
    return STACKS["partitioned"](chosen.system, Job("virt", chosen, folder, metadata))


def test_load_beside_changes_no_sample(folder):
    accounts = json.loads((folder / "run.json").read_text())["conditions"]
    hashes = {each["condition"]: each["samples_sha256"] for each in accounts}
    assert hashes["idle"]["idle/interrupt"] == hashes["loaded"]["loaded/interrupt"]
    assert hashes["idle"]["idle/interrupt"] != hashes["alone"]["alone/interrupt"]


def test_hypervisor_adds_less_than_a_third_of_what_xen_does(folder):
    sets = {x.metadata.condition: latencies_ns(x) for x in Run.open(folder).sample_sets}
    added_ns = max(sets["idle"]) - min(sets["alone"])
    assert 0 < added_ns < 1056 / 3


def test_linux_tells_when_its_load_ran(folder):
    notes = {x.metadata.condition: x.metadata.notes for x in Run.open(folder).sample_sets}
    for condition in ("idle", "loaded"):
        assert any(note.startswith("Linux' load ran from ") for note in notes[condition])


GOOD = Received(
    hello={"timer_hz": 10**9, "timer": "generic"},
    streams={0: Stream([114] * 100, [250_000] * 100, complete=True)},
    notes=["loaded_ns=3000000000 processes=50", "unloaded_ns=9000000000 processes=60"],
)


def test_samples_taken_under_load_count(tmp_path):
    [found] = stack(tmp_path).collect(GOOD)
    assert latencies_ns(found) == [114] * 100


@pytest.mark.parametrize(
    ("notes", "told"),
    [
        ([], "Linux did not tell when its load ran"),
        (GOOD.notes[:1], "Linux did not tell when its load ran"),
        (["loaded_ns=8000000000 processes=50", GOOD.notes[1]], "these samples show no load"),
        ([GOOD.notes[0], "unloaded_ns=4300000000 processes=60"], "these samples show no load"),
    ],
)
def test_samples_without_load_are_refused(tmp_path, notes, told):
    with pytest.raises(BadInput, match=told):
        stack(tmp_path).collect(replace(GOOD, notes=notes))
