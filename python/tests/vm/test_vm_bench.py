"""The bench `vm` in experiment files: what it takes, what it refuses, what it would run."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from latenz.benches import BENCHES
from latenz.benches.vm import machine
from latenz.errors import BadInput
from latenz.experiment.schema import Experiment
from latenz.stacks.vm import HOST_LAYERS, VmStackSettings
from latenz.store.run import Run
from latenz.tune.catalogue import load
from latenz.vm.settings import TUNED

FILE = """
name = "machines"
duration = "1 s"

[probe.wakeup]
engine = "wakeup"

[stack.tuned]
kind = "vm"
accel = "tcg"
tunings = ["qemu", "guest-skew-tick", "host"]

[[condition]]
name = "one"
bench = "vm"
stack = "tuned"
probe = "wakeup"
"""


def read(folder: Path, text: str) -> Experiment:
    path = folder / "machines.toml"
    path.write_text(text)
    return Experiment.read(path)


def stack(**keys: object) -> VmStackSettings:
    return VmStackSettings.model_validate({"kind": "vm", **keys})


def test_a_condition_names_a_machine_with_its_tunings(tmp_path):
    [condition] = read(tmp_path, FILE).conditions
    assert condition.bench == "vm"
    assert isinstance(condition.system, VmStackSettings)
    assert condition.system.tunings == ("qemu", "guest-skew-tick", "host")
    assert BENCHES["vm"]().obstacle(condition) is None


def test_layers_of_the_host_and_of_the_machine_are_told_apart():
    settings, of_host = machine(stack(tunings=["qemu", "guest-skew-tick", "host"]))
    layers = {entry.id: entry.layer for entry in load()}
    assert {layers[each] for each in settings.tunings} == {"qemu", "guest"}
    assert {layers[each] for each in of_host} == {"host"}
    assert "guest-skew-tick" in settings.tunings


def test_nothing_is_taken_that_must_be_asked_for_by_name():
    _, of_host = machine(stack(tunings=list(HOST_LAYERS)))
    consent = {entry.id for entry in load() if entry.consent}
    assert consent
    assert not consent & set(of_host)


def test_all_layers_make_the_tuned_machine():
    settings, _ = machine(stack(tunings=["qemu", "libvirt", "guest"]))
    assert settings.tunings == TUNED
    assert machine(stack())[0].tunings == frozenset()
    assert machine(stack(kernel="rt"))[0].tunings == {"guest-rt-kernel"}


def test_an_unknown_tuning_is_told_before_anything_is_measured(tmp_path):
    [condition] = read(tmp_path, FILE.replace("guest-skew-tick", "guest-skew-tock")).conditions
    obstacle = BENCHES["vm"]().obstacle(condition)
    assert obstacle is not None
    assert "'guest-skew-tock' is not a tuning" in str(obstacle)
    assert "guest-skew-tick" in str(obstacle)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "vm"', 'kind = "vm"\nvcpus = 1', "2"),
        ('accel = "tcg"', 'accel = "xen"', "'kvm-in-tcg'"),
        ('accel = "tcg"', 'accel = "tcg"\nload_on = "host"', 'needs accel = "kvm-in-tcg"'),
        ('engine = "wakeup"', 'engine = "oslat"', "does not run on bench 'vm'"),
    ],
)
def test_mistakes_are_one_line(tmp_path, old, new, message):
    with pytest.raises(BadInput) as mistake:
        read(tmp_path, FILE.replace(old, new))
    assert message in str(mistake.value)
    assert "\n" not in str(mistake.value)


def test_the_layers_of_the_publication_are_added_one_by_one():
    experiment = Experiment.read(Path("experiments/pamuk2024.toml"))
    assert experiment.file.published == ("pamuk2024.table2", "pamuk2024.table3")
    machines = [each for each in experiment.conditions if each.name.startswith("vm-")]
    chosen = [machine(each.system) for each in machines]
    assert chosen[0] == machine(stack())
    for (before, host_before), (after, host_after) in pairwise(chosen):
        assert before.tunings <= after.tunings
        assert set(host_before) <= set(host_after)
        assert (before, host_before) != (after, host_after)
    assert chosen[-1][0].tunings == TUNED


@pytest.mark.long
def test_a_robot_is_measured_in_a_machine_as_vm_run_does(tmp_path):
    """Both ways lead to the same program in the same machine; only names of files differ there."""
    text = FILE.replace('"wakeup"', '"robot"').replace("[probe.wakeup]", "[probe.robot]")
    text = text.replace('tunings = ["qemu", "guest-skew-tick", "host"]', "")
    (tmp_path / "robot.toml").write_text(text)
    latenz = [sys.executable, "-m", "latenz"]
    one = [*latenz, "vm", "run", "--accelerator", "tcg", "--default", "--engine", "robot"]
    one += ["--memory", "512", "--duration", "1s", "-o", tmp_path / "one"]
    for command in ([*latenz, "run", tmp_path / "robot.toml", "-o", tmp_path / "many"], one):
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    found = []
    for folder in ("many", "one"):
        sets = Run.open(tmp_path / folder).sample_sets
        samples = {
            each.metadata.name.partition("/")[2]: np.concatenate([*each.batches("latency_ns")])
            for each in sets
        }
        assert set(samples) == {"activation", "completion"}
        found.append(samples)
    for kind, first in found[0].items():
        assert len(first) == len(found[1][kind])
        assert abs(np.median(first) - np.median(found[1][kind])) < np.median(first) // 50
