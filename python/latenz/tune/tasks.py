"""Which threads run, or may run, on which CPUs; with policy, priority, and whether they can move.

Output 7 of `pamuk2024` lists what last ran on one CPU. What may run there counts as much: that is
in the thread's allowed CPUs.
"""

import re
from dataclasses import dataclass
from typing import Literal

from latenz.settings import parse_cpu_list
from latenz.tune.root import Root

Movable = Literal["yes", "no"]
_KERNEL_THREAD = 0x0020_0000  # PF_KTHREAD, include/linux/sched.h
_NO_SETAFFINITY = 0x0400_0000  # PF_NO_SETAFFINITY
_STAT = re.compile(r"(\d+) \((.*)\) (.*)", re.DOTALL)
_FLAGS, _UTIME, _STIME, _NICE = 6, 11, 12, 16  # in the fields after the name: proc(5), less three
_PROCESSOR, _PRIORITY, _POLICY = 36, 37, 38
_POLICIES = {0: "TS", 1: "FF", 2: "RR", 3: "B", 5: "IDL", 6: "DLN", 7: "EXT"}  # as ps names them
_BOUND: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (r"migration/\d+", "moves threads between CPUs; only when asked to", ()),
    (r"cpuhp/\d+", "takes CPUs in and out; asleep otherwise", ()),
    (r"idle_inject/\d+", "cools the CPU when asked to", ("host-thermald-off",)),
    (r"ksoftirqd/\d+", "what interrupts on this CPU left for later", ("host-irq-affinity",)),
    (r"ktimers/\d+", "timers on this CPU (PREEMPT_RT)", ("cmdline-nohz-full",)),
    (r"rcuc/\d+", "RCU callbacks of this CPU", ("cmdline-rcu-nocbs",)),
    (r"kworker/\d+:.*", "work queued on this CPU", ("host-workqueue-mask", "host-stat-interval")),
    (r"kworker/[uR].*", "unbound work: follows the workqueues' mask", ("host-workqueue-mask",)),
    (r"watchdog/\d+|cpu_stopper/\d+", "the kernel's own, one a CPU", ("cmdline-nosoftlockup",)),
)
_FREE: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (r"rcuo\w/\d+|rcuog/\d+|rcu_\w+", "RCU callbacks of other CPUs", ("host-rcuo-affinity",)),
    (r"irq/\d+-.*", "the thread of an interrupt", ("host-irq-thread-affinity",)),
)
_QEMU = re.compile(r"CPU \d+/(?:KVM|TCG)")


@dataclass(frozen=True)
class Thread:
    """A thread, as /proc tells of it.

    Attributes:
        tid: Its number.
        pid: Its process'.
        name: Its own name (comm).
        kernel: Whether it is the kernel's.
        policy: TS, FF, RR, DLN ...: as `ps` names scheduling policies.
        priority: Real-time priority; None for other policies.
        nice: Its niceness.
        last_cpu: Where it ran last.
        allowed: Where it may run.
        running: Whether it runs or wants to.
        cpu_ticks: CPU time so far, in clock ticks (of 10 ms on most systems).
        movable: Whether its allowed CPUs can be changed.
        why: What it is, or why it can or cannot be moved.
        entries: Ids of the tunings that keep it away.
    """

    tid: int
    pid: int
    name: str
    kernel: bool
    policy: str
    priority: int | None
    nice: int
    last_cpu: int
    allowed: frozenset[int]
    running: bool
    cpu_ticks: int
    movable: Movable
    why: str
    entries: tuple[str, ...]

    def touches(self, cpus: frozenset[int]) -> bool:
        """Return whether it ran last on one of these CPUs, or is bound to some of them only."""
        return self.last_cpu in cpus or self.allowed <= cpus


def read_threads(root: Root) -> tuple[Thread, ...]:
    """Return all threads that can be read, by process and number; those that end meanwhile not."""
    found = []
    for pid in sorted(int(name) for name in root.names("/proc") if name.isdecimal()):
        for tid in sorted(int(t) for t in root.names(f"/proc/{pid}/task") if t.isdecimal()):
            thread = _thread(root, pid, tid)
            if thread is not None:
                found.append(thread)
    return tuple(found)


def worked_between(before: tuple[Thread, ...], after: tuple[Thread, ...]) -> dict[int, int]:
    """Return the clock ticks that each thread ran between two readings, by its number."""
    old = {each.tid: each.cpu_ticks for each in before}
    return {each.tid: each.cpu_ticks - old.get(each.tid, 0) for each in after}


def _thread(root: Root, pid: int, tid: int) -> Thread | None:
    folder = f"/proc/{pid}/task/{tid}"
    stat = _STAT.match(root.read(f"{folder}/stat") or "")
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", root.read(f"{folder}/status") or "", re.M)
    if stat is None or allowed is None:
        return None
    fields = stat[3].split()
    try:
        flags, nice = int(fields[_FLAGS]), int(fields[_NICE])
        policy, priority = int(fields[_POLICY]), int(fields[_PRIORITY])
        last_cpu, ticks = int(fields[_PROCESSOR]), int(fields[_UTIME]) + int(fields[_STIME])
        cpus = frozenset(parse_cpu_list(allowed[1]))
    except (ValueError, IndexError):
        return None
    kernel = bool(flags & _KERNEL_THREAD)
    movable, why, entries = _movable(stat[2], kernel, bool(flags & _NO_SETAFFINITY))
    return Thread(
        tid=tid,
        pid=pid,
        name=stat[2],
        kernel=kernel,
        policy=_POLICIES.get(policy, str(policy)),
        priority=priority if policy in (1, 2) else None,
        nice=nice,
        last_cpu=last_cpu,
        allowed=cpus,
        running=fields[0] == "R",
        cpu_ticks=ticks,
        movable=movable,
        why=why,
        entries=entries,
    )


def _movable(name: str, kernel: bool, bound: bool) -> tuple[Movable, str, tuple[str, ...]]:
    if kernel:
        for pattern, what, entries in _BOUND if bound else (*_FREE, *_BOUND):
            if re.fullmatch(pattern, name):
                return ("no" if bound else "yes"), what, entries
        if bound:
            return "no", "the kernel bound it to where it is", ()
        return "yes", "a kernel thread that may be moved", ("host-per-cpu-kthreads-known",)
    if _QEMU.fullmatch(name):
        return "yes", "a virtual CPU: give it one CPU of its own", ("vcpu-pinning",)
    return "yes", "taskset moves it", ("host-no-user-tasks-on-iso", "host-systemd-cpuaffinity")
