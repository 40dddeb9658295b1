"""Event models of interrupts as the hypervisor stamps them: late by up to a time."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from latenz.analysis.bound import bound
from latenz.analysis.native import limit_of
from latenz.durations import format_duration
from latenz.errors import BadInput
from latenz.hypervisor.configuration import Where
from latenz.hypervisor.work import in_the_long_run, longest_work_ns
from latenz.system import Distances, Exponential, Mode, Monitor, Periodic, System
from latenz.system.arrivals import Arrival
from latenz.system.fields import LONGEST_NS

_MOST_ROUNDS = 100


def shortest_distance_ns(arrival: Arrival) -> int:
    """Return the least time from one interrupt to the next."""
    limit = limit_of(arrival)
    distance_ns = limit.distances_ns[0] if limit.distances_ns else 0
    return max(limit.period_ns - limit.jitter_ns, distance_ns)


def stamped(arrival: Arrival, late_ns: int) -> Arrival:
    """Return the model of what the hypervisor sees of these arrivals.

    Args:
        arrival: How the interrupts come.
        late_ns: How late a stamp can be.

    Returns:
        The model with distances that are shorter by that, and jitter that is longer. Where nothing
        is left of any distance, nothing limits what the hypervisor sees: it is random then.
    """
    if isinstance(arrival, Periodic):
        distance_ns = max(arrival.min_distance_ns - late_ns, 0)
        jitter_ns = min(arrival.jitter_ns + late_ns, LONGEST_NS)
        return replace(arrival, jitter_ns=jitter_ns, min_distance_ns=distance_ns)
    if isinstance(arrival, Exponential):
        return replace(arrival, min_distance_ns=max(arrival.min_distance_ns - late_ns, 0))
    distances_ns = limit_of(arrival).distances_ns
    shorter = tuple(max(each - late_ns, 0) for each in distances_ns)
    if any(shorter):
        return Distances(shorter)
    return Exponential(max(distances_ns[-1] // len(distances_ns), 1))


class Stamps(NamedTuple):
    """How late the hypervisor's stamps can be.

    Attributes:
        late_ns: Of each source, if it is a device's, by its name.
        work_ns: How long the hypervisor can be at work at a stretch.
    """

    late_ns: Mapping[str, int]
    work_ns: int


def stamps_of(system: System, mode: Mode, where: Where = lambda _place: "system") -> Stamps:
    """Return how late the stamp of each source's device can be.

    The hypervisor may be at work. And a device's interrupt that comes before the bottom handler of
    the one before has ended is stamped when it ends. How long both take depends on how closely
    stamps can follow each other, so all are raised until nothing changes; what grows for too long
    is given up.

    Raises:
        BadInput: As `as_stamped`.
    """
    names = [each.name for each in system.sources]
    work_ns = longest_work_ns(system, mode, dict.fromkeys(names, 0))
    stamps = Stamps(dict.fromkeys(names, work_ns), work_ns)
    for _ in range(_MOST_ROUNDS):
        raised = _raised(system, mode, stamps, where)
        if raised == stamps:
            return stamps
        stamps = raised
    return Stamps(dict.fromkeys(names, LONGEST_NS), LONGEST_NS)


def _raised(system: System, mode: Mode, stamps: Stamps, where: Where) -> Stamps:
    """Return the stamps of a system whose stamps are as late as they are thought to be."""
    seen = _late_by(system, stamps, where)
    judged = replace(seen, sources=tuple(map(in_the_long_run, seen.sources)))
    found = bound(judged, mode).sources
    latency_ns = {each.name: each.wcrt_ns for each in found if each.wcrt_ns is not None}
    work_ns = max(longest_work_ns(seen, mode, latency_ns), stamps.work_ns)
    late_ns = {}
    for source in system.sources:
        after_ns = work_ns + latency_ns.get(source.name, 0)
        waits = after_ns > shortest_distance_ns(source.arrival)
        late_ns[source.name] = max(stamps.late_ns[source.name], after_ns if waits else work_ns)
    return Stamps(late_ns, work_ns)


def as_stamped(system: System, mode: Mode, where: Where = lambda _place: "system") -> System:
    """Return a system as the hypervisor sees it: sources of devices come as they are stamped.

    Distances of their monitors and arrivals are shorter by how late a stamp can be, jitter is
    longer. Else other guests could have interrupts denied that keep their distances, or have their
    source masked: they only have to keep the hypervisor busy when the first of two comes.

    Args:
        system: As it is; not one that this has returned.
        mode: How interrupts in foreign slots are handled.
        where: Tells where something of the system was written down, for messages.

    Raises:
        BadInput: Nothing is left of a monitor.
    """
    if not any(map(system.is_device, range(len(system.sources)))):
        return system
    return _late_by(system, stamps_of(system, mode, where), where)


def _late_by(system: System, stamps: Stamps, where: Where) -> System:
    """Return a system whose devices' stamps are that late; monitors allow for the work alone."""
    sources = list(system.sources)
    for at, source in enumerate(sources):
        if system.is_device(at):
            monitor = _shorter(source.monitor, stamps.work_ns, where(("source", at, "monitor")))
            arrival = stamped(source.arrival, stamps.late_ns[source.name])
            sources[at] = replace(source, arrival=arrival, monitor=monitor)
    return replace(system, sources=tuple(sources))


def stamp_assumptions(system: System, mode: Mode) -> tuple[str, ...]:
    """Return what a bound of a system as stamped takes for granted besides."""
    if not any(map(system.is_device, range(len(system.sources)))):
        return ()
    late_ns = stamps_of(system, mode).late_ns
    return tuple(
        f"{source.name} is a device's, as the hypervisor stamps it: up to "
        f"{format_duration(late_ns[source.name])} late, so that distances are shorter; its latency "
        "begins with the stamp"
        for at, source in enumerate(system.sources)
        if system.is_device(at)
    )


def without_limit(system: System) -> list[str]:
    """Return the sources of devices that rule R7 does not limit, in a system as stamped.

    They have no minimum distance, or none that is left as late as they can be stamped.
    """
    return [
        source.name
        for at, source in enumerate(system.sources)
        if system.is_device(at) and not any(limit_of(source.arrival))
    ]


def _shorter(monitor: Monitor | None, late_ns: int, where: str) -> Monitor | None:
    if monitor is None:
        return None
    longest_ns = monitor.distances_ns[-1]
    if longest_ns <= late_ns:
        raise BadInput(
            f"{longest_ns} ns are no more than the {late_ns} ns that the hypervisor may be at "
            "work before it stamps the device's interrupt",
            where,
            "give it longer distances, or no monitor",
        )
    return Monitor(tuple(max(each - late_ns, 0) for each in monitor.distances_ns))
