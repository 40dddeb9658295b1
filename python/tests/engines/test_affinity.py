"""CPUs that are outside of the inherited mask are measured, by every engine, and named."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from latenz import affinity
from latenz.affinity import enterable_cpus, inherited_cpus, isolation, kept_off
from latenz.engines import ENGINES, Task
from latenz.idle import deep_idle_note, deepest_state, requested_us
from latenz.model import Metadata, TimeBase
from latenz.store.run import Run, RunWriter
from latenz.traces.join import latest

FIRST, LAST = min(enterable_cpus()), max(enterable_cpus())

needs_two_cpus = pytest.mark.skipif(FIRST == LAST, reason="there is no other CPU to leave out")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="real-time scheduling needs root")


def latenz(*arguments, cpu=FIRST):
    """Run Latenz from a shell that is bound to one CPU, as on a machine with isolcpus=."""
    command = ["taskset", "-c", str(cpu), sys.executable, "-m", "latenz", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


@needs_two_cpus
def test_a_mask_takes_no_cpu_away():
    script = "from latenz.affinity import *; print(sorted(enterable_cpus()), inherited_cpus())"
    command = ["taskset", "-c", str(FIRST), sys.executable, "-c", script]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told == f"{sorted(enterable_cpus())} frozenset({{{FIRST}}})\n"


def test_trying_leaves_the_mask_as_it_is():
    before = inherited_cpus()
    assert before <= enterable_cpus()
    assert inherited_cpus() == before


def machine(root, **files):
    for name, text in files.items():
        path = root / affinity_file(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def affinity_file(name):
    return {
        "isolated": "sys/devices/system/cpu/isolated",
        "nohz_full": "sys/devices/system/cpu/nohz_full",
        "partition": "sys/fs/cgroup/cpuset.cpus.isolated",
        "cmdline": "proc/cmdline",
    }[name]


def test_the_reason_of_isolation_is_named(tmp_path):
    of = {
        "isolcpus": {"isolated": f"{LAST}\n"},
        "isolcpus, nohz_full": {"isolated": f"{LAST}\n", "nohz_full": f"{LAST}\n"},
        "nohz_full": {"isolated": "\n", "nohz_full": f"{LAST}\n"},
        "an isolated cpuset": {"isolated": f"{LAST}\n", "partition": f"{LAST}\n"},
        "an isolated cpuset, isolcpus": {
            "isolated": f"{LAST}\n",
            "partition": f"{LAST}\n",
            "cmdline": f"quiet isolcpus=managed_irq,domain,{LAST} splash\n",
        },
        None: {"isolated": "\n", "nohz_full": "(null)\n"},
    }
    for number, (reason, files) in enumerate(of.items()):
        assert isolation(LAST, machine(tmp_path / str(number), **files)) == reason


@needs_two_cpus
def test_every_thread_of_latenz_keeps_off_measured_cpus_and_comes_back():
    go_on = threading.Event()
    thread = threading.Thread(target=go_on.wait)
    thread.start()
    before = inherited_cpus()
    try:
        with kept_off(frozenset({LAST})):
            masks = [os.sched_getaffinity(int(task.name)) for task in own_tasks()]
        after = [os.sched_getaffinity(int(task.name)) for task in own_tasks()]
    finally:
        go_on.set()
        thread.join()
    assert len(masks) >= 2
    assert not any(LAST in mask for mask in masks)
    assert all(mask == before for mask in after)
    with kept_off(enterable_cpus()):
        assert inherited_cpus() == before  # nowhere else to go


def own_tasks():
    return Path("/proc/self/task").iterdir()


EVERY_ENGINE = """
name = "isolated"
duration = "1 s"

[matrix]
probe = ["wakeup", "cyclictest", "oslat", "robot", "deadline", "intercore"]

[probe.deadline]
engine = "wakeup"
policy = "deadline"
cpus = [0]

[probe.intercore]
engine = "intercore"
samples = 200
"""


@needs_root
@needs_two_cpus
def test_every_engine_measures_what_the_shell_leaves_out(tmp_path):
    file = tmp_path / "isolated.toml"
    file.write_text(EVERY_ENGINE)
    done = latenz("run", file, "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    sets = {each.metadata.name: each.metadata for each in Run.open(tmp_path / "run").sample_sets}
    for engine in ("wakeup", "cyclictest", "oslat"):
        measured = {cpu for cpu in enterable_cpus() if f"{engine}/cpu{cpu}" in sets}
        assert measured == enterable_cpus(), engine
        assert sets[f"{engine}/cpu{FIRST}"].isolation is None
        left_out = sets[f"{engine}/cpu{LAST}"]
        assert left_out.isolation == affinity.LEFT_OUT
        assert any(f"CPU {LAST} is isolated" in note for note in left_out.notes)
    assert sets["robot/activation"].cpu == LAST
    assert f"CPU {LAST} is isolated" in done.stdout
    assert "intercore/one-way" in sets
    ran = sets["deadline/thread0"]
    places = set(ran.ran_on or {ran.cpu: 1})
    assert {each.context["cpu"] for each in ran.worst} <= places
    explained = latest(
        (
            each
            for each in Run.open(tmp_path / "run").sample_sets
            if "deadline/" in each.metadata.name
        ),
        5,
    )
    contexts = {each.t_ns: each.context["cpu"] for each in ran.worst}
    assert [each.cpu for each in explained] == [contexts[each.t_ns] for each in explained]


def engine_of(folder, name, **settings):
    kind = ENGINES[name]
    model = kind.settings_type.model_validate({"engine": name, **settings})
    place = folder / "run" / "idle"
    writer = RunWriter(folder / "run")
    place.mkdir()
    metadata = Metadata(name="idle", time_base=TimeBase.SILICON, condition="idle")
    return kind(model, Task(writer, place, metadata, 600_000_000_000))


@needs_root
@pytest.mark.parametrize("name", ["wakeup", "cyclictest", "robot"])
@pytest.mark.parametrize(("setting", "held_us"), [("left alone", None), ("7 us", 7)])
def test_cpus_are_kept_awake_only_as_far_as_asked_for(tmp_path, name, setting, held_us):
    before_us = requested_us()
    engine = engine_of(tmp_path, name, dma_latency=setting)
    engine.start()
    try:
        limit = time.monotonic() + 30
        wanted = held_us if before_us is None or held_us is None else min(before_us, held_us)
        # Long enough for a program that holds something unasked to do so.
        settled = time.monotonic() + 2
        while time.monotonic() < settled or (held_us is not None and requested_us() != wanted):
            assert time.monotonic() < limit
            time.sleep(0.05)
        assert requested_us() == (before_us if held_us is None else wanted)
    finally:
        engine.stop()


def test_rtla_holds_only_what_it_is_told(tmp_path):
    assert not any("dma" in each for each in engine_of(tmp_path, "timerlat").arguments())
    held = engine_of(tmp_path / "held", "timerlat", dma_latency="20 us").arguments()
    assert "--dma-latency=20" in held


@needs_root
def test_the_sample_set_tells_what_was_held(tmp_path):
    file = tmp_path / "held.toml"
    file.write_text(
        'name = "held"\nduration = "300 ms"\n[matrix]\nprobe = ["alone", "held"]\n'
        '[probe.alone]\nengine = "wakeup"\n'
        '[probe.held]\nengine = "wakeup"\ndma_latency = "20 us"\n'
    )
    done = latenz("run", file, "-o", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    sets = {each.metadata.name: each.metadata for each in Run.open(tmp_path / "run").sample_sets}
    assert sets[f"alone/cpu{FIRST}"].dma_latency.startswith("left alone")
    assert sets[f"held/cpu{FIRST}"].dma_latency == "held at 20 us"


@pytest.mark.parametrize("wrong", ["1500 ns", "-1 us", "off", "", "1 h", 1.5, True, "0.5 us"])
def test_what_cannot_be_held_is_refused(wrong):
    settings = ENGINES["wakeup"].settings_type
    with pytest.raises(ValueError, match=r"left alone|whole microseconds|duration"):
        settings.model_validate({"engine": "wakeup", "dma_latency": wrong})


def idle_machine(root, **states):
    for number, (name, (latency, disabled)) in enumerate(states.items()):
        folder = root / f"sys/devices/system/cpu/cpu0/cpuidle/state{number}"
        folder.mkdir(parents=True)
        for file, text in (("name", name), ("latency", latency), ("disable", disabled)):
            (folder / file).write_text(f"{text}\n")
    return root


def test_deep_idle_states_are_told_where_they_were_possible(tmp_path):
    root = idle_machine(tmp_path, POLL=(0, 0), C1=(2, 0), C6=(133, 0), C8=(500, 1))
    assert str(deepest_state([0], root)) == "C6 takes 133 us to leave"
    for held_us in (None, 133, 200):
        note = deep_idle_note([0], held_us, root)
        assert "C6 takes 133 us to leave" in note
        assert 'dma_latency = "0 us"' in note
    assert deep_idle_note([0], 0, root) is None
    assert deep_idle_note([0], 132, root) is None
    assert deep_idle_note([1], None, root) is None
    shallow = idle_machine(tmp_path / "shallow", POLL=(0, 0), C1=(2, 0))
    assert deep_idle_note([0], None, shallow) is None
