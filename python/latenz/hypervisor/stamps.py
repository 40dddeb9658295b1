"""Event models of interrupts as the hypervisor stamps them: late by up to a time."""

from dataclasses import replace

from latenz.analysis.native import limit_of
from latenz.system import Distances, Exponential, Periodic
from latenz.system.fields import LONGEST_NS
from latenz.system.model import Arrival


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
