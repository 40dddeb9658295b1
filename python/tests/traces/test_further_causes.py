"""More causes, planted after the rules were made; and what leaves no trace, so is never certain."""

from pathlib import Path

import pytest
from planted_scene import APP, DUE_US, RT, Plant, Scene, Thread, explained

DEADLINE: Thread = ("dl", 62, -1)
RCU: Thread = ("rcub/1", 19, 98)


def _length_us(scene: Scene) -> int:
    return scene.chance.randrange(150, 900)


def _silent(scene: Scene, first_us: float, last_us: float) -> None:
    """Nothing is written on any CPU; whatever comes later was added by the caller."""
    scene.lacks = "|".join(
        f" 1000\\.{t_us:06}" for t_us in range(round(first_us) + 1, round(last_us))
    )


def _handled(scene: Scene, name: str, detail: str, *more: str) -> float:
    """The timer's interrupt, then another one that takes long."""
    length_us = _length_us(scene)
    scene.timer(DUE_US + 2)
    scene.add(DUE_US + 6, f"{name}_entry: {detail}", "dNh..")
    for each in more:
        scene.add(DUE_US + 7, each, "dNh..")
    scene.add(DUE_US + length_us, f"{name}_exit: {detail}", "dNh..")
    return DUE_US + length_us + 3


def _irq_work(scene: Scene) -> float:
    return _handled(scene, "irq_work", "vector=246")


def _thermal(scene: Scene) -> float:
    return _handled(scene, "thermal_apic", "vector=250")


def _rcu_softirq(scene: Scene) -> float:
    length_us = _length_us(scene)
    scene.timer(DUE_US + 2)
    scene.add(DUE_US + 6, "softirq_entry: vec=9 [action=RCU]", ".Ns..")
    scene.add(DUE_US + length_us, "softirq_exit: vec=9 [action=RCU]", ".Ns..")
    return DUE_US + length_us + 3


def _timer_in_softirq(scene: Scene) -> float:
    length_us = _length_us(scene)
    scene.timer(DUE_US + 2)
    scene.add(DUE_US + 6, "softirq_entry: vec=1 [action=TIMER]", ".Ns..")
    told = "timer=0000000000000077 function=dev_watchdog now=4295000000 baseclk=4295000000"
    scene.add(DUE_US + 7, f"timer_expire_entry: {told}", ".Ns1.")
    scene.add(DUE_US + length_us, "timer_expire_exit: timer=0000000000000077", ".Ns1.")
    scene.add(DUE_US + length_us + 1, "softirq_exit: vec=1 [action=TIMER]", ".Ns..")
    return DUE_US + length_us + 3


def _softirqs_in_a_row(scene: Scene) -> float:
    scene.timer(DUE_US + 2)
    at_us = DUE_US + 6.0
    for _ in range(16):
        scene.add(at_us, "irq_handler_entry: irq=24 name=eth0", "dNh..")
        scene.add(at_us + 4, "irq_handler_exit: irq=24 ret=handled", "dNh..")
        scene.add(at_us + 5, "softirq_entry: vec=3 [action=NET_RX]", ".Ns..")
        scene.add(at_us + 25, "softirq_exit: vec=3 [action=NET_RX]", ".Ns..")
        at_us += 30
    return at_us


def _deadline_thread(scene: Scene) -> float:
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 6, DEADLINE)
    return DUE_US + 6 + _length_us(scene)


def _two_more_urgent(scene: Scene) -> float:
    """One after the other, both SCHED_FIFO and above."""
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 6, ("motor", 80, 4))
    scene.switch(DUE_US + 106, ("bus", 81, 2), "S")
    return DUE_US + 106 + _length_us(scene)


def _boosting_rcu(scene: Scene) -> float:
    """A real-time thread of lower priority that cannot be preempted."""
    scene.switch(600, RCU)
    scene.timer(DUE_US + 2, "1")
    scene.add(DUE_US + 40, "kmem_cache_free: call_site=x ptr=1", ".N.1.")
    return DUE_US + 6 + _length_us(scene)


def _rt_group_throttled(scene: Scene) -> float:
    """Its group's real-time bandwidth was used up; the next period's timer gives it back."""
    scene.switch(300, RT, "S")
    scene.switch(500, APP)
    length_us = 4_000 + _length_us(scene)
    end_us = DUE_US + length_us
    scene.add(end_us - 6, "local_timer_entry: vector=236", "d.h..")
    told = "hrtimer=5 function=sched_rt_period_timer now=1"
    scene.add(end_us - 5, f"hrtimer_expire_entry: {told}", "d.h..")
    scene.add(end_us - 3, "hrtimer_expire_exit: hrtimer=5", "dNh..")
    scene.add(end_us - 2, "local_timer_exit: vector=236", "dNh..")
    return end_us


def _short_and_long(scene: Scene) -> float:
    """Interrupts off for 90 us, then another thread for far longer: what took most is named."""
    scene.add(DUE_US - 5, "irq_disable: caller=fb_copy parent=fb_scroll", "d....")
    scene.add(DUE_US + 90, "irq_enable: caller=fb_copy parent=fb_scroll", "d....")
    scene.timer(DUE_US + 90.5)
    scene.switch(DUE_US + 95, ("motor", 80, 4))
    return DUE_US + 300 + _length_us(scene)


def _calls(scene: Scene) -> float:
    """The function tracer ran: flags of its lines tell where preemption was off."""
    scene.add(DUE_US - 20, "vfs_fsync <-do_fsync", ".....")
    scene.add(DUE_US - 18, "journal_commit <-vfs_fsync", ".....")
    scene.add(DUE_US - 17, "_raw_spin_lock <-journal_commit", ".....")
    scene.timer(DUE_US + 2, "1")
    end_us = DUE_US + 6 + _length_us(scene)
    for at_us in range(DUE_US + 8, round(end_us) - 2, 12):
        scene.add(at_us, "brelse <-journal_commit", ".N.1.")
        scene.add(at_us + 3, "__brelse <-brelse", ".N.1.")
    scene.add(end_us - 1, "_raw_spin_unlock <-journal_commit", ".N.1.")
    scene.add(end_us - 0.5, "preempt_schedule <-journal_commit", ".N...")
    return end_us


def _calls_of_interrupts(scene: Scene) -> float:
    """What interrupts called meanwhile is not what the thread did."""
    scene.add(DUE_US - 18, "copy_page_range <-dup_mmap", ".....")
    scene.timer(DUE_US + 2, "1")
    end_us = DUE_US + 30 + _length_us(scene)
    for at_us in range(DUE_US + 8, round(end_us) - 2, 20):
        scene.add(at_us, "handle_edge_irq <-generic_handle_irq", "dNh1.")
        scene.add(at_us + 4, "vm_normal_page <-copy_page_range", ".N.1.")
    return end_us


FURTHER = {
    "interrupt of irq_work": (_irq_work, "IRQ work"),
    "interrupt of a hot processor": (_thermal, "thermal"),
    "softirq of RCU": (_rcu_softirq, "RCU"),
    "softirq with a timer's function": (_timer_in_softirq, "dev_watchdog"),
    "interrupt-storm of a network": (_softirqs_in_a_row, "NET_RX"),
    "preempted by a deadline thread": (_deadline_thread, "dl-62"),
    "preempted by two": (_two_more_urgent, "bus-81"),
    "preemption-off in a real-time thread": (_boosting_rcu, "rcub/1-19"),
    "throttled with its group": (_rt_group_throttled, "app-40"),
    "preempted after interrupts were off": (_short_and_long, "motor-80"),
    "preemption-off by calls": (_calls, "journal_commit"),
    "preemption-off by calls between interrupts": (_calls_of_interrupts, "copy_page_range"),
}


@pytest.mark.parametrize("planted", FURTHER)
@pytest.mark.parametrize("seed", range(2))
def test_the_first_cause_is_the_one_that_was_planted(
    planted: str, seed: int, tmp_path: Path
) -> None:
    plant, told = FURTHER[planted]
    cause = explained(plant, seed, tmp_path)
    assert cause.first.cause == planted.split(" ")[0], cause.to_json()
    assert told in cause.first.evidence
    assert sum(share.share_ns for share in cause.shares) == cause.latency_ns
    assert cause.first.confidence != "certain" or not cause.first.alternatives


def _unrecorded_nmi(scene: Scene) -> float:
    """The handler of a non-maskable interrupt, whose event was not recorded."""
    length_us = _length_us(scene)
    scene.timer(DUE_US + length_us)
    return DUE_US + length_us + 5


def _unrecorded_nmi_later(scene: Scene) -> float:
    """The same after the thread was woken."""
    scene.timer(DUE_US + 2)
    return DUE_US + 6 + _length_us(scene)


def _management_mode(scene: Scene) -> float:
    length_us = _length_us(scene)
    _silent(scene, DUE_US - 2, DUE_US + length_us)
    scene.timer(DUE_US + length_us + 1)
    return DUE_US + length_us + 5


def _management_mode_later(scene: Scene) -> float:
    """After the interrupt that woke the thread, before the switch."""
    length_us = _length_us(scene)
    scene.timer(DUE_US + 2)
    _silent(scene, DUE_US + 5, DUE_US + length_us)
    return DUE_US + length_us + 1


UNPROVED: dict[str, Plant] = {
    "an NMI that was not recorded": _unrecorded_nmi,
    "an NMI that was not recorded, after the wake-up": _unrecorded_nmi_later,
    "SMI": _management_mode,
    "SMI after the wake-up": _management_mode_later,
}


@pytest.mark.parametrize("planted", UNPROVED)
@pytest.mark.parametrize("seed", range(2))
def test_what_leaves_no_trace_is_never_told_as_certain(
    planted: str, seed: int, tmp_path: Path
) -> None:
    cause = explained(UNPROVED[planted], seed, tmp_path)
    assert cause.first.confidence != "certain", cause.to_json()
    assert cause.first.alternatives
