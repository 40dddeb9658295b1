"""Causes planted as the kernel would have traced them, with its flags: the first named is right.

CPU 1 runs `app` (ordinary) when the timer of `rt` (SCHED_FIFO 90) is due at 1 ms; CPU 0 is busy.
Each scene adds what happens until `rt` runs, with the flags that Linux 6.12 on x86 writes.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from latenz.traces.causes import Cause
from latenz.traces.explaining import explain, explain_late
from latenz.traces.join import Late
from latenz.traces.reader import open_trace

_DUE_US = 1000
Thread = tuple[str, int, int]
RT: Thread = ("rt", 50, 9)
APP: Thread = ("app", 40, 120)
IDLE: Thread = ("swapper/1", 0, 120)
LOW: Thread = ("low", 60, 120)
MID: Thread = ("mid", 61, 79)


@dataclass
class Scene:
    """Events of both CPUs; `running` is who has CPU 1."""

    chance: random.Random
    running: Thread = APP
    rows: list[tuple[float, str]] = field(default_factory=list)
    is_sample: bool = False

    def add(self, at_us: float, event: str, flags: str = ".....", cpu: int = 1) -> None:
        name, pid, _ = self.running if cpu == 1 else ("make", 301, 120)
        shown = "<idle>" if pid == 0 else name
        stamp = f"1000.{round(at_us * 1000):09}"
        self.rows.append((at_us, f"{shown:>16}-{pid:<5} [{cpu:03}] {flags} {stamp}: {event}"))

    def switch(self, at_us: float, to: Thread, state: str = "R+") -> None:
        name, pid, priority = self.running
        state = "R" if pid == 0 else state
        self.add(
            at_us,
            f"sched_switch: prev_comm={name} prev_pid={pid} prev_prio={priority} "
            f"prev_state={state} ==> next_comm={to[0]} next_pid={to[1]} next_prio={to[2]}",
            "d..2.",
        )
        self.running = to

    def wake(self, at_us: float, thread: Thread, flags: str = "dNh4.") -> None:
        told = f"comm={thread[0]} pid={thread[1]} prio={thread[2]} target_cpu=001"
        self.add(at_us, f"sched_waking: {told}", flags.replace("N", "."))
        self.add(at_us + 0.4, f"sched_wakeup: {told}", flags)

    def timer(self, at_us: float, depth: str = ".") -> None:
        """Take the timer's interrupt, which wakes `rt`; depth: of preemption before it."""
        self.add(at_us, "local_timer_entry: vector=236", f"d.h{depth}.")
        now_ns = 1000 * 10**9 + round(at_us * 1000)
        told = f"hrtimer=000000004a5a8d0d function=hrtimer_wakeup now={now_ns}"
        self.add(at_us + 0.5, f"hrtimer_expire_entry: {told}", f"d.h{depth}.")
        self.wake(at_us + 0.8, RT)
        self.add(at_us + 1.5, "hrtimer_expire_exit: hrtimer=000000004a5a8d0d", f"dNh{depth}.")
        self.add(at_us + 2, "local_timer_exit: vector=236", f"dNh{depth}.")

    def lines(self) -> list[str]:
        return [row for _, row in sorted(self.rows, key=lambda row: row[0])]


def _explained(plant: Callable[[Scene], float], seed: int, folder: Path) -> Cause:
    scene = Scene(random.Random(seed))
    at_us = 0.0
    while at_us < 20_000:  # CPU 0
        at_us += scene.chance.randrange(3, 40)
        scene.add(at_us, "sys_enter: NR 1 (1, 7f00, 8)", cpu=0)
    expires = f"expires={1000 * 10**9 + _DUE_US * 1000}"
    start = f"hrtimer=000000004a5a8d0d function=hrtimer_wakeup {expires} softexpires=1 mode=ABS"
    scene.running = RT
    scene.add(20, f"hrtimer_start: {start}", "d..1.")
    scene.switch(21, APP, "S")
    ran_us = plant(scene)
    if scene.running != RT:
        scene.switch(ran_us, RT)
    scene.switch(ran_us + 30, APP, "S")
    scene.switch(ran_us + 900, IDLE, "S")
    path = folder / "trace.txt"
    path.write_text("# tracer: nop\n#\n" + "\n".join(scene.lines()) + "\n")
    if scene.is_sample:
        late = Late(round((ran_us - _DUE_US) * 1000), 1000 * 10**9 + _DUE_US * 1000, 1, "x")
        return explain_late(open_trace(path), [late]).causes[0]
    return explain(open_trace(path)).causes[0]


def _length_us(scene: Scene) -> int:
    return scene.chance.randrange(150, 900)


def _preemption_off(scene: Scene) -> float:
    scene.timer(_DUE_US + 2, "1")
    end_us = _DUE_US + 5 + _length_us(scene)
    scene.add(_DUE_US + 60, "kmem_cache_free: call_site=x ptr=1", ".N.1.")
    return end_us


def _not_preemptible_kernel(scene: Scene) -> float:
    scene.timer(_DUE_US + 2)
    scene.add(_DUE_US + 60, "kmem_cache_free: call_site=x ptr=1", ".N...")
    return _DUE_US + 5 + _length_us(scene)


def _irqs_off(scene: Scene) -> float:
    length_us = _length_us(scene)
    scene.add(_DUE_US - 5, "irq_disable: caller=fb_copy parent=fb_scroll", "d....")
    scene.add(_DUE_US + length_us, "irq_enable: caller=fb_copy parent=fb_scroll", "d....")
    scene.timer(_DUE_US + length_us + 0.5)
    return _DUE_US + length_us + 5


def _irqs_off_by_flags(scene: Scene) -> float:
    length_us = _length_us(scene)
    scene.add(_DUE_US + length_us / 3, "kmem_cache_free: call_site=x ptr=1", "d..1.")
    scene.timer(_DUE_US + length_us)
    return _DUE_US + length_us + 5


def _console(scene: Scene) -> float:
    scene.timer(_DUE_US + 2, "1")
    scene.add(_DUE_US + 50, "console: [   12.345678] usb 1-1: reset", "dN.1.")
    return _DUE_US + 5 + _length_us(scene)


def _idle(scene: Scene) -> float:
    length_us = _length_us(scene)
    scene.switch(600, IDLE, "S")
    scene.add(601, "cpu_idle: state=3 cpu_id=1", "d..1.")
    scene.add(_DUE_US + length_us, "cpu_idle: state=4294967295 cpu_id=1", "d..1.")
    scene.timer(_DUE_US + length_us + 0.5, "1")
    return _DUE_US + length_us + 5


def _throttled(scene: Scene) -> float:
    """All of the period's share was used by another real-time thread."""
    scene.switch(500, MID)
    scene.switch(700, APP)
    scene.timer(_DUE_US + 2)
    scene.switch(_DUE_US + 5, LOW)
    end_us = _DUE_US + 1000 + _length_us(scene)
    scene.add(end_us - 4, "local_timer_entry: vector=236", "d.h..")
    scene.add(end_us - 3, "hrtimer_expire_entry: hrtimer=2 function=sched_rt_period_timer", "d.h..")
    scene.add(end_us - 2, "hrtimer_expire_exit: hrtimer=2", "dNh..")
    scene.add(end_us - 1, "local_timer_exit: vector=236", "dNh..")
    return end_us


def _fair_server(scene: Scene) -> float:
    scene.timer(_DUE_US + 2)
    scene.switch(_DUE_US + 6, RT)
    scene.add(_DUE_US + 18, "local_timer_entry: vector=236", "d.h..")
    scene.add(_DUE_US + 19, "hrtimer_expire_entry: hrtimer=3 function=dl_task_timer", "d.h..")
    scene.add(_DUE_US + 20, "hrtimer_expire_exit: hrtimer=3", "dNh..")
    scene.add(_DUE_US + 21, "local_timer_exit: vector=236", "dNh..")
    scene.switch(_DUE_US + 23, LOW)
    return _DUE_US + 1000 + _length_us(scene)


def _preempted(scene: Scene) -> float:
    scene.switch(500, ("urgent", 72, 4))
    scene.timer(_DUE_US + 2)
    return _DUE_US + _length_us(scene)


def _threaded(scene: Scene) -> float:
    scene.switch(500, ("irq/24-eth0", 73, 4))
    scene.timer(_DUE_US + 2)
    return _DUE_US + _length_us(scene)


def _stopper(scene: Scene) -> float:
    scene.timer(_DUE_US + 2)
    scene.switch(_DUE_US + 6, ("migration/1", 21, 0))
    return _DUE_US + _length_us(scene)


def _softirq(scene: Scene) -> float:
    scene.timer(_DUE_US + 2)
    length_us = _length_us(scene)
    scene.add(_DUE_US + 5, "softirq_entry: vec=1 [action=TIMER]", ".Ns..")
    scene.add(_DUE_US + 6, "timer_expire_entry: timer=1 function=neigh_timer now=1", ".Ns..")
    scene.add(_DUE_US + length_us, "timer_expire_exit: timer=1", ".Ns..")
    scene.add(_DUE_US + length_us + 1, "softirq_exit: vec=1 [action=TIMER]", ".Ns..")
    return _DUE_US + length_us + 3


def _device(scene: Scene) -> float:
    scene.timer(_DUE_US + 2)
    length_us = _length_us(scene)
    scene.add(_DUE_US + 5, "irq_handler_entry: irq=24 name=eth0", "dNh..")
    scene.add(_DUE_US + 5 + length_us, "irq_handler_exit: irq=24 ret=handled", "dNh..")
    return _DUE_US + length_us + 8


def _called(scene: Scene, function: str) -> float:
    scene.timer(_DUE_US + 2)
    at_us = _DUE_US + 5.0
    for _ in range(12):
        told = f"ipi_send_cpumask: cpumask=1 callsite=smp_call+0x1/0x9 callback={function}+0x0/0x9"
        scene.add(at_us, told, "...1.", cpu=0)
        scene.add(at_us + 1, "call_function_entry: vector=252", "dNh..")
        scene.add(at_us + 30, "call_function_exit: vector=252", "dNh..")
        at_us += 31
    return at_us + 2


def _membarrier(scene: Scene) -> float:
    return _called(scene, "ipi_mb")


def _shootdown(scene: Scene) -> float:
    return _called(scene, "flush_tlb_func")


def _non_maskable(scene: Scene) -> float:
    scene.timer(_DUE_US + 2)
    length_us = _length_us(scene)
    told = f"nmi_handler: perf_event_nmi_handler() delta_ns: {length_us * 1000} handled: 1"
    scene.add(_DUE_US + 5 + length_us, told, "dNZ..")
    return _DUE_US + length_us + 8


def _late_timer(scene: Scene) -> float:
    length_us = _length_us(scene)
    at_us = _DUE_US + 1.0
    while at_us < _DUE_US + length_us:
        scene.add(at_us, "irq_handler_entry: irq=24 name=eth0", "d.h..")
        scene.add(at_us + 2, "irq_handler_exit: irq=24 ret=handled", "d.h..")
        at_us += 110
    scene.timer(at_us)
    return at_us + 5


def _inversion(scene: Scene) -> float:
    """`rt` finds a mutex held by `low`, in whose place `mid` runs."""
    scene.switch(900, LOW)
    scene.timer(_DUE_US + 2)
    scene.switch(_DUE_US + 6, RT)
    scene.add(_DUE_US + 8, "contention_begin: 000000001234abcd (flags=MUTEX)", "...1.")
    scene.switch(_DUE_US + 10, LOW, "D")
    scene.wake(_DUE_US + 12, MID)
    scene.switch(_DUE_US + 14, MID)
    end_us = _DUE_US + 20 + _length_us(scene)
    scene.switch(end_us, LOW, "S")
    scene.wake(end_us + 3, RT, "dN.4.")
    return end_us + 5


def _held_lock(scene: Scene) -> float:
    """`rt` finds a mutex held by `low`, which works on."""
    scene.switch(900, LOW)
    scene.timer(_DUE_US + 2)
    scene.switch(_DUE_US + 6, RT)
    scene.add(_DUE_US + 8, "contention_begin: 000000001234abcd (flags=MUTEX)", "...1.")
    scene.switch(_DUE_US + 10, LOW, "D")
    end_us = _DUE_US + 20 + _length_us(scene)
    scene.wake(end_us, RT, "dN.4.")
    return end_us + 2


def _mmap_lock(scene: Scene) -> float:
    scene.switch(900, LOW)
    scene.timer(_DUE_US + 2)
    scene.switch(_DUE_US + 6, RT)
    scene.add(_DUE_US + 8, "mmap_lock_start_locking: mm=1 memcg_path=/ write=false")
    scene.add(_DUE_US + 9, "contention_begin: 000000001234abcd (flags=READ)", "...1.")
    scene.switch(_DUE_US + 10, LOW, "D")
    end_us = _DUE_US + 20 + _length_us(scene)
    scene.wake(end_us, RT, "dN.4.")
    return end_us + 2


def _own(scene: Scene, *events: str) -> float:
    """`rt` runs on time, but takes long until its sample."""
    scene.is_sample = True
    scene.timer(_DUE_US + 2)
    scene.switch(_DUE_US + 6, RT)
    end_us = _DUE_US + 10 + _length_us(scene)
    for place, event in enumerate(events):
        scene.add(_DUE_US + 8 if place == 0 else end_us - 3, event)
    return end_us


def _fault(scene: Scene) -> float:
    return _own(scene, "page_fault_user: address=0x1 ip=0x2 error_code=0x6")


def _reclaim(scene: Scene) -> float:
    begin = "mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL"
    return _own(scene, begin, "mm_vmscan_direct_reclaim_end: nr_reclaimed=32")


def _quota(scene: Scene) -> float:
    """A virtual CPU's ordinary thread has to wait for the next period of its group."""
    vcpu = ("CPU 0/KVM", 900, 120)
    scene.timer(_DUE_US + 2)
    scene.switch(_DUE_US + 6, RT)
    scene.switch(_DUE_US + 20, vcpu, "S")
    scene.add(_DUE_US + 22, "kvm_entry: vcpu 0, rip 0x1", "d..1.")
    scene.add(
        _DUE_US + 90, "kvm_exit: vcpu 0 reason MSR_WRITE rip 0x1 info1 0x0 info2 0x0", "d..1."
    )
    scene.add(_DUE_US + 92, "kvm_entry: vcpu 0, rip 0x1", "d..1.")
    scene.switch(_DUE_US + 100, IDLE)
    end_us = _DUE_US + 3000 + _length_us(scene)
    scene.add(
        end_us - 5, "hrtimer_expire_entry: hrtimer=4 function=sched_cfs_period_timer", "d.h1."
    )
    scene.add(end_us - 4, "hrtimer_expire_exit: hrtimer=4", "dNh1.")
    scene.switch(end_us, vcpu)
    return end_us + 50


def _slow_clock(scene: Scene) -> float:
    scene.add(100, "cpu_frequency: state=3200000 cpu_id=1", "d..1.")
    scene.add(500, "cpu_frequency: state=800000 cpu_id=1", "d..1.")
    return _own(scene)


_PLANTED = {
    "preemption-off": _preemption_off,
    "preemption-off of the kernel": _not_preemptible_kernel,
    "irqs-off": _irqs_off,
    "irqs-off by flags": _irqs_off_by_flags,
    "console-output": _console,
    "host-idle": _idle,
    "throttled": _throttled,
    "fair-server": _fair_server,
    "preempted": _preempted,
    "threaded-interrupt": _threaded,
    "stopper": _stopper,
    "cgroup-quota": _quota,
    "softirq": _softirq,
    "interrupt": _device,
    "inter-processor-interrupt": _membarrier,
    "tlb-shootdown": _shootdown,
    "nmi": _non_maskable,
    "timer-late": _late_timer,
    "priority-inversion": _inversion,
    "blocked": _held_lock,
    "mmap-lock": _mmap_lock,
    "page-fault": _fault,
    "reclaim": _reclaim,
    "low-frequency": _slow_clock,
}
_CERTAIN = {
    "preemption-off",
    "preemption-off of the kernel",
    "irqs-off",
    "irqs-off by flags",
    "throttled",
    "fair-server",
    "preempted",
    "tlb-shootdown",
    "softirq",
}


@pytest.mark.parametrize("planted", _PLANTED)
@pytest.mark.parametrize("seed", range(3))
def test_the_first_cause_is_the_one_that_was_planted(
    planted: str, seed: int, tmp_path: Path
) -> None:
    cause = _explained(_PLANTED[planted], seed, tmp_path)
    assert cause.first.cause == planted.split(" ")[0], cause.to_json()
    assert 2 * cause.first.share_ns > cause.latency_ns
    assert sum(share.share_ns for share in cause.shares) == cause.latency_ns
    if planted in _CERTAIN:
        assert cause.first.confidence == "certain", cause.first
        assert cause.first.alternatives == ()


@pytest.mark.parametrize(
    ("planted", "told"),
    [
        ("preemption-off", "preemption was disabled"),
        ("preemption-off of the kernel", "PREEMPT_NONE or VOLUNTARY"),
        ("irqs-off", "app-40 in fb_copy"),
        ("softirq", "softirq TIMER: neigh_timer"),
        ("inter-processor-interrupt", "from make-301 on CPU 0 for ipi_mb"),
        ("priority-inversion", "it waited for a mutex"),
        ("blocked", "until woken by low-60"),
        ("low-frequency", "at 800 MHz of 3200 MHz"),
    ],
)
def test_the_evidence_names_what_did_it(planted: str, told: str, tmp_path: Path) -> None:
    assert told in _explained(_PLANTED[planted], 7, tmp_path).first.evidence
