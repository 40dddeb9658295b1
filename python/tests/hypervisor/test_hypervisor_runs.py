"""Real boots: every interrupt as simulated, nothing above its bound, the same again and again."""

import json
import signal
import subprocess
import time
from collections import Counter
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from latenz.analysis import Irqs, Simulator, bound
from latenz.errors import BadInput
from latenz.hypervisor.build import build
from latenz.hypervisor.comparison import compared
from latenz.hypervisor.costs import with_costs
from latenz.hypervisor.image import Segment
from latenz.hypervisor.memory import CONFIGURATION, HYPERVISOR
from latenz.hypervisor.run import boot
from latenz.store.run import Run
from latenz.system import Learning, Monitor, Periodic, read_system, write_system

pytestmark = pytest.mark.boots

LATENZ = Path(__file__).parents[3] / "latenz"
SYSTEMS = Path("experiments/systems")
GATEWAY = SYSTEMS / "can-gateway.toml"
COUNTING = """\
[[slot]]
partition = "P1"
length = "2 ms"
[[slot]]
partition = "P2"
length = "3 ms"
[[source]]
name = "can"
partition = "P1"
top = "5 us"
bottom = "40 us"
arrival = { kind = "periodic", period = "5 ms", jitter = "4 ms" }
[[partition]]
name = "P2"
guest = "victim"
"""


def latenz(*arguments) -> subprocess.CompletedProcess:
    command = [LATENZ, "hypervisor", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def in_order(irqs: Irqs) -> np.ndarray:
    return np.lexsort((irqs.arrival_ns, irqs.source))


@pytest.mark.parametrize(
    ("name", "bench", "mode", "irqs"),
    [
        ("can-gateway", "virt", "carry", 600),
        ("can-gateway", "virt", "paper", 300),
        ("can-gateway", "zcu102", "carry", 300),
        ("can-gateway", "raspi4b", "carry", 300),
        ("beckert2014-10-percent", "virt", "plain", 300),
        ("beckert2014-adhering-10-percent", "virt", "carry", 400),
        ("beckert2014-adhering-10-percent", "virt", "paper", 300),
    ],
)
def test_measured_as_simulated_and_never_above_the_bound(name, bench, mode, irqs):
    built = build(SYSTEMS / f"{name}.toml", mode, irqs=irqs, seed=4)
    run = boot(built, bench).measured
    assert run.outcome.complete
    measured_system, _ = with_costs(built.system, run.costs, run.sections)
    simulator = Simulator(measured_system, mode, irqs=irqs, seed=4, watch="irqs")
    assert simulator.run()
    known = simulator.take_irqs()
    a, b = in_order(known), in_order(run.irqs)
    tick_ns = run.clock.at_least_ns(1)
    assert np.abs(known.arrival_ns[a] - run.irqs.arrival_ns[b]).max() < tick_ns
    assert (known.source[a] == run.irqs.source[b]).all()
    assert (known.handling[a] == run.irqs.handling[b]).mean() >= 0.999
    bounds = bound(measured_system, mode)
    for source in run.outcome.sources:
        limit_ns = bounds.of(source.name).wcrt_ns
        assert limit_ns is None or source.max_ns <= limit_ns
        if name.startswith("beckert2014-adhering") and mode == "carry":
            assert source.delayed == 0
    counted = run.statistics
    assert [each.raised for each in counted.sources] == [each.completed for each in counted.sources]
    assert all(each.faults == 0 for each in counted.partitions)
    assert counted.spurious_entries == 0, "an interrupt's reason is gone before it may come again"


@pytest.mark.parametrize("allowed", [(100_000,), (900_000, 4_000_000)])
def test_what_is_learned_is_what_came_raised_to_what_is_allowed(tmp_path, allowed):
    """Algorithms 1 and 2 of beckert2014 by brute force, then the simulator with the result."""
    events, length = 60, 4
    system = read_system(GATEWAY)
    source = replace(
        system.sources[0],
        arrival=Periodic(3_000_000, 4_000_000, 200_000),
        monitor=Monitor(allowed),
        learning=Learning(events, length),
    )
    learning = replace(system, sources=(source,), mode="carry")
    write_system(learning, tmp_path / "system.toml")
    built = build(tmp_path / "system.toml", irqs=200)
    run = boot(built, "virt").measured
    times = built.arrivals.time_ns.tolist()
    observed = [
        min(times[at + q] - times[at] for at in range(events - q)) for q in range(1, length + 1)
    ]
    wanted = [max(pair) for pair in zip_longest(observed, allowed, fillvalue=0)]
    for q in range(1, length):  # closed: so many gaps are no shorter than their parts
        wanted[q] = max(wanted[q], *(wanted[a] + wanted[q - 1 - a] for a in range(q)))
    assert run.clock.hz == 10**9
    assert list(run.statistics.sources[0].learned_ticks) == wanted
    learned = replace(source, monitor=Monitor(tuple(wanted)), learning=None)
    simulator = Simulator(
        replace(learning, sources=(learned,)),
        irqs=200,
        monitored_from_ns={source.name: times[events]},
        watch="irqs",
    )
    assert simulator.run()
    known = simulator.take_irqs()
    assert set(run.irqs.handling.tolist()) == {0, 1, 2}
    assert (known.handling[in_order(known)] == run.irqs.handling[in_order(run.irqs)]).all()


def test_a_run_that_learned_is_within_the_bounds_that_bound_tells(tmp_path):
    """What is only learned from waits for own slots, and was once held to a bound that does not."""
    events, period_ns = 40, 5_000_000
    system = read_system(GATEWAY)
    source = replace(
        system.sources[0],
        arrival=Periodic(period_ns),
        monitor=Monitor((4_000_000,)),
        learning=Learning(events, 1),
    )
    learning = replace(system, sources=(source,), mode="carry")
    write_system(learning, tmp_path / "system.toml")
    built = build(tmp_path / "system.toml", irqs=100)
    run = boot(built, "virt").measured
    learned = replace(source, monitor=Monitor((period_ns,)), learning=None)
    from_ns = {source.name: int(built.arrivals.time_ns[events])}
    found = compared(replace(learning, sources=(learned,)), built, run, from_ns)
    assert found.alike == found.irqs == 100
    assert found.exceeding == 0
    costly, _ = with_costs(learning, run.costs, run.sections)
    assert found.bounds_ns[source.name] == bound(costly).of(source.name).wcrt_ns
    after = bound(replace(costly, sources=(replace(costly.sources[0], learning=None),)))
    latency_ns = run.irqs.end_ns - run.irqs.arrival_ns
    assert (latency_ns > after.of(source.name).wcrt_ns).any()


@pytest.mark.parametrize("bench", ["virt", "virt-gicv3", "zcu102", "raspi4b"])
def test_partitions_of_other_processors_run_beside(tmp_path, bench):
    alone = '[[partition]]\nname = "alone"\nguest = "victim"\ncpu = 1\n'
    shared = '[[shared]]\nname = "m"\nsize = "8 KiB"\npartitions = ["P1", "alone"]\n'
    (tmp_path / "system.toml").write_text(COUNTING + alone + shared + "address = 0x70000000\n")
    built = build(tmp_path / "system.toml", irqs=30)
    assert built.processors == 2
    run = boot(built, bench).measured
    assert run.outcome.sources[0].n == 30
    victims = [each for each in run.statistics.partitions if each.progress > 1000]
    assert [each.name for each in victims] == ["P2", "alone"]


FAULTY = bytes.fromhex("010080d2200040f9")
"""mov x1, #0; ldr x0, [x1]: there is nothing at address 0."""


@pytest.mark.parametrize(
    ("way", "state", "restarts"),
    [
        ("stop", "stopped", (0, 0)),
        ("restart", "stopped", (10, 10)),
        ('restart"\nrestarts = 3 # "', "stopped", (3, 3)),
        ('restart"\nrestarts = 100000000 # "', "running", (11, 10**8)),
    ],
)
def test_a_guest_that_faults_is_told_and_harms_nobody(tmp_path, way, state, restarts):
    (tmp_path / "faulty.bin").write_bytes(FAULTY)
    text = COUNTING.replace('"victim"', f'"faulty.bin"\non_fault = "{way}"')
    (tmp_path / "system.toml").write_text(text)
    brought = boot(build(tmp_path / "system.toml", irqs=20), "virt")
    run = brought.measured
    assert run.outcome.complete
    assert run.outcome.sources[0].n == 20
    faulty = run.statistics.partitions[1]
    assert (faulty.name, faulty.state) == ("P2", state)
    assert restarts[0] <= faulty.restarts <= restarts[1]
    assert faulty.faults == faulty.restarts + (state == "stopped")
    assert any(line.startswith("hypervisor: P2: ") for line in brought.console)


def test_interrupts_of_a_guest_that_is_gone_are_counted_and_left_open(tmp_path):
    (tmp_path / "faulty.bin").write_bytes(FAULTY)
    text = COUNTING.replace('"P2"\nguest = "victim"', '"P1"\nguest = "faulty.bin"')
    (tmp_path / "system.toml").write_text(text)
    run = boot(build(tmp_path / "system.toml", irqs=20), "virt").measured
    assert not run.outcome.complete
    assert run.outcome.sources[0].n == 0
    assert run.statistics.sources[0].dropped == 20


def test_a_run_that_is_stopped_while_it_tells_keeps_what_it_told():
    built = build(GATEWAY, irqs=1500, seed=3)
    come: list[int] = []
    cut = boot(
        built, "virt", stopped=lambda: bool(come) and come[-1] > 30, report=come.append
    ).measured
    whole = boot(built, "virt").measured
    n = len(cut.irqs.end_ns)
    assert 0 < n < 1500
    assert not cut.outcome.complete
    assert cut.costs is None
    for name in Irqs.__slots__:
        assert (getattr(cut.irqs, name) == getattr(whole.irqs, name)[:n]).all()


def test_a_damaged_image_is_told_as_the_hypervisor_tells_it(tmp_path):
    built = build(GATEWAY, irqs=20)
    segments = tuple(
        replace(each, content=each.content[:500] + b"?" + each.content[501:])
        if each.address == CONFIGURATION
        else each
        for each in built.segments
    )
    damaged = replace(built, segments=segments)
    with pytest.raises(BadInput, match="virt: hypervisor: configuration: wrong checksum"):
        boot(damaged, "virt", tmp_path)
    overlapping = (Segment(HYPERVISOR, b"?" * 64, 64),)
    with pytest.raises(BadInput, match=r"the emulator did not start: .*overlap"):
        boot(replace(built, segments=overlapping), "virt", tmp_path)


def test_every_boot_brings_the_same():
    built = build(GATEWAY, irqs=80)
    first, again = boot(built, "virt"), boot(built, "virt")
    assert first.traces == again.traces
    assert first.statistics == again.statistics


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run folder, what the command printed, every interrupt, and its trace for Perfetto."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "counting.toml").write_text(COUNTING)
    done = latenz(
        *("run", folder / "counting.toml", "--irqs", 60, "--seed", 7, "--json"),
        *("-o", folder / "run", "--records", folder / "irqs.parquet"),
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def test_the_document_is_what_the_contract_promises(run):
    folder, document = run
    simulated = subprocess.run(
        [LATENZ, "simulate", folder / "counting.toml", "--irqs", "60", "--seed", "7", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(json.loads(simulated.stdout)) <= set(document)
    assert document["mode"] == "plain"
    assert document["time_base"] == "virtual"
    keys = ["slot_switch", "monitor", "schedule", "context_switch", "limit", "top"]
    assert list(document["costs_ns"]) == keys
    assert all(type(cost) is int for cost in document["costs_ns"].values())
    assert document["costs_ns"]["monitor"] == 0
    (source,) = document["sources"]
    assert (source["name"], source["n"], source["interposed"]) == ("can", 60, 0)
    assert source["direct"] + source["delayed"] == 60
    victim = document["counted"]["partitions"][1]
    assert (victim["name"], victim["state"]) == ("P2", "running")
    assert victim["progress"] > 1000


def test_the_run_folder_holds_the_samples(run):
    folder, document = run
    opened = Run.open(folder / "run")
    (samples,) = opened.sample_sets
    assert opened.info.status == "complete"
    assert samples.metadata.time_base == "virtual"
    assert samples.columns == ("latency_ns", "t_ns", "handling")
    latencies = np.concatenate([batch.column(0).to_numpy() for batch in samples.batches()])
    assert int(latencies.max()) == document["sources"][0]["max_ns"]
    table = pq.read_table(folder / "irqs.parquet")
    assert sorted(table.column("latency_ns").to_pylist()) == sorted(latencies.tolist())
    shown = subprocess.run([LATENZ, "show", folder / "run", "--json"], capture_output=True)
    (figures,) = json.loads(shown.stdout)["sample_sets"]
    assert (figures["n"], figures["time_base"]) == (60, "virtual")
    assert (folder / "run/schedule.svg").read_text().startswith("<svg")
    assert read_system(folder / "run/system.toml") == read_system(folder / "counting.toml")


def test_listed_arrivals_are_raised_when_they_are_listed(run):
    folder, document = run
    arrivals = folder / "run/arrivals.csv"
    done = latenz("run", folder / "counting.toml", "--arrivals", arrivals, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sources"] == document["sources"]


def test_the_trace_keeps_the_rules_of_the_format(run):
    """Trace Event Format: what viewers rely on, see "Trace Event Format", Google, 2016."""
    folder, document = run
    done = latenz("trace", folder / "run", "-o", folder / "trace.json")
    assert done.returncode == 0, done.stderr
    events = json.loads((folder / "trace.json").read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert list(names.values()) == ["slots", "hypervisor", "P1", "P2"]
    told = [event for event in events if event["ph"] != "M"]
    times = [event["ts"] for event in told]
    assert times == sorted(times)
    assert all(event["pid"] == 1 and event["ts"] >= 0 for event in told)
    assert {event["ph"] for event in told} == {"X", "b", "n", "e", "C"}
    last_end = dict.fromkeys(names, 0.0)
    for event in told:
        if event["ph"] == "X":  # complete events of one track do not overlap
            assert event["ts"] >= last_end[event["tid"]] - 1e-6
            last_end[event["tid"]] = event["ts"] + event["dur"]
    phases = Counter((event["id"], event["ph"]) for event in told if event["ph"] in "bne")
    assert phases == {(irq, phase): 1 for irq in range(60) for phase in "bne"}
    progress = [event["args"]["turns"] for event in told if event["ph"] == "C"]
    assert progress == sorted(progress)
    assert progress[-1] <= document["counted"]["partitions"][1]["progress"]
    part = latenz("trace", folder / "run", "-o", folder / "part.json", "--window", "5ms..10ms")
    assert part.returncode == 0
    assert (folder / "part.json").stat().st_size < (folder / "trace.json").stat().st_size / 4


def test_costs_go_back_into_the_system_file(tmp_path):
    target = tmp_path / "measured.toml"
    done = latenz("costs", GATEWAY, "--irqs", 300, "-o", target, "--json")
    assert done.returncode == 0, done.stderr
    document, changed = json.loads(done.stdout), read_system(target)
    costs = document["costs_ns"]
    assert changed.platform.slot_switch_ns == costs["slot_switch"] > 0
    assert changed.platform.context_switch_ns == costs["context_switch"] > 0
    assert max(source.top_ns for source in changed.sources) == costs["top"]
    old = read_system(GATEWAY)
    assert changed.slots == old.slots
    assert [replace(each, top_ns=0) for each in changed.sources] == [
        replace(each, top_ns=0) for each in old.sources
    ]
    assert "virtual time" in target.read_text().splitlines()[0]
    checked = subprocess.run([LATENZ, "bound", target, "--json"], capture_output=True, check=True)
    for limit, source in zip(
        json.loads(checked.stdout)["sources"], document["sources"], strict=True
    ):
        assert source["max_ns"] <= limit["wcrt_ns"]


def test_an_interrupted_run_ends_with_130_and_leaves_nothing_running(tmp_path):
    (tmp_path / "counting.toml").write_text(COUNTING)
    command = ["run", tmp_path / "counting.toml", "--irqs", "100000", "-o", tmp_path / "run"]
    with subprocess.Popen(
        [LATENZ, "hypervisor", *command], stderr=subprocess.PIPE, text=True
    ) as running:
        log = tmp_path / "run/console.log"
        until = time.monotonic() + 120
        while not log.exists() and time.monotonic() < until:
            time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=600)
    assert running.returncode == 130
    assert "the run: was stopped before it told anything" in told
    assert Run.open(tmp_path / "run").info.status == "interrupted"
