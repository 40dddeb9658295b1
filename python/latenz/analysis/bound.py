"""Sound worst-case interrupt latencies, each with what it is made of.

The argument stands in docs/bound.md, the computation in core/include/latenz/bound.hpp.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from latenz import _core
from latenz.analysis.native import MODES, assumptions, core_system
from latenz.system import Mode, System

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
        verdict: `bounded`, `unbounded` or `past horizon`.
        wcrt_ns: Longest time from arrival to the end of the bottom handler; None if not bounded.
        reason: Why there is no bound.
        form: `slots`: it may have to wait for its partition's slots; `interposed`: every interrupt
            of the partition is accepted by its monitor, so that none has to.
        busy_window_ns: Longest time that the partition's queue and all that holds it up last.
        offset_ns: When in the busy window the interrupt arrives that fares worst.
        blocked_ns: Foreign slots, and switches into own ones.
        switches_ns: Slot switches in the form `interposed`.
        shares: Of every source, in the order of the system.
    """

    name: str
    verdict: Verdict
    wcrt_ns: int | None
    reason: str | None
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
        interference_ns_per_cycle: In any time of one cycle's length; None if unbounded.
        interference_ns_by_slot: In each of its own slots.
    """

    name: str
    interference_ns_per_cycle: int | None
    interference_ns_by_slot: tuple[int, ...]


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
    found = _core.bound(core_system(system), MODES[mode], horizon_ns)
    queues = {
        name: _queue(system, *queue)
        for name, queue in zip(system.partitions, found.queues, strict=True)
    }
    per_cycle, per_slot = found.per_cycle_ns, found.per_slot_ns
    return Bounds(
        mode,
        tuple(SourceBound(each.name, *queues[each.partition]) for each in system.sources),
        tuple(
            PartitionPromise(
                name,
                per_cycle,
                tuple(
                    loss
                    for slot, loss in zip(system.slots, per_slot, strict=True)
                    if slot.partition == name
                ),
            )
            for name in system.partitions
        ),
        assumptions(system),
    )


def printed_equations(system: System, *, horizon_ns: int = HORIZON_NS) -> tuple[Printed, ...]:
    """Return what Eqs. (11) and (16) of beckert2014 give for each source."""
    core = core_system(system)
    eq11, eq16 = _core.Equation.eq11, _core.Equation.eq16
    return tuple(
        Printed(
            _core.printed(core, number, eq11, horizon_ns),
            _core.printed(core, number, eq16, horizon_ns),
        )
        for number in range(len(system.sources))
    )


# in the order of Verdict and Reason in core/include/latenz/bound.hpp
_VERDICTS: tuple[Verdict, ...] = ("bounded", "unbounded", "past horizon")
_REASONS = (
    None,
    "overload: in the long run more work arrives than the slots can serve",
    "{source} may arrive at any rate; give it a minimum distance",
    "the busy window is longer than the horizon",
    "the busy window was given up after 4 million steps",
    "accepted interrupts of {source} can gather in its own slots without a known limit, and be "
    "interposed together",
)


def _queue(
    system: System,
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
    str | None,
    Literal["slots", "interposed"],
    int | None,
    int,
    int,
    int,
    tuple[Share, ...],
]:
    """Return what all sources of a partition have in common, in the order of SourceBound."""
    reason = _REASONS[why]
    return (
        _VERDICTS[verdict],
        latency_ns,
        reason and reason.format(source=system.sources[culprit].name),
        "interposed" if interposed else "slots",
        busy_ns,
        offset_ns,
        blocked_ns,
        switches_ns,
        tuple(
            Share(source.name, *part) for source, part in zip(system.sources, parts, strict=False)
        ),
    )
