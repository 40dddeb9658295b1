"""One virtual machine under real KVM on an emulated host, from the run to the explained trace."""

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from latenz.model import SampleSet
from latenz.store.run import Run
from latenz.traces.host_clock import host_clock
from latenz.traces.opening import open_trace
from latenz.traces.reader import RecordedTrace
from latenz.vm import nested

# about a minute of CPU time; more if QEMU hangs
pytestmark = [pytest.mark.boots, pytest.mark.timeout(1500)]

PERIODS = 100
EXPERIMENT = """
name = "nested"
duration = "100 ms"

[probe.wakeup]
engine = "wakeup"
period = "1 ms"
warm_up = "10 ms"

[stack.small]
kind = "vm"
accel = "kvm-in-tcg"
tunings = [
    "vcpu-sched-fifo", "qemu-minimal-devices", "guest-tsc-deadline", "qemu-cpu-host",
    "vcpu-pinning", "cmdline-isolcpus", "kvm-kvmclock-sync",
    "host-rt-throttling-off", "host-irqbalance-off",
]
memory_mib = 256

[[condition]]
name = "machine"
bench = "vm"
stack = "small"
probe = "wakeup"
"""


# Takes two minutes: what needs it is long. `single` boots the same kind of machine in one.
@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    """A machine's whole life, traced."""
    folder = tmp_path_factory.mktemp("nested")
    (folder / "nested.toml").write_text(EXPERIMENT)
    command = [sys.executable, "-m", "latenz", "run", "nested.toml", "--trace", "-o", "run"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.fixture(scope="module")
def trace(run) -> Path:
    [found] = run.glob("*/trace.dat")
    return found


def account(run: Path) -> dict:
    [found] = json.loads((run / "run.json").read_text())["conditions"]
    return found


def column(found: SampleSet, name: str) -> list[int]:
    return [v for batch in found.batches(name) for v in batch.column(0).to_pylist()]


@pytest.mark.long
def test_the_guest_measures_every_period_in_virtual_time(run):
    [found] = Run.open(run).sample_sets
    latencies = column(found, "latency_ns")
    assert found.metadata.time_base == "virtual"
    assert len(latencies) + sum(column(found, "missed")) >= PERIODS
    # an interrupt that leaves the guest and enters it again costs thousands of instructions
    assert 1_000 < min(latencies) < max(latencies) < 1_000_000_000
    assert nested.NOTE in found.metadata.notes
    assert found.metadata.kernel.endswith("-amd64")


@pytest.mark.long
def test_explain_counts_as_trace_cmd_prints(run, trace):
    printed = subprocess.run(
        ["trace-cmd", "report", str(trace)], capture_output=True, text=True, check=True
    ).stdout
    reasons = re.findall(r"kvm_exit: +reason EXIT_(\w+) ", printed)
    known = {"IOIO": "io", "INTR": "interrupt"}
    expected = Counter(known.get(name, name.lower()) for name in reasons)
    summary = open_trace(trace).summary()
    assert sum(expected.values()) > 1000
    found: Counter[str] = Counter()
    for each in summary.exits:
        found[each.reason] += each.count
    assert found == expected


@pytest.mark.long
def test_explain_counts_as_perf_does(run, trace):
    table = (trace.with_name("perf-kvm-stat.txt")).read_text()
    rows = re.findall(r"^ +(\w+) +(\d+) +[\d.]+% ", table, re.MULTILINE)
    perf = {name: int(count) for name, count in rows}
    exits = open_trace(trace).summary().exits
    counted = Counter({each.reason: 0 for each in exits})
    for each in exits:
        counted[each.reason] += each.count
    open_at_end = sum(counted.values()) - sum(perf.values())
    # perf counts pairs: an exit after which the machine never enters again is none
    assert 0 <= open_at_end <= 2
    assert all(0 <= counted[name] - count <= 2 for name, count in perf.items())


@pytest.mark.long
def test_the_run_explains_the_worst_of_its_trace(run):
    found = account(run)
    assert found["accelerator"] == "kvm-in-tcg"
    assert found["traces"] == ["machine/trace.dat"]
    assert found["causes"]
    assert "accel=kvm" in " ".join(found["machine"])
    assert "svm=on" in " ".join(found["command"])


@pytest.mark.long
def test_the_guest_is_explained_with_its_host(run):
    """Both sides were recorded; by exits alone the clocks are found, and every nanosecond given."""
    found = account(run)
    assert found["guest_traces"] == ["machine/received/trace.txt"]
    of_guest = [each for each in found["causes"] if each["guest"]]
    assert of_guest, found["trace_notes"]
    assert all(
        sum(share["share_ns"] for share in each["shares"]) == each["latency_ns"]
        for each in of_guest
    )
    assert any(share["side"] == "host" for each in of_guest for share in each["shares"])


@pytest.fixture(scope="module")
def single(tmp_path_factory) -> dict:
    """What `vm run --trace` tells of a machine, one after the other with the experiment's."""
    folder = tmp_path_factory.mktemp("vm")
    command = [sys.executable, "-m", "latenz", "vm", "run", "--accelerator", "kvm-in-tcg"]
    command += ["--default", "--trace", "--duration", "100ms", "--memory", "256", "--json"]
    done = subprocess.run(
        [*command, "-o", "run"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) | {"folder": folder / "run"}


def test_one_command_records_and_explains_guest_and_host(single):
    assert (single["accelerator"], single["time_base"]) == ("kvm-in-tcg", "virtual")
    assert single["traces"] == ["default/trace.dat"]
    assert single["guest_traces"] == ["default/received/trace.txt"]
    assert any("joined with the host's" in note for note in single["trace_notes"])
    of_guest = [each for each in single["causes"] if each["guest"]]
    assert of_guest
    for each in of_guest:
        assert sum(share["share_ns"] for share in each["shares"]) == each["latency_ns"]
    assert any(share["side"] == "host" for each in of_guest for share in each["shares"])
    assert account(single["folder"])["causes"] == single["causes"]


def test_the_clocks_of_guest_and_host_are_joined_to_a_microsecond(single):
    paths = [single["folder"] / single[key][0] for key in ("traces", "guest_traces")]
    host, guest = (RecordedTrace(path) for path in paths)
    clock = host_clock(host, host.summary(), guest, guest.summary())
    assert (clock.method, clock.outside) == ("tsc-marks", 0)
    assert clock.checked > 100
    assert clock.error_ns <= 1_000


def test_the_folder_is_explained_again_as_it_was(single):
    command = [sys.executable, "-m", "latenz", "explain", single["folder"], "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    [told] = json.loads(done.stdout)["conditions"]
    assert [each["latency_ns"] for each in told["causes"][:3]] == [
        each["latency_ns"] for each in single["causes"][:3]
    ]


@pytest.mark.long
def test_the_run_tells_which_tunings_the_emulated_host_has_nothing_for(run):
    found = account(run)
    assert found["host_tunings"] == [
        "cmdline-isolcpus",
        "host-rt-throttling-off",
        "kvm-kvmclock-sync",
    ]
    assert found["host_tunings_without_effect"] == ["host-irqbalance-off"]
    assert "isolcpus=managed_irq,domain,1" in " ".join(found["command"])
