"""Of any wait in any sequence of events, the shares sum to it, to the nanosecond."""

import os
import random

import pytest

from latenz.traces.model import Event, Loss
from latenz.traces.scene import Scene
from latenz.traces.wakeups import Window, WindowKind

_SCENES = int(os.environ.get("LATENZ_RANDOM_SCENES", "100"))
_GROUPS, _WAITS = 10, 10
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
            cause = scene.explain(window, 1)
            told = (seed, window)
            assert sum(share.share_ns for share in cause.shares) == window.latency_ns, told
            for share in cause.shares:
                assert sum(part.share_ns for part in share.by) == share.share_ns, told
                assert all(part.share_ns > 0 for part in share.by), told
                assert share.confidence != "certain" or not share.alternatives, told
