"""A day under the hypervisor: random interrupts at 1 % load, a cycle of 14 ms, mode carry.

`python bench/hypervisor_day.py` prints its figures as JSON; `--hours` makes the day shorter. Time
is virtual (QEMU's virt); the figures tell how long it took. Every expectation is checked.
"""

import argparse
import json
import math
import time

import numpy as np

from latenz.hypervisor.arrivals import Arrivals
from latenz.hypervisor.build import Built, build_system
from latenz.hypervisor.run import boot_counted
from latenz.hypervisor.trace import Kind, Records, Statistics
from latenz.system import Exponential, Monitor, Platform, Slot, Source, System

US, MS, SECOND = 1_000, 1_000_000, 1_000_000_000
LOAD = 0.01
"""Of the processor, for all bottom handlers together."""
LAST_RECORDS = 1 << 16
QUIET_CYCLES = 20
"""At the end nothing arrives, so that nothing is open when the last cycle ends."""
LATEST_SLOT_NS = 5_000
"""A top handler or a switch that began before the slot's edge is carried through."""
SLOTS = (Slot("P1", 6 * MS), Slot("P2", 6 * MS), Slot("P3", 2 * MS))
BOTTOMS_US = {"a": 100, "b": 60, "c": 150, "d": 80}


def system() -> System:
    """Four sources of the same load: two monitored, of one partition, a third, and one without."""
    mean = {name: round(4 * us * US / LOAD) for name, us in BOTTOMS_US.items()}
    owners = {"a": "P1", "b": "P1", "c": "P2", "d": "P3"}
    return System(
        Platform(slot_switch_ns=3 * US, monitor_ns=500, schedule_ns=500, context_switch_ns=3 * US),
        SLOTS,
        tuple(
            Source(
                name,
                owner,
                2 * US,
                BOTTOMS_US[name] * US,
                Exponential(mean[name]),
                None if name == "d" else Monitor((mean[name] // 2,)),
            )
            for name, owner in owners.items()
        ),
        "carry",
    )


def drawn(model: System, end_ns: int, seed: int) -> Arrivals:
    """Return Poisson arrivals of every source up to a time."""
    random = np.random.default_rng(seed)
    times = []
    for source in model.sources:
        assert isinstance(source.arrival, Exponential)
        n = int(random.poisson(end_ns / source.arrival.mean_ns))
        times.append(np.sort(random.integers(0, end_ns, n)))
    time_ns = np.concatenate(times)
    number = np.repeat(np.arange(len(times)), [len(each) for each in times])
    order = np.lexsort((number, time_ns))
    return Arrivals(time_ns[order], number[order], end_ns)


def checked(built: Built, cycles: int, counted: Statistics, last: Records) -> None:
    """Refuse a day on which anything was lost, late or drifted."""
    assert counted.counter_hz == SECOND, "a tick is a nanosecond"
    assert counted.cycles == cycles
    assert counted.latest_slot_ticks <= LATEST_SLOT_NS
    raised = np.bincount(built.arrivals.source, minlength=len(counted.sources)).tolist()
    for source, wanted in zip(counted.sources, raised, strict=True):
        assert source.raised == source.completed == wanted, source
        assert source.direct + source.interposed + source.delayed == wanted, source
        assert source.overflowed == source.dropped == 0, source
    for partition in counted.partitions:
        assert (partition.state, partition.faults, partition.restarts) == ("running", 0, 0)
    slots = last[last["kind"] == Kind.SLOT_SWITCH]
    edges = slots["start"].astype(np.int64) - slots["value"].astype(np.int64) - counted.epoch_tick
    lengths = [slot.length_ns for slot in SLOTS]
    begins = np.cumsum([0, *lengths[:-1]])
    cycle_ns = sum(lengths)
    # Of a switch that began before its edge the record's value is 0; it is told by its own time.
    late = edges - begins[slots["detail"]]
    drift = (late + cycle_ns // 2) % cycle_ns - cycle_ns // 2
    assert len(slots) > 0
    assert np.abs(drift[slots["value"] > 0]).max() == 0
    assert np.abs(drift).max() <= LATEST_SLOT_NS
    assert edges[-1] // cycle_ns >= cycles - 1


def day(hours: float, seed: int = 1) -> dict[str, object]:
    """Run so many virtual hours; return what they showed."""
    model = system()
    cycles = math.ceil(hours * 3600 * SECOND / model.cycle_ns)
    quiet_from = (cycles - QUIET_CYCLES) * model.cycle_ns
    raised = drawn(model, quiet_from, seed)
    built = build_system(model, "carry", raised, records=LAST_RECORDS, least_cycles=cycles)
    began = time.monotonic()
    counted, last = boot_counted(built, "virt")
    wall_s = time.monotonic() - began
    checked(built, cycles, counted, last)
    executed_ns = sum(
        each.completed * us * US
        for each, us in zip(counted.sources, BOTTOMS_US.values(), strict=True)
    )
    return {
        "virtual_hours": round(cycles * model.cycle_ns / (3600 * SECOND), 4),
        "wall_s": round(wall_s, 1),
        "cycles": cycles,
        "slots": cycles * len(SLOTS),
        "latest_slot_ns": counted.latest_slot_ticks,
        "load": round(executed_ns / (cycles * model.cycle_ns), 5),
        "irqs": len(raised),
        "lost": len(raised) - sum(each.completed for each in counted.sources),
        "direct": sum(each.direct for each in counted.sources),
        "interposed": sum(each.interposed for each in counted.sources),
        "delayed": sum(each.delayed for each in counted.sources),
        "denied": sum(each.denied for each in counted.sources),
        "overruns": sum(each.overruns for each in counted.sources),
        "records": counted.records_written,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hours", type=float, default=24, help="virtual hours (default 24)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(json.dumps(day(options.hours, options.seed), indent=2))


if __name__ == "__main__":
    main()
