"""Traces of known schedules, reconstructed: interrupts, figures, costs, what the processor did."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from made_systems import sources
from written_traces import BOTTOM, INTERPOSED, Writer, simulated

from latenz.analysis import simulate
from latenz.analysis.simulate import Irqs, Segments
from latenz.errors import BadInput
from latenz.hypervisor.costs import with_costs
from latenz.hypervisor.results import measured, off_the_grid
from latenz.hypervisor.schedule import segments
from latenz.hypervisor.trace import RECORD, Clock, Kind, read_records, read_statistics
from latenz.system import Monitor, Platform, Slot, System, read_system

EXAMPLES = sorted(Path("experiments/systems").glob("*.toml"))
GATEWAY = Path("experiments/systems/can-gateway.toml")
MODES = ["plain", "paper", "carry"]
ticks = st.integers(0, 2**62)


def written(system, hz=10**9, epoch=12_345, **options):
    irqs, done = simulated(system, **options)
    writer = Writer(system, irqs, done, hz, epoch)
    trace = writer.trace()
    return irqs, done, writer, trace, writer.statistics(trace)


def columns(found: Irqs | Segments) -> list[list[int]]:
    return [getattr(found, name).tolist() for name in type(found).__slots__]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", EXAMPLES, ids=str)
def test_examples_come_back_as_they_were_simulated(path, mode):
    system = replace(read_system(path), mode=mode)
    options = {} if "ecu" in path.name else {"irqs": 3000, "seed": 5}
    irqs, _, _, trace, statistics = written(system, **options)
    run = measured(system, mode, read_records(trace), statistics)
    assert columns(run.irqs) == columns(irqs)
    assert run.outcome.sources == simulate(system, **options).sources
    assert run.outcome.complete


@st.composite
def costly(draw):
    """Systems whose hypervisor works for a while."""
    platform = Platform(*(draw(st.integers(1, most)) for most in (90_000, 900, 9_000, 90_000)))
    owners = draw(st.lists(st.sampled_from("ABC"), min_size=2, max_size=4))
    slots = tuple(Slot(owner, draw(st.integers(200_000, 6_000_000))) for owner in owners)
    begin = draw(st.sampled_from(["arrival", "top"]))
    plain = tuple(
        replace(each, learning=None, interrupt=None) for each in draw(sources(sorted(set(owners))))
    )
    return System(platform, slots, plain, draw(st.sampled_from(MODES)), begin)


quiet = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@quiet
@given(costly(), st.integers(1, 200), st.integers(0, 99))
def test_made_systems_come_back_as_they_were_simulated(system, irqs, seed):
    known, _, _, trace, statistics = written(system, irqs=irqs, seed=seed)
    run = measured(system, system.mode, read_records(trace), statistics)
    assert columns(run.irqs) == columns(known)
    assert run.outcome == replace(
        simulate(system, irqs=irqs, seed=seed), end_ns=int(known.end_ns.max(initial=0))
    )


@quiet
@given(costly(), st.integers(50, 400))
def test_costs_are_those_of_the_schedule(system, irqs):
    known, _, writer, trace, statistics = written(system, irqs=irqs, seed=1)
    run = measured(system, system.mode, read_records(trace), statistics)
    platform, shown = system.platform, run.sections
    assert run.costs.slot_switch == platform.slot_switch_ns
    asked = system.mode != "plain" and any(
        source.monitor
        and (system.mode == "carry" or (known.handling[known.source == number] > 0).any())
        and (known.source == number).any()
        for number, source in enumerate(system.sources)
    )
    assert run.costs.monitor == (platform.monitor_ns if asked else 0)
    for number, source in enumerate(system.sources):
        arrived = bool((known.source == number).any())
        assert run.costs.top[source.name] == (source.top_ns if arrived else 0)
    if any(record[3] == Kind.JOB_START for record in writer.records):
        assert run.costs.schedule == platform.schedule_ns
        assert run.costs.context_switch == platform.context_switch_ns
    else:
        assert (shown.schedule, shown.context_switch_to) == (None, None)
    again, missing = with_costs(system, run.costs, run.sections)
    assert run.costs.limit == max(run.costs.top.values()), "nothing was masked, which is less"
    assert again == replace(system, platform=replace(platform, limit_ns=run.costs.limit))
    assert ("monitor" in missing) == (not asked)


@quiet
@given(costly(), st.integers(20, 200))
def test_what_the_processor_did_comes_back(system, irqs):
    _, done, writer, trace, statistics = written(system, irqs=irqs, seed=2)
    assume(not writer.split)
    run = measured(system, system.mode, read_records(trace), statistics)
    back = segments(system, run)
    assert columns(back) == columns(done)
    assert {BOTTOM, INTERPOSED} >= set(back.activity.tolist()) - {0, 1, 3}


def test_interposed_jobs_come_back():
    """Short runs: in most nothing comes while the hypervisor goes to a job or back."""
    seen = 0
    for path in (GATEWAY, Path("experiments/systems/beckert2014-10-percent.toml")):
        for seed in range(30):
            system = replace(read_system(path), mode="carry")
            _, done, writer, trace, statistics = written(system, irqs=12, seed=seed)
            jobs = any(record[3] == Kind.JOB_START for record in writer.records)
            if jobs and not writer.split:
                run = measured(system, "carry", read_records(trace), statistics)
                assert columns(segments(system, run)) == columns(done)
                seen += 1
    assert seen > 20


def test_a_counter_of_another_rate():
    """At 62.5 MHz a tick is 16 ns: a schedule on a grid of 16 ns comes back exactly."""
    system = read_system(GATEWAY)
    slow = Platform(*(16 * cost for cost in vars_of(system.platform)))
    slower = System(
        slow,
        tuple(replace(slot, length_ns=16 * slot.length_ns) for slot in system.slots),
        tuple(
            replace(
                source,
                top_ns=16 * source.top_ns,
                bottom_ns=16 * source.bottom_ns,
                monitor=source.monitor
                and replace(
                    source.monitor,
                    distances_ns=tuple(16 * each for each in source.monitor.distances_ns),
                ),
            )
            for source in system.sources
        ),
        "carry",
    )
    irqs, _ = simulated(system, irqs=500)
    arrivals = [16 * irqs.arrival_ns[irqs.source == n] for n in range(len(system.sources))]
    arrivals = [np.sort(each) for each in arrivals]
    known, _, _, trace, statistics = written(slower, 62_500_000, arrivals=arrivals)
    run = measured(slower, "carry", read_records(trace), statistics)
    assert columns(run.irqs) == columns(known)
    assert run.costs.slot_switch == slow.slot_switch_ns
    assert not off_the_grid(slower, run)
    odd = replace(slower, slots=(replace(slower.slots[0], length_ns=8_000_001), *slower.slots[1:]))
    (moving,) = off_the_grid(odd, run)
    assert moving == "a tick of the counter is 16 ns: slots are rounded, so that they move " + (
        "against the arrivals"
    )
    close = replace(slower.sources[0], monitor=Monitor((8, 16)))
    (denied,) = off_the_grid(replace(slower, sources=(close, *slower.sources[1:])), run)
    assert denied.startswith("a tick of the counter is 16 ns: distances of can-engine are rounded")


def vars_of(platform: Platform) -> list[int]:
    return [getattr(platform, name) for name in Platform.__slots__]


@settings(deadline=None)
@given(st.lists(ticks, min_size=1), st.integers(1, 10**9), st.integers(0, 2**62))
def test_ticks_become_nanoseconds_exactly(given_ticks, hz, epoch):
    assume(max(given_ticks) // hz < 2**33)
    clock = Clock(hz, epoch)
    exact = [Fraction(tick * 10**9, hz) for tick in given_ticks]
    assert clock.durations_ns(given_ticks).tolist() == [int(each) for each in exact]
    assert [clock.at_least_ns(tick) for tick in given_ticks] == [-int(-each // 1) for each in exact]
    later = np.array([min(tick, 2**62) for tick in given_ticks]) + epoch
    assert (clock.times_ns(later) == clock.durations_ns(later - epoch)).all()


# --- damage ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound():
    system = read_system(GATEWAY)
    _, _, _, trace, statistics = written(system, irqs=200)
    return system, trace, statistics


def refuse(system, trace, statistics, says):
    with pytest.raises(BadInput, match=says):
        measured(system, "carry", read_records(trace), statistics)


def test_traces_that_are_none(sound):
    system, trace, statistics = sound
    with pytest.raises(BadInput, match=r"has 25 bytes, not a multiple of 24"):
        read_records(trace[:25])
    with pytest.raises(BadInput, match="has a record of kind 9"):
        read_records(trace[:16] + b"\x09" + trace[17:24])
    refuse(system, trace[:-24], statistics, "records of")
    wrapped = statistics.model_copy(update={"records_written": len(trace) // 24 + 5})
    refuse(system, trace, wrapped, "5 of .* records did not fit into the trace; run fewer")


def test_traces_of_another_system(sound):
    system, trace, statistics = sound
    other = replace(system, sources=system.sources[:1])
    refuse(other, trace, statistics, "names source 3, the system has 1; it is of another")
    moved = replace(
        system, sources=tuple(replace(each, partition="body") for each in system.sources)
    )
    refuse(moved, trace, statistics, "has interrupts of other partitions")


def test_traces_that_contradict_themselves(sound):
    system, trace, statistics = sound
    records = read_records(trace).copy()
    ends = np.flatnonzero(records["kind"] == Kind.BOTTOM_END)
    sources_at_gateway = [n for n, each in enumerate(system.sources) if each.partition == "gateway"]
    at = next(at for at in ends if records["source"][at] in sources_at_gateway)
    records["source"][at] = next(n for n in sources_at_gateway if n != records["source"][at])
    refuse(system, records.tobytes(), statistics, "a queue overflowed")
    tops = read_records(trace)["kind"] == Kind.TOP_HANDLER
    ended = read_records(trace)[~tops].tobytes()
    less = statistics.model_copy(
        update={"records_written": len(ended) // 24, "records_kept": len(ended) // 24}
    )
    refuse(system, ended, less, "ends more interrupts than it begins")
    first, *others = statistics.sources
    wrong = (first.model_copy(update={"completed": first.completed + 1}), *others)
    refuse(system, trace, statistics.model_copy(update={"sources": wrong}), "shows .*statistics")


def test_a_partition_that_was_stopped_leaves_interrupts_open(sound):
    system, trace, statistics = sound
    records = read_records(trace)
    last = np.flatnonzero(records["kind"] == Kind.BOTTOM_END)[-1]
    cut = np.delete(records, last)
    owner = int(records["source"][last])
    counted = [
        each.model_copy(update={"completed": each.completed - (number == owner)})
        for number, each in enumerate(statistics.sources)
    ]
    kept = {"records_written": len(cut), "records_kept": len(cut), "sources": tuple(counted)}
    run = measured(system, "carry", cut, statistics.model_copy(update=kept))
    assert not run.outcome.complete
    assert sum(each.n for each in run.outcome.sources) == 199


def test_an_empty_trace():
    system = read_system(GATEWAY)
    _, _, _, trace, statistics = written(system, arrivals=[np.empty(0, np.int64)] * 4)
    run = measured(system, "carry", read_records(trace), statistics)
    assert [each.n for each in run.outcome.sources] == [0] * 4
    assert run.costs.to_json()["top"] == 0


def test_statistics_that_are_damaged(sound):
    with pytest.raises(BadInput, match=r"statistics.json: is damaged"):
        read_statistics(b'{"counter_hz": 1')
    with pytest.raises(BadInput, match=r"statistics.json: is wrong at counter_hz"):
        read_statistics(sound[2].model_copy(update={"counter_hz": 0}).model_dump_json().encode())
    with pytest.raises(BadInput, match=r"is wrong at epoch_tick: Field required"):
        read_statistics(b'{"counter_hz": 5}')
    assert read_statistics(sound[2].model_dump_json().encode()) == sound[2]


def test_the_record_is_as_long_as_the_headers_say():
    header = Path("hypervisor/src/core/trace.hpp").read_text()
    assert f"sizeof(TraceRecord) == {RECORD.itemsize}" in header
    for kind in Kind:
        assert f"{kind.name.lower()} = {kind.value}," in header
