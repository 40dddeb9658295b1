"""Several cores that are shared by slots, each by its own table: bounds, endings, health, accounts.

The systems are those of `bench/hypervisor_cores.py`.
"""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench_scripts import bench_script
from small_guests import assembled
from test_isolation import hostile, latest_by_guests_ns

from latenz.analysis import bound
from latenz.hypervisor.arrivals import arrivals
from latenz.hypervisor.build import build_system
from latenz.hypervisor.comparison import compared
from latenz.hypervisor.costs import with_costs
from latenz.hypervisor.run import boot, ensure_built
from latenz.hypervisor.schedule import each_processor
from latenz.hypervisor.store import stored
from latenz.hypervisor.trace import Kind
from latenz.system.processors import parts, slots_of

pytestmark = pytest.mark.boots


@pytest.fixture(autouse=True, scope="module")
def _built():
    ensure_built()


cores = bench_script("hypervisor_cores")
system, booted, IRQS = cores.system, cores.booted, cores.IRQS
LATENZ = Path(sys.executable).parent / "latenz"
US = EMULATED_TURN_NS = 1000
HANG = "1:  b       1b"
OFF = """
    movz    x0, #0x8400, lsl #16    // PSCI SYSTEM_OFF
    movk    x0, #8
    hvc     #0
"""
CYCLE = """
    movz    x1, #0x0B00, lsl #16    // InformationPage::cycle_ns
    ldr     x2, [x1, #680]
    report  x2
"""


def with_hosted(whole, **changed):
    """Host some partitions in another way; `changed` has their attributes by name."""
    hosted = (replace(each, **changed.get(each.name, {})) for each in whole.hosted)
    return replace(whole, hosted=tuple(hosted))


@pytest.mark.parametrize(
    ("made", "bench"),
    [
        *((made, "virt") for made in cores.SYSTEMS),
        *((made, bench) for made in ("two", "four") for bench in ("virt-gicv3", "zcu102")),
    ],
)
def test_each_core_keeps_its_own_bounds_and_rules(made, bench):
    whole = cores.SYSTEMS[made]()
    built, found = booted(whole, bench)
    run = found.measured
    together = parts(whole)
    assert [each.processor for each in run.processors] == [part.processor for part in together]
    for source in run.statistics.sources:
        assert source.raised == source.completed > 0
        assert (source.overruns, source.dropped, source.overflowed) == (0, 0, 0)
    quick = [each for each in run.statistics.sources if each.name.startswith("quick")]
    assert all(each.interposed > 10 for each in quick), "jobs on every core"
    comparison = compared(whole, built, run)
    assert comparison.irqs == len(built.arrivals)
    assert comparison.alike == comparison.irqs, "as the simulator handles each core alone"
    assert comparison.exceeding == 0, "by bounds with the costs of the core"
    first_tick = run.processors[0].clock.epoch_tick
    for part, own, counted in zip(together, run.processors, run.statistics.processors, strict=True):
        assert own.clock.epoch_tick == first_tick, "all begin at the same time"
        check_slots(part, own, counted, built.processors)


def check_slots(part, own, counted, cores_there):
    """The core went through its own table, slot by slot, and did not drift."""
    switches = own.records[own.records["kind"] == Kind.SLOT_SWITCH]
    cycle_ns = sum(slot.length_ns for slot in part.slots)
    edges_ns = np.cumsum([0, *(slot.length_ns for slot in part.slots)])[:-1]
    cycles, numbers = np.divmod(np.arange(len(switches)), len(part.slots))
    assert counted.cycles > 10
    assert len(switches) // len(part.slots) == counted.cycles
    assert switches["detail"].tolist() == numbers.tolist()
    starts_ns = own.clock.times_ns(switches["start"] - switches["value"])
    assert np.abs(starts_ns - (cycles * cycle_ns + edges_ns[numbers])).max() <= 16, "a tick"
    late_ns = own.clock.at_least_ns(counted.latest_slot_ticks)
    assert late_ns <= own.costs.slot_switch
    # Guests here cause nothing: what is left are turns of the other cores, in the emulator.
    assert latest_by_guests_ns(own.clock, own.records) <= EMULATED_TURN_NS * (cores_there - 1)


def test_beside_a_core_that_sleeps_all_is_as_simulated():
    """The other core has its interrupts when this one has none any more."""
    whole = system(0, 1, guest="worker")
    drawn = arrivals(whole, whole.mode, None, IRQS, 0)
    later = np.isin(drawn.source, parts(whole)[1].sources)
    assert 0 < later.sum() < len(drawn)
    time_ns = drawn.time_ns + np.where(later, 2 * drawn.end_ns, 0)
    order = np.argsort(time_ns, kind="stable")
    raised = replace(
        drawn, time_ns=time_ns[order], source=drawn.source[order], end_ns=3 * drawn.end_ns
    )
    built = build_system(whole, whole.mode, raised)
    run = boot(built, "virt").measured
    comparison = compared(whole, built, run)
    assert comparison.alike == comparison.irqs == len(drawn)
    # Slot switches of the other core count in its handlers' time.
    slower = tuple(replace(x, bottom_ns=x.bottom_ns + 2 * US) for x in whole.sources)
    for part, own in zip(parts(replace(whole, sources=slower)), run.processors, strict=True):
        assert own.costs.slot_switch < 5 * US, "nobody counts beside it"
        costly, _ = with_costs(part.system, own.costs, own.sections)
        bounds = bound(costly, whole.mode).sources
        for number, source in zip(part.sources, bounds, strict=True):
            mine = own.irqs.source == number
            assert (own.irqs.end_ns - own.irqs.arrival_ns)[mine].max() <= source.wcrt_ns


def test_a_core_whose_guests_are_off_holds_up_no_other(tmp_path):
    off = str(assembled(tmp_path, OFF))
    whole = with_hosted(system(0, 1), A1={"guest": off}, B1={"guest": off})
    whole = replace(whole, sources=tuple(x for x in whole.sources if x.partition[1] == "0"))
    built, found = booted(whole)
    run = found.measured
    states = {each.name: each.state for each in run.statistics.partitions}
    assert states == {"A0": "running", "B0": "running", "A1": "off", "B1": "off"}
    assert all(each.raised == each.completed > 0 for each in run.statistics.sources)
    assert compared(whole, built, run).exceeding == 0
    first, second = run.statistics.processors
    assert first.cycles * 1000 * US >= built.arrivals.time_ns[-1]
    assert second.cycles > 0


def test_a_core_that_is_done_goes_on_while_another_is_not(tmp_path):
    """A handler of the second core never ends: that one gives up 100 cycles after its last end."""
    guest = str(hostile(tmp_path, "gic-never-ends"))
    whole = with_hosted(system(0, 1), A1={"guest": guest})
    _, found = booted(whole)
    run = found.measured
    first, second = run.processors
    own = [each for each in run.statistics.sources if each.name.endswith("0")]
    assert all(each.raised == each.completed > 0 for each in own)
    stuck = next(each for each in run.statistics.sources if each.name == "quick1")
    assert stuck.completed < stuck.raised
    cycle_ns = [sum(x.length_ns for x in slots_of(whole, cpu)) for cpu in (0, 1)]
    ran_ns = [
        each.cycles * length
        for each, length in zip(run.statistics.processors, cycle_ns, strict=True)
    ]
    assert ran_ns[1] > ran_ns[0] + 50 * cycle_ns[1]
    progress = first.records[first.records["kind"] == Kind.PROGRESS]
    last = progress[progress["partition"] == 0][-1]
    a0 = run.statistics.partitions[0]
    assert a0.progress > int(last["value"]) | int(last["detail"]) << 32, "its guests ran on"
    assert len(second.irqs.source) > 0
    latency_ns = first.irqs.end_ns - first.irqs.arrival_ns
    assert latency_ns.max() < cycle_ns[0]


def test_a_watchdog_restarts_a_guest_of_the_second_core_and_delays_nobody(tmp_path):
    hanging = {"guest": str(assembled(tmp_path, HANG)), "watchdog_ns": 4000 * US}
    hanging |= {"on_watchdog": "restart", "restarts": 3}
    whole = with_hosted(system(0, 1), B1=hanging, A0={"watchdog_ns": 4000 * US})
    whole = replace(whole, sources=tuple(x for x in whole.sources if x.partition != "B1"))
    built, found = booted(whole)
    run = found.measured
    counted = {each.name: each for each in run.statistics.partitions}
    hung = counted.pop("B1")
    assert (hung.state, hung.faults, hung.expiries, hung.restarts) == ("stopped", 4, 4, 3)
    assert all((x.state, x.faults, x.restarts) == ("running", 0, 0) for x in counted.values())
    assert len([line for line in found.console if "B1" in line and "watchdog" in line]) == 4
    comparison = compared(whole, built, run)
    assert (comparison.alike, comparison.exceeding) == (comparison.irqs, 0)


def test_guests_are_told_the_slots_of_their_own_core(tmp_path):
    asks = {"guest": str(assembled(tmp_path, CYCLE))}
    whole = cores.beside_a_static_core()
    whole = with_hosted(whole, B0=asks, B2=asks, alone=asks)
    whole = replace(whole, sources=tuple(x for x in whole.sources if x.partition[0] == "A"))
    _, found = booted(whole, irqs=20)
    progress = {each.name: each.progress for each in found.measured.statistics.partitions}
    assert (progress["B0"], progress["B2"], progress["alone"]) == (1000 * US, 1200 * US, 0)


def test_commands_tell_of_each_core(tmp_path):
    """Run folder, trace for viewers, watch and costs of one system."""
    from latenz.system import write_system

    path = tmp_path / "two.toml"
    write_system(system(0, 1), path)

    def told(*arguments):
        command = [LATENZ, "hypervisor", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    folder = tmp_path / "run"
    run = json.loads(told("run", path, "--irqs", IRQS, "-o", folder, "--json"))
    names = {each.name for each in folder.iterdir()}
    assert names >= {"trace.bin", "trace-1.bin", "schedule.svg", "schedule-1.svg"}
    assert [each["processor"] for each in run["processors"]] == [0, 1]
    for key, most in run["costs_ns"].items():
        assert most == max(each["costs_ns"][key] for each in run["processors"])
    again, measured = stored(folder)
    assert [len(own.irqs.source) for _, own in each_processor(again, measured)] == [
        sum(x["n"] for x in run["sources"] if x["name"].endswith(core)) for core in "01"
    ]
    told("trace", folder, "-o", tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    processes = {x["pid"]: x["args"]["name"] for x in events if x["name"] == "process_name"}
    assert processes == {1: "processor 0", 2: "processor 1"}
    irqs = {(x["pid"], x["name"]) for x in events if x["ph"] == "b"}
    wanted = {(core + 1, f"IRQ {name}{core}") for core in (0, 1) for name in ("quick", "calm")}
    assert irqs == wanted
    seen = json.loads(told("watch", path, "--irqs", IRQS, "--json").splitlines()[-1])
    assert seen["gaps"] == 0
    for watched, source in zip(seen["sources"], run["sources"], strict=True):
        assert [watched[x] for x in ("name", "direct", "interposed", "delayed")] == [
            source[x] for x in ("name", "direct", "interposed", "delayed")
        ]
    ended = [run["counted"]["cycles"], run["counted"]["others"][0]["cycles"]]
    for watched, cycles in zip(seen["processors"], ended, strict=True):
        assert cycles - watched["cycles"] in (0, 1), "the last slot has no end"


def test_costs_are_measured_beside_hostile_guests_of_every_core(tmp_path):
    from latenz.system import read_system, write_system

    path = tmp_path / "two.toml"
    write_system(system(0, 1), path)
    command = [LATENZ, "hypervisor", "costs", path, "--irqs", "60", "-o", tmp_path / "costly.toml"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["hostile_in"] == "A0, A1"
    honest = booted(system(0, 1), irqs=60)[1].measured
    for each, own in zip(told["processors"], honest.processors, strict=True):
        assert each["costs_ns"]["slot_switch"] >= own.costs.slot_switch
    costly = read_system(tmp_path / "costly.toml")
    most_ns = max(each["costs_ns"]["slot_switch"] for each in told["processors"])
    assert costly.platform.slot_switch_ns == most_ns
    assert all(each.verdict == "bounded" for each in bound(costly).sources)
