"""What keeps a program from being real-time, seen on the program itself, before it is late."""

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from latenz.attach.account import Thread
from latenz.attach.calls import OUTPUT, SLEEPS, TIMER_ABSTIME, call_name, is_plain_wait
from latenz.durations import format_duration
from latenz.errors import BadInput
from latenz.machine import measured_machine
from latenz.settings import format_cpu_list, parse_cpu_list

State = Literal["ok", "wrong", "unknown", "not applicable"]
_DEADLINE = 6
_POLICIES = {0: "SCHED_OTHER", 1: "SCHED_FIFO", 2: "SCHED_RR", 3: "SCHED_BATCH", 5: "SCHED_IDLE"}
_REAL_TIME = (os.SCHED_FIFO, os.SCHED_RR, _DEADLINE)
_LONG_SLACK_NS = 10_000
_CGROUPS = PurePosixPath("/sys/fs/cgroup")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, told as `tune check` does.

    Attributes:
        id: Stable name.
        state: Whether it is as wanted.
        found: What is there; None: it could not be read.
        wanted: What would be right.
        where: The thread or process, and what tells it.
        remedy: What to change in the program.
    """

    id: str
    state: State
    found: str | None
    wanted: str
    where: str
    remedy: str
    layer: str = "application"

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Task:
    """What /proc tells of a thread; None where it tells nothing."""

    policy: int | None
    priority: int | None
    locked_kib: int | None
    resident_kib: int | None
    allowed: tuple[int, ...] | None
    slack_ns: int | None
    faults: int | None
    group: str
    quota: str | None
    throttled: int | None

    @classmethod
    def read_all(cls, threads: Iterable[tuple[int, int]]) -> "dict[int, Task]":
        """Read those of several threads, each named after its process, at once.

        Returns:
            What is told, by the number of the thread; one that is gone tells nothing.
        """
        known = list(threads)
        with measured_machine().fetching(_files_of(known)):
            groups = {tid: _group_of(pid, tid) for pid, tid in known}
            own = {(pid, tid): _own_texts(pid, tid) for pid, tid in known}
        with measured_machine().fetching(_files_of_groups(set(groups.values()))):
            return {tid: cls._of(*texts, groups[tid]) for (_, tid), texts in own.items()}

    @classmethod
    def read(cls, pid: int, tid: int) -> "Task":
        """Read it; a thread that is gone tells nothing."""
        return cls.read_all([(pid, tid)])[tid]

    @classmethod
    def _of(cls, status: str, stat_text: str, slack: str, group: str) -> "Task":
        stat = stat_text.rpartition(")")[2].split()
        folder = _folder_of(group)
        policy = int(stat[38]) if len(stat) > 38 else None
        return cls(
            policy=policy,
            priority=int(stat[37]) if len(stat) > 37 else None,
            locked_kib=_number(status, "VmLck"),
            resident_kib=_number(status, "VmRSS"),
            allowed=_cpus(status),
            slack_ns=int(slack) if slack.isdecimal() else None,
            faults=int(stat[7]) + int(stat[9]) if len(stat) > 9 else None,
            group=group,
            quota=_quota(folder),
            throttled=_number(_text(f"{folder}/cpu.stat"), "nr_throttled", separator=" "),
        )

    @property
    def scheduler(self) -> str:
        """Policy and priority in words."""
        if self.policy is None:
            return "not known"
        if self.policy == _DEADLINE:
            return "SCHED_DEADLINE"
        name = _POLICIES.get(self.policy, f"policy {self.policy}")
        return f"{name} {self.priority}" if self.priority else name


def _files_of(threads: Iterable[tuple[int, int]]) -> list[str]:
    return [
        path
        for pid, tid in threads
        for path in (
            *(f"/proc/{pid}/task/{tid}/{name}" for name in ("status", "stat", "cgroup")),
            f"/proc/{tid}/timerslack_ns",
        )
    ]


def _own_texts(pid: int, tid: int) -> tuple[str, str, str]:
    base = f"/proc/{pid}/task/{tid}"
    return (
        _text(f"{base}/status"),
        _text(f"{base}/stat"),
        _text(f"/proc/{tid}/timerslack_ns").strip(),
    )


def _group_of(pid: int, tid: int) -> str:
    """Return the control group that shares out CPU time, below where all of them are mounted.

    In hierarchies of the first version, that of the controller `cpu` has a folder of its own.
    """
    unified = ""
    for line in _text(f"/proc/{pid}/task/{tid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2) if line.count(":") > 1 else ("", "", "")
        if "cpu" in controllers.split(","):
            return f"cpu{path}".rstrip("/")
        unified = unified or (path if not controllers else "")
    return unified


def _folder_of(group: str) -> PurePosixPath:
    return _CGROUPS / group.lstrip("/")


def _files_of_groups(groups: Iterable[str]) -> list[str]:
    """Return patterns of the files of control groups; units' names have backslashes."""
    files = [
        f"{each}/{name}"
        for group in groups
        for each in _with_parents(_folder_of(group))
        for name in ("cpu.stat", "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
    ]
    return [re.sub(r"[\\*?\[\]]", "?", path) for path in sorted(set(files))]


def _with_parents(folder: PurePosixPath) -> list[PurePosixPath]:
    """Return a control group and all that it is in, up to the root of them."""
    return [each for each in (folder, *folder.parents) if each.is_relative_to(_CGROUPS)]


def _text(path: str) -> str:
    return (measured_machine().content(path) or b"").decode("utf-8", "replace")


def _number(text: str, name: str, separator: str = ":") -> int | None:
    match = re.search(rf"^{name}{separator}\s*(\d+)", text, re.MULTILINE)
    return int(match[1]) if match else None


def _cpus(status: str) -> tuple[int, ...] | None:
    match = re.search(r"^Cpus_allowed_list:\s*(\S+)$", status, re.MULTILINE)
    with suppress(ValueError):
        return parse_cpu_list(match[1]) if match else None
    return None


def _quota(folder: PurePosixPath) -> str | None:
    """Return the nearest quota (cpu.max) from a group up to the root, as "QUOTA PERIOD"."""
    for group in _with_parents(folder):
        told = _text(f"{group}/cpu.max").strip()
        if told and not told.startswith("max"):
            return told
        quota = _text(f"{group}/cpu.cfs_quota_us").strip()
        if quota.isdecimal():  # -1: none
            return f"{quota} {_text(f'{group}/cpu.cfs_period_us').strip()}"
    return "max"


def findings(
    thread: Thread,
    before: Task,
    after: Task,
    calls: dict[str, int],
    isolated: frozenset[int],
) -> list[Finding]:
    """Return what was looked at for a thread whose cycles were recorded.

    Args:
        thread: What was recorded of it.
        before: What /proc told when its recording began.
        after: The same at its end.
        calls: How often it made each system call meanwhile; empty: not known.
        isolated: The isolated CPUs of its machine.
    """
    where = f"{thread.comm} ({thread.tid})"
    return [
        _memory(thread.pid, before),
        _faults(thread, where, before, after),
        _policy(where, before),
        _clock(thread, where),
        _pause(thread, where),
        _output(thread, where, calls),
        _slack(thread.tid, before, applies=_sleeps_by_a_timer(thread, before)),
        _mask(where, before, isolated),
        _group(where, before, after),
        _mutexes(thread, where),
    ]


def _memory(process: int, task: Task) -> Finding:
    locked, resident = task.locked_kib, task.resident_kib
    known = locked is not None and resident is not None
    is_locked = known and 2 * (locked or 0) >= (resident or 0)
    return Finding(
        "app-memory-locked",
        ("ok" if is_locked else "wrong") if known else "unknown",
        f"{locked} of {resident} KiB locked" if known else None,
        "all memory locked",
        f"/proc/{process}/status, VmLck",
        "mlockall(MCL_CURRENT | MCL_FUTURE) before the loop begins",
    )


def _faults(thread: Thread, where: str, before: Task, after: Task) -> Finding:
    grown = None
    if before.faults is not None and after.faults is not None:
        grown = after.faults - before.faults
    seen = max(thread.faults, grown or 0)
    state: State = "wrong" if seen else "ok" if grown is not None else "unknown"
    cycles = max(1, thread.n)
    return Finding(
        "app-page-faults",
        state,
        f"{seen} in {cycles} cycles" if state != "unknown" else None,
        "none in the loop",
        f"{where}, minflt and majflt",
        "lock the memory and touch it before the loop: stack, heap, buffers; take none in the loop",
    )


def _policy(where: str, task: Task) -> Finding:
    known = task.policy is not None
    is_real_time = task.policy in _REAL_TIME
    return Finding(
        "app-real-time-policy",
        ("ok" if is_real_time else "wrong") if known else "unknown",
        task.scheduler if known else None,
        "SCHED_FIFO, SCHED_RR or SCHED_DEADLINE",
        where,
        "pthread_setschedparam(..., SCHED_FIFO, ...), or chrt --fifo --pid PRIORITY TID",
    )


def _clock(thread: Thread, where: str) -> Finding:
    grid = thread.grid
    applies = grid is not None and grid.by == "timer"
    clock = grid.clock if grid else "monotonic"
    return Finding(
        "app-clock",
        ("wrong" if clock in ("realtime", "tai") else "ok") if applies else "not applicable",
        f"CLOCK_{clock.upper()}" if applies else None,
        "CLOCK_MONOTONIC",
        where,
        "take CLOCK_MONOTONIC for the loop: the time of day is set by people and by NTP",
    )


def _pause(thread: Thread, where: str) -> Finding:
    grid = thread.grid
    name = call_name(grid.call) if grid else ""
    applies = grid is not None and grid.by == "timer" and name in SLEEPS
    flags = next((each.argument_1 for each in thread.sleeps if grid and each.call == grid.call), 0)
    absolute = name == "clock_nanosleep" and bool(flags & TIMER_ABSTIME)
    found = f"{name}, {'absolute' if absolute else 'relative'}" if applies else None
    if applies and not absolute and thread.n > 1 and grid is not None:
        mean_ns = (thread.last_due_ns - thread.first_due_ns) // max(thread.n - 1, 1)
        found = f"{found}: a cycle each {format_duration(mean_ns)}"
    return Finding(
        "app-absolute-sleep",
        ("ok" if absolute else "wrong") if applies else "not applicable",
        found,
        "sleeps until a due time",
        where,
        "clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, ...): a relative sleep adds the work and"
        " every delay to the period",
    )


def _output(thread: Thread, where: str, calls: dict[str, int]) -> Finding:
    told = {name: n for name, n in calls.items() if name in OUTPUT and n * 100 >= thread.n > 0}
    words = ", ".join(f"{name} {n} times in {thread.n} cycles" for name, n in told.items())
    return Finding(
        "app-output-in-loop",
        ("wrong" if told else "ok") if calls else "unknown",
        (words or "none") if calls else None,
        "no output from the loop",
        f"{where}, system calls",
        "hand the text to a thread that is not urgent, through a ring that never blocks; printf"
        " and logs may wait for a terminal, a pipe or a disk",
    )


def _sleeps_by_a_timer(thread: Thread, task: Task) -> bool:
    """Return whether slack matters: real-time policies have none."""
    is_timed = thread.grid is not None and thread.grid.by == "timer"
    return is_timed and task.policy not in _REAL_TIME


def _slack(tid: int, task: Task, *, applies: bool) -> Finding:
    known = task.slack_ns is not None
    state: State = "not applicable"
    if applies:
        state = ("wrong" if (task.slack_ns or 0) > _LONG_SLACK_NS else "ok") if known else "unknown"
    return Finding(
        "app-timer-slack",
        state,
        f"{format_duration(task.slack_ns or 0)}" if known else None,
        "1 ns, or a real-time policy, which has none",
        f"/proc/{tid}/timerslack_ns",
        "prctl(PR_SET_TIMERSLACK, 1)",
    )


def _mask(where: str, task: Task, isolated: frozenset[int]) -> Finding:
    allowed = task.allowed
    if allowed is None:
        state: State = "unknown"
    elif isolated:
        state = "ok" if frozenset(allowed) <= isolated else "wrong"
    else:
        state = "ok" if len(allowed) == 1 else "wrong"
    wanted = (
        f"only isolated CPUs ({format_cpu_list(tuple(isolated))})"
        if isolated
        else "one CPU of its own"
    )
    return Finding(
        "app-cpu-mask",
        state,
        f"CPUs {format_cpu_list(allowed)}" if allowed is not None else None,
        wanted,
        f"{where}, Cpus_allowed_list",
        "pthread_setaffinity_np, or taskset --cpu-list --pid CPUS TID; isolate them first: see"
        " latenz tune plan",
    )


def _group(where: str, before: Task, after: Task) -> Finding:
    known = before.quota is not None
    limited = known and before.quota != "max"
    stopped = (after.throttled or 0) - (before.throttled or 0)
    found = f"cpu.max is {before.quota}" if known else None
    if limited and stopped > 0:
        found = f"{found}, used up {stopped} times"
    return Finding(
        "app-cgroup-limit",
        ("wrong" if limited else "ok") if known else "unknown",
        found,
        "max",
        f"{where}, control group {before.group or 'of the root'}",
        "raise cpu.max (CPUQuota= of systemd), or move the thread out of the group",
    )


def _mutexes(thread: Thread, where: str) -> Finding:
    waits = [
        each
        for each in thread.sleeps
        if call_name(each.call) == "futex" and each.within_cycles and is_plain_wait(each.argument_1)
    ]
    n = sum(each.within_cycles for each in waits)
    return Finding(
        "app-mutex-inheritance",
        "wrong" if n else "ok",
        f"{n} waits on plain futexes within {thread.n} cycles" if n else "no such waits seen",
        "mutexes with priority inheritance",
        f"{where}, futex",
        "pthread_mutexattr_setprotocol(..., PTHREAD_PRIO_INHERIT) for each mutex that less urgent"
        " threads share",
    )


def standing_findings(process: int, isolated: frozenset[int]) -> list[Finding]:
    """Return what can be told of a program without measuring it.

    Of its real-time threads, or of its main thread if it has none.

    Args:
        process: Its number.
        isolated: The isolated CPUs of its machine.

    Raises:
        BadInput: There is no such process.
    """
    paths = measured_machine().matching(f"/proc/{process}/task/[0-9]*")
    numbers = sorted(int(path.rpartition("/")[2]) for path in paths)
    if process not in numbers:
        raise BadInput(f"there is no process {process}", "--pid", "see ps -e")
    tasks = Task.read_all((process, tid) for tid in numbers)
    urgent = [tid for tid in numbers if tasks[tid].policy in _REAL_TIME] or [process]
    found = [_memory(process, tasks[process])]
    for tid in urgent:
        comm = _text(f"/proc/{process}/task/{tid}/comm").strip()
        where, task = f"{comm} ({tid})", tasks[tid]
        found += [
            _policy(where, task),
            _slack(tid, task, applies=task.policy not in _REAL_TIME),
            _mask(where, task, isolated),
            _group(where, task, task),
        ]
    return found
