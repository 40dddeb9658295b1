"""A wait in which a virtual CPU is stopped very often takes no more than its share of steps."""

import sys
from types import FrameType

import pytest

from latenz.traces.causes import Cause
from latenz.traces.model import Event
from latenz.traces.scene import Scene
from latenz.traces.vcpu import GuestWait, VcpuTime
from latenz.traces.wakeups import Window

pytestmark = pytest.mark.boots

VCPU, OTHER = 2001, 3001
EVERY_NS, TAKEN_NS = 1_000, 300
MANY = 100_000


def switch(t_ns: int, from_pid: int, to_pid: int, state: str) -> Event:
    fields = {
        "prev_comm": "a",
        "prev_pid": from_pid,
        "prev_prio": 120 if from_pid == VCPU else 0,
        "prev_state": state,
        "next_comm": "b",
        "next_pid": to_pid,
        "next_prio": 120 if to_pid == VCPU else 0,
    }
    return Event(t_ns, 1, from_pid, "a", "sched_switch", fields)


def preempted(at_ns: int) -> list[Event]:
    """The thread has to make way for an urgent one, outside of its guest."""
    leaves = Event(at_ns, 1, VCPU, "a", "kvm_exit", {"reason": "EXTERNAL_INTERRUPT", "vcpu_id": 0})
    enters = Event(at_ns + TAKEN_NS, 1, VCPU, "a", "kvm_entry", {"vcpu_id": 0})
    return [
        leaves,
        switch(at_ns, VCPU, OTHER, "R"),
        switch(at_ns + TAKEN_NS, OTHER, VCPU, "S"),
        enters,
    ]


def halted(at_ns: int) -> list[Event]:
    """It sleeps, as its guest is idle, and is woken by an interrupt of its own CPU."""
    end_ns = at_ns + TAKEN_NS
    leaves = Event(at_ns, 1, VCPU, "a", "kvm_exit", {"reason": "HLT", "vcpu_id": 0})
    woken = {"comm": "a", "pid": VCPU, "prio": 120, "target_cpu": 1}
    return [
        leaves,
        switch(at_ns, VCPU, 0, "S"),
        Event(end_ns - 100, 1, 0, "idle", "sched_waking", woken),
        switch(end_ns, 0, VCPU, "R"),
        Event(end_ns, 1, VCPU, "a", "kvm_entry", {"vcpu_id": 0}),
    ]


def in_guest(at_ns: int) -> list[Event]:
    """Right after, the guest takes an interrupt: it has as many parts as its host."""
    return [
        Event(at_ns + TAKEN_NS + 100, 0, 7, "w", "irq_handler_entry", {"irq": 5}),
        Event(at_ns + TAKEN_NS + 200, 0, 7, "w", "irq_handler_exit", {"irq": 5}),
    ]


def explained(stop, count: int) -> Cause:
    """Explain a wait in which a virtual CPU was stopped so often."""
    starts = range(EVERY_NS, EVERY_NS * (count + 1), EVERY_NS)
    host_events = [Event(1, 1, VCPU, "a", "kvm_entry", {"vcpu_id": 0})]
    host_events += [event for at_ns in starts for event in stop(at_ns)]
    guest_events = [event for at_ns in starts for event in in_guest(at_ns)]
    window = Window("wakeup", 500, EVERY_NS * (count + 1), 0, 50, "rt")
    host = Scene(host_events, 0, (), window.end_ns)
    guest = Scene(guest_events, 0, (), window.end_ns)

    def vcpu_of(cpu: int) -> VcpuTime:
        known = Window("timer", window.start_ns, window.end_ns, -1, VCPU, vcpu=str(cpu))
        return VcpuTime(host, host_events, known, {})

    return GuestWait(guest, window, vcpu_of).cause(1)


def steps(stop, count: int) -> int:
    """Return how many lines of Python that takes; each turn of a loop is at least one."""
    taken = [0]

    def line(_frame: FrameType, _event: str, _argument: object):
        taken[0] += 1
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        explained(stop, count)
    finally:
        sys.settrace(before)
    return taken[0]


@pytest.mark.parametrize("stop", [preempted, halted])
def test_steps_grow_as_the_times_that_it_was_stopped(stop):
    assert steps(stop, 6_000) < 10 * steps(stop, 750)  # bisection adds its logarithm


@pytest.mark.parametrize("stop", [preempted, halted])
def test_every_nanosecond_has_a_cause(stop):
    cause = explained(stop, MANY)
    assert sum(share.share_ns for share in cause.shares) == cause.latency_ns
    by_host = [share for share in cause.shares if share.side == "host"]
    assert sum(share.share_ns for share in by_host) == MANY * TAKEN_NS
    if stop is preempted:
        assert [(share.cause, share.count) for share in by_host] == [("vcpu-preempted", MANY)]
