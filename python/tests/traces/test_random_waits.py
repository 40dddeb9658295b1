"""Of any wait in any sequence of events, the shares sum to it, to the nanosecond."""

import os
import random

import pytest

from latenz.traces.explanation import explain_wait
from latenz.traces.model import Event, Loss
from latenz.traces.scene import Scene
from latenz.traces.vcpu import GuestWait, VcpuTime
from latenz.traces.wakeups import Window, WindowKind

pytestmark = pytest.mark.proofs

_SCENES = int(os.environ.get("LATENZ_RANDOM_SCENES", "100"))
_GROUPS, _WAITS = 10, 10
_TWO_SIDES = 10 * _SCENES
_VCPUS = {0: 63, 1: 60}
_NAMES = {63: "vCPU 0 of vm", 60: "vCPU 1 of vm"}
_KINDS: tuple[WindowKind, ...] = (
    "wakeup",
    "timer",
    "ready",
    "blocked",
    "exit",
    "timerlat",
    "gap",
    "sample",
)
_PAIRED = (
    "irq_handler",
    "softirq",
    "local_timer",
    "reschedule",
    "call_function",
    "hrtimer_expire",
    "timer_expire",
)
_FLAGS = ("", "d..2.", "dNh1.", "dnh..", ".N...", "...1.", "b.s1.", "d.H1.", ".L...", "d....")
_FUNCTIONS = ("hrtimer_wakeup", "dl_task_timer", "sched_rt_period_timer", "sched_cfs_period_timer")
_THREADS = ((0, "swapper", 120), (40, "app", 120), (50, "rt", 9), (51, "irq/9-eth", 49))
_THREADS += ((60, "mid", 19), (61, "dl", -1), (62, "migration/1", 0), (63, "vcpu", 120))


def _switch(chance: random.Random) -> tuple[str, dict[str, int | str]]:
    one, other = chance.sample(_THREADS, 2)
    return "sched_switch", {
        "prev_pid": one[0],
        "prev_comm": one[1],
        "prev_prio": one[2],
        "prev_state": chance.choice(("R", "R+", "S", "D", 0, 1)),
        "next_pid": other[0],
        "next_comm": other[1],
        "next_prio": other[2],
    }


def _woken(chance: random.Random) -> tuple[str, dict[str, int | str]]:
    pid, comm, priority = chance.choice(_THREADS[1:])
    name = chance.choice(("sched_waking", "sched_wakeup", "sched_migrate_task"))
    cpus = {"target_cpu": chance.randrange(3), "orig_cpu": 0, "dest_cpu": chance.randrange(3)}
    return name, {"pid": pid, "comm": comm, "prio": priority, **cpus}


def _other(chance: random.Random) -> tuple[str, dict[str, int | str]]:
    mask = str(chance.randrange(3))
    return chance.choice(
        [
            ("cpu_idle", {"state": chance.choice((0, 1, 3, 2**32 - 1))}),
            ("cpu_frequency", {"state": chance.choice((800_000, 3_200_000)), "cpu_id": 1}),
            ("nmi_handler", {"delta_ns": chance.randrange(5000)}),
            ("kvm_exit", {"reason": "HLT", "vcpu_id": 0}),
            ("kvm_entry", {"vcpu_id": 0}),
            ("kvm_userspace_exit", {"reason": "io"}),
            ("page_fault_user", {}),
            ("mm_vmscan_direct_reclaim_begin", {}),
            ("mm_vmscan_direct_reclaim_end", {}),
            ("ipi_send_cpumask", {"cpumask": mask, "callback": "flush_tlb_func+0x0/0x1"}),
            ("tlb_flush", {"reason": 1}),
            ("irq_disable", {"caller": "_raw_spin_lock", "parent": "f"}),
            ("irq_enable", {"caller": "f", "parent": "g"}),
            ("preempt_disable", {"caller": "f", "parent": "g"}),
            ("preempt_enable", {"caller": "f", "parent": "g"}),
            ("kernel_stack", {"stack": "try_to_wake_up;asm_sysvec_x;f"}),
            ("function", {"ip": "f", "parent_ip": "g"}),
            ("console", {"msg": "x"}),
            ("workqueue_execute_start", {"function": "f"}),
            ("workqueue_execute_end", {"function": "f"}),
            ("contention_begin", {"flags": chance.choice((1, 8, "MUTEX"))}),
            ("mmap_lock_start_locking", {}),
            ("sched_pi_setprio", {"pid": 60, "comm": "mid"}),
            ("sys_enter", {"text": "NR 1"}),
            ("hwlat", {}),
        ]
    )


def _events(chance: random.Random) -> list[Event]:
    events = []
    t_ns = 0
    for _ in range(chance.randrange(20, 150)):
        t_ns += chance.choice((0, 1, 100, 5_000, 40_000, 300_000))
        name, fields = chance.choice((_switch, _woken, _other))(chance)
        if chance.random() < 0.4:
            name = f"{chance.choice(_PAIRED)}_{chance.choice(('entry', 'exit'))}"
            fields = {"irq": 9, "vec": 3, "function": chance.choice(_FUNCTIONS), "now": t_ns}
        pid, comm, _ = chance.choice(_THREADS)
        cpu, flags = chance.randrange(3), chance.choice(_FLAGS)
        events.append(Event(t_ns, cpu, pid, comm, name, fields, flags))
    return events


def _window(chance: random.Random, end_ns: int) -> Window:
    first, last = sorted(chance.choices(range(end_ns + 2), k=2))
    pid, comm, priority = chance.choice(_THREADS[1:])
    return Window(
        chance.choice(_KINDS),
        first,
        last + 1,
        chance.randrange(3),
        chance.choice((pid, pid, pid, None)),
        comm,
        priority,
        chance.choice((None, None, "0")),
        "HLT",
        chance.random() < 0.1,
    )


@pytest.mark.parametrize("group", range(_GROUPS))
def test_the_shares_of_any_wait_sum_to_it(group: int) -> None:
    for seed in range(group, _SCENES * _GROUPS, _GROUPS):
        chance = random.Random(seed)
        events = _events(chance)
        end_ns = events[-1].t_ns
        losses = [Loss(1, end_ns // 3, end_ns // 2)] if chance.random() < 0.2 else []
        scene = Scene(events, 0, losses, chance.choice((None, end_ns)))
        for _ in range(_WAITS):
            window = _window(chance, end_ns)
            cause = explain_wait(scene, window, 1)
            told = (seed, window)
            assert sum(share.share_ns for share in cause.shares) == window.latency_ns, told
            for share in cause.shares:
                assert sum(part.share_ns for part in share.by) == share.share_ns, told
                assert all(part.share_ns > 0 for part in share.by), told
                assert share.confidence != "certain" or not share.alternatives, told


def _host_events(chance: random.Random) -> list[Event]:
    """Events of a host, many of them KVM's for its virtual CPUs."""
    events = []
    for event in _events(chance):
        events.append(event)
        if chance.random() < 0.5:
            name = chance.choice(
                ("kvm_exit", "kvm_entry", "kvm_userspace_exit", "kvm_nested_vmexit")
            )
            reason = chance.choice(("HLT", "EXTERNAL_INTERRUPT", "IO_INSTRUCTION"))
            pid = chance.choice((60, 63))
            t_ns = event.t_ns
            events.append(
                Event(t_ns, event.cpu, pid, "vcpu", name, {"reason": reason, "vcpu_id": 0})
            )
    return events


_FOUND = (15940,)
"""Seeds beyond the usual ones that once found a mistake."""


@pytest.mark.long
@pytest.mark.parametrize("group", range(_GROUPS))
def test_the_shares_of_a_guest_and_its_host_sum_to_the_wait(group: int) -> None:
    for seed in (*range(group, _TWO_SIDES * _GROUPS, _GROUPS), *_FOUND):
        chance = random.Random(seed)
        inside, outside = _events(chance), _host_events(chance)
        end_ns = min(inside[-1].t_ns, outside[-1].t_ns)
        losses = [Loss(1, end_ns // 3, end_ns // 2)] if chance.random() < 0.3 else []
        guest = Scene(inside, 0, chance.choice(([], losses)), chance.choice((None, end_ns)))
        host = Scene(outside, 0, losses, chance.choice((None, end_ns)))
        window = guest.wakings.refined(_window(chance, end_ns))
        cause = _two_sided(guest, host, window, outside, losses).cause(1)
        told = (seed, window)
        assert sum(share.share_ns for share in cause.shares) == window.latency_ns, told
        for share in cause.shares:
            assert sum(part.share_ns for part in share.by) == share.share_ns, told
            assert all(part.share_ns > 0 for part in share.by), told
            assert share.side or share.cause == "unknown", told


def _two_sided(
    guest: Scene, host: Scene, window: Window, outside: list[Event], losses: list[Loss]
) -> GuestWait:
    def vcpu_of(cpu: int) -> VcpuTime | None:
        if cpu not in _VCPUS:
            return None
        vcpu = Window("timer", window.start_ns, window.end_ns, -1, _VCPUS[cpu], vcpu=str(cpu))
        return VcpuTime(host, outside, vcpu, _NAMES, losses)

    return GuestWait(guest, window, vcpu_of)
