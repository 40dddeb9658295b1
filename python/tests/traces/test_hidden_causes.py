"""Causes as kernels of all preemption models trace them, not planted while the rules were made."""

from pathlib import Path

import pytest
from planted_scene import (
    APP,
    DUE_US,
    IDLE,
    LOW,
    MID,
    RT,
    Plant,
    Scene,
    Thread,
    explained,
    explained_if_seen,
)
from test_planted_causes import PLANTED

from latenz.errors import BadInput
from latenz.traces.explaining import explain
from latenz.traces.opening import open_trace

DEADLINE: Thread = ("dl", 62, -1)
WOKEN: Thread = ("rt2", 51, 9)
VCPU: Thread = ("CPU 0/KVM", 900, 120)
KWORKER: Thread = ("kworker/1:1", 17, 120)
PRINTER: Thread = ("pr/ttyS0", 18, 120)


def _length_us(scene: Scene) -> int:
    return scene.chance.randrange(150, 900)


def _lazy_kernel(scene: Scene) -> float:
    """Linux 6.13 with PREEMPT_LAZY: both flags are set, and only a spin lock is in the way."""
    scene.add(DUE_US - 30, "kmem_cache_free: call_site=x ptr=1", ".L...")
    scene.timer(DUE_US + 2, "1")
    scene.add(DUE_US + 60, "kmem_cache_free: call_site=x ptr=1", ".B.1.")
    return DUE_US + 5 + _length_us(scene)


def _lazy_ordinary(scene: Scene) -> float:
    """PREEMPT_LAZY: an ordinary thread, of a virtual CPU, waits for the tick."""
    scene.late = VCPU
    scene.switch(300, VCPU, "S")
    scene.add(302, "kvm_entry: vcpu 0, rip 0x1", "d..1.")
    scene.add(350, "kvm_exit: vcpu 0 reason HLT rip 0x1 info1 0x0 info2 0x0", "d..1.")
    scene.switch(352, APP, "S")
    scene.wake_from_other(DUE_US, VCPU)
    scene.add(DUE_US + 60, "kmem_cache_free: call_site=x ptr=1", ".L...")
    return DUE_US + 2000 + _length_us(scene)


def _budget(scene: Scene) -> float:
    """A deadline thread has used up its run time, and goes on in its next period."""
    scene.late = DEADLINE
    scene.switch(400, DEADLINE)
    scene.add(DUE_US, "local_timer_entry: vector=236", "d.h..")
    scene.add(DUE_US + 1, "hrtimer_expire_entry: hrtimer=7 function=hrtick now=1", "d.h..")
    scene.add(DUE_US + 2, "hrtimer_expire_exit: hrtimer=7", "dNh..")
    scene.add(DUE_US + 3, "local_timer_exit: vector=236", "dNh..")
    scene.switch(DUE_US + 4, APP)
    end_us = DUE_US + 4000 + _length_us(scene)
    scene.add(end_us - 6, "local_timer_entry: vector=236", "d.h..")
    scene.add(end_us - 5, "hrtimer_expire_entry: hrtimer=3 function=dl_task_timer now=1", "d.h..")
    scene.add(end_us - 3, "hrtimer_expire_exit: hrtimer=3", "dNh..")
    scene.add(end_us - 2, "local_timer_exit: vector=236", "dNh..")
    return end_us


def _woken_without_budget(scene: Scene) -> float:
    """A deadline thread wakes up, but has no run time left in its period."""
    scene.late = DEADLINE
    scene.wake_from_other(DUE_US, DEADLINE)
    end_us = DUE_US + 3000 + _length_us(scene)
    scene.add(end_us - 6, "local_timer_entry: vector=236", "d.h..")
    scene.add(end_us - 5, "hrtimer_expire_entry: hrtimer=3 function=dl_task_timer now=1", "d.h..")
    scene.add(end_us - 3, "hrtimer_expire_exit: hrtimer=3", "dNh..")
    scene.add(end_us - 2, "local_timer_exit: vector=236", "dNh..")
    return end_us


def _quota_beside_others(scene: Scene) -> float:
    """A virtual CPU's group has used up its quota; threads of other groups run meanwhile."""
    scene.late = VCPU
    scene.switch(300, VCPU, "S")
    scene.add(302, "kvm_entry: vcpu 0, rip 0x1", "d..1.")
    scene.add(DUE_US, "kvm_exit: vcpu 0 reason MSR_WRITE rip 0x1 info1 0x0 info2 0x0", "d..1.")
    scene.add(DUE_US + 1, "kvm_entry: vcpu 0, rip 0x1", "d..1.")
    scene.switch(DUE_US + 4, APP)
    end_us = DUE_US + 6000 + _length_us(scene)
    scene.add(end_us - 6, "local_timer_entry: vector=236", "d.h..")
    name = "sched_cfs_period_timer"
    scene.add(end_us - 5, f"hrtimer_expire_entry: hrtimer=4 function={name} now=1", "d.h..")
    scene.add(end_us - 3, "hrtimer_expire_exit: hrtimer=4", "dNh..")
    scene.add(end_us - 2, "local_timer_exit: vector=236", "dNh..")
    return end_us


def _one_long_shootdown(scene: Scene) -> float:
    """Linux 6.1, which does not tell who sent it: one handler that takes long."""
    scene.timer(DUE_US + 2)
    length_us = _length_us(scene)
    scene.add(DUE_US + 6, "call_function_entry: vector=252", "dNh..")
    scene.add(DUE_US + length_us, "tlb_flush: pages:-1 reason:remote shootdown (1)", "dNh..")
    scene.add(DUE_US + length_us + 1, "call_function_exit: vector=252", "dNh..")
    return DUE_US + length_us + 4


def _shootdown_of_arm(scene: Scene) -> float:
    """64-bit Arm: interrupts of other CPUs as that architecture tells them."""
    scene.timer(DUE_US + 2)
    length_us = _length_us(scene)
    raised = "ipi_raise: target_mask=00000000,00000002 (Function call interrupts)"
    scene.add(DUE_US + 4, raised, "d..2.", cpu=0)
    scene.add(DUE_US + 6, "ipi_entry: (Function call interrupts)", "dNh..")
    scene.add(DUE_US + length_us, "ipi_exit: (Function call interrupts)", "dNh..")
    return DUE_US + length_us + 3


def _moved_behind_another(scene: Scene) -> float:
    """The balancer moves it, while it is ready, to a CPU that is not preemptible."""
    scene.late = WOKEN
    told = "comm=rt2 pid=51 prio=9"
    scene.add(DUE_US, f"sched_waking: {told} target_cpu=000", "d..2.", cpu=0)
    scene.add(DUE_US + 0.4, f"sched_wakeup: {told} target_cpu=000", "d..3.", cpu=0)
    scene.add(DUE_US + 20, f"sched_migrate_task: {told} orig_cpu=0 dest_cpu=1", "d..3.", cpu=0)
    scene.add(DUE_US + 22, "reschedule_entry: vector=253", "d.h1.")
    scene.add(DUE_US + 23, "reschedule_exit: vector=253", "dNh1.")
    scene.add(DUE_US + 80, "kmem_cache_free: call_site=x ptr=1", ".N.1.")
    return DUE_US + 25 + _length_us(scene)


def _in_exec(scene: Scene) -> float:
    """PREEMPT_NONE: another thread is in a long system call."""
    scene.add(DUE_US - 40, "sys_enter_execve: filename: 1, argv: 2, envp: 3")
    scene.timer(DUE_US + 2)
    scene.add(DUE_US + 70, "kmem_cache_free: call_site=x ptr=1", ".N...")
    return DUE_US + 5 + _length_us(scene)


def _in_fork(scene: Scene) -> float:
    """PREEMPT_FULL: a page table is copied under its lock, as a stack tells."""
    scene.timer(DUE_US + 2, "1")
    scene.stack(
        DUE_US + 2.9, "try_to_wake_up", "hrtimer_wakeup", "__hrtimer_run_queues",
        "hrtimer_interrupt", "__sysvec_apic_timer_interrupt", "sysvec_apic_timer_interrupt",
        "asm_sysvec_apic_timer_interrupt", "copy_present_ptes", "copy_page_range", "dup_mmap",
        "copy_process", "kernel_clone", "__do_sys_clone", "do_syscall_64",
    )  # fmt: skip
    return DUE_US + 5 + _length_us(scene)


def _console_of_the_kernel(scene: Scene) -> float:
    """Linux 6.1: who writes a message prints it itself, with interrupts off."""
    length_us = 1000 + _length_us(scene)
    scene.add(DUE_US - 20, "console: [   12.345678] usb 1-1: reset", "d..1.")
    scene.add(DUE_US + length_us - 5, "kmem_cache_free: call_site=x ptr=1", "d..1.")
    scene.timer(DUE_US + length_us, "1")
    return DUE_US + length_us + 5


def _console_thread(scene: Scene) -> float:
    """Linux 6.12: a console's own thread prints what another CPU has written."""
    scene.add(400, "console: [   12.345678] usb 1-1: reset", "...1.", cpu=0)
    scene.switch(600, PRINTER, "S")
    scene.timer(DUE_US + 2, "1")
    scene.stack(
        DUE_US + 2.9, "try_to_wake_up", "hrtimer_wakeup", "asm_sysvec_apic_timer_interrupt",
        "wait_for_lsr", "serial8250_console_write", "nbcon_emit_next_record", "nbcon_kthread_func",
    )  # fmt: skip
    return DUE_US + 5 + _length_us(scene)


def _fair_server_already(scene: Scene) -> float:
    """The fair server runs another thread when `rt` wakes up."""
    scene.switch(200, MID)
    scene.add(900, "local_timer_entry: vector=236", "d.h..")
    scene.add(901, "hrtimer_expire_entry: hrtimer=3 function=dl_task_timer now=1", "d.h..")
    scene.add(902, "hrtimer_expire_exit: hrtimer=3", "dNh..")
    scene.add(903, "local_timer_exit: vector=236", "dNh..")
    scene.switch(905, LOW)
    scene.timer(DUE_US + 2)
    return DUE_US + 30_000 + _length_us(scene)


def _remote_wake_irqs_off(scene: Scene) -> float:
    """Another CPU wakes it, but this one has interrupts off: the request does not get through."""
    scene.late = WOKEN
    length_us = _length_us(scene)
    scene.wake_from_other(DUE_US, WOKEN)
    scene.add(DUE_US + length_us / 2, "kmem_cache_free: call_site=x ptr=1", "d....")
    scene.add(DUE_US + length_us, "reschedule_entry: vector=253", "d.h..")
    scene.add(DUE_US + length_us + 1, "reschedule_exit: vector=253", "dNh..")
    return DUE_US + length_us + 3


def _remote_wake_of_an_idle_cpu(scene: Scene) -> float:
    scene.late = WOKEN
    scene.switch(600, IDLE, "S")
    scene.add(601, "cpu_idle: state=3 cpu_id=1", "d..1.")
    scene.wake_from_other(DUE_US, WOKEN)
    end_us = DUE_US + _length_us(scene)
    scene.add(end_us, "cpu_idle: state=4294967295 cpu_id=1", "d..1.")
    scene.add(end_us + 0.5, "reschedule_entry: vector=253", "d.h1.")
    scene.add(end_us + 1, "reschedule_exit: vector=253", "dNh1.")
    return end_us + 3


def _major_fault(scene: Scene) -> float:
    """`rt` needs a page of a file that is not in memory, and sleeps until the disk has read it."""
    scene.is_sample = True
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 6, RT)
    scene.add(DUE_US + 8, "page_fault_user: address=0x1 ip=0x2 error_code=0x4")
    scene.switch(DUE_US + 25, APP, "D")
    end_us = DUE_US + 2000 + _length_us(scene)
    scene.add(end_us - 8, "irq_handler_entry: irq=30 name=nvme0q2", "d.h..")
    scene.wake(end_us - 6, RT, "dNh2.")
    scene.add(end_us - 4, "irq_handler_exit: irq=30 ret=handled", "dNh..")
    scene.switch(end_us - 2, RT)
    return end_us


def _chain_of_three(scene: Scene) -> float:
    """`rt` waits for `low`, that one for `owner`, in whose place `mid` runs."""
    owner = ("owner", 65, 120)
    scene.switch(800, owner)
    scene.switch(820, LOW)
    scene.add(822, "contention_begin: 0000000012340000 (flags=MUTEX)", "...1.")
    scene.switch(824, owner, "D")
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 6, RT)
    scene.add(DUE_US + 8, "contention_begin: 000000001234abcd (flags=MUTEX)", "...1.")
    scene.switch(DUE_US + 10, owner, "D")
    scene.wake(DUE_US + 12, MID)
    scene.switch(DUE_US + 14, MID)
    end_us = DUE_US + 20 + _length_us(scene)
    scene.switch(end_us, owner, "S")
    scene.wake(end_us + 3, LOW, "dN.4.")
    scene.switch(end_us + 5, LOW)
    scene.wake(end_us + 8, RT, "dN.4.")
    return end_us + 10


def _lock_of_softirqs(scene: Scene) -> float:
    """PREEMPT_RT: softirqs are off for `rt` only after ksoftirqd, which gets its priority."""
    server = ("ksoftirqd/1", 22, 120)
    scene.switch(800, server)
    scene.timer(DUE_US + 2)
    scene.switch(DUE_US + 6, RT)
    scene.add(DUE_US + 8, "contention_begin: 000000001234abcd (flags=RT)", "d..2.")
    scene.add(
        DUE_US + 9, "sched_pi_setprio: comm=ksoftirqd/1 pid=22 oldprio=120 newprio=9", "d..3."
    )
    scene.switch(DUE_US + 10, ("ksoftirqd/1", 22, 9), "D")
    end_us = DUE_US + 20 + _length_us(scene)
    scene.wake(end_us, RT, "dN.4.")
    return end_us + 2


def _work_item(scene: Scene) -> float:
    scene.switch(700, KWORKER, "S")
    work = "workqueue_execute_start: work struct 00000000f00d: function drm_fb_helper_damage_work"
    scene.add(705, work)
    scene.timer(DUE_US + 2, "1")
    scene.add(DUE_US + 60, "kmem_cache_free: call_site=x ptr=1", ".N.1.")
    return DUE_US + 5 + _length_us(scene)


def _long_callback_before(scene: Scene) -> float:
    """The interrupt of the timer comes in time, but another timer's callback takes long in it."""
    length_us = _length_us(scene)
    scene.add(DUE_US + 1, "local_timer_entry: vector=236", "d.h..")
    told = "hrtimer=9 function=perf_mux_hrtimer_handler now=1000001001000"
    scene.add(DUE_US + 2, f"hrtimer_expire_entry: {told}", "d.h..")
    scene.add(DUE_US + length_us, "hrtimer_expire_exit: hrtimer=9", "d.h..")
    now_ns = 1000 * 10**9 + (DUE_US + 2) * 1000
    told = f"hrtimer=000000004a5a8d0d function=hrtimer_wakeup now={now_ns}"
    scene.add(DUE_US + length_us + 1, f"hrtimer_expire_entry: {told}", "d.h..")
    scene.wake(DUE_US + length_us + 1.2, RT)
    scene.add(DUE_US + length_us + 2, "hrtimer_expire_exit: hrtimer=000000004a5a8d0d", "dNh..")
    scene.add(DUE_US + length_us + 3, "local_timer_exit: vector=236", "dNh..")
    return DUE_US + length_us + 5


def _same_priority(scene: Scene) -> float:
    scene.switch(500, ("other", 75, RT[2]))
    scene.timer(DUE_US + 2)
    return DUE_US + _length_us(scene)


def _stopped_machine(scene: Scene) -> float:
    """All CPUs stop with interrupts off, as for a change of code."""
    length_us = _length_us(scene)
    scene.switch(DUE_US - 20, ("migration/1", 21, 0))
    scene.add(DUE_US - 15, "irq_disable: caller=multi_cpu_stop parent=cpu_stopper_thread", "d....")
    scene.add(
        DUE_US + length_us, "irq_enable: caller=multi_cpu_stop parent=cpu_stopper_thread", "d...."
    )
    scene.timer(DUE_US + length_us + 0.5)
    return DUE_US + length_us + 5


HIDDEN = {
    "preemption-off with PREEMPT_LAZY": (_lazy_kernel, "preemption was disabled"),
    "vcpu-preempted with PREEMPT_LAZY": (_lazy_ordinary, "app-40"),
    "deadline-budget": (_budget, "app-40"),
    "deadline-budget of one that wakes up": (_woken_without_budget, "app-40"),
    "cgroup-quota beside others": (_quota_beside_others, "app-40"),
    "tlb-shootdown without its sender": (_one_long_shootdown, "function call interrupt"),
    "inter-processor-interrupt of Arm": (_shootdown_of_arm, "from make-301 on CPU 0"),
    "preemption-off after a migration": (_moved_behind_another, "from CPU 0 to CPU 1"),
    "preemption-off in exec": (_in_exec, "execve"),
    "preemption-off in fork": (_in_fork, "copy_present_ptes"),
    "console-output with interrupts off": (_console_of_the_kernel, "app-40"),
    "console-output by its thread": (_console_thread, "pr/ttyS0-18"),
    "fair-server that ran already": (_fair_server_already, "low-60"),
    "irqs-off on the CPU of a thread that is woken": (_remote_wake_irqs_off, "app-40"),
    "host-idle from another CPU": (_remote_wake_of_an_idle_cpu, "idle state 3"),
    "page-fault from a disk": (_major_fault, "page fault"),
    "priority-inversion through two": (_chain_of_three, "mid-61"),
    "blocked by softirqs with PREEMPT_RT": (_lock_of_softirqs, "lent to ksoftirqd/1-22"),
    "preemption-off in a work item": (_work_item, "drm_fb_helper_damage_work"),
    "interrupt that another timer shares": (_long_callback_before, "perf_mux_hrtimer_handler"),
    "preempted by an equal": (_same_priority, "other-75"),
    "irqs-off by a stopped machine": (_stopped_machine, "multi_cpu_stop"),
}


@pytest.mark.parametrize("planted", HIDDEN)
@pytest.mark.parametrize("seed", range(2))
def test_the_first_cause_is_the_hidden_one(planted: str, seed: int, tmp_path: Path) -> None:
    plant, told = HIDDEN[planted]
    cause = explained(plant, seed, tmp_path)
    assert cause.first.cause == planted.split(" ")[0], cause.to_json()
    assert told in cause.first.evidence
    assert sum(share.share_ns for share in cause.shares) == cause.latency_ns
    assert cause.first.confidence != "certain" or not cause.first.alternatives


def _given_way(scene: Scene) -> float:
    """PREEMPT_FULL: a lock is held over many calls; where it ends is where it was taken."""
    scene.timer(DUE_US + 2, "1")
    scene.stack(
        DUE_US + 2.9, "try_to_wake_up", "hrtimer_wakeup", "asm_sysvec_apic_timer_interrupt",
        "page_remove_rmap", "zap_pte_range", "unmap_page_range", "exit_mmap", "do_exit",
    )  # fmt: skip
    end_us = DUE_US + 5 + _length_us(scene)
    scene.switch(end_us, RT)
    scene.running = APP
    scene.stack(
        end_us + 3, "__traceiter_sched_switch", "__schedule", "preempt_schedule_common",
        "preempt_schedule", "_raw_spin_unlock", "zap_pte_range", "unmap_page_range", "exit_mmap",
        "do_exit", flags="d..2.",
    )  # fmt: skip
    scene.running = RT
    return end_us


def test_the_function_that_holds_is_the_one_of_both_stacks(tmp_path: Path) -> None:
    cause = explained(_given_way, 1, tmp_path)
    assert cause.first.cause == "preemption-off"
    assert "app-40 in zap_pte_range" in cause.first.evidence
    assert "app-40" not in "".join(share.evidence for share in cause.shares[1:] if share.by)


def _out_of_user_space(scene: Scene) -> float:
    """The timer came in user space: nothing holds a thread there, it only takes its way out."""
    scene.switch(400, MID)
    scene.add(DUE_US + 1, "irq_handler_entry: irq=24 name=eth0", "d.h..")
    scene.add(DUE_US + 200, "irq_handler_exit: irq=24 ret=handled", "d.h..")
    scene.switch(DUE_US + 201, APP)
    scene.timer(DUE_US + 202)
    scene.stack(
        DUE_US + 202.9, "try_to_wake_up", "hrtimer_wakeup", "asm_sysvec_apic_timer_interrupt"
    )
    scene.add(DUE_US + 209, "sched_stat_runtime: comm=app pid=40", "d..1.")
    return DUE_US + 216


def test_who_leaves_user_space_is_not_blamed_for_disabled_preemption(tmp_path: Path) -> None:
    cause = explained(_out_of_user_space, 1, tmp_path)
    assert "preemption-off" not in {share.cause for share in cause.shares}, cause.to_json()
    assert cause.first.cause == "interrupt"


def test_a_message_alone_does_not_make_console_output_certain(tmp_path: Path) -> None:
    cause = explained(_console_of_the_kernel, 1, tmp_path)
    assert cause.first.confidence == "likely"
    assert "a message that no console shows" in cause.first.alternatives
    assert explained(_console_thread, 1, tmp_path).first.confidence == "certain"


def _text(folder: Path, *lines: str) -> Path:
    path = folder / "trace.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("event", "lacks"),
    [
        ("_raw_spin_lock <-do_work", "sched_switch, sched_waking, sched_wakeup"),
        ("sched_waking: comm=rt pid=50 prio=9 target_cpu=001", "sched_switch, sched_wakeup"),
        (
            "sched_switch: prev_comm=app prev_pid=40 prev_prio=120 prev_state=R ==> "
            "next_comm=rt next_pid=50 next_prio=9",
            "sched_waking, sched_wakeup",
        ),
    ],
)
def test_a_trace_without_waits_tells_what_to_record(event: str, lacks: str, tmp_path: Path) -> None:
    rows = [f"    app-40    [001] d..1. 1000.{place:06}: {event}" for place in range(9)]
    [note] = explain(open_trace(_text(tmp_path, "# tracer: nop", "#", *rows))).notes
    assert f"({lacks})" in note
    assert "record sched, irq" in note


def test_the_latency_format_is_told_by_its_name(tmp_path: Path) -> None:
    head = "# tracer: irqsoff\n#\n# irqsoff latency trace v1.1.5 on 6.1.0"
    row = "  <idle>-0       0d.s2    0us+: _raw_spin_lock_irq <-run_timer_softirq"
    with pytest.raises(BadInput, match="ftrace's latency format") as refused:
        explain(open_trace(_text(tmp_path, head, row)))
    assert "\n" not in str(refused.value)


def test_what_was_lost_in_a_wait_is_unknown(tmp_path: Path) -> None:
    """Nothing is claimed of the time between the events around a loss."""

    def lossy(scene: Scene) -> float:
        scene.is_sample = True
        end_us = _lazy_kernel(scene)
        scene.rows.append((DUE_US + 50, "CPU:1 [LOST 25 EVENTS]"))
        return end_us

    cause = explained(lossy, 1, tmp_path)
    unknown = next(share for share in cause.shares if share.cause == "unknown")
    assert unknown.share_ns == 56_000  # from the timer's interrupt to the next event
    assert sum(share.share_ns for share in cause.shares) == cause.latency_ns


def test_a_request_that_is_not_traced_leaves_doubt_about_interrupts(tmp_path: Path) -> None:
    def unseen(scene: Scene) -> float:
        end_us = _remote_wake_irqs_off(scene)
        scene.rows = [row for row in scene.rows if "reschedule" not in row[1]]
        return end_us

    seen = explained(_remote_wake_irqs_off, 1, tmp_path)
    assert (seen.first.cause, seen.first.confidence) == ("irqs-off", "certain")
    cause = explained(unseen, 1, tmp_path)
    assert (cause.first.cause, cause.first.confidence) == ("irqs-off", "likely")
    assert "irq_vectors:reschedule_entry" in cause.first.record


_LACKS = {
    "interrupts": r": (irq_handler|softirq|call_function|reschedule|ipi)_e",
    "timers": r": (hrtimer|timer)_",
    "what a thread does": r": kmem_",
}
_PLANTS = {**{name: plant for name, (plant, _) in HIDDEN.items()}, **PLANTED}


@pytest.mark.parametrize("lacks", _LACKS)
def test_a_trace_that_lacks_events_proves_no_other_cause(lacks: str, tmp_path: Path) -> None:
    """What was recorded without them may be told with another cause, but not as certain."""
    for name, plant in _PLANTS.items():

        def lacking(scene: Scene, plant: Plant = plant) -> float:
            end_us = plant(scene)
            scene.lacks = _LACKS[lacks]
            return end_us

        if (cause := explained_if_seen(lacking, 1, tmp_path)) is None:
            continue
        is_other = cause.first.cause != name.split(" ")[0] and cause.latency_ns > 100_000
        assert not (is_other and cause.first.confidence == "certain"), (name, cause.first)
