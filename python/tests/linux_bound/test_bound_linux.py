"""What `latenz bound --linux` refuses, each in one line."""

import json
import subprocess
from pathlib import Path

import pytest

from latenz.errors import BadInput
from latenz.experiment.schema import Experiment

LATENZ = Path(__file__).parents[3] / "latenz"


def refused(*arguments: str | Path) -> str:
    command = [LATENZ, "bound", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"format": 1}',
        '{"format": 2}',
        "\0\0",
        "[" * 100_000,
        '{"format": "\x1b[2J"}',
    ],
)
def test_what_is_no_file_of_windows_is_refused(tmp_path, content):
    path = tmp_path / "windows.json"
    path.write_text(content)
    line = refused("--linux", path)
    assert "holds no windows of a kernel" in line
    assert "\x1b" not in line


def test_a_trace_without_events_is_refused(tmp_path):
    path = tmp_path / "trace.dat"
    path.write_bytes(b"\x17\x08\x44tracing" + bytes(100))
    assert str(path) in refused("--linux", path)


def test_a_cut_off_file_is_refused(tmp_path):
    whole = json.dumps({"format": 1, "preemptible": True, "terms": {}})
    path = tmp_path / "windows.json"
    path.write_text(whole[:-5])
    assert "holds no windows" in refused("--linux", path)


def test_a_folder_without_windows_says_how_to_get_some(tmp_path):
    assert "windows = true" in refused("--linux", tmp_path)


def test_what_does_not_exist_is_said_so(tmp_path):
    assert "does not exist" in refused("--linux", tmp_path / "none")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--interrupts", "all"), "none of them"),
        (("--preemption", "full"), "none of them"),
        (("--mode", "plain"), "does not go with --linux"),
        (("--horizon", "1s"), "does not go with --linux"),
    ],
)
def test_wrong_options_are_named(tmp_path, options, told):
    assert told in refused("--linux", tmp_path, *options)


def test_options_of_linux_are_refused_for_systems():
    system = "experiments/systems/beckert2014.toml"
    assert "goes with --linux only" in refused(system, "--to-user")
    assert "one system file" in refused(system, system)


EXPERIMENT = """
name = "windows"
duration = "1 s"
[probe.cyclictest]
engine = "cyclictest"
windows = true
policy = "{policy}"
[stack.some]
kind = "{stack}"
cpus = {cpus}
[[condition]]
name = "one"
bench = "{bench}"
probe = "cyclictest"
{use}
"""


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"cpus": 2}, "one core, not on 2"),
        ({"policy": "other"}, "policy fifo or rr"),
        ({"bench": "zcu102"}, "on the bench virt"),
        ({"bench": "host", "use": ""}, "on the bench virt"),
    ],
)
def test_windows_where_none_can_be_recorded_are_refused(tmp_path, change, told):
    usual = {"cpus": 1, "policy": "fifo", "bench": "virt", "stack": "linux-rt"}
    path = tmp_path / "windows.toml"
    path.write_text(EXPERIMENT.format(**{**usual, "use": 'stack = "some"', **change}))
    with pytest.raises(BadInput, match=told):
        Experiment.read(path)


def test_windows_of_kernels_for_x86_are_refused_with_the_reason(tmp_path):
    path = tmp_path / "windows.toml"
    probe = EXPERIMENT[: EXPERIMENT.index("[stack.some]")].format(policy="fifo")
    path.write_text(probe + '[matrix]\nbench = ["vm"]\nstack = ["vm"]\nprobe = ["cyclictest"]\n')
    with pytest.raises(BadInput, match="x86-64 are not recorded"):
        Experiment.read(path)
