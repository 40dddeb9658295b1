"""Bounds and objectives of candidates, in chunks that give the same table whoever computes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from latenz.analysis.bound import Bounds, bound
from latenz.analysis.explore.space import Choice, Space
from latenz.system import Slot, Source, System

if TYPE_CHECKING:
    import pyarrow as pa

Objective = Literal["interference", "switches", "latency"]
"""What can be minimised.

`interference`: the largest share of its slots that any partition may lose to top handlers, slot
switches and interposed jobs while sources keep their arrival models, as the latencies take them to;
each of the slots at its worst.
`switches`: slot switches per second.
`latency`: the largest ratio of a bound to its deadline.

They are rounded, to a millionth and to a thousandth of a switch per second: slots of whole
nanoseconds would make systems differ that are alike.
"""
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)

TOO_SHORT = "a slot would be used up by the slot switch"
COLUMNS: dict[Objective, str] = {
    "interference": "interference_share",
    "switches": "switches_per_s",
    "latency": "latency_of_deadline",
}
"""Of a table of candidates."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a candidate comes to.

    Attributes:
        bounds_ns: The latency bound of each source; None where there is none.
        values: The objectives, in the order of `OBJECTIVES`; None where there is no value.
        reason: Why it does not meet all deadlines; None if it does.
    """

    bounds_ns: tuple[int | None, ...]
    values: tuple[float | None, float | None, float | None]
    reason: str | None


def outcome(system: System, deadlines_ns: Mapping[str, int]) -> Outcome:
    """Judge a system: it is feasible if all sources are bounded and all deadlines hold."""
    bounds = bound(system)
    bounds_ns = tuple(each.wcrt_ns for each in bounds.sources)
    interference = interference_share(system, bounds)
    switches = round(len(system.slots) * 1_000_000_000 / system.cycle_ns, 3)
    for each in bounds.sources:
        if each.wcrt_ns is None:
            return Outcome(bounds_ns, (interference, switches, None), f"{each.name}: {each.reason}")
    latency, name = blocking(
        dict(zip(_names(system.sources), bounds_ns, strict=True)), deadlines_ns
    )
    reason = name and f"{name}: the bound is above the deadline"
    return Outcome(bounds_ns, (interference, switches, latency), reason)


def blocking(
    bounds_ns: Mapping[str, int | None], deadlines_ns: Mapping[str, int]
) -> tuple[float, str | None]:
    """Return the largest ratio of a bound to its deadline, and whose it is if that is missed."""
    ratio, name = max(
        ((bounds_ns[name] or 0) / limit_ns, name) for name, limit_ns in deadlines_ns.items()
    )
    held = all((bounds_ns[name] or 0) <= limit_ns for name, limit_ns in deadlines_ns.items())
    return round(ratio, 6), None if held else name


def interference_share(system: System, bounds: Bounds) -> float | None:
    """Return the largest share of its slots that a partition may lose, each slot at its worst."""
    if any(promise.conforming_interference_ns_per_cycle is None for promise in bounds.partitions):
        return None
    own_ns = dict.fromkeys(system.partitions, 0)
    for slot in system.slots:
        own_ns[slot.partition] += slot.length_ns
    shares = [
        sum(promise.conforming_interference_ns_by_slot) / own_ns[promise.name]
        for promise in bounds.partitions
    ]
    return round(max(shares), 6)


def evaluate(
    space: Space, deadlines_ns: Mapping[str, int], first: int, choices: Sequence[Choice | None]
) -> "pa.Table":
    """Return one row for each candidate; depends on nothing but the arguments.

    Args:
        space: What the candidates belong to.
        deadlines_ns: Limits by source.
        first: The number of the first candidate; the others follow.
        choices: The candidates; None is the system as it was given.
    """
    rows = [_row(space, deadlines_ns, *space.parts(choice)) for choice in choices]
    return _table(space, first, rows)


def _row(
    space: Space,
    deadlines_ns: Mapping[str, int],
    slots: tuple[Slot, ...],
    sources: tuple[Source, ...],
) -> tuple[Any, ...]:
    given = space.given
    if min(slot.length_ns for slot in slots) <= given.platform.slot_switch_ns:
        found = Outcome((None,) * len(sources), (None, None, None), TOO_SHORT)
    else:
        system = System(given.platform, slots, sources, given.mode, given.latency_from)
        found = outcome(system, deadlines_ns)
    changes = sum(new != old for new, old in zip(sources, given.sources, strict=True))
    return (
        [slot.partition for slot in slots],
        [slot.length_ns for slot in slots],
        sum(slot.length_ns for slot in slots),
        *(source.monitor and source.monitor.distances_ns for source in sources),
        *found.bounds_ns,
        *found.values,
        changes + (slots != given.slots),
        found.reason is None,
        found.reason,
    )


def _table(space: Space, first: int, rows: Sequence[tuple[Any, ...]]) -> "pa.Table":
    import pyarrow as pa

    names = _names(space.given.sources)
    schema = pa.schema(
        [
            ("candidate", pa.int64()),
            ("slot_partition", pa.list_(pa.string())),
            ("slot_length_ns", pa.list_(pa.int64())),
            ("cycle_ns", pa.int64()),
            *((f"monitor_ns:{name}", pa.list_(pa.int64())) for name in names),
            *((f"bound_ns:{name}", pa.int64()) for name in names),
            *((COLUMNS[name], pa.float64()) for name in OBJECTIVES),
            ("changes", pa.int64()),
            ("feasible", pa.bool_()),
            ("reason", pa.string()),
        ]
    )
    columns = [range(first, first + len(rows)), *zip(*rows, strict=True)]
    arrays = [
        pa.array(list(column), field.type) for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _names(sources: Sequence[Source]) -> list[str]:
    return [source.name for source in sources]
