"""Real Xen, real Linux, real stress-ng: equal from run to run, and untouched by the load beside."""

import subprocess
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from latenz.store.run import Run

pytestmark = [pytest.mark.boots, pytest.mark.long]
LATENZ = Path(__file__).parents[3] / "latenz"
DOM0_TICK_NS = 4_000_000  # 250 Hz
INTERRUPT_PERIOD_NS = 250_000
EXPERIMENT = """
name = "xen"
seed = 1
[stack.xen]
kind = "xen"
[probe.poll]
engine = "interrupt"
samples = 200
[probe.wfi]
engine = "interrupt"
samples = 200
wait = "wfi"
[stressor.spin]
kind = "spin"
settle = "300 ms"
[stressor.cpu]
kind = "stress-ng-cpu"
instances = 4
settle = "300 ms"
"""
CONDITION = """
[[condition]]
name = "{probe}-{stressor}"
bench = "virt"
stack = "xen"
probe = "{probe}"
stressor = "{stressor}"
"""
CONDITIONS = [("poll", "spin"), ("poll", "cpu"), ("wfi", "none")]


def run(experiment: Path, only: str, folder: Path) -> None:
    command = [LATENZ, "run", experiment, "--only", only, "-o", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    """Four conditions, on two emulators side by side."""
    folder = tmp_path_factory.mktemp("xen")
    experiment = folder / "xen.toml"
    parts = [CONDITION.format(probe=probe, stressor=load) for probe, load in CONDITIONS]
    experiment.write_text(EXPERIMENT + "".join(parts))
    plan = {"first": ["poll-cpu", "wfi-none"], "second": ["poll-cpu", "poll-spin"]}
    found = {}

    def carry_out(which: str) -> None:
        for only in plan[which]:
            found[f"{which}/{only}"] = folder / f"{which}-{only}"
            run(experiment, only, folder / f"{which}-{only}")

    with ThreadPoolExecutor() as pool:
        list(pool.map(carry_out, plan))
    return found


def account(folder: Path) -> dict:
    (condition,) = Run.open(folder).info.conditions
    return condition


def samples(folder: Path) -> list[tuple[int, int]]:
    (sample_set,) = Run.open(folder).sample_sets
    return [
        pair
        for batch in sample_set.batches()
        for pair in zip(
            batch.column("latency_ns").to_pylist(), batch.column("t_ns").to_pylist(), strict=True
        )
    ]


def latencies(folder: Path) -> list[int]:
    return sorted(latency for latency, _ in samples(folder))


def test_a_loaded_dom0_changes_nothing_from_run_to_run(runs):
    assert samples(runs["first/poll-cpu"]) == samples(runs["second/poll-cpu"])
    assert len(samples(runs["first/poll-cpu"])) == 200


def test_the_load_adds_nothing_to_what_a_spinning_neighbour_does(runs):
    """All but the interrupts that meet a tick of Dom0, whose phase is that of its boot."""
    pairs = zip(samples(runs["first/poll-cpu"]), samples(runs["second/poll-spin"]), strict=True)
    differing = [loaded[1] for loaded, spinning in pairs if loaded != spinning]
    ticks = Counter(t_ns % DOM0_TICK_NS for t_ns in differing)
    assert sum(sorted(ticks.values())[:-1]) <= 5
    assert len(differing) <= 200 * INTERRUPT_PERIOD_NS // DOM0_TICK_NS + 5


def test_a_guest_that_polls_is_answered_before_one_that_sleeps(runs):
    polling, sleeping = latencies(runs["first/poll-cpu"]), latencies(runs["first/wfi-none"])
    assert 500 < polling[100] < sleeping[100] < 20_000


def test_the_run_folder_has_what_xen_and_stress_ng_said_themselves(runs):
    folder = runs["first/poll-cpu"]
    console = next(folder.rglob("console.log")).read_text("utf-8", "replace")
    assert "(XEN) Xen version 4.17" in console
    assert "(XEN) Using scheduler: SMP Credit Scheduler (credit)" in console
    assert "stress-ng: info:" in console
    assert "successful run completed" in console
    assert "Hardware Dom0 halted" in console or "stress-ng: metrc:" in console


def test_a_run_tells_packages_command_lines_and_when_the_domain_was_let_go(runs):
    told = account(runs["first/poll-cpu"])
    software = told["software"]
    packages = {
        each["name"]: each
        for part in ("xen", "dom0_kernel", "dom0_initrd")
        for each in software[part]["packages"]
    }
    assert packages["stress-ng"]["version"].startswith("0.15")
    assert any(name.startswith("xen-hypervisor-") for name in packages)
    assert all(len(each["sha256"]) == 64 for each in packages.values())
    assert "sched=credit " in software["xen_arguments"]
    assert "--cpu 4 --cpu-method all" in software["dom0_arguments"]
    (sample_set,) = Run.open(runs["first/poll-cpu"]).sample_sets
    assert any("held by Dom0 until" in note for note in sample_set.metadata.notes)
