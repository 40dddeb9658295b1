"""How long the hypervisor can be at work at a stretch, without a guest in between."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate

from latenz import _core
from latenz.analysis.bound import HORIZON_NS
from latenz.analysis.native import event_model
from latenz.system import Exponential, Mode, Periodic, Slot, Source, System
from latenz.system.fields import LONGEST_NS
from latenz.system.processors import parts

_MOST_JOBS = 1024
"""Of a partition, that can be ready at once: as many as its queue has room for."""


def longest_work_ns(system: System, mode: Mode, latency_ns: Mapping[str, int]) -> int:
    """Return how long the hypervisor can be at work before it stamps a device's interrupt.

    That is all that one visit can bring: slot switches, top handlers of listed arrivals, which come
    as their limits permit, the end of one job, and starts and ends of others. As no guest runs
    meanwhile, what guests raise has one top handler each at most: a device comes again when its
    bottom handler has ended, a doorbell when a guest calls.

    Args:
        system: As the hypervisor sees it.
        mode: How interrupts in foreign slots are handled.
        latency_ns: How long an interrupt of each source can be pending, by the source's name;
            without any it may be for ever. Only mode `carry` depends on it.

    Returns:
        The longest time on any processor; `LONGEST_NS` if it has no end within the horizon.
    """
    each = (x.system for x in parts(system) if x.system is not None)
    return max(_of_processor(part, mode, latency_ns) for part in each)


def in_the_long_run(source: Source) -> Source:
    """Return a source with a worst case: after learning, and random arrivals by their mean."""
    source, arrival = replace(source, learning=None), source.arrival
    if not isinstance(arrival, Exponential):
        return source
    return replace(source, arrival=Periodic(max(arrival.mean_ns, arrival.min_distance_ns)))


def _of_processor(system: System, mode: Mode, latency_ns: Mapping[str, int]) -> int:
    platform = system.platform
    context_ns = platform.context_switch_ns
    ready = _ready_jobs(system, mode, latency_ns)
    watched = any(each.watchdog_ns for each in system.hosted)
    work_ns, needed_ns = 0, 1
    while work_ns < needed_ns:
        if needed_ns > HORIZON_NS:
            return LONGEST_NS
        work_ns = needed_ns
        jobs = ready + watched * _slot_starts(system.slots, work_ns)  # which may end one that began
        needed_ns = jobs * (platform.schedule_ns + 2 * context_ns) + context_ns if ready else 0
        needed_ns += _sections_ns(system, work_ns, in_one_visit=True)
    return work_ns


def _sections_ns(system: System, window_ns: int, *, in_one_visit: bool) -> int:
    """Return how long slot switches, top handlers and maskings of a window take."""
    platform = system.platform
    starts = _slot_starts(system.slots, window_ns)
    sections_ns = starts * platform.slot_switch_ns
    for at, source in enumerate(system.sources):
        once = in_one_visit and system.is_raised_by_guest(at)
        tops = 1 if once else _top_handlers(source, window_ns)
        sections_ns += tops * (source.top_ns + platform.monitor_ns)
        sections_ns += (min(tops, starts) + 1) * platform.limit_ns
    return sections_ns


def _ready_jobs(system: System, mode: Mode, latency_ns: Mapping[str, int]) -> int:
    """Return how many jobs can be ready at once.

    Those that find their queues empty follow each other without a guest in between. From when a job
    is ready until it starts there are other jobs and the hypervisor's work alone, and none is ready
    any more when its partition's slot begins.
    """
    if mode == "plain":
        return 0
    busy_ns = _busy_with_jobs_ns(system, mode, latency_ns)
    ready = 0
    for name in system.partitions:
        waits_ns = min(busy_ns, _longest_foreign_ns(system.slots, name))
        own = [each for each in system.sources if each.partition == name and waits_ns]
        ready += min(sum(_jobs(each, mode, latency_ns, waits_ns) for each in own), _MOST_JOBS)
    return ready


def _busy_with_jobs_ns(system: System, mode: Mode, latency_ns: Mapping[str, int]) -> int:
    """Return how long jobs and the hypervisor's work can follow each other, a cycle at most."""
    platform = system.platform
    switching_ns = platform.schedule_ns + 2 * platform.context_switch_ns
    cycle_ns = sum(slot.length_ns for slot in system.slots)
    busy_ns, needed_ns = 0, 1
    while busy_ns < needed_ns <= cycle_ns:
        busy_ns = needed_ns
        needed_ns = _sections_ns(system, busy_ns, in_one_visit=False)
        for source in system.sources:
            jobs = _jobs(source, mode, latency_ns, busy_ns)
            needed_ns += jobs * (source.bottom_ns + switching_ns)
    return min(needed_ns, cycle_ns)


def _jobs(source: Source, mode: Mode, latency_ns: Mapping[str, int], window_ns: int) -> int:
    """Return how many jobs of a source can be ready in a window.

    In `carry` those of interrupts that were pending before are, too, when their slot ends.
    """
    if source.monitor is None:
        return 0
    pending_ns = latency_ns.get(source.name, LONGEST_NS) if mode == "carry" else 0
    accepted = _core.DistanceVector(source.monitor.distances_ns).eta(
        min(window_ns + pending_ns + 1, LONGEST_NS)
    )
    return _MOST_JOBS if accepted is None else accepted


def _longest_foreign_ns(slots: tuple[Slot, ...], partition: str) -> int:
    """Return the longest time between slots of a partition."""
    own = next(at for at, slot in enumerate(slots) if slot.partition == partition)
    longest_ns = foreign_ns = 0
    for slot in (*slots[own:], *slots[:own]):
        foreign_ns = 0 if slot.partition == partition else foreign_ns + slot.length_ns
        longest_ns = max(longest_ns, foreign_ns)
    return longest_ns


def _top_handlers(source: Source, window_ns: int) -> int:
    model = event_model(in_the_long_run(source).arrival)
    assert not isinstance(model, _core.Unlimited)  # noqa: S101 - none is in the long run
    return model.eta(window_ns) or LONGEST_NS  # more than can be counted


def _slot_starts(slots: tuple[Slot, ...], window_ns: int) -> int:
    """Return the most slot starts in a window."""
    lengths_ns = [slot.length_ns for slot in slots]
    cycles, rest_ns = divmod(window_ns - 1, sum(lengths_ns))
    most = 0
    for first in range(len(lengths_ns)):
        apart_ns = (lengths_ns[first:] + lengths_ns[:first])[:-1]
        starts_ns = accumulate(apart_ns, initial=0)
        most = max(most, sum(start_ns <= rest_ns for start_ns in starts_ns))
    return cycles * len(lengths_ns) + most
