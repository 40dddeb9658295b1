"""Candidates in words."""

from collections.abc import Sequence

from latenz.analysis.explore.evaluate import blocking
from latenz.analysis.explore.plan import Plan
from latenz.analysis.explore.result import Candidate, Exploration
from latenz.durations import format_duration
from latenz.system import Monitor, Slot, System


def summary(plan: Plan, candidate: Candidate) -> str:
    """Return bounds, deadlines and objectives on one line."""
    bounds = ", ".join(
        f"{name} {duration(candidate.bounds_ns[name])} of {format_duration(limit_ns)}"
        for name, limit_ns in plan.deadlines_ns.items()
    )
    return f"Bounds: {bounds}; {interference(candidate)}, {switches(candidate)}."


def asked(plan: Plan) -> str:
    """Return deadlines and objectives."""
    limits = ", ".join(f"{name} {format_duration(ns)}" for name, ns in plan.deadlines_ns.items())
    objectives = ", then ".join(plan.objectives)
    return f"Deadlines: {limits}; minimised: {objectives}; mode {plan.system.mode}"


def tried(found: Exploration) -> str:
    """Return how many candidates were evaluated, and how many of them do."""
    whole = "all" if found.evaluated == found.possible else f"{found.evaluated:,} of"
    fitting = f", {found.feasible:,} meet all deadlines" if found.feasible else ""
    return f"{whole} {found.possible:,} candidates tried{fitting}"


def interference(candidate: Candidate) -> str:
    """Return what a partition may lose."""
    share = candidate.interference
    return "unlimited interference" if share is None else f"interference {share:.2%}"


def switches(candidate: Candidate) -> str:
    """Return how often slots change."""
    return f"{candidate.switches_per_s:.6g} slot switches/s"


def duration(nanoseconds: int | None) -> str:
    """Return a bound."""
    return "unbounded" if nanoseconds is None else format_duration(nanoseconds)


def changes(given: System, found: System) -> list[str]:
    """Return what differs from the given system, one line each."""
    lines = []
    if found.slots != given.slots:
        lines.append(f"slots: {_slots(found.slots)}")
    for old, new in zip(given.sources, found.sources, strict=True):
        if old.monitor != new.monitor:
            lines.append(f"monitor of {new.name}: {monitor(new.monitor)}")
    return lines


def _slots(slots: Sequence[Slot]) -> str:
    return ", ".join(f"{slot.partition} {format_duration(slot.length_ns)}" for slot in slots)


def monitor(found: Monitor | None) -> str:
    """Return the distances of a monitor."""
    if found is None:
        return "none, never interposed"
    return ", ".join(map(format_duration, found.distances_ns))


def table(found: Exploration) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of the given system and of those on the front, best first."""
    limits = found.plan.deadlines_ns
    headings = ["system", "interference", "switches/s"]
    headings += [f"{name} of {format_duration(limit)}" for name, limit in limits.items()]
    named = [("given", found.given), *((str(n), each) for n, each in enumerate(found.front, 1))]
    rows = [
        [
            name,
            "-" if each.interference is None else f"{each.interference:.2%}",
            f"{each.switches_per_s:.6g}",
            *(duration(each.bounds_ns[source]) for source in limits),
            "\n".join(changes(found.given.system, each.system)),
        ]
        for name, each in named
    ]
    return [*headings, "changed"], rows


def blocked(found: Exploration) -> str:
    """Return which deadline no candidate met, and how near the nearest came."""
    closest = found.closest
    if closest is None:
        return "no candidate bounds the latency of every source"
    _, name = blocking(closest.bounds_ns, found.plan.deadlines_ns)
    if name is None:
        return "all deadlines are met"
    changed = "; ".join(changes(found.given.system, closest.system)) or "the given system"
    bound, limit = closest.bounds_ns[name], found.plan.deadlines_ns[name]
    return f"closest: {name} has {duration(bound)} of {format_duration(limit)} with {changed}"
