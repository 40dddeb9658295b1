"""Systems as the C++ core takes them."""

from typing import NamedTuple

from latenz import _core
from latenz.system import Distances, Exponential, Monitor, Periodic, RecordedTrace, System
from latenz.system.arrivals import Arrival
from latenz.system.contents import Mode, Platform
from latenz.system.processors import check_one_processor, shared_processors

MODES: dict[Mode, _core.Mode] = {
    "plain": _core.Mode.plain,
    "paper": _core.Mode.paper,
    "carry": _core.Mode.carry,
}


def core_system(system: System) -> _core.System:
    """Return a system as the C++ core takes it; partitions are numbered by `System.partitions`.

    Raises:
        BadInput: Its slots are of several processors.
    """
    check_one_processor(system)
    numbers = {name: number for number, name in enumerate(system.partitions)}
    return _core.System(
        [(numbers[slot.partition], slot.length_ns) for slot in system.slots],
        core_costs(system.platform),
        [
            _core.Source(
                numbers[source.partition],
                source.top_ns,
                source.bottom_ns,
                event_model(source.arrival),
                _monitor(source.monitor),
                source.learning is not None,
                None if source.top_sums_ns is None else _core.CostCurve(source.top_sums_ns),
            )
            for source in system.sources
        ],
    )


def core_costs(platform: Platform) -> _core.Costs:
    """Return what the hypervisor costs as the C++ core takes it."""
    return _core.Costs(
        platform.slot_switch_ns,
        platform.monitor_ns,
        platform.schedule_ns,
        platform.context_switch_ns,
        platform.limit_ns,
    )


def event_model(arrival: Arrival) -> _core.Periodic | _core.DistanceVector | _core.Unlimited:
    """Return how densely a source's interrupts may arrive, at most.

    A recorded trace counts as what was observed in it. Exponential arrivals have no bound but
    their minimum distance.
    """
    if isinstance(arrival, Periodic):
        return _core.Periodic(arrival.period_ns, arrival.jitter_ns, arrival.min_distance_ns)
    if isinstance(arrival, Distances):
        return _core.DistanceVector(arrival.distances_ns)
    if isinstance(arrival, RecordedTrace):
        return _core.DistanceVector(observed_distances(arrival))
    if arrival.min_distance_ns > 0:
        return _core.DistanceVector((arrival.min_distance_ns,))
    return _core.Unlimited()


class Limit(NamedTuple):
    """What rule R7 keeps a source to: minimum distances and a period; without both, to nothing.

    Attributes:
        period_ns: Any q interrupts take at least (q - 1) periods, less the jitter; 0: no period.
        jitter_ns: Of the period.
        distances_ns: delta-minus(2), delta-minus(3), ...; none is shorter than others imply.
    """

    period_ns: int
    jitter_ns: int
    distances_ns: tuple[int, ...]


def limit_of(arrival: Arrival) -> Limit:
    """Return the limit of a source with these arrivals: its event model."""
    if isinstance(arrival, Periodic):
        distances_ns = (arrival.min_distance_ns,) if arrival.min_distance_ns else ()
        return Limit(arrival.period_ns, arrival.jitter_ns, distances_ns)
    model = event_model(arrival)
    closed = model.closed() if isinstance(model, _core.DistanceVector) else ()
    return Limit(0, 0, tuple(closed))


def observed_distances(trace: RecordedTrace) -> tuple[int, ...]:
    """Return the minimum distances seen in a recorded trace, as many as its length asks for."""
    learner = _core.DistanceLearner()
    learner.observe(trace.times_ns)
    return tuple(learner.observed_ns[: trace.length])


def assumptions(system: System) -> tuple[str, ...]:
    """Return what a bound on this system takes for granted besides the system file."""
    found = []
    for source in system.sources:
        if isinstance(source.arrival, RecordedTrace):
            found.append(
                f"arrivals of {source.name} are as dense as observed in a trace of "
                f"{len(source.arrival.times_ns)}, which is a sample and not a guarantee"
            )
        elif isinstance(source.arrival, Exponential) and source.arrival.min_distance_ns > 0:
            found.append(f"arrivals of {source.name} keep their minimum distance, whatever else")
    if len(shared_processors(system)) > 1:
        found.append(
            "each processor is bounded by itself: what others take from it by caches, which they "
            "may also empty, memory and bus is in the costs only as far as they were measured "
            "with all of them at work"
        )
    return tuple(found)


def _monitor(monitor: Monitor | None) -> _core.DistanceVector | None:
    return None if monitor is None else _core.DistanceVector(monitor.distances_ns)
