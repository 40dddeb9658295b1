"""What a counting partition loses to an interrupt storm, beside what `bound` promises.

`python bench/hypervisor_interference.py` prints a table. A victim counts in its slot, three
instructions a turn, beside a partition whose monitored source is stormed; an instruction is a
nanosecond on QEMU's virt, so that turns missing are nanoseconds lost. The promise is computed with
the costs that were measured in the storm, and with the distances of the arrivals that came: top
handlers run in everybody's slots, so no promise can do without them.
"""

import argparse
import json
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from latenz.analysis import bound
from latenz.hypervisor.arrivals import Arrivals
from latenz.hypervisor.build import build_system
from latenz.hypervisor.costs import with_costs
from latenz.hypervisor.results import Measured
from latenz.hypervisor.run import boot
from latenz.hypervisor.trace import Kind
from latenz.system import (
    Exponential,
    Mode,
    Monitor,
    Partition,
    Periodic,
    Platform,
    RecordedTrace,
    Slot,
    Source,
    System,
)

US, MS = 1_000, 1_000_000
TURN_NS = 3
"""Instructions of a turn of the victim's loop."""
MODES: tuple[Mode, ...] = ("plain", "paper", "carry")
DISTANCE_NS = 600 * US
"""What the monitor allows."""
CYCLES = 40
STORM_CYCLES = 30
SLOTS = (Slot("stormed", 4 * MS), Slot("victim", 3 * MS), Slot("third", 1 * MS))
CYCLE_NS = sum(slot.length_ns for slot in SLOTS)
VICTIM_BEGIN, VICTIM_END = 4 * MS, 7 * MS
_LONGEST_VECTOR = 64

Times = npt.NDArray[np.int64]


def system(mode: Mode) -> System:
    """The monitored source is told to keep its distance; the storms do not.

    It has no limit (R7), so that a storm comes through to its monitor.
    """
    return System(
        Platform(slot_switch_ns=3 * US, monitor_ns=500, schedule_ns=500, context_switch_ns=3 * US),
        SLOTS,
        (
            Source(
                "storm",
                "stormed",
                2 * US,
                30 * US,
                Exponential(DISTANCE_NS),
                Monitor((DISTANCE_NS,)),
            ),
        ),
        mode,
        hosted=(Partition("victim", "victim"),),
    )


def edges(offsets_ns: tuple[int, ...], burst: int) -> Times:
    """Return bursts at places of every cycle, each of so many at one time."""
    cycles = np.arange(STORM_CYCLES)[:, None] * CYCLE_NS
    return np.repeat(np.sort((cycles + np.array(offsets_ns)).ravel()), burst)


def storms() -> dict[str, Times]:
    """Return arrivals by name: none, those that are allowed, and worse."""
    end_ns = STORM_CYCLES * CYCLE_NS
    random = np.random.default_rng(1)
    return {
        "none": np.empty(0, np.int64),
        "as allowed": np.arange(0, end_ns, DISTANCE_NS),
        "10 times denser": np.arange(0, end_ns, DISTANCE_NS // 10),
        "10 times denser, random": np.sort(random.integers(0, end_ns, end_ns * 10 // DISTANCE_NS)),
        "bursts of 10 at the victim's edges": edges((VICTIM_BEGIN, VICTIM_END - 1), 10),
        "bursts of 10 before the victim's edges": edges(
            (VICTIM_BEGIN - 5 * US, VICTIM_BEGIN - 1, VICTIM_END - 40 * US, VICTIM_END - 5 * US), 10
        ),
        "as allowed from the victim's edge on": edges(
            tuple(VICTIM_BEGIN + at * DISTANCE_NS for at in range(-6, 8)), 1
        ),
        "bursts of 10, as far apart as allowed": edges(
            tuple(VICTIM_BEGIN + at * DISTANCE_NS for at in range(6)), 10
        ),
    }


@dataclass(frozen=True)
class Loss:
    """What the victim lost in the worst of its slots.

    Attributes:
        mode: How the storm was handled.
        storm: Its name.
        irqs: How many interrupts it had.
        interposed: How many of them ran in foreign slots.
        most_ns: Lost to the storm: the longest that a slot had less than without it.
        all_ns: Lost of the slot's length altogether, the switch into it too.
        promised_ns: What the analysis promises not to exceed, switch included.
    """

    mode: Mode
    storm: str
    irqs: int
    interposed: int
    most_ns: int
    all_ns: int
    promised_ns: int


def executed_ns(run: Measured) -> Times:
    """Return how long the victim counted in each of its slots but the first."""
    number = [each.name for each in run.statistics.partitions].index("victim")
    records = run.records
    own = records[(records["kind"] == Kind.PROGRESS) & (records["partition"] == number)]
    turns = own["value"].astype(np.int64) + (own["detail"].astype(np.int64) << 32)
    return np.diff(turns) * TURN_NS


def promised_ns(run: Measured, model: System, times: Times) -> int:
    """Return what the analysis promises for these arrivals with the costs of the run."""
    assert run.costs is not None
    assert run.sections is not None
    costly, missing = with_costs(model, run.costs, run.sections)
    source = costly.sources[0]
    if len(times) == 0:
        assert missing
        source = replace(source, arrival=Periodic(10**15), monitor=None)
    else:
        source = replace(source, arrival=RecordedTrace(times, min(_LONGEST_VECTOR, len(times) - 1)))
    promises = bound(replace(costly, sources=(source,)), model.mode).partitions
    return next(x for x in promises if x.name == "victim").conforming_interference_ns_by_slot[0]


def measure(mode: Mode, storm: str, times: Times) -> tuple[Loss, Times]:
    """Run a storm; return the losses, without what only a run without storm can tell."""
    model = system(mode)
    raised = Arrivals(times, np.zeros(len(times), np.int64), CYCLES * CYCLE_NS)
    run = boot(build_system(model, mode, raised, least_cycles=CYCLES), "virt").measured
    assert run.outcome.complete, "the queue was emptied"
    executed = executed_ns(run)
    assert len(executed) >= CYCLES - 2
    loss = Loss(
        mode,
        storm,
        len(times),
        run.outcome.sources[0].interposed,
        0,
        int((VICTIM_END - VICTIM_BEGIN) - executed.min()),
        promised_ns(run, model, times),
    )
    return loss, executed


def losses(mode: Mode, names: tuple[str, ...] | None = None) -> list[Loss]:
    """Run the storms of a mode, first of all none."""
    found = []
    undisturbed_ns = 0
    for name, times in storms().items():
        if names is not None and name not in ("none", *names):
            continue
        loss, executed = measure(mode, name, times)
        if name == "none":
            undisturbed_ns = int(executed.max())
        found.append(replace(loss, most_ns=undisturbed_ns - int(executed.min())))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    options = parser.parse_args()
    found = [loss for mode in MODES for loss in losses(mode)]
    if options.json:
        print(json.dumps([loss.__dict__ for loss in found], indent=2))
        return
    print(
        "| mode | storm | IRQs | interposed | lost to the storm | lost in all | promised | share |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for x in found:
        figures = f"{x.most_ns / US:.1f} us | {x.all_ns / US:.1f} us | {x.promised_ns / US:.1f} us"
        share = f"{100 * x.all_ns / x.promised_ns:.0f} %"
        print(f"| {x.mode} | {x.storm} | {x.irqs} | {x.interposed} | {figures} | {share} |")


if __name__ == "__main__":
    main()
