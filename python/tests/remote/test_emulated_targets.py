"""Whole machines as targets: Debian's kernel, busybox, dropbear, nothing of ours; real ssh."""

import json
from pathlib import Path
from typing import Any

import pytest
from bench_scripts import bench_script

remote = bench_script("remote")
PERIODS = 150  # of 10 ms


@pytest.fixture(autouse=True)
def own_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what a target sets for its ssh end with the test."""
    monkeypatch.setenv("LATENZ_SSH_COMMAND", "ssh")


def measured(architecture: str) -> dict[str, Any]:
    """Measure on a target; return what its machine says, once nothing of ours is left there."""
    with remote.targets(architecture) as (target, folder):
        before = remote.content(target)
        process = remote.asked(target, folder, PERIODS * remote.PERIOD_MS / 1000, "spin")
        _, errors = process.communicate(timeout=300)
        assert process.returncode in (0, 3), errors
        run = Path(process.args[-1])
        found = remote.counted(run)
        assert found["samples"] + found["missed"] == pytest.approx(2 * PERIODS, abs=20)
        assert found["samples"] > PERIODS
        assert target.left() == set()
        assert remote.content(target) == before
        told: dict[str, Any] = json.loads((run / "run.json").read_text())
        return told


def check_told(told: dict[str, Any], architecture: str) -> None:
    environment = told["environment"]["host"]
    assert environment["cpu"]["architecture"] == architecture
    assert environment["kernel"]["virtualization"] == "qemu"
    assert {each["metadata"]["time_base"] for each in told["sample_sets"]} == {"virtual"}


@pytest.mark.boots
def test_a_machine_with_busybox_and_dropbear_alone_is_measured() -> None:
    check_told(measured("arm64"), "aarch64")


@pytest.mark.long
def test_so_is_one_of_32_bits() -> None:
    check_told(measured("armhf"), "armv7l")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("victim", remote.VICTIMS)
def test_whoever_is_killed_nothing_is_left_there(victim: str) -> None:
    """When whatever was sampled 2 s before has to be here: this machine is not a quiet one."""
    with remote.targets() as (target, folder):
        for wait_s in (1, 7):
            lost_ms = remote.killed_once(target, folder, remote.VICTIMS[victim], wait_s)
            assert lost_ms is None or lost_ms < 2000


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_pulled_cable_loses_no_sample() -> None:
    found = remote.cuts(times=2, cut_s=25)
    assert found["cuts"] == 2
    assert found["longest_cut_s"] > 20
    assert found["left"] == []


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_whenever_its_power_is_cut_a_target_is_as_before_once_reverted() -> None:
    found = remote.power(every=12)
    assert found["power_cuts"] > 8
    assert found["differences"] == 0
