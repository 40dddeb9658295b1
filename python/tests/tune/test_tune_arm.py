"""Arm machines: trees of a booted Debian 12, of which `python/tests/data/tune/README.md` tells.

Their timers are numbered interrupts of each CPU, and much of what x86 has is not there.
"""

import tarfile
from pathlib import Path

import pytest
from collected_trees import DATA

from latenz.tune.catalogue import load
from latenz.tune.check import Check, check
from latenz.tune.context import Context
from latenz.tune.interrupts import read_interrupts
from latenz.tune.root import Root


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arm")
    with tarfile.open(DATA / "arm64.tar.xz") as archive:
        archive.extractall(folder)
    return folder / "arm64"


def checks(folder: Path) -> dict[str, Check]:
    return {each.id: each for each in check(Context.of(Root(folder), "3"), load())}


def test_timers_of_each_cpu_are_no_interrupts_that_somebody_sends_there(trees: Path) -> None:
    for name in ("stock", "tuned", "rt"):
        found = {each.id: each for each in read_interrupts(Root(trees / name))}
        assert "arch_timer" in found["11"].name
        assert (found["11"].movable, found["11"].why) == ("no", "every CPU's own")
        assert "cmdline-nohz-full" in found["11"].entries
        assert found["11"].reaches(frozenset({3})), "it is counted there"
        assert found["14"].effective == {0}, "a device's"
        seen = checks(trees / name)["host-irq-affinity"]
        assert seen.state == "ok", seen
        assert "arch_timer" not in (seen.found or "")


def test_without_an_effective_affinity_the_number_in_the_controller_tells(tmp_path: Path) -> None:
    """As on older kernels: the rows of /proc/interrupts are those of a Raspberry Pi 4."""
    (tmp_path / "proc/irq/30").mkdir(parents=True)
    (tmp_path / "proc/irq/32").mkdir()
    (tmp_path / "proc/interrupts").write_text(
        "           CPU0       CPU1       CPU2       CPU3\n"
        " 30:       1000       1000       1000       1000     GICv2  30 Level     arch_timer\n"
        " 32:          5          0          0          0     GICv2 189 Level     eth0\n"
    )
    for number in ("30", "32"):
        (tmp_path / f"proc/irq/{number}/smp_affinity_list").write_text("0-3\n")
    timer, network = read_interrupts(Root(tmp_path))
    assert (timer.affinity, timer.movable) == (None, "no")
    assert network.affinity == {0, 1, 2, 3}


def test_what_only_x86_has_does_not_apply(trees: Path) -> None:
    assert checks(trees / "stock")["kvm-halt-poll"].state == "not applicable", "it has no guest"
    context = Context.of(Root(trees / "stock"), "3", "kvm-host")
    seen = {each.id: each for each in check(context, load())}
    assert seen["kvm-halt-poll"].state == "wrong", "KVM is there"
    for id_ in (
        "bios-vtx-on",
        "cmdline-ple-gap",
        "cmdline-kvmclock-sync",
        "kvm-kvmclock-sync",
        "kvm-nx-huge-pages",
        "kvm-pi-inject-timer",
        "kvm-min-timer-period",
    ):
        assert seen[id_].state == "not applicable", seen[id_]


def test_preempt_full_does_nothing_in_a_kernel_that_cannot_choose(trees: Path) -> None:
    """`tuned` was booted with it; Debian's kernel for arm64 has neither PREEMPT nor a choice."""
    assert "preempt=full" in (trees / "tuned/proc/cmdline").read_text()
    states = {name: checks(trees / name)["cmdline-preempt"].state for name in ("tuned", "rt")}
    assert states == {"tuned": "wrong", "rt": "ok"}


@pytest.mark.parametrize(
    ("version", "parameter", "state"),
    [
        ("#1 SMP PREEMPT Debian 1:6.1.63-1+rpt1 (2023-11-24)", "", "ok"),  # Raspberry Pi OS
        ("#1 SMP PREEMPT_RT Debian 6.1.90-1", "", "ok"),
        ("#1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1", "preempt=full", "ok"),
        ("#1 SMP PREEMPT_DYNAMIC Debian 6.1.90-1", "preempt=none", "unknown"),  # no debugfs
        ("#1 SMP Debian 6.1.90-1", "preempt=full", "wrong"),
    ],
)
def test_the_kernel_tells_how_it_can_be_interrupted(
    tmp_path: Path, version: str, parameter: str, state: str
) -> None:
    for name, text in {
        "proc/version": f"Linux version 6.1 (gcc) {version}\n",
        "proc/cmdline": f"quiet {parameter}\n",
        "proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd\n",
        "sys/devices/system/cpu/online": "0-3\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert checks(tmp_path)["cmdline-preempt"].state == state
