"""What our own probe leaves is read by every command, as it lies."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from latenz import importers
from latenz.errors import BadInput
from latenz.importers.opening import open_sample_sets
from latenz.programs import probe_program
from latenz.statistics import summarize

CPU = min(os.sched_getaffinity(0))


def recorded(folder, *options):
    program = str(probe_program("latenz-wakeup"))
    common = [f"--output={folder}", f"--cpus={CPU},{CPU}", "--policy=other", "--count=200"]
    subprocess.run([program, *common, *options], check=True, timeout=600)
    return folder


@pytest.fixture(scope="module", params=["samples", "histogram"])
def folder(request, tmp_path_factory):
    return recorded(tmp_path_factory.mktemp("probe") / "out", f"--keep={request.param}")


def latenz(*arguments):
    command = [sys.executable, "-m", "latenz", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def test_a_folder_has_a_set_for_each_thread_with_what_the_probe_told(folder):
    told = json.loads((folder / "probe.json").read_bytes())
    found = open_sample_sets(folder)
    assert [each.metadata.name for each in found] == [f"cpu{CPU}", f"cpu{CPU}-2"]
    for each, thread in zip(found, told["threads"], strict=True):
        summary = summarize(each)
        assert (summary.n, summary.max_ns) == (thread["n"], thread["max_ns"])
        assert each.metadata.cpu == CPU
        assert each.metadata.period_ns == told["interval_ns"]
        assert each.metadata.dma_latency == "left alone"
        assert each.metadata.tool_version == told["program_version"]
        assert [w.latency_ns for w in each.metadata.worst] == [
            w["latency_ns"] for w in thread["worst"]
        ]


def test_the_account_and_each_file_alone_are_read(folder):
    assert len(open_sample_sets(folder / "probe.json")) == 2
    [file] = [each for each in (folder / f"cpu{CPU}").iterdir() if "peaks" not in each.name]
    [alone] = open_sample_sets(file)
    assert summarize(alone).n == 200


def test_every_command_takes_the_folder(folder, tmp_path):
    for arguments in (
        ["show", folder],
        ["import", folder, "-o", tmp_path / "run"],
        ["compare", folder, folder],
        ["report", folder / "probe.json", "-o", tmp_path / "report.html"],
    ):
        done = latenz(*arguments)
        assert "Traceback" not in done.stderr
        assert done.returncode in (0, 3), (arguments[0], done.stderr)
    assert len(open_sample_sets(tmp_path / "run")) == 2


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told["threads"][0].update(folder="../outside"),
        lambda told: told["threads"][0].update(folder="/etc"),
        lambda told: told["threads"][1].update(folder=told["threads"][0]["folder"]),
        lambda told: told.pop("threads"),
        lambda told: told["threads"][0].update(ran_on={"0": "many"}),
    ],
)
def test_a_damaged_account_is_refused_in_one_line(tmp_path, change):
    folder = recorded(tmp_path / "out")
    told = json.loads((folder / "probe.json").read_bytes())
    change(told)
    (folder / "probe.json").write_text(json.dumps(told))
    with pytest.raises(BadInput):
        importers.read(folder)
    done = latenz("show", folder)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_nothing_outside_of_the_folder_is_read(tmp_path):
    folder = recorded(tmp_path / "out")
    inside = folder / f"cpu{CPU}"
    shutil.move(inside, tmp_path / "elsewhere")
    inside.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="leaves its folder"):
        open_sample_sets(folder)
