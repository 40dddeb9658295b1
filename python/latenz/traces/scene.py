"""A stretch of a trace, with all that its events tell, in which waits can be explained."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from itertools import pairwise
from typing import TYPE_CHECKING

from latenz.durations import format_duration
from latenz.traces.advice import remedy
from latenz.traces.blocking import Locks
from latenz.traces.causes import Cause, Share
from latenz.traces.evidence import Part
from latenz.traces.functions import Functions
from latenz.traces.interprocessor import Senders
from latenz.traces.memory import Memory
from latenz.traces.occupancy import VECTORS, Occupancy, number
from latenz.traces.preemption import Preemption
from latenz.traces.wakeups import Wakings, Window

if TYPE_CHECKING:
    from latenz.traces.model import Event, Loss

_FEW_EVENTS = 5
_INTERRUPTS = (
    {"irq_handler_entry", "softirq_entry", "softirq_raise"},
    {f"{each}_entry" for each in (*VECTORS, "ipi")},
)
_LEAVING_SMM_NS = 20_000  # CPUs come back one after the other, and are seen to work a while later


@dataclass(frozen=True)
class _Others:
    """What the CPUs but one did.

    Attributes:
        times: Of their events, in order.
        longest: Their two longest silences, each with the place of the event before it.
    """

    times: list[int]
    longest: list[tuple[int, int]]

    @staticmethod
    def than(cpu: int, times_of: dict[int, list[int]]) -> "_Others":
        times = sorted(t_ns for number, own in times_of.items() if number != cpu for t_ns in own)
        silences = (
            (after - before, place) for place, (before, after) in enumerate(pairwise(times))
        )
        return _Others(times, nlargest(2, silences))


class Scene:
    """A stretch of a trace in which waits can be explained.

    Args:
        events: All of that stretch, of all CPUs, in the order of their times.
        start_ns: When it begins, a while before the waits.
        losses: Where events are missing in the trace.
        end_ns: When it ends if the trace goes on; None: with the events.
    """

    def __init__(
        self,
        events: "Sequence[Event]",
        start_ns: int,
        losses: "Sequence[Loss]" = (),
        end_ns: int | None = None,
    ) -> None:
        self.occupancy = Occupancy(events, start_ns, losses, end_ns)
        self.preemption = Preemption(events)
        self.functions = Functions(events)
        self.senders = Senders(events)
        self.locks = Locks(events)
        self.memory = Memory(events)
        self._losses = losses
        self.wakings = Wakings(events)
        self._times: dict[int, list[int]] = defaultdict(list)
        self._of_pid: dict[int, list[Event]] = defaultdict(list)
        self._hardware: list[Event] = []
        self._others: dict[int, _Others] = {}
        names = {each.name for each in events}
        self.tells_interrupts = all(names & group for group in _INTERRUPTS)
        """Were interrupts, softirqs and interrupts of the processor itself recorded? Some come."""
        for each in events:
            self._times[each.cpu].append(each.t_ns)
            if each.name in ("hwlat", "sample_threshold", "nmi_noise"):
                self._hardware.append(each)
            elif each.name == "sched_switch":
                for side in ("prev_pid", "next_pid"):
                    self._of_pid[number(each, side, 0)].append(each)
            elif each.name in ("sched_waking", "sched_wakeup", "sched_migrate_task"):
                self._of_pid[number(each, "pid", 0)].append(each)

    def of_thread(self, pid: int, start_ns: int, end_ns: int) -> "list[Event]":
        """Return what the scheduler did with a thread in a window, in order."""
        events = self._of_pid.get(pid, [])
        first = bisect_left(events, start_ns, key=lambda each: each.t_ns)
        return events[first : bisect_right(events, end_ns, key=lambda each: each.t_ns)]

    def hardware_says(self, start_ns: int, end_ns: int) -> bool:
        """Return whether a tracer saw the hardware take the CPU away in a window."""
        return any(start_ns <= each.t_ns <= end_ns + 1_000_000 for each in self._hardware)

    def others_silent(self, cpu: int, start_ns: int, end_ns: int) -> bool | None:
        """Return whether all other CPUs were silent, too, though they are not usually.

        CPUs leave System Management Mode one after the other, so a little at both ends is left out.

        None: they are silent so often, or there are none, or their events were lost, that it
        tells nothing.
        """
        if any(
            each.cpu != cpu and each.start_ns < end_ns and start_ns < each.end_ns
            for each in self._losses
        ):
            return None
        if cpu not in self._others:
            self._others[cpu] = _Others.than(cpu, self._times)
        others = self._others[cpu]
        times = others.times
        margin_ns = min(_LEAVING_SMM_NS, (end_ns - start_ns) // 10)
        start_ns, end_ns = start_ns + margin_ns, end_ns - margin_ns
        first, last = bisect_right(times, start_ns), bisect_left(times, end_ns)
        if last > first:
            return False
        length_ns = end_ns - start_ns
        outside_ns = (times[-1] - times[0]) - length_ns if times else 0
        if outside_ns <= 0 or not 0 < first < len(times):
            return None
        expected = len(times) * length_ns / outside_ns
        longest_ns = max(
            (silence_ns for silence_ns, place in others.longest if place != first - 1), default=0
        )
        return True if expected >= _FEW_EVENTS and length_ns > 2 * longest_ns else None


def with_rest(cause: Cause, window: Window) -> Cause:
    """Return the cause of the beginning of a wait as one of all of it."""
    rest_ns = window.latency_ns - cause.latency_ns
    evidence = f"the last {format_duration(rest_ns)} were not looked at: too many events"
    part = Part("after the beginning", rest_ns, 1)
    name = "not-looked-at"
    known = remedy(name)
    share = Share(name, rest_ns, 1, (part,), "certain", evidence, known.tunings, known.advice)
    return replace(
        cause,
        latency_ns=window.latency_ns,
        window=replace(cause.window, end_ns=window.end_ns),
        shares=(*cause.shares, share),
    )
