"""Windows of Debian's kernels on emulated boards, and the bounds of them on the command line."""

import json
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.boots

LATENZ = Path(__file__).parents[3] / "latenz"
EXPERIMENT = """
name = "windows"
seed = 1
duration = "250 ms"
[probe.cyclictest]
engine = "cyclictest"
priority = 95
period = "250 us"
windows = true
[matrix]
bench = ["virt"]
stack = ["linux", "linux-rt"]
probe = ["cyclictest"]
"""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [LATENZ, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("windows") / "run"
    experiment = folder.with_suffix(".toml")
    experiment.write_text(EXPERIMENT)
    done = run("run", experiment, "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


def windows(measured: Path, condition: str) -> dict:
    return json.loads((measured / condition / "windows.json").read_text())


def bound(*arguments: str | Path) -> tuple[int, dict]:
    done = run("bound", "--linux", *arguments, "--json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_recording_changes_no_sample(measured):
    for account in json.loads((measured / "run.json").read_text())["conditions"]:
        assert account["windows"] == {"state": "recorded", "file": "windows.json"}


@pytest.mark.parametrize("condition", ["linux", "linux-rt"])
def test_every_instruction_and_every_count_is_accounted_for(measured, condition):
    found = windows(measured, condition)
    told = found["instructions"]
    assert told["thread"] + told["interrupt"] == told["all"] > 10**9
    assert found["checks"]["schedules"] > 10_000
    assert found["checks"]["wrong_counts"] == 0
    assert found["checks"]["lost"] == {}
    assert found["wake_ups"] == 1000
    assert (measured / condition / "windows.json").stat().st_size < 1_000_000


@pytest.mark.parametrize("condition", ["linux", "linux-rt"])
def test_no_wake_up_is_above_the_bound(measured, condition):
    code, found = bound(measured / condition)
    assert found["longest_seen_ns"] <= found["bound_ns"]
    assert found["words"] == "bound under the observed maxima"
    assert found["time_base"] == ["virtual"]
    assert all(part["begin"]["at"] for part in found["made_of"] if part["term"] != "interrupts")
    assert code == (3 if any(each["open"] for each in found["conditions"]) else 0)


def test_cyclictests_own_latencies_are_within_the_bound_to_user_mode(measured):
    for condition in ("linux", "linux-rt"):
        _, found = bound(measured / condition, "--to-user")
        summary = json.loads((measured / condition / "received/cyclictest.json").read_text())
        # the recorder leaves out what is before the first wake-up: there the first page faults are
        lines = (measured / condition / "received/cyclictest.txt").read_text().splitlines()
        samples = [int(line.split(":")[2]) for line in lines if line.count(":") == 2]
        assert max(samples[1:]) <= found["bound_ns"]
        assert summary["thread"]["0"]["cycles"] == 1000


def test_models_of_interrupts_bound_each_other(measured):
    found = [
        bound(measured / "linux-rt", "--interrupts", kind)[1]["bound_ns"]
        for kind in ("joint", "sources", "curves", "wcet")
    ]
    assert found == sorted(found)


def test_a_wrong_mode_of_preemption_is_named(measured):
    code, found = bound(measured / "linux", "--preemption", "rt")
    [mode] = [each for each in found["conditions"] if each["name"] == "C5"]
    assert (code, mode["state"]) == (3, "violated")
    assert "voluntary" in mode["how"]


def test_kernels_of_two_kinds_are_not_joined(measured):
    code, found = bound(measured)
    assert code == 3
    assert "different kernels" in next(
        each["how"] for each in found["conditions"] if each["name"] == "C5"
    )


def test_planted_mistakes_are_named(measured, tmp_path):
    content = windows(measured, "linux-rt")
    rival = {"pid": 9, "name": "other", "priority": 4, "times": 2}
    for checks, name in (
        ({"rivals": [rival]}, "C2"),
        ({"passed_over": 3}, "C2"),
        ({"lost": {"memory of the kernel could not be read": 1}}, "C3"),
        ({"wrong_counts": 1}, "C3"),
    ):
        planted = tmp_path / "windows.json"
        planted.write_text(json.dumps({**content, "checks": {**content["checks"], **checks}}))
        code, found = bound(planted)
        state = {each["name"]: each["state"] for each in found["conditions"]}
        assert (code, state[name]) == (3, "violated")


def test_deadlines_are_judged(measured):
    path = measured / "linux-rt"
    _, found = bound(path)
    above = found["bound_ns"] + 1000
    below = found["longest_seen_ns"] - 1000
    assert bound(path, "--deadline", f"{above} ns")[1]["deadlines"][0]["verdict"] in (
        "meets",
        "not shown",
    )
    assert bound(path, "--deadline", f"{below} ns")[0] == 3
    code, found = bound(path, "--deadline", f"{below} ns@0")
    assert (code, found["deadlines"][0]["verdict"]) == (1, "violates")
