"""Live evidence: what the isolated CPUs really did while we looked, not what they are set to do.

Everything is read twice, an interval apart, and threads also in between. We run on the housekeeping
CPUs meanwhile, so as not to see ourselves. What the real-time work itself does there (user threads
with a real-time policy, and vCPUs) is not a disturbance; what the kernel bound to a CPU cannot be
moved and is told, but not held against it.
"""

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from latenz.affinity import running_on
from latenz.terminal import printable
from latenz.tune.check import Check, Outcome
from latenz.tune.context import NO_ISOLATED, NOT_ALL_THREADS, Context, detected_profile
from latenz.tune.cpus import format_list
from latenz.tune.interrupts import Interrupt, read_interrupts, since
from latenz.tune.model import Effect, Entry, ManualProbe
from latenz.tune.qemu import VCPU_NAME
from latenz.tune.root import Root
from latenz.tune.tasks import Thread, read_threads, worked_between

LAYER = "live"
_LOOK_NS = 200_000_000
_TICKS_A_SECOND = 2
"""Timer interrupts without a tick: one a second stays for the kernel's own statistics."""
_SHALLOW_US = 3
"""Idle states that end within this are no trouble, as for bios-cstates-off."""
_BUSY = (1, 2)  # at least so much of the interval, as a fraction
_IDLE, _IOWAIT, _STEAL = 3, 4, 7  # fields of a CPU in /proc/stat
_SLICES = 8  # field of a CPU in /proc/schedstat: how often a task was put on it
_REAL_TIME = ("FF", "RR", "DLN")
_MOST_NAMED = 6
_TIMERS = ("arch_timer", "riscv-timer")
"""Names of each CPU's own timer in /proc/interrupts, but on x86, where it is LOC."""


@dataclass(frozen=True)
class _IdleState:
    name: str
    latency_us: int
    entered: int
    stayed_us: int


@dataclass(frozen=True)
class State:
    """What was read at one time; nothing of it stands where the machine does not tell it."""

    at_ns: int
    threads: tuple[Thread, ...]
    ran: dict[int, tuple[int, int]]
    """Of threads: how long in ns, and how often."""
    interrupts: tuple[Interrupt, ...]
    ticks: dict[int, tuple[int, ...]]
    """Of CPUs: clock ticks by use, as in /proc/stat."""
    slices: tuple[dict[int, int], dict[int, int]]
    """Of CPUs: how often a task was put on it; read before and after the threads."""
    idle: dict[tuple[int, str], _IdleState]
    smis: dict[int, int | None]


@dataclass(frozen=True)
class _Interval:
    """What happened between two readings."""

    context: Context
    before: State
    after: State
    seen: Mapping[int, int]
    """Threads that ran, or wanted to, on an isolated CPU when we looked in between, and where."""

    @property
    def cpus(self) -> list[int]:
        return sorted(self.context.isolated)

    @property
    def duration_ns(self) -> int:
        return self.after.at_ns - self.before.at_ns

    def ran(self, thread: Thread) -> tuple[int, int]:
        """Return how long in ns, and how often, a thread ran.

        Without a tick the scheduler's count of a thread that never sleeps stands still; the clock
        ticks of its use of the CPU do not.
        """
        ns, times = self.after.ran.get(thread.tid, (0, 0))
        old_ns, old_times = self.before.ran.get(thread.tid, (0, 0))
        ticks = worked_between(self.before.threads, (thread,))[thread.tid]
        used_ns = ticks * 10**9 // os.sysconf("SC_CLK_TCK")
        return max(0, ns - old_ns, used_ns), max(0, times - old_times)

    def on_isolated(self) -> list[Thread]:
        """Return the threads that ran, or wanted to, on an isolated CPU; those that ran most first.

        Of ours there are none.
        """
        found = [
            each
            for each in self.after.threads
            if each.pid != os.getpid()
            and (
                each.tid in self.seen
                or (
                    each.last_cpu in self.context.isolated and (each.running or any(self.ran(each)))
                )
            )
        ]
        return sorted(found, key=self.ran, reverse=True)


def evidence(
    context: Context,
    duration_ns: int,
    *,
    stopped: Callable[[], bool] = lambda: False,
    progress: Callable[[int], None] = lambda _: None,
) -> list[Check]:
    """Watch the isolated CPUs of this machine for a while, and judge what was seen.

    Args:
        context: Of this machine: its root is `/`.
        duration_ns: How long.
        stopped: Whether to end early; what was seen until then is judged.
        progress: Is told how many ns are over.
    """
    if not context.isolated:
        nothing = Outcome("unknown", None, None, "/sys/devices/system/cpu/isolated", NO_ISOLATED)
        return [_check(each, nothing) for each in _CHECKS]
    with running_on(context.housekeeping):
        before = read_state(context)
        seen: dict[int, int] = {}
        while (over_ns := time.monotonic_ns() - before.at_ns) < duration_ns and not stopped():
            progress(over_ns)
            time.sleep(min(_LOOK_NS, duration_ns - over_ns) / 1e9)
            seen |= {
                each.tid: each.last_cpu
                for each in read_threads(context.root)
                if each.running and each.last_cpu in context.isolated
            }
        after = read_state(context)
    return judged(context, before, after, seen)


def judged(context: Context, before: State, after: State, seen: Mapping[int, int]) -> list[Check]:
    """Return what two readings of a machine say.

    Args:
        context: The machine.
        before: The first reading.
        after: The second one.
        seen: Threads that ran on isolated CPUs in between, and where.
    """
    interval = _Interval(context, before, after, seen)
    return [_check(each, each.judge(interval)) for each in _CHECKS]


def read_state(context: Context) -> State:
    """Return what is to be read of a machine at one time."""
    from latenz.environment import smi_count

    root = context.root
    early = _slices(root)
    threads = read_threads(root)
    return State(
        at_ns=time.monotonic_ns(),
        threads=threads,
        ran={each.tid: _ran(root, each) for each in threads},
        interrupts=read_interrupts(root),
        ticks=_rows(root, "/proc/stat"),
        slices=(early, _slices(root)),
        idle=_idle_states(root, context.isolated),
        smis={cpu: smi_count(cpu) if root.live else None for cpu in context.isolated},
    )


def _slices(root: Root) -> dict[int, int]:
    rows = _rows(root, "/proc/schedstat")
    return {cpu: row[_SLICES] for cpu, row in rows.items() if len(row) > _SLICES}


def _ran(root: Root, thread: Thread) -> tuple[int, int]:
    fields = (root.read(f"/proc/{thread.pid}/task/{thread.tid}/schedstat") or "").split()
    return (int(fields[0]), int(fields[2])) if len(fields) > 2 else (0, 0)


def _rows(root: Root, path: str) -> dict[int, tuple[int, ...]]:
    rows = re.finditer(r"^cpu(\d{1,5})((?: \d+)+)$", root.read(path) or "", re.MULTILINE)
    return {int(row[1]): tuple(map(int, row[2].split())) for row in rows}


def _idle_states(root: Root, cpus: frozenset[int]) -> dict[tuple[int, str], _IdleState]:
    found = {}
    for cpu in cpus:
        for path in root.glob(f"/sys/devices/system/cpu/cpu{cpu}/cpuidle/state*"):
            texts = [
                (root.read(f"{path}/{file}") or "").strip()
                for file in ("name", "latency", "usage", "time")
            ]
            if all(text.isdecimal() for text in texts[1:]):
                found[cpu, path] = _IdleState(texts[0], *map(int, texts[1:]))
    return found


def _accepted(thread: Thread) -> bool:
    """Return whether a thread is the real-time work that the CPUs are isolated for."""
    return not thread.kernel and (
        thread.policy in _REAL_TIME or fnmatchcase(thread.name, VCPU_NAME)
    )


def _bound(thread: Thread) -> bool:
    """Return whether the kernel bound a thread to one CPU: other kinds cannot be moved either."""
    return thread.movable == "no" and len(thread.allowed) == 1


def _timer_interrupts(interval: _Interval) -> Outcome:
    where, wanted = "/proc/interrupts", f"at most {_TICKS_A_SECOND} a second without tick"
    counted = since(interval.before.interrupts, interval.after.interrupts)
    timers = [each.id for each in interval.after.interrupts if _is_timer(each)]
    if not timers:
        return Outcome("unknown", None, wanted, where, "names no timer of the CPUs")
    found, too_many, idle = [], [], []
    for cpu in interval.cpus:
        count = sum(counted[id_].get(cpu, 0) for id_ in timers)
        # Each time the real-time work wakes by a timer is one interrupt that must be.
        work = [each for each in interval.on_isolated() if _accepted(each) and each.last_cpu == cpu]
        woken = sum(interval.ran(each)[1] for each in work)
        allowed = _TICKS_A_SECOND * interval.duration_ns // 10**9 + 1 + woken
        found.append(f"CPU {cpu}: {count * 10**9 // interval.duration_ns} a second")
        if count > allowed:
            too_many.append(cpu)
        elif not _was_busy(interval, cpu):
            idle.append(cpu)
    text = ", ".join(found)
    if too_many:
        reason = "the tick, or timers that are not the real-time work's: see cmdline-nohz-full"
        return Outcome("wrong", text, wanted, where, reason)
    if idle:
        cpus = format_list(frozenset(idle))
        reason = (
            f"CPU {cpus} idled, where the tick stops anyway: look while the real-time work runs"
        )
        return Outcome("unknown", text, wanted, where, reason)
    return Outcome("ok", text, wanted, where)


def _is_timer(interrupt: Interrupt) -> bool:
    return interrupt.id == "LOC" or any(name in interrupt.name for name in _TIMERS)


def _was_busy(interval: _Interval, cpu: int) -> bool:
    before, after = (state.ticks.get(cpu, ()) for state in (interval.before, interval.after))
    used = [new - old for new, old in zip(after, before, strict=False)]
    if len(used) <= _IOWAIT:
        return False
    idle = used[_IDLE] + used[_IOWAIT]
    return (sum(used) - idle) * _BUSY[1] >= max(1, sum(used)) * _BUSY[0]


def _interrupts(interval: _Interval) -> Outcome:
    where = "/proc/interrupts"
    counted = since(interval.before.interrupts, interval.after.interrupts)
    found: list[tuple[int, str]] = []
    entries: list[str] = []
    for each in interval.after.interrupts:
        count = sum(counted[each.id].get(cpu, 0) for cpu in interval.cpus)
        if count and not _is_timer(each):
            found.append((count, f"{each.id} ({each.name}): {count}"))
            entries += each.entries
    if not interval.after.interrupts:
        return Outcome("unknown", None, "none", where, "cannot be read")
    if not found:
        return Outcome("ok", None, "none", where)
    text = _few([text for _, text in sorted(found, reverse=True)])
    ids = ", ".join(dict.fromkeys(entries))
    return Outcome("wrong", text, "none", where, f"see {ids}" if ids else "")


def _tasks(interval: _Interval) -> Outcome:
    where, wanted = "/proc/*/task/*/{stat,schedstat}", "none but the real-time work"
    threads = interval.on_isolated()
    foreign = [each for each in threads if not _accepted(each) and not _bound(each)]
    bound = [each.name for each in threads if _bound(each)]
    accepted = f"bound to their CPU, and accepted: {_few(bound)}" if bound else ""
    if not interval.after.threads:
        return Outcome("unknown", None, wanted, "/proc", "no thread can be read")
    if foreign:
        text = _few([_described(each, interval) for each in foreign])
        entries = dict.fromkeys(id_ for each in foreign for id_ in each.entries)
        reason = "; ".join(each for each in (f"see {', '.join(entries)}", accepted) if each)
        return Outcome("wrong", text, wanted, where, reason)
    work = _few([_described(each, interval) for each in threads if _accepted(each)])
    if not interval.context.sees_all_threads:
        return Outcome("unknown", work or None, wanted, "/proc", NOT_ALL_THREADS)
    return Outcome("ok", work or None, wanted, where, accepted)


def _described(thread: Thread, interval: _Interval) -> str:
    ns, times = interval.ran(thread)
    kind = "kernel" if thread.kernel else thread.policy
    cpu = interval.seen.get(thread.tid, thread.last_cpu)
    elsewhere = "" if thread.allowed <= interval.context.isolated else ", some on other CPUs"
    return (
        f"{thread.name} ({thread.tid}, {kind}) on CPU {cpu}: "
        f"{ns // 1000} us in {times} turns{elsewhere}"
    )


def _context_switches(interval: _Interval) -> Outcome:
    where, wanted = "/proc/schedstat", "none to tasks that nobody accounts for"
    # Between the readings of the threads, so that none of theirs can be missing.
    (_, before), (after, _) = interval.before.slices, interval.after.slices
    counts = {
        cpu: after[cpu] - before[cpu] for cpu in interval.cpus if cpu in before and cpu in after
    }
    if len(counts) < len(interval.cpus):
        reason = "this kernel does not count them (CONFIG_SCHEDSTATS)"
        return Outcome("unknown", None, wanted, where, reason)
    text = ", ".join(f"CPU {cpu}: {count}" for cpu, count in counts.items())
    known = sum(interval.ran(each)[1] for each in interval.on_isolated())
    if (unknown := sum(counts.values()) - known) > 0:
        reason = f"{unknown} of them were to tasks that ended or moved on meanwhile"
        return Outcome("wrong", text, wanted, where, reason)
    return Outcome("ok", text, wanted, where)


def _deep_idle(interval: _Interval) -> Outcome:
    where = "/sys/devices/system/cpu/cpu*/cpuidle/state*/{usage,time}"
    wanted = f"no state that takes more than {_SHALLOW_US} us to leave"
    if not interval.after.idle:
        return Outcome("not applicable", None, wanted, where, "the kernel manages no idle states")
    found = []
    for key, after in interval.after.idle.items():
        before = interval.before.idle.get(key, after)
        entered, stayed_us = after.entered - before.entered, after.stayed_us - before.stayed_us
        if after.latency_us > _SHALLOW_US and (entered or stayed_us):
            state = f"CPU {key[0]}: {after.name} ({after.latency_us} us)"
            found.append(f"{state} {entered} times, {stayed_us} us")
    if found:
        reason = "see host-cpuidle-state-disable, host-cpu-dma-latency, bios-cstates-off"
        return Outcome("wrong", _few(found), wanted, where, reason)
    return Outcome("ok", None, wanted, where)


def _management_interrupts(interval: _Interval) -> Outcome:
    from latenz.environment import cpu_field

    where = "MSR 0x34"
    counts = {
        cpu: after - before
        for cpu in interval.cpus
        if (after := interval.after.smis[cpu]) is not None
        and (before := interval.before.smis[cpu]) is not None
    }
    if len(counts) < len(interval.cpus):
        if cpu_field("vendor_id") == "GenuineIntel":
            reason = "cannot be read; as root: modprobe msr"
        else:
            reason = "only Intel's processors count them; look for gaps with hwlatdetect"
        return Outcome("unknown", None, "none", where, reason)
    text = ", ".join(f"CPU {cpu}: {count}" for cpu, count in counts.items())
    return Outcome("wrong" if any(counts.values()) else "ok", text, "none", where)


def _steal(interval: _Interval) -> Outcome:
    where = "/proc/stat"
    if detected_profile(interval.context.root) != "guest":
        return Outcome("not applicable", None, None, where, "this is not a virtual machine")
    found = {}
    for cpu in interval.cpus:
        rows = [state.ticks.get(cpu, ()) for state in (interval.before, interval.after)]
        if min(map(len, rows)) <= _STEAL:
            return Outcome("unknown", None, "0", where, "tells nothing of the isolated CPUs")
        found[cpu] = rows[1][_STEAL] - rows[0][_STEAL]
    text = ", ".join(f"CPU {cpu}: {ticks} clock ticks" for cpu, ticks in found.items())
    if any(found.values()):
        reason = "the host ran something else; on it, see vcpu-pinning and vcpu-sched-fifo"
        return Outcome("wrong", text, "0", where, reason)
    return Outcome("ok", text, "0", where)


def _few(texts: list[str]) -> str:
    more = len(texts) - _MOST_NAMED
    return printable(", ".join(texts[:_MOST_NAMED])) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True)
class _LiveCheck:
    id: str
    title: str
    effect: Effect
    judge: Callable[[_Interval], Outcome]


_CHECKS = (
    _LiveCheck("live-tasks", "No foreign task runs on the isolated CPUs", "large", _tasks),
    _LiveCheck("live-interrupts", "No interrupt is counted there", "large", _interrupts),
    _LiveCheck("live-timer-interrupts", "The tick is off there", "large", _timer_interrupts),
    _LiveCheck("live-idle-states", "They enter no deep idle state", "large", _deep_idle),
    _LiveCheck(
        "live-smi", "No System Management Interrupt stops them", "large", _management_interrupts
    ),
    _LiveCheck("live-steal", "The hypervisor takes no time from them", "large", _steal),
    _LiveCheck(
        "live-context-switches", "No short-lived task comes there", "medium", _context_switches
    ),
)


def _check(live: _LiveCheck, outcome: Outcome) -> Check:
    entry = Entry(
        id=live.id,
        title=live.title,
        profiles=("host", "kvm-host", "guest"),
        effect=live.effect,
        probe=ManualProbe(kind="manual"),
        why="What a CPU really did tells more than what it is set to do.",
        risk="None: it is only looked at.",
        source="Linux: the files that are named",
        layer="host",
    )
    return Check(
        live.id,
        LAYER,
        outcome.state,
        outcome.found,
        outcome.wanted,
        outcome.where,
        outcome.reason,
        entry,
    )
