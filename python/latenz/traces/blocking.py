"""For whom a thread slept: the threads that it waited for, and what kept those from their work."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from latenz.traces.occupancy import number
from latenz.traces.wakeups import could_run

if TYPE_CHECKING:
    from latenz.traces.model import Event
    from latenz.traces.occupancy import Occupancy, Stretch

_LONGEST_CHAIN = 8
_WAY_TO_SLEEP_NS = 100_000  # from a lock that is found held to the switch
_LOCKS = {1: "a spin lock", 8: "a real-time lock", 16: "a per-CPU lock", 32: "a mutex"}
_LOCK_NAMES = {"SPIN": 1, "RT": 8, "PERCPU": 16, "MUTEX": 32}

Kind = Literal["blocked", "priority-inversion"]


class Piece(NamedTuple):
    """A part of a sleep.

    Attributes:
        kind: `priority-inversion` if somebody less urgent than the sleeper had the CPU of the
            thread that it waited for, else `blocked`.
        name: What went on.
        start_ns: From when.
        end_ns: Until when.
        cpu: On whose time it depended; None: not known.
    """

    kind: Kind
    name: str
    start_ns: int
    end_ns: int
    cpu: int | None = None


class Lock(NamedTuple):
    """What a thread was seen to wait for.

    Attributes:
        name: What kind of lock; empty: not told.
        is_of_memory: It is that of the address space.
        boosted: Whom the thread gave its priority to; empty: nobody.
    """

    name: str
    is_of_memory: bool
    boosted: str


class _Wait(NamedTuple):
    pid: int
    priority: int  # of who waits at the end of the chain
    start_ns: int
    end_ns: int


class Chain:
    """Follows a sleep to the thread that ended it, and that one's waits.

    Args:
        of_thread: Gives the scheduler's events of a thread in a window.
        occupancy: Who had which CPU.
    """

    def __init__(
        self,
        of_thread: "Callable[[int, int, int], list[Event]]",
        occupancy: "Occupancy",
    ) -> None:
        self._of_thread = of_thread
        self._occupancy = occupancy

    def pieces(self, pid: int, priority: int, start_ns: int, end_ns: int) -> list[Piece]:
        """Return what a sleep consists of, in order and without gaps.

        Args:
            pid: The thread that slept.
            priority: As the kernel counts.
            start_ns: When it went to sleep.
            end_ns: When it was woken.
        """
        return self._slept(_Wait(pid, priority, start_ns, end_ns), frozenset({pid}))

    def _slept(self, wait: _Wait, seen: frozenset[int]) -> list[Piece]:
        waker = self._waker(wait)
        if waker is None:
            return [Piece("blocked", "asleep", wait.start_ns, wait.end_ns)]
        name = f"until woken by {waker.comm}-{waker.pid}"
        plain = Piece("blocked", name, wait.start_ns, wait.end_ns)
        if waker.pid in seen or waker.pid == 0 or len(seen) > _LONGEST_CHAIN or waker.in_interrupt:
            return [plain]
        pieces: list[Piece] = []
        since_ns, state, cpu = wait.start_ns, "running", waker.cpu
        events = self._of_thread(waker.pid, wait.start_ns, wait.end_ns)
        state, cpu = _before(events, waker.pid, state, cpu)
        for event in [*events, None]:
            until_ns = wait.end_ns if event is None else event.t_ns
            if until_ns > since_ns:
                part = _Wait(waker.pid, wait.priority, since_ns, until_ns)
                pieces += self._part(part, state, cpu, name, seen | {waker.pid})
            if event is not None:
                since_ns = until_ns
                state, cpu = _after(event, waker.pid, state, cpu)
        return pieces

    def _part(
        self, part: _Wait, state: str, cpu: int, name: str, seen: frozenset[int]
    ) -> list[Piece]:
        """Return what the thread that was waited for did for a while."""
        if state == "asleep":
            return [
                each if each.name != "asleep" else each._replace(name=f"{name}, which slept")
                for each in self._slept(part, seen)
            ]
        if state == "running":
            return [Piece("blocked", name, part.start_ns, part.end_ns, cpu)]
        pieces = []
        at_ns = part.start_ns
        for each in self._occupancy.of(cpu, part.start_ns, part.end_ns):
            if each.start_ns > at_ns:
                pieces.append(Piece("blocked", name, at_ns, each.start_ns, cpu))
            pieces.append(_held_up(each, part, name)._replace(cpu=cpu))
            at_ns = each.end_ns
        if at_ns < part.end_ns:
            pieces.append(Piece("blocked", name, at_ns, part.end_ns, cpu))
        return pieces

    def _waker(self, wait: _Wait) -> "_Waker | None":
        for event in self._of_thread(wait.pid, wait.start_ns, wait.end_ns + 1):
            if event.name in ("sched_waking", "sched_wakeup") and event.t_ns > wait.start_ns:
                in_interrupt = any(each in "hHszZ" for each in event.flags[2:])
                return _Waker(event.comm, event.pid, event.cpu, in_interrupt)
        return None


class _Waker(NamedTuple):
    comm: str
    pid: int
    cpu: int
    in_interrupt: bool


def _held_up(stretch: "Stretch", part: _Wait, name: str) -> Piece:
    """Return what had the CPU of the thread that was waited for while that one was ready."""
    is_thread = stretch.kind in ("task", "guest", "exit", "user") and stretch.pid != part.pid
    if is_thread and stretch.priority > part.priority:
        by = f"{stretch.name}-{stretch.pid} ran, {name}"
        return Piece("priority-inversion", by, stretch.start_ns, stretch.end_ns)
    return Piece("blocked", name, stretch.start_ns, stretch.end_ns)


def _before(events: "Sequence[Event]", pid: int, state: str, cpu: int) -> tuple[str, int]:
    """Return what a thread did before the first of its events."""
    for event in events:
        if event.name == "sched_switch":
            return ("ready" if number(event, "next_pid", -1) == pid else "running"), event.cpu
        if event.name in ("sched_waking", "sched_wakeup"):
            return "asleep", number(event, "target_cpu", event.cpu)
    return state, cpu


def _after(event: "Event", pid: int, state: str, cpu: int) -> tuple[str, int]:
    if event.name == "sched_migrate_task":
        return state, number(event, "dest_cpu", cpu)
    if event.name != "sched_switch":
        return ("ready" if state == "asleep" else state), number(event, "target_cpu", cpu)
    if number(event, "next_pid", -1) == pid:
        return "running", event.cpu
    return ("ready" if could_run(event.fields.get("prev_state")) else "asleep"), event.cpu


class Locks:
    """What threads were seen to wait for, by events of locks.

    Args:
        events: In the order of their times.
    """

    def __init__(self, events: "Sequence[Event]") -> None:
        names = ("contention_begin", "mmap_lock_start_locking", "sched_pi_setprio")
        self._events = [each for each in events if each.name in names]
        self.are_recorded = any(each.name == "contention_begin" for each in self._events)

    def of(self, pid: int, start_ns: int) -> Lock | None:
        """Return what a thread waited for when it went to sleep at a time; None: not told."""
        name, boosted, is_of_memory, found = "", "", False, False
        since_ns = start_ns - _WAY_TO_SLEEP_NS
        first = bisect_left(self._events, since_ns, key=lambda each: each.t_ns)
        last = bisect_right(self._events, start_ns, key=lambda each: each.t_ns)
        for each in self._events[first:last]:
            if each.pid != pid:
                continue
            found = True
            if each.name == "contention_begin":
                name = _lock_name(each)
            elif each.name == "sched_pi_setprio":
                boosted = f"{each.fields.get('comm', '?')}-{each.fields.get('pid', '?')}"
            else:
                is_of_memory = True
        return Lock(name, is_of_memory, boosted) if found else None


def _lock_name(event: "Event") -> str:
    """Return what kind of lock is meant (include/trace/events/lock.h)."""
    told = event.fields.get("flags", 0)
    words = str(told).split("|")
    bits = told if isinstance(told, int) else sum(_LOCK_NAMES.get(word, 0) for word in words)
    return next(
        (name for bit, name in _LOCKS.items() if bits & bit), "a lock for reading or writing"
    )
