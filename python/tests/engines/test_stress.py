"""Real loads: on while they should be, gone afterwards, with evidence of what they did."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from latenz.stress import STRESSORS
from latenz.stress.stress_ng import EXCLUDED, StressNgAll, read_metrics


def load(folder, kind, planned_s=3, **settings):
    stressor = STRESSORS[kind]
    model = stressor.settings_type.model_validate({"kind": kind, **settings})
    return stressor(model, Path(folder), planned_s * 1_000_000_000)


def busy_ticks():
    words = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    return sum(map(int, words[:3]))


def test_cpu_load_computes_and_ends(tmp_path):
    stressor = load(tmp_path, "stress-ng-cpu")
    before = busy_ticks()
    stressor.start()
    time.sleep(1.5)
    assert stressor.alive
    assert stressor.stop() == 0
    # Four processes keep at least one CPU busy for a second, even on a machine with other work.
    assert busy_ticks() - before > os.sysconf("SC_CLK_TCK")
    account = stressor.account()
    assert account["stressors"]["cpu"]["bogo-ops"] > 0
    assert account["version"]


def test_memory_load_moves_bytes(tmp_path):
    stressor = load(tmp_path, "memory", array_bytes=1 << 20)
    stressor.start()
    time.sleep(1)
    assert stressor.alive
    assert stressor.stop() == 0
    account = stressor.account()
    assert [each["cpu"] for each in account["threads"]] == sorted(os.sched_getaffinity(0))
    assert account["bytes"] > 100_000_000


def test_all_load_takes_the_classes_one_kind_after_the_other(tmp_path):
    stressor = load(tmp_path, "stress-ng-all", instances=1)
    stressor.start()
    time.sleep(2.5)
    assert stressor.alive
    stressor.stop()
    account = stressor.account()
    had_a_turn = set(account["stressors"])
    assert had_a_turn
    assert account["without_a_turn"], "two seconds do not suffice for all"
    assert not (had_a_turn | set(account["without_a_turn"])) & set(EXCLUDED)


def test_all_load_in_parallel(tmp_path):
    kinds = StressNgAll.settings_type.model_validate(
        {"kind": "stress-ng-all", "classes": ["pipe"], "instances": 1, "parallel": True}
    )
    stressor = StressNgAll(kinds, tmp_path, 2_000_000_000)
    stressor.start()
    time.sleep(2)
    assert stressor.alive
    stressor.stop()
    assert set(stressor.account()["stressors"]) == set(stressor.members())


def test_excluded_stressors_exist():
    known = subprocess.run(["stress-ng", "--stressors"], capture_output=True, text=True).stdout
    assert not set(EXCLUDED) - set(known.split())


def test_excluded_stressors_never_run(tmp_path):
    everything = load(tmp_path, "stress-ng-all", exclude=["aio"])
    classes = everything.settings_type.model_fields["classes"].annotation
    names = ["cpu", "cpu-cache", "interrupt", "memory", "pipe", "scheduler", "vm"]
    assert all(name in str(classes) for name in names)
    everything = load(tmp_path, "stress-ng-all", classes=names, exclude=["aio"])
    assert not {*EXCLUDED, "aio"} & set(everything.members())
    [excluded] = [word for word in everything.arguments() if word.startswith("--exclude=")]
    assert {"aio", "softlockup"} <= set(excluded.removeprefix("--exclude=").split(","))


@pytest.mark.parametrize("text", ["", "---\n", "metrics:\n    - stressor: ", "garbage: 1\n\x00"])
def test_metrics_of_a_killed_load(text):
    assert read_metrics(text) == {} or text.startswith("garbage")


def test_the_guide_names_every_excluded_stressor_with_the_reason():
    guide = Path("docs/experiments.md").read_text()
    for name, reason in EXCLUDED.items():
        assert f"| `{name}` | {reason} |" in guide
