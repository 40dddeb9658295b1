"""What a run showed: every interrupt, and what the hypervisor's own work took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from latenz.analysis.simulate import Irqs, SimulatedSource, Simulation
from latenz.errors import BadInput
from latenz.hypervisor.trace import (
    ASKED,
    HANDLING_MASK,
    MONITOR_SHIFT,
    STATISTICS_FILE,
    TRACE_FILE,
    Clock,
    Kind,
    Records,
    Statistics,
    Times,
    trace_file,
)
from latenz.model import HANDLINGS
from latenz.system import Mode, System
from latenz.system.processors import Part, parts


@dataclass(frozen=True, slots=True)
class Costs:
    """What the hypervisor's own work took at most, as the analysis counts it.

    Sections of the trace leave out entering and leaving the hypervisor; that is added where it is
    paid. The end of a bottom handler is work that the analysis has no name for: each interrupt has
    one, so it counts as part of its top handler; ending an interposed job pays it as well. So do
    traps of guests, which hold up what comes meanwhile, and a job's end. To mask a source is less
    than its top handler does, and counts as the longest of either: few runs show it.

    Attributes:
        slot_switch: At the start of every slot.
        monitor: C_Mon.
        schedule: C_sched.
        context_switch: C_ctx.
        limit: C_lim.
        top: C_TH of each source by name.
    """

    slot_switch: int
    monitor: int
    schedule: int
    context_switch: int
    limit: int
    top: dict[str, int]

    def to_json(self) -> dict[str, int]:
        """Return the costs with the top handler of whichever source takes longest."""
        return {
            "slot_switch": self.slot_switch,
            "monitor": self.monitor,
            "schedule": self.schedule,
            "context_switch": self.context_switch,
            "limit": self.limit,
            "top": max(self.top.values(), default=0),
        }


@dataclass(frozen=True, slots=True)
class Sections:
    """The longest sections of a trace in nanoseconds, rounded up; None: there was none.

    Attributes:
        slot_switch: From the slot's start on.
        top: Without the monitor.
        monitor: A decision of it.
        schedule: Choosing an interposed job.
        context_switch_to: Going to an interposed job.
        context_switch_from: Going back.
        bottom_end: Noticing the end of a bottom handler.
        limit: Masking a source.
        service: Of a guest's trap.
        trap: Entering and leaving the hypervisor, which no section has in it.
    """

    slot_switch: int | None
    top: int | None
    monitor: int | None
    schedule: int | None
    context_switch_to: int | None
    context_switch_from: int | None
    bottom_end: int | None
    limit: int | None
    service: int | None
    trap: int


@dataclass(frozen=True, slots=True)
class OnProcessor:
    """What a run showed on one processor with slots.

    Attributes:
        processor: Its number.
        irqs: Every interrupt whose bottom handler ended there, in that order; times count from the
            start of its own first cycle.
        costs: What the hypervisor's work took there; None if the run was cut off before it told.
        sections: The same, not yet summed up; None as well.
        records: Its trace.
        clock: How ticks of that become nanoseconds.
    """

    processor: int
    irqs: Irqs
    costs: Costs | None
    sections: Sections | None
    records: Records
    clock: Clock


@dataclass(frozen=True, slots=True)
class Measured:
    """A run of a system under the hypervisor.

    Attributes:
        outcome: Figures of each source, as a simulation gives them.
        irqs: Every interrupt whose bottom handler ended, in that order on each processor.
        costs: What the hypervisor's work took at most on any processor; None if the run was cut off
            before it told.
        sections: The same, not yet summed up; None as well.
        statistics: What the hypervisor counted.
        processors: What it showed on each processor with slots, ascending.
    """

    outcome: Simulation
    irqs: Irqs
    costs: Costs | None
    sections: Sections | None
    statistics: Statistics
    processors: tuple[OnProcessor, ...]

    @property
    def records(self) -> Records:
        """The trace, where one processor has slots."""
        [only] = self.processors
        return only.records

    @property
    def clock(self) -> Clock:
        """How ticks of the trace become nanoseconds; of several that of the first processor.

        Ticks are as long on each.
        """
        return self.processors[0].clock


def measured(
    system: System,
    mode: Mode,
    records: Records | Mapping[int, Records],
    statistics: Statistics,
    *,
    complete: bool = True,
) -> Measured:
    """Return what traces and their statistics tell.

    Args:
        system: What was run.
        mode: How interrupts in foreign slots were handled.
        records: The trace of each processor with slots; or that of the only one.
        statistics: What the hypervisor counted.
        complete: False if the run was cut off while it told; then there are no costs.

    Raises:
        BadInput: Traces, statistics and system do not belong together, or records were lost.
    """
    told = {each.cpu: statistics.of(each) for each in statistics.processors}
    traces = records if isinstance(records, Mapping) else dict.fromkeys(told, records)
    together = parts(system)
    wanted = {part.processor for part in together}
    if complete and not wanted == set(told) == set(traces):
        what = f"tells of slots on processors {', '.join(map(str, sorted(told)))}"
        raise BadInput(what, STATISTICS_FILE, "it is of another system")
    found = tuple(
        _on_processor(system, part, traces[part.processor], told[part.processor], complete)
        for part in together
        if part.processor in traces and part.processor in told
    )
    if not found:
        raise BadInput("tells of no processor that has slots", STATISTICS_FILE)
    irqs = joined_irqs([each.irqs for each in found])
    served = all(each.completed == each.raised for each in statistics.sources)
    outcome = figures(system, mode, irqs, complete=complete and served)
    costs = reduce(worst_costs, [each.costs for each in found if each.costs]) if complete else None
    sections = (
        reduce(worst_sections, [x.sections for x in found if x.sections]) if complete else None
    )
    return Measured(outcome, irqs, costs, sections, statistics, found)


def joined_irqs(batches: Sequence[Irqs]) -> Irqs:
    """Return interrupts one after the other."""
    return Irqs(*(np.concatenate([getattr(x, name) for x in batches]) for name in Irqs.__slots__))


def _on_processor(
    system: System, part: Part[System], records: Records, statistics: Statistics, complete: bool
) -> OnProcessor:
    clock = Clock(statistics.counter_hz, statistics.epoch_tick)
    where = trace_file(part.processor)
    _check(system, part, records, statistics, complete)
    irqs = reconstructed(system, records, clock, where)
    if not complete:
        return OnProcessor(part.processor, irqs, None, None, records, clock)
    _check_counts(part, irqs, statistics)
    costs = _costs(system, part, records, statistics)
    sections = _sections(records, statistics)
    return OnProcessor(part.processor, irqs, costs, sections, records, clock)


def worst_of(one: Measured, other: Measured) -> Measured:
    """Return a complete run with the larger of each cost of two of the same system."""
    processors = tuple(
        replace(each, **_worse(each, beside))
        for each, beside in zip(one.processors, other.processors, strict=True)
    )
    return replace(one, **_worse(one, other), processors=processors)


def _worse(one: Measured | OnProcessor, other: Measured | OnProcessor) -> dict[str, Any]:
    assert one.costs is not None and other.costs is not None  # noqa: S101, PT018 - of complete ones
    assert one.sections is not None and other.sections is not None  # noqa: S101, PT018 - likewise
    return {
        "costs": worst_costs(one.costs, other.costs),
        "sections": worst_sections(one.sections, other.sections),
    }


def worst_costs(one: Costs, other: Costs) -> Costs:
    """Return the larger of each cost."""
    names = [each.name for each in fields(Costs) if each.name != "top"]
    larger = {name: max(getattr(one, name), getattr(other, name)) for name in names}
    sources = dict.fromkeys([*one.top, *other.top])
    top = {name: max(one.top.get(name, 0), other.top.get(name, 0)) for name in sources}
    return Costs(**larger, top=top)


def worst_sections(one: Sections, other: Sections) -> Sections:
    """Return the longer of each section."""

    def longer(name: str) -> int | None:
        found = [x for x in (getattr(one, name), getattr(other, name)) if x is not None]
        return max(found, default=None)

    return Sections(**{name: longer(name) for name in Sections.__slots__})  # type: ignore[arg-type]


def _check(
    system: System, part: Part[System], records: Records, statistics: Statistics, complete: bool
) -> None:
    where = trace_file(part.processor)
    if complete and statistics.records_kept < statistics.records_written:
        lost = statistics.records_written - statistics.records_kept
        raise BadInput(
            f"{lost} of {statistics.records_written} records did not fit into the trace",
            where,
            "run fewer interrupts",
        )
    if complete and len(records) != statistics.records_kept:
        what = f"has {len(records)} records of {statistics.records_kept}"
        raise BadInput(what, where, "the run's data are damaged; run it again")
    tops = records[records["kind"] == Kind.TOP_HANDLER]
    owners = [system.partitions.index(source.partition) for source in system.sources]
    if tops.size and int(tops["source"].max()) >= len(owners):
        what = f"names source {tops['source'].max()}, the system has {len(owners)}"
        raise BadInput(what, where, "it is of another system")
    if not np.isin(tops["source"], part.sources).all():
        raise BadInput("has interrupts of other processors", where, "it is of another system")
    if tops.size and (tops["partition"] != np.array(owners)[tops["source"]]).any():
        raise BadInput("has interrupts of other partitions", where, "it is of another system")


def reconstructed(system: System, records: Records, clock: Clock, where: str = TRACE_FILE) -> Irqs:
    """Return every interrupt whose bottom handler ended, in that order.

    A partition's queue is served first in, first out (rule R4), so that its n-th bottom handler to
    end is that of its n-th top handler.

    Raises:
        BadInput: The trace shows another order, as after the overflow of a queue.
    """
    tops = records[records["kind"] == Kind.TOP_HANDLER]
    ends = records[records["kind"] == Kind.BOTTOM_END]
    if ends.size and int(ends["partition"].max()) >= len(system.partitions):
        raise BadInput("has interrupts of other partitions", where, "it is of another system")
    top_of_end = np.empty(len(ends), np.int64)
    for partition in range(len(system.partitions)):
        began = np.flatnonzero(tops["partition"] == partition)
        ended = np.flatnonzero(ends["partition"] == partition)
        if len(ended) > len(began):
            raise BadInput("ends more interrupts than it begins", where, "it is damaged")
        top_of_end[ended] = began[: len(ended)]
    matched = tops[top_of_end]
    if (matched["source"] != ends["source"]).any() or (
        (matched["detail"] ^ ends["detail"]) & HANDLING_MASK
    ).any():
        remedy = "let fewer arrive at once"
        raise BadInput("a queue overflowed: its interrupts cannot be told", where, remedy)
    starts = matched["start"].astype(np.int64)
    return Irqs(
        source=ends["source"].astype(np.int64),
        handling=(matched["detail"] & HANDLING_MASK).astype(np.int64),
        arrival_ns=clock.times_ns(starts - matched["value"].astype(np.int64)),
        top_start_ns=clock.times_ns(starts),
        end_ns=clock.times_ns(ends["start"]),
    )


def _check_counts(part: Part[System], irqs: Irqs, statistics: Statistics) -> None:
    """Compare what the trace shows with what was counted at the same time."""
    told = {number: each.completed for number, each in enumerate(statistics.sources)}
    seen = [int((irqs.source == number).sum()) for number in part.sources]
    counted = [told.get(number) for number in part.sources]
    if seen != counted:
        what = f"shows {seen} interrupts, the statistics {counted}"
        where = trace_file(part.processor)
        raise BadInput(what, where, "trace and statistics are of different runs")


def figures(system: System, mode: Mode, irqs: Irqs, *, complete: bool) -> Simulation:
    """Return the figures of each source."""
    begin_ns = irqs.top_start_ns if system.latency_from == "top" else irqs.arrival_ns
    latency_ns = irqs.end_ns - begin_ns
    sources = []
    for number, source in enumerate(system.sources):
        own = irqs.source == number
        by_handling = np.bincount(irqs.handling[own], minlength=len(HANDLINGS)).tolist()
        sources.append(_figures(source.name, latency_ns[own], by_handling))
    end_ns = int(irqs.end_ns.max(initial=0))
    return Simulation(mode, system.latency_from, tuple(sources), end_ns, complete)


def _figures(name: str, latency_ns: Times, by_handling: list[int]) -> SimulatedSource:
    if not latency_ns.size:
        return SimulatedSource(name, 0, None, None, None, *by_handling)
    mean_ns = sum(latency_ns.tolist()) / len(latency_ns)
    least_ns, most_ns = int(latency_ns.min()), int(latency_ns.max())
    return SimulatedSource(name, len(latency_ns), least_ns, mean_ns, most_ns, *by_handling)


def off_the_grid(system: System, run: Measured) -> tuple[str, ...]:
    """Return what of a system the board's counter could not keep exactly, as notes.

    The hypervisor's clock is that counter: slots become the nearest number of ticks, distances of
    monitors no less than they say.
    """
    hz = run.clock.hz

    def exact(time_ns: int) -> bool:
        return time_ns * hz % 1_000_000_000 == 0

    tick = f"a tick of the counter is {run.clock.at_least_ns(1)} ns"
    notes = [
        f"{tick}: distances of {source.name} are rounded up, so that an interrupt that just keeps "
        "them may be denied"
        for source in system.sources
        if run.outcome.mode != "plain"
        and source.monitor
        and not all(map(exact, source.monitor.distances_ns))
    ]
    if not all(exact(slot.length_ns) for slot in system.slots):
        notes.append(f"{tick}: slots are rounded, so that they move against the arrivals")
    return tuple(notes)


# --- costs ----------------------------------------------------------------------------------------


def _of(records: Records, kind: Kind) -> Records:
    found: Records = records[records["kind"] == kind]
    return found


def _longest(ticks: npt.NDArray[Any]) -> int | None:
    return int(ticks.max()) if ticks.size else None


def _monitor_ticks(tops: Records) -> Times:
    """Return how long the monitor took in each top handler; 0 where it was not asked."""
    ticks: Times = np.where(tops["detail"] & ASKED, tops["detail"] >> MONITOR_SHIFT, 0).astype(
        np.int64
    )
    return ticks


def _top_ticks(records: Records) -> Times:
    """Return how long each top handler took without the monitor, what was noted later included."""
    tops = records["kind"] == Kind.TOP_HANDLER
    ticks = records["duration"].astype(np.int64)
    later = np.flatnonzero(records["kind"] == Kind.CATCH_UP)  # each right behind its top handler
    ticks[later[later > 0] - 1] += ticks[later[later > 0]]
    found: Times = ticks[tops] - _monitor_ticks(records[tops])
    return found


def _ticks(records: Records, statistics: Statistics) -> Sections:
    """Return the longest sections in ticks."""
    tops, starts = _of(records, Kind.TOP_HANDLER), _of(records, Kind.JOB_START)
    asked = tops[(tops["detail"] & ASKED) != 0]
    return Sections(
        slot_switch=_longest(_of(records, Kind.SLOT_SWITCH)["duration"]),
        top=_longest(_top_ticks(records)),
        monitor=_longest(_monitor_ticks(asked)),
        schedule=_longest(starts["value"]),
        context_switch_to=_longest(starts["duration"].astype(np.int64) - starts["value"]),
        context_switch_from=_longest(_of(records, Kind.JOB_END)["duration"]),
        bottom_end=_longest(_of(records, Kind.BOTTOM_END)["duration"]),
        limit=_longest(_of(records, Kind.LIMIT)["duration"]),
        service=statistics.longest_service_ticks or None,
        trap=statistics.trap_ticks,
    )


def _sections(records: Records, statistics: Statistics) -> Sections:
    clock = Clock(statistics.counter_hz, statistics.epoch_tick)
    ticks = _ticks(records, statistics)

    def ns(name: str) -> int | None:
        value: int | None = getattr(ticks, name)
        return None if value is None else clock.at_least_ns(value)

    names = [name for name in Sections.__slots__ if name != "trap"]
    return Sections(**{name: ns(name) for name in names}, trap=clock.at_least_ns(ticks.trap))


def _costs(system: System, part: Part[System], records: Records, statistics: Statistics) -> Costs:
    clock = Clock(statistics.counter_hz, statistics.epoch_tick)
    longest = _ticks(records, statistics)
    trap = longest.trap
    end = _with(longest.bottom_end, trap)
    service = _with(longest.service, trap)
    tops = _of(records, Kind.TOP_HANDLER)
    top_ticks = _top_ticks(records)
    of_source = {
        system.sources[number].name: _longest(top_ticks[tops["source"] == number])
        for number in part.sources
    }
    # A job's budget is noticed to be used up when whatever its guest caused has been served.
    back = _with(longest.context_switch_from, max(end, service))
    masking = max(longest.limit or 0, longest.top or 0) or None
    return Costs(
        slot_switch=clock.at_least_ns(_with(longest.slot_switch, trap + max(end, service))),
        monitor=clock.at_least_ns(longest.monitor or 0),
        schedule=clock.at_least_ns(longest.schedule or 0),
        context_switch=clock.at_least_ns(max(longest.context_switch_to or 0, back)),
        limit=clock.at_least_ns(_with(masking, trap + end + service)),
        top={
            name: clock.at_least_ns(_with(ticks, trap + end + service))
            for name, ticks in of_source.items()
        },
    )


def _with(section: int | None, more: int) -> int:
    """Return a section with what is paid besides; nothing if there was none."""
    return 0 if section is None else section + more
