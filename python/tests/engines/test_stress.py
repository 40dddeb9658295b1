"""Real loads: on while they should be, gone afterwards, with evidence of what they did."""

import contextlib
import os
import subprocess
import time
from pathlib import Path

import pytest

from latenz.loads import STRESSORS
from latenz.loads.stress_ng import EXCLUDED, StressNgAll, read_metrics


def load(folder, kind, planned_s=3, **settings):
    stressor = STRESSORS[kind]
    model = stressor.settings_type.model_validate({"kind": kind, **settings})
    return stressor(model, Path(folder), planned_s * 1_000_000_000)


def descendants(process):
    """Return the processes that a process has started, and those that they have."""
    found = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *descendants(child)]
    return found


def busy_s(process):
    """Return the processor time that all descendants of a process have taken."""
    ticks = 0
    for each in descendants(process):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, words[11:15]))  # its own and that of its dead children
    return ticks / os.sysconf("SC_CLK_TCK")


def names_of(process):
    """Return the first words of the command lines of all descendants of a process."""
    names = set()
    for each in descendants(process):
        with contextlib.suppress(OSError):
            names |= set(Path(f"/proc/{each}/cmdline").read_text().split()[:1])
    return names


def wait_until(condition):
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.05)


def wait_until_busy(stressor):
    """Wait until a load has had a second of processor time, whatever else the machine does."""
    wait_until(lambda: busy_s(os.getpid()) > 1)
    assert stressor.alive


def test_cpu_load_computes_and_ends(tmp_path):
    stressor = load(tmp_path, "stress-ng-cpu")
    stressor.start()
    wait_until_busy(stressor)
    assert stressor.stop() == 0
    account = stressor.account()
    assert account["stressors"]["cpu"]["bogo-ops"] > 0
    assert account["version"]


def test_memory_load_moves_bytes(tmp_path):
    stressor = load(tmp_path, "memory", array_bytes=1 << 20)
    stressor.start()
    wait_until_busy(stressor)
    assert stressor.stop() == 0
    account = stressor.account()
    assert [each["cpu"] for each in account["threads"]] == sorted(os.sched_getaffinity(0))
    assert account["bytes"] > 100_000_000


def test_all_load_takes_the_classes_one_kind_after_the_other(tmp_path):
    stressor = load(tmp_path, "stress-ng-all", instances=1)
    stressor.start()
    wait_until_busy(stressor)
    stressor.stop()
    account = stressor.account()
    had_a_turn = set(account["stressors"])
    assert had_a_turn
    assert account["without_a_turn"], "a second does not suffice for all"
    assert not (had_a_turn | set(account["without_a_turn"])) & set(EXCLUDED)


def test_all_load_in_parallel(tmp_path):
    kinds = StressNgAll.settings_type.model_validate(
        {"kind": "stress-ng-all", "classes": ["pipe"], "instances": 1, "parallel": True}
    )
    stressor = StressNgAll(kinds, tmp_path, 2_000_000_000)
    members = stressor.members()
    stressor.start()
    wait_until(lambda: {f"stress-ng-{name}" for name in members} <= names_of(os.getpid()))
    wait_until_busy(stressor)
    stressor.stop()
    assert set(stressor.account()["stressors"]) == set(members)


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
