"""`latenz run --late`: a command and an end when a latency is too large, as rtla's actions are."""

import json
import subprocess
import sys
import time

import pytest

EXPERIMENT = """
name = "late"
duration = "{duration}"
[probe.wakeup]
engine = "wakeup"
period = "1 ms"
warm_up = "10 ms"
[probe.oslat]
engine = "oslat"
[[condition]]
name = "one"
bench = "host"
probe = "{probe}"
"""
NEVER, ALWAYS = "1h", "1ns"


def run(folder, *options, duration="2500 ms", probe="wakeup"):
    (folder / "late.toml").write_text(EXPERIMENT.format(duration=duration, probe=probe))
    command = [sys.executable, "-m", "latenz", "run", "late.toml", "-o", "run", "--json", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def account(folder):
    [found] = json.loads((folder / "run/run.json").read_text())["conditions"]
    return found


def test_the_command_is_run_once_and_told_how_late_it_was(tmp_path):
    script = "echo $LATENZ_CONDITION $LATENZ_LIMIT_NS $LATENZ_LATENCY_NS >>told; pwd; exit 3"
    done = run(tmp_path, "--late", ALWAYS, "--on-late", f"sh -c '{script}'")
    assert done.returncode == 0, done.stderr
    [told] = (tmp_path / "told").read_text().splitlines()  # once, where the user stands
    late = account(tmp_path)["late"]
    assert told.split() == ["one", "1", str(late["latency_ns"])]
    assert late["latency_ns"] > 1
    assert (late["exit_status"], late["stopped"]) == (3, False)
    assert (tmp_path / "run/one/on-late.log").read_text() == f"{tmp_path}\n"
    assert any(
        "the command of --on-late ended with 3" in each for each in account(tmp_path)["notes"]
    )


def test_a_measurement_ends_when_it_is_late(tmp_path):
    began = time.monotonic()
    done = run(tmp_path, "--late", ALWAYS, "--stop-late", duration="10 min")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 300  # no measure of speed: ten minutes were asked for
    found = account(tmp_path)
    assert found["state"] == "measured"
    assert found["late"]["stopped"]
    document = json.loads(done.stdout)["sample_sets"][0]  # of the first CPU
    assert 0 < document["n"] < 300_000
    assert any("the measurement was ended there" in each for each in found["notes"])


def test_nothing_happens_below_the_limit(tmp_path):
    done = run(tmp_path, "--late", NEVER, "--stop-late", "--on-late", "touch late")
    assert done.returncode == 0, done.stderr
    assert account(tmp_path)["late"] is None
    assert not (tmp_path / "late").exists()
    assert "late" not in " ".join(account(tmp_path)["notes"])


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--on-late", "true"), "--on-late: needs to know what is late"),
        (("--stop-late",), "--stop-late: needs to know what is late"),
        (("--late", "1ms"), "--late: does nothing by itself"),
        (("--late", "-1ms", "--stop-late"), "--late"),
        (("--late", "soon", "--stop-late"), "--late"),
        (("--late", "1ms", "--on-late", "no-such-program x"), "not a program that can be run"),
        (("--late", "1ms", "--on-late", "sh -c 'x"), "cannot be split into words"),
        (("--late", "1ms", "--on-late", ""), "not a program that can be run"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_written(tmp_path, options, expected):
    done = run(tmp_path, *options)
    assert done.returncode == 2
    assert expected in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_an_engine_that_tells_nothing_meanwhile_is_refused(tmp_path):
    done = run(tmp_path, "--late", "1ms", "--stop-late", probe="oslat")
    assert done.returncode == 2
    assert "tells no latency meanwhile" in done.stderr
    assert not (tmp_path / "run").exists()
