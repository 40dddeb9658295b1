"""Sound worst-case interrupt latencies, each with what it is made of.

The argument stands in docs/bound.md, the computation in core/include/latenz/bound.hpp.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from latenz import _core
from latenz.analysis.native import MODES, assumptions, core_costs, core_system
from latenz.durations import format_duration
from latenz.system import Mode, Slot, System
from latenz.system.processors import parts, shared_processors

HORIZON_NS = 1_000_000_000
"""Busy windows beyond it count as past the horizon."""

Verdict = Literal["bounded", "unbounded", "past horizon"]


class Share(NamedTuple):
    """What one source adds to a latency.

    Attributes:
        source: Its name.
        top_handlers: How many of its top handlers run before the latency ends.
        top_ns: What they take together, with the monitor's cost.
        bottom_handlers: How many bottom handlers stand in the queue up to the analysed one, with
            it; 0 for sources of other partitions.
        bottom_ns: What they take together.
        interposed: How many of its interposed jobs count.
        interposing_ns: Whole jobs of other partitions; of the own partition what switching to
            them costs.
    """

    source: str
    top_handlers: int
    top_ns: int
    bottom_handlers: int
    bottom_ns: int
    interposed: int
    interposing_ns: int


@dataclass(frozen=True, slots=True)
class SourceBound:
    """The bound of one source and where it is attained.

    The parts add up: the sum of all shares, `blocked_ns` and `switches_ns` is
    `offset_ns + wcrt_ns`.

    Attributes:
        name: The source.
        verdict: `bounded`; `unbounded`, which is proven; or `past horizon`: the analysis found no
            bound, which shows nothing.
        wcrt_ns: Longest time from arrival to the end of the bottom handler if all sources keep
            their event models; None if not bounded.
        enforced_ns: The same whatever sources of other partitions do; None if not bounded.
        reason: Why there is no `wcrt_ns`.
        enforced_reason: Why there is no `enforced_ns`.
        form: `slots`: it may have to wait for its partition's slots; `interposed`: every interrupt
            of the partition is accepted by its monitor, so that none has to.
        busy_window_ns: Longest time that the partition's queue and all that holds it up last.
        offset_ns: When in the busy window the interrupt arrives that fares worst.
        blocked_ns: Foreign slots, and switches into own ones.
        switches_ns: Slot switches in the form `interposed`.
        shares: Of every source of its processor, in the order of the system.
    """

    name: str
    verdict: Verdict
    wcrt_ns: int | None
    enforced_ns: int | None
    reason: str | None
    enforced_reason: str | None
    form: Literal["slots", "interposed"]
    busy_window_ns: int | None
    offset_ns: int
    blocked_ns: int
    switches_ns: int
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class PartitionPromise:
    """What a partition loses to the rest at most: top handlers, switches, interposed handlers.

    Attributes:
        name: The partition.
        interference_ns_per_cycle: In any time of one cycle's length, whatever sources do; None if
            unbounded.
        interference_ns_by_slot: In each of its own slots, whatever sources do.
        conforming_interference_ns_per_cycle: If all sources keep their event models.
        conforming_interference_ns_by_slot: Likewise.
    """

    name: str
    interference_ns_per_cycle: int | None
    interference_ns_by_slot: tuple[int, ...]
    conforming_interference_ns_per_cycle: int | None
    conforming_interference_ns_by_slot: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a system in one mode.

    Attributes:
        mode: How interrupts in foreign slots are handled.
        sources: In the order of the system.
        partitions: In the order of their first slots.
        assumptions: What the bounds take for granted besides the system file.
    """

    mode: Mode
    sources: tuple[SourceBound, ...]
    partitions: tuple[PartitionPromise, ...]
    assumptions: tuple[str, ...]

    def of(self, source: str) -> SourceBound:
        """Return the bound of a source by its name."""
        return next(each for each in self.sources if each.name == source)


@dataclass(frozen=True, slots=True)
class Printed:
    """Eqs. (11) and (16) of beckert2014 as printed, for comparison: neither is sound.

    Attributes:
        eq11_ns: Every bottom handler waits for its partition's slot; None past the horizon.
        eq16_ns: Every interrupt satisfies d_min and is interposed; None past the horizon.
    """

    eq11_ns: int | None
    eq16_ns: int | None


def bound(system: System, mode: Mode | None = None, *, horizon_ns: int = HORIZON_NS) -> Bounds:
    """Return the worst-case latency of every source, with evidence.

    Args:
        system: What to analyse.
        mode: Instead of the system's own.
        horizon_ns: Busy windows beyond it are given up.
    """
    mode = mode or system.mode
    if len(shared_processors(system)) > 1:
        return _of_processors(system, mode, horizon_ns)
    found = _core.bound(core_system(system), MODES[mode], horizon_ns)
    queues = {
        name: _queue(
            system,
            horizon_ns,
            enforced_ns,
            found.not_enforced(number) if enforced_ns is None else None,
            *queue,
        )
        for number, (name, queue, enforced_ns) in enumerate(
            zip(system.partitions, found.queues, found.enforced_ns, strict=True)
        )
    }
    return Bounds(
        mode,
        tuple([SourceBound(each.name, *queues[each.partition]) for each in system.sources]),
        _promises(system.slots, found),
        assumptions(system),
    )


def _of_processors(system: System, mode: Mode, horizon_ns: int) -> Bounds:
    """Return the bounds of a system with slots on several processors, each by itself."""
    sources: dict[str, SourceBound] = {}
    promises: dict[str, PartitionPromise] = {}
    for part in parts(system):
        if part.system is not None:
            found = bound(part.system, mode, horizon_ns=horizon_ns)
            sources |= {each.name: each for each in found.sources}
            own = found.partitions
        else:
            own = _promises(part.slots, _without_sources(system, part.slots))
        promises |= {each.name: each for each in own}
    return Bounds(
        mode,
        tuple(sources[each.name] for each in system.sources),
        tuple(promises[name] for name in system.partitions),
        assumptions(system),
    )


def _without_sources(system: System, slots: tuple[Slot, ...]) -> _core.SystemBound:
    """Return what the core says of slots that nothing interrupts."""
    numbers = {name: at for at, name in enumerate(dict.fromkeys(x.partition for x in slots))}
    lengths = [(numbers[each.partition], each.length_ns) for each in slots]
    core = _core.System(lengths, core_costs(system.platform), [])
    return _core.bound(core, MODES["plain"], HORIZON_NS)


def _promises(slots: tuple[Slot, ...], found: _core.SystemBound) -> tuple[PartitionPromise, ...]:
    """Return what each partition is promised, enforced and conforming."""
    enforced_ns, enforced_by_slot, modelled_ns, modelled_by_slot = found.promises
    own: dict[str, list[tuple[int, int]]] = {}
    for slot, loss in zip(slots, zip(enforced_by_slot, modelled_by_slot, strict=True), strict=True):
        own.setdefault(slot.partition, []).append(loss)
    promises = []
    for name, in_slots in own.items():
        enforced, modelled = zip(*in_slots, strict=True)
        promises.append(PartitionPromise(name, enforced_ns, enforced, modelled_ns, modelled))
    return tuple(promises)


def printed_equations(system: System, *, horizon_ns: int = HORIZON_NS) -> tuple[Printed, ...]:
    """Return what Eqs. (11) and (16) of beckert2014 give for each source."""
    eq11, eq16 = _core.Equation.eq11, _core.Equation.eq16
    found: dict[int, Printed] = {}
    for part in parts(system):
        if part.system is None:
            continue
        core = core_system(part.system)
        for at, number in enumerate(part.sources):
            found[number] = Printed(
                _core.printed(core, at, eq11, horizon_ns), _core.printed(core, at, eq16, horizon_ns)
            )
    return tuple(found[number] for number in range(len(system.sources)))


# in the order of Verdict and Reason in core/include/latenz/bound.hpp
_VERDICTS: tuple[Verdict, ...] = ("bounded", "unbounded", "past horizon")
_REASONS = (
    None,
    "overload: in the long run more bottom handlers may arrive than slots and interposed jobs can "
    "execute",
    "{source} may arrive at any rate, and has no limit that it could be kept to (R7); give it a "
    "minimum distance",
    "the form {form} finds no end of the busy window within the horizon of {horizon}",
    "the form {form} gave the busy window up after 4 million steps",
    "in the form {form} accepted interrupts of {source} can gather in its own slots without a "
    "known limit, and be interposed together",
    "the form {form} counts more work in the long run than it has served, so that no horizon is "
    "long enough for it; that shows no overload",
)


def _reason(
    system: System, horizon_ns: int, why: int, culprit: int, interposed: bool
) -> str | None:
    reason = _REASONS[why]
    return reason and reason.format(
        source=system.sources[culprit].name,
        form=_form(interposed),
        horizon=format_duration(horizon_ns),
    )


def _form(interposed: bool) -> Literal["slots", "interposed"]:
    return "interposed" if interposed else "slots"


def _queue(
    system: System,
    horizon_ns: int,
    enforced_ns: int | None,
    not_enforced: tuple[int, int, bool] | None,
    verdict: int,
    why: int,
    culprit: int,
    interposed: bool,
    latency_ns: int | None,
    busy_ns: int | None,
    offset_ns: int,
    blocked_ns: int,
    switches_ns: int,
    parts: list[tuple[int, int, int, int, int, int]],
) -> tuple[
    Verdict,
    int | None,
    int | None,
    str | None,
    str | None,
    Literal["slots", "interposed"],
    int | None,
    int,
    int,
    int,
    tuple[Share, ...],
]:
    """Return what all sources of a partition have in common, in the order of SourceBound."""
    return (
        _VERDICTS[verdict],
        latency_ns,
        enforced_ns,
        _reason(system, horizon_ns, why, culprit, interposed) if why else None,
        _reason(system, horizon_ns, *not_enforced) if not_enforced else None,
        _form(interposed),
        busy_ns,
        offset_ns,
        blocked_ns,
        switches_ns,
        # a list is made faster than a generator is run
        tuple(
            [Share(source.name, *part) for source, part in zip(system.sources, parts, strict=False)]
        ),
    )
