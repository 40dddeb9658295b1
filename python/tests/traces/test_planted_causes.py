"""Causes planted as the kernel would have traced them, with its flags: the first named is right."""

from pathlib import Path

import pytest
from planted_scene import APP, DUE_US, IDLE, LOW, MID, RT, Scene, explained


def _length_us(scene: Scene) -> int:
    return scene.chance.randrange(150, 900)


def _preemption_off(scene: Scene) -> float:
    scene.timer(DUE_US + 2, "1")
    end_us = DUE_US + 5 + _length_us(scene)
    scene.add(DUE_US + 60, "kmem_cache_free: call_site=x ptr=1", ".N.1.")
    return end_us


def _not_preemptible_kernel(scene: Scene) -> float:
    scene.timer(DUE_US + 2)
    scene.add(DUE_US + 60, "kmem_cache_free: call_site=x ptr=1", ".N...")
    return DUE_US + 5 + _length_us(scene)


def _irqs_off(scene: Scene) -> float:
    length_us = _length_us(scene)
    scene.add(DUE_US - 5, "irq_disable: caller=fb_copy parent=fb_scroll", "d....")
    scene.add(DUE_US + length_us, "irq_enable: caller=fb_copy parent=fb_scroll", "d....")
    scene.timer(DUE_US + length_us + 0.5)
    return DUE_US + length_us + 5


def _irqs_off_by_flags(scene: Scene) -> float:
    length_us = _length_us(scene)
    scene.add(DUE_US + length_us / 3, "kmem_cache_free: call_site=x ptr=1", "d..1.")
    scene.timer(DUE_US + length_us)
    return DUE_US + length_us + 5


def _console(scene: Scene) -> float:
    scene.timer(DUE_US + 2, "1")
    scene.add(DUE_US + 50, "console: [   12.345678] usb 1-1: reset", "dN.1.")
    return DUE_US + 5 + _length_us(scene)


def _idle(scene: Scene) -> float:
    length_us = _length_us(scene)
    scene.switch(600, IDLE, "S")
    scene.add(601, "cpu_idle: state=3 cpu_id=1", "d..1.")
    scene.add(DUE_US + length_us, "cpu_idle: state=4294967295 cpu_id=1", "d..1.")
    scene.timer(DUE_US + length_us + 0.5, "1")
    return DUE_US + length_us + 5


def _throttled(scene: Scene) -> float:
    """All of the period's share was used by another real-time thread."""
    scene.switch(500, MID)
    scene.switch(700, APP)
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 5, LOW)
    end_us = DUE_US + 1000 + _length_us(scene)
    scene.add(end_us - 4, "local_timer_entry: vector=236", "d.h..")
    scene.add(end_us - 3, "hrtimer_expire_entry: hrtimer=2 function=sched_rt_period_timer", "d.h..")
    scene.add(end_us - 2, "hrtimer_expire_exit: hrtimer=2", "dNh..")
    scene.add(end_us - 1, "local_timer_exit: vector=236", "dNh..")
    return end_us


def _fair_server(scene: Scene) -> float:
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 6, RT)
    scene.add(DUE_US + 18, "local_timer_entry: vector=236", "d.h..")
    scene.add(DUE_US + 19, "hrtimer_expire_entry: hrtimer=3 function=dl_task_timer", "d.h..")
    scene.add(DUE_US + 20, "hrtimer_expire_exit: hrtimer=3", "dNh..")
    scene.add(DUE_US + 21, "local_timer_exit: vector=236", "dNh..")
    scene.switch(DUE_US + 23, LOW)
    return DUE_US + 1000 + _length_us(scene)


def _preempted(scene: Scene) -> float:
    scene.switch(500, ("urgent", 72, 4))
    scene.timer(DUE_US + 2)
    return DUE_US + _length_us(scene)


def _threaded(scene: Scene) -> float:
    scene.switch(500, ("irq/24-eth0", 73, 4))
    scene.timer(DUE_US + 2)
    return DUE_US + _length_us(scene)


def _stopper(scene: Scene) -> float:
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 6, ("migration/1", 21, 0))
    return DUE_US + _length_us(scene)


def _softirq(scene: Scene) -> float:
    scene.timer(DUE_US + 2)
    length_us = _length_us(scene)
    scene.add(DUE_US + 5, "softirq_entry: vec=1 [action=TIMER]", ".Ns..")
    scene.add(DUE_US + 6, "timer_expire_entry: timer=1 function=neigh_timer now=1", ".Ns..")
    scene.add(DUE_US + length_us, "timer_expire_exit: timer=1", ".Ns..")
    scene.add(DUE_US + length_us + 1, "softirq_exit: vec=1 [action=TIMER]", ".Ns..")
    return DUE_US + length_us + 3


def _device(scene: Scene) -> float:
    scene.timer(DUE_US + 2)
    length_us = _length_us(scene)
    scene.add(DUE_US + 5, "irq_handler_entry: irq=24 name=eth0", "dNh..")
    scene.add(DUE_US + 5 + length_us, "irq_handler_exit: irq=24 ret=handled", "dNh..")
    return DUE_US + length_us + 8


def _called(scene: Scene, function: str) -> float:
    scene.timer(DUE_US + 2)
    at_us = DUE_US + 5.0
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
    scene.timer(DUE_US + 2)
    length_us = _length_us(scene)
    told = f"nmi_handler: perf_event_nmi_handler() delta_ns: {length_us * 1000} handled: 1"
    scene.add(DUE_US + 5 + length_us, told, "dNZ..")
    return DUE_US + length_us + 8


def _late_timer(scene: Scene) -> float:
    length_us = _length_us(scene)
    at_us = DUE_US + 1.0
    while at_us < DUE_US + length_us:
        scene.add(at_us, "irq_handler_entry: irq=24 name=eth0", "d.h..")
        scene.add(at_us + 2, "irq_handler_exit: irq=24 ret=handled", "d.h..")
        at_us += 110
    scene.timer(at_us)
    return at_us + 5


def _inversion(scene: Scene) -> float:
    """`rt` finds a mutex held by `low`, in whose place `mid` runs."""
    scene.switch(900, LOW)
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 6, RT)
    scene.add(DUE_US + 8, "contention_begin: 000000001234abcd (flags=MUTEX)", "...1.")
    scene.switch(DUE_US + 10, LOW, "D")
    scene.wake(DUE_US + 12, MID)
    scene.switch(DUE_US + 14, MID)
    end_us = DUE_US + 20 + _length_us(scene)
    scene.switch(end_us, LOW, "S")
    scene.wake(end_us + 3, RT, "dN.4.")
    return end_us + 5


def _held_lock(scene: Scene) -> float:
    """`rt` finds a mutex held by `low`, which works on."""
    scene.switch(900, LOW)
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 6, RT)
    scene.add(DUE_US + 8, "contention_begin: 000000001234abcd (flags=MUTEX)", "...1.")
    scene.switch(DUE_US + 10, LOW, "D")
    end_us = DUE_US + 20 + _length_us(scene)
    scene.wake(end_us, RT, "dN.4.")
    return end_us + 2


def _mmap_lock(scene: Scene) -> float:
    scene.switch(900, LOW)
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 6, RT)
    scene.add(DUE_US + 8, "mmap_lock_start_locking: mm=1 memcg_path=/ write=false")
    scene.add(DUE_US + 9, "contention_begin: 000000001234abcd (flags=READ)", "...1.")
    scene.switch(DUE_US + 10, LOW, "D")
    end_us = DUE_US + 20 + _length_us(scene)
    scene.wake(end_us, RT, "dN.4.")
    return end_us + 2


def _own(scene: Scene, *events: str) -> float:
    """`rt` runs on time, but takes long until its sample."""
    scene.is_sample = True
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 6, RT)
    end_us = DUE_US + 10 + _length_us(scene)
    for place, event in enumerate(events):
        scene.add(DUE_US + 8 if place == 0 else end_us - 3, event)
    return end_us


def _fault(scene: Scene) -> float:
    return _own(scene, "page_fault_user: address=0x1 ip=0x2 error_code=0x6")


def _reclaim(scene: Scene) -> float:
    begin = "mm_vmscan_direct_reclaim_begin: order=0 gfp_flags=GFP_KERNEL"
    return _own(scene, begin, "mm_vmscan_direct_reclaim_end: nr_reclaimed=32")


def _quota(scene: Scene) -> float:
    """A virtual CPU's ordinary thread has to wait for the next period of its group."""
    vcpu = ("CPU 0/KVM", 900, 120)
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 6, RT)
    scene.switch(DUE_US + 20, vcpu, "S")
    scene.add(DUE_US + 22, "kvm_entry: vcpu 0, rip 0x1", "d..1.")
    scene.add(DUE_US + 90, "kvm_exit: vcpu 0 reason MSR_WRITE rip 0x1 info1 0x0 info2 0x0", "d..1.")
    scene.add(DUE_US + 92, "kvm_entry: vcpu 0, rip 0x1", "d..1.")
    scene.switch(DUE_US + 100, IDLE)
    end_us = DUE_US + 3000 + _length_us(scene)
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


PLANTED = {
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


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("seed", range(3))
def test_the_first_cause_is_the_one_that_was_planted(
    planted: str, seed: int, tmp_path: Path
) -> None:
    cause = explained(PLANTED[planted], seed, tmp_path)
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
    assert told in explained(PLANTED[planted], 7, tmp_path).first.evidence
