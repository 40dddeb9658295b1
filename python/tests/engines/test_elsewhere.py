"""Engines this machine may lack: their options are known to the real tool, their output is read."""

import re
import subprocess
from pathlib import Path

import pytest

from latenz.engines import ENGINES, Task
from latenz.engines.timerlat import available_tracers
from latenz.model import Metadata, TimeBase
from latenz.statistics import summarize
from latenz.store.run import Run, RunWriter

RECORDED = Path("python/tests/data/importers")


def engine(folder, name, **settings):
    kind = ENGINES[name]
    writer = RunWriter(folder / "run")
    place = folder / "run" / "idle"
    place.mkdir()
    metadata = Metadata(name="idle", time_base=TimeBase.SILICON, bench="host", condition="idle")
    model = kind.settings_type.model_validate({"engine": name, **settings})
    return kind(model, Task(writer, place, metadata, 2_500_000_000))


def test_rtla_knows_every_option(tmp_path):
    arguments = engine(tmp_path, "timerlat", period="200 us").arguments()
    asked = subprocess.run(["rtla", "timerlat", "hist", "--help"], capture_output=True, text=True)
    known = asked.stdout + asked.stderr
    for argument in arguments[3:]:
        assert re.search(rf"{argument.split('=')[0]}\b", known), argument
    assert "--period=200" in arguments
    assert "--duration=3s" in arguments


def test_recorded_timerlat_output_is_stored(tmp_path):
    timerlat = engine(tmp_path, "timerlat")
    printed = (RECORDED / "rtla-timerlat-hist-v6.1.txt").read_text()
    (timerlat.folder / timerlat.output_file).write_text(printed)
    stored = timerlat.collect()
    opened = Run.open(tmp_path / "run").sample_sets
    assert [each.metadata.name for each in opened] == [each.metadata.name for each in stored]
    assert all(each.metadata.name.startswith("idle/") for each in opened)
    counts = re.search(r"^count:\s+(.*)$", printed, re.MULTILINE)[1].split()
    assert sorted(summarize(each).n for each in opened) == sorted(
        int(c) for c in counts if c != "0"
    )


def test_recorded_xenomai_output_is_stored(tmp_path):
    latency = engine(tmp_path, "xenomai-latency", cpus="0")
    printed = (RECORDED / "xenomai-latency-s-T60.txt").read_text()
    (latency.folder / latency.output_file).write_text(printed)
    latency.collect()
    opened = Run.open(tmp_path / "run").sample_sets
    assert {each.metadata.cpu for each in opened} == {0}
    assert max(summarize(each).max_ns for each in opened) == 374_075


@pytest.mark.skipif("timerlat" in (available_tracers() or []), reason="this kernel has it")
def test_a_kernel_without_timerlat_is_told():
    kind = ENGINES["timerlat"]
    obstacle = kind.obstacle(kind.settings_type.model_validate({"engine": "timerlat"}))
    assert obstacle.reason
    assert obstacle.fix
