"""How long the hypervisor can be at work at a stretch, without a guest in between."""

from dataclasses import replace
from itertools import accumulate

from latenz import _core
from latenz.analysis.bound import HORIZON_NS
from latenz.analysis.native import event_model
from latenz.system import Exponential, Mode, Periodic, Slot, Source, System
from latenz.system.fields import LONGEST_NS
from latenz.system.processors import parts


def longest_work_ns(system: System, mode: Mode) -> int:
    """Return how long the hypervisor can be at work before it stamps a device's interrupt.

    That is all that one visit can bring: slot switches, top handlers of listed arrivals, which come
    as their limits permit, and the end of one job and the start of another. As no guest runs
    meanwhile, what guests raise has one top handler each at most: a device comes again when its
    bottom handler has ended, a doorbell when a guest calls.

    Returns:
        The longest time on any processor; `LONGEST_NS` if it has no end within the horizon.
    """
    return max(_of_processor(x.system, mode) for x in parts(system) if x.system is not None)


def in_the_long_run(source: Source) -> Source:
    """Return a source with a worst case: after learning, and random arrivals by their mean."""
    source, arrival = replace(source, learning=None), source.arrival
    if not isinstance(arrival, Exponential):
        return source
    return replace(source, arrival=Periodic(max(arrival.mean_ns, arrival.min_distance_ns)))


def _of_processor(system: System, mode: Mode) -> int:
    platform = system.platform
    jobs = mode != "plain" and any(each.monitor is not None for each in system.sources)
    switching_ns = jobs * (platform.schedule_ns + 2 * platform.context_switch_ns)
    work_ns, needed_ns = 0, 1
    while work_ns < needed_ns:
        if needed_ns > HORIZON_NS:
            return LONGEST_NS
        work_ns = needed_ns
        starts = _slot_starts(system.slots, work_ns)
        needed_ns = switching_ns + starts * platform.slot_switch_ns
        for at, source in enumerate(system.sources):
            tops = _top_handlers(system, at, work_ns)
            needed_ns += tops * (source.top_ns + platform.monitor_ns)
            needed_ns += (min(tops, starts) + 1) * platform.limit_ns
    return work_ns


def _top_handlers(system: System, at: int, window_ns: int) -> int:
    if system.is_raised_by_guest(at):
        return 1
    model = event_model(in_the_long_run(system.sources[at]).arrival)
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
