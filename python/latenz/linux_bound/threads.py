"""Response times of real-time threads of Linux on one CPU, and of chains of them.

Fixed priorities, preemptive, as SCHED_FIFO: Lehoczky's busy windows with several activations
(RTSS 1990), release jitter as Audsley, Burns, Richardson, Tindell and Wellings (Software
Engineering Journal 8(5), 1993), chains by jitter that is handed on (Tindell and Clark, 1994). The
wake-up bound of docs/linux-bound.md is what the kernel adds. All of it is integers: nanoseconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from latenz.linux_bound.model import HORIZON_NS, Interference

_MOST_ACTIVATIONS = 10_000
_MOST_ROUNDS = 1_000


@dataclass(frozen=True, slots=True)
class Interrupt:
    """An interrupt that takes time besides those that are in the wake-up bound, or begins a chain.

    Attributes:
        name: Its own.
        execution: What its handler takes, at most; 0: it is in the wake-up bound's interrupts.
        period: The shortest time between two, without jitter.
        jitter: How much later than its period says one can come.
    """

    name: str
    execution: int
    period: int
    jitter: int = 0


@dataclass(frozen=True, slots=True)
class Thread:
    """A real-time thread.

    Attributes:
        name: Its own.
        priority: 1 to 99; those of one priority count as if each were above the others.
        execution: At most, with its system calls.
        period: The shortest time between two activations, without jitter; of the beginning of its
            chain, if it is in one.
        jitter: How much later than its period says it can be activated; of the first of a chain.
        blocking: The longest that threads of lower priority hold what it waits for.
        after: The interrupt or thread whose end activates it; empty: a timer does.
    """

    name: str
    priority: int
    execution: int
    period: int
    jitter: int = 0
    blocking: int = 0
    after: str = ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """What the kernel adds.

    Attributes:
        wake_up: Longest delay of an arrival by what runs below: until the scheduler has chosen the
            thread, without interrupts if `interference` tells of them.
        switch: What a further switch of threads takes; each activation counts two.
        interference: Most time of interrupts that begin in a half-open window; None: those of the
            wake-up are in `wake_up`, and all others are told one by one.
    """

    wake_up: int
    switch: int = 0
    interference: Interference | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """How late a thread can end.

    Attributes:
        thread: Which.
        response: From its activation to its end; None: no bound was found.
        end_to_end: From where its chain begins; None likewise.
        activations: How many in a row were looked at.
        preemption: The part of threads at and above its priority.
        interrupts: The part of interrupts; those in a wake-up bound that is a number are not told.
        chain: The names from where its chain begins.
    """

    thread: Thread
    response: int | None
    end_to_end: int | None
    activations: int
    preemption: int
    interrupts: int
    chain: tuple[str, ...]


def activations(length: int, period: int, jitter: int) -> int:
    """Return how many activations a half-open window of a length > 0 holds at most."""
    return -(-(length + jitter) // period)


def response_times(
    threads: Sequence[Thread],
    kernel: Kernel,
    interrupts: Sequence[Interrupt] = (),
    horizon: int = HORIZON_NS,
) -> tuple[Response, ...]:
    """Return how late each thread can end, in the order given.

    A thread that another activates inherits, as jitter, how late that one can end. So the response
    times are computed again until none of them grows.

    Args:
        threads: All real-time threads of the CPU, with chains that lead back to a timer or an
            interrupt.
        kernel: What the kernel adds.
        interrupts: Those besides.
        horizon: A response time above it is given up.
    """
    origins = {each.name: each for each in interrupts}
    named = {each.name: each for each in threads}
    chains = {each.name: _chain(each, named) for each in threads}
    found: dict[str, _Window | None] = {}
    for _ in range(_MOST_ROUNDS):
        jitters = {name: _jitter(chain, origins, found) for name, chain in chains.items()}
        following = {
            each.name: _busy_window(each, threads, jitters, kernel, interrupts, horizon)
            for each in threads
        }
        if following == found:
            break
        found = following
    else:
        found = dict.fromkeys(named)
    return tuple(_told(each, chains[each.name], origins, found) for each in threads)


def _chain(thread: Thread, named: dict[str, Thread]) -> tuple[Thread, ...]:
    """Return the threads from the first of a chain to this one."""
    chain = [thread]
    while chain[0].after in named:
        chain.insert(0, named[chain[0].after])
    return tuple(chain)


@dataclass(frozen=True, slots=True)
class _Window:
    response: int
    activations: int
    preemption: int
    interrupts: int


def _jitter(
    chain: Sequence[Thread],
    origins: dict[str, Interrupt],
    found: dict[str, _Window | None],
) -> int | None:
    """Return how late the last of a chain can be activated; None: nobody knows."""
    first = chain[0]
    jitter = first.jitter + (origins[first.after].jitter if first.after in origins else 0)
    for each in chain[:-1]:
        window = found.get(each.name, _Window(0, 0, 0, 0))
        if window is None:
            return None
        jitter += window.response
    return jitter


def _busy_window(
    thread: Thread,
    threads: Sequence[Thread],
    jitters: dict[str, int | None],
    kernel: Kernel,
    interrupts: Sequence[Interrupt],
    horizon: int,
) -> _Window | None:
    """Look at one activation after the other while the CPU has no pause for this priority."""
    own = jitters[thread.name]
    above = [x for x in threads if x.priority >= thread.priority and x.name != thread.name]
    if own is None or any(jitters[each.name] is None for each in above):
        return None
    costs = [(each.execution + 2 * kernel.switch, each.period) for each in (thread, *above)]
    costs += [(each.execution, each.period) for each in interrupts]
    if sum(Fraction(*each) for each in costs) > 1:
        return None

    def preempted(length: int) -> int:
        return sum(
            activations(length, each.period, jitters[each.name] or 0)
            * (each.execution + 2 * kernel.switch)
            for each in above
        )

    def interrupted(length: int) -> int:
        told = sum(
            activations(length, each.period, each.jitter) * each.execution for each in interrupts
        )
        return told + (kernel.interference(length) if kernel.interference else 0)

    worst = _Window(0, 0, 0, 0)
    length = 1
    for count in range(1, _MOST_ACTIVATIONS):
        alone = kernel.wake_up + thread.blocking
        alone += count * thread.execution + 2 * (count - 1) * kernel.switch
        length = max(length, alone)
        while (following := alone + preempted(length) + interrupted(length)) > length:
            length = following
            if length > horizon:
                return None
        response = length - max((count - 1) * thread.period - own, 0)
        if response > worst.response:
            worst = _Window(response, count, preempted(length), interrupted(length))
        if length <= max(count * thread.period - own, 0):
            return worst
    return None


def _told(
    thread: Thread,
    chain: Sequence[Thread],
    origins: dict[str, Interrupt],
    found: dict[str, _Window | None],
) -> Response:
    windows = [found[each.name] for each in chain]
    total = 0
    for window in windows:
        if window is not None:
            total += window.response
    is_known = None not in windows
    last = windows[-1]
    first = chain[0].after
    return Response(
        thread,
        None if last is None else last.response,
        total if is_known else None,
        0 if last is None else last.activations,
        0 if last is None else last.preemption,
        0 if last is None else last.interrupts,
        (*((first,) if first in origins else ()), *(each.name for each in chain)),
    )
