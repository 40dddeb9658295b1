"""Run folders that somebody else prepared, for reading and for writing."""

import os
import shutil

import pytest

from latenz.errors import BadInput
from latenz.hypervisor.store import stored
from latenz.importers.opening import open_sample_sets
from latenz.model import Metadata, SampleSet, TimeBase
from latenz.report.runs import _open_run
from latenz.robot_account import controls
from latenz.store.run import Run, RunWriter
from latenz.traces.runs import of_run


def samples() -> SampleSet:
    metadata = Metadata(name="loaded/cpu0", time_base=TimeBase.SILICON)
    return SampleSet.from_columns(metadata, latency_ns=[1, 2, 3], t_ns=[0, 10, 20])


@pytest.fixture
def run(tmp_path):
    writer = RunWriter(tmp_path / "run")
    writer.add(samples())
    writer.info.conditions.append({"condition": "loaded", "traces": ["loaded/trace.dat"]})
    writer.close()
    return tmp_path / "run"


NAMES = [
    "run.json",
    "loaded/cpu0/samples.parquet",
    "loaded/cpu0/peaks.parquet",
    "loaded/robot.json",
    "loaded/received/robot.json",
    "loaded/path.json",
    "loaded/schedule.svg",
    "loaded/trace.dat",
    "trace.bin",
    "statistics.json",
]


def read_all(run):
    """Read whatever is ever read of a run."""
    _open_run(run, "run")
    controls(run, ["loaded/cpu0"])
    of_run(run)
    stored(run)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["link out", "pipe", "folder of links"])
def test_no_file_of_a_run_is_read_from_elsewhere_nor_waited_for(name, kind, run, tmp_path):
    path, outside = run / name, tmp_path / "outside"
    outside.mkdir()
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        shutil.move(path, outside / path.name)
    if name == "statistics.json":
        (run / "trace.bin").touch()
    (run / "loaded/trace.dat").touch() if name in ("trace.bin", "statistics.json") else None
    (outside / path.name).touch()
    if kind == "link out":
        path.symlink_to(outside / path.name)
    elif kind == "pipe":
        os.mkfifo(path)
    elif path.parent == run:
        path.symlink_to(f"../outside/{path.name}")
    else:
        shutil.rmtree(path.parent)
        path.parent.symlink_to(outside)
    with pytest.raises(
        BadInput, match=r"leaves (its folder|the run)|is not a regular file"
    ) as told:
        read_all(run) if not name.endswith((".bin", "statistics.json")) else stored(run)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("name", ["samples.journal", "histogram.json"])
def test_what_is_still_recorded_is_not_read_from_elsewhere(name, run, tmp_path):
    folder = run / "loaded/cpu0"
    (run / "run.json").write_text(
        (run / "run.json").read_text().replace('"state": "complete"', '"state": "recording"')
    )
    (folder / "samples.parquet").unlink()
    (tmp_path / "secret").write_text("secret")
    (folder / name).symlink_to(tmp_path / "secret")
    with pytest.raises(BadInput, match="leaves its folder"):
        Run.open(run)


def test_links_within_a_run_are_followed(run):
    folder = run / "loaded/cpu0"
    (folder / "samples.parquet").rename(run / "samples-elsewhere.parquet")
    (folder / "samples.parquet").symlink_to("../../samples-elsewhere.parquet")
    [found] = open_sample_sets(run)
    assert [batch.num_rows for batch in found.batches()] == [3]


def test_a_link_at_the_name_under_which_run_json_is_made_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    writer = RunWriter(tmp_path / "run")
    for name in ("run.json.partial", "run.json"):
        (tmp_path / "run" / name).unlink(missing_ok=True)
        (tmp_path / "run" / name).symlink_to(victim)
    writer.add(samples())
    writer.close()
    assert victim.read_text() == "as it was"
    assert not (tmp_path / "run/run.json").is_symlink()


def test_names_of_folders_are_no_columns(tmp_path):
    writer = RunWriter(tmp_path / "x=1/latency_ns=7")
    writer.add(samples())
    writer.close()
    [found] = open_sample_sets(tmp_path / "x=1/latency_ns=7")
    assert found.columns == ("latency_ns", "t_ns")
