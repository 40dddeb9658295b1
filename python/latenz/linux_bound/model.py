"""The theorem: from the longest windows to a bound of the wake-up latency.

L = F - A, from when a wake-up was due to when its thread runs preemptibly, is at most the least
x > 0 with x = B + Q(x), where B = max(blocking, switching, idle) + scheduler, and Q(x) is the most
time of interrupts that begin in a half-open window of length x. docs/linux-bound.md has the proof.
All of it is integers: nanoseconds.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

from latenz import _core

Interrupts = Literal["joint", "sources", "curves", "wcet"]
"""What is taken of interrupts: `joint`: windows of all of them together; `sources`: windows of
each, each in its worst phase; `curves`: of each the shortest distances and the longest sums of
consecutive executions; `wcet`: the shortest distances, and the longest execution each time."""
INTERRUPTS: tuple[Interrupts, ...] = ("joint", "sources", "curves", "wcet")
Interference = Callable[[int], int]
"""Q(x) for x > 0."""
HORIZON_NS = 10_000_000_000
"""A bound beyond it is given up."""
_MOST_STEPS = 100_000
_LONGEST = 64  # vector that the core takes; what fewer entries imply of more is never less


@dataclass(frozen=True, slots=True)
class Terms:
    """The longest T-times in nanoseconds.

    Attributes:
        blocking: From where an arrival can be held up to the next point at which the scheduler is
            called if it is needed.
        switching: From the masking for a switch of threads to the first point after it.
        idle_in: From that masking, or from the last sleep, to sleep.
        idle_out: From sleep to the scheduler.
        idle_direct: From that masking to the scheduler without sleep between.
        scheduler: From a point that calls the scheduler until the thread runs preemptibly.
        to_user: From there until the thread has read the clock in user mode.
    """

    blocking: int = 0
    switching: int = 0
    idle_in: int = 0
    idle_out: int = 0
    idle_direct: int = 0
    scheduler: int = 0
    to_user: int = 0

    @property
    def idle(self) -> int:
        """The longest way through the idle thread."""
        return max(self.idle_in + self.idle_out, self.idle_direct)

    @property
    def holding(self) -> tuple[str, int]:
        """What holds an arrival longest, and how long: `blocking`, `switching` or `idle`."""
        held = {"blocking": self.blocking, "switching": self.switching, "idle": self.idle}
        return max(held.items(), key=lambda item: item[1])

    def work(self, *, to_user: bool = False) -> int:
        """Return B: the most that the thread context itself does from A to F."""
        return self.holding[1] + self.scheduler + (self.to_user if to_user else 0)

    def joined(self, other: "Terms") -> "Terms":
        """Return the longer of each."""
        return Terms(*(max(getattr(self, name), getattr(other, name)) for name in TERMS))


TERMS = tuple(Terms.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Steps:
    """Q as a staircase.

    Attributes:
        spans: Ascending; a window longer than one of them holds the sum beside it.
        sums: Ascending.
        horizon: Up to which length of windows they hold; None: any.
    """

    spans: tuple[int, ...] = ()
    sums: tuple[int, ...] = ()
    horizon: int | None = None

    @classmethod
    def of(cls, pairs: Iterable[Sequence[int]], horizon: int | None = None) -> "Steps":
        """Return the highest steps of any: those that a shorter span surpasses are left out."""
        spans: list[int] = []
        sums: list[int] = []
        for span, total in sorted((int(a), int(b)) for a, b in pairs):
            if sums and total <= sums[-1]:
                continue
            if spans and spans[-1] == span:
                sums[-1] = total
            else:
                spans.append(span)
                sums.append(total)
        return cls(tuple(spans), tuple(sums), horizon)

    def __call__(self, length: int) -> int:
        """Return Q(length); beyond the horizon a window is made of several."""
        if self.horizon is None or length <= self.horizon:
            return self._within(length)
        if self.horizon == 0:  # as many as are looked at began at once: any number may
            return 2 * HORIZON_NS
        # Two half-open windows one after the other hold no more than each of them can.
        whole, rest = divmod(length, self.horizon)
        return whole * self._within(self.horizon) + (self._within(rest) if rest else 0)

    def _within(self, length: int) -> int:
        place = bisect_left(self.spans, length)
        return self.sums[place - 1] if place else 0

    def joined(self, other: "Steps") -> "Steps":
        """Return the higher of both, as far as both hold."""
        horizons = [each.horizon for each in (self, other) if each.horizon is not None]
        pairs = [
            *zip(self.spans, self.sums, strict=True),
            *zip(other.spans, other.sums, strict=True),
        ]
        return Steps.of(pairs, min(horizons, default=None))


@dataclass(frozen=True, slots=True)
class Source:
    """What is known of one interrupt.

    Attributes:
        name: As the bound calls it.
        n: Its executions.
        longest: The longest of them.
        steps: Its own windows.
        distances: Shortest time from the begin of an execution to that of the next one, the one
            after that, and so on.
        sums: Longest time of one execution, of two consecutive ones, and so on.
    """

    name: str
    n: int
    longest: int
    steps: Steps
    distances: tuple[int, ...]
    sums: tuple[int, ...]
    _begins: _core.DistanceVector | None = field(init=False, repr=False, compare=False)
    _curve: _core.CostCurve = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        distances = self.distances[:_LONGEST]
        sums = tuple(accumulate(self.sums[:_LONGEST] or (self.longest,), max))  # joined runs differ
        object.__setattr__(self, "_begins", _core.DistanceVector(distances) if distances else None)
        object.__setattr__(self, "_curve", _core.CostCurve(sums))

    def begins(self, length: int) -> int:
        """Return how many executions begin in a half-open window of a length > 0, at most.

        Beyond the known distances they are continued superadditively.
        """
        if self._begins is None:
            return self.n  # 0 or 1 in all that was seen
        found = self._begins.eta(length)
        return _MOST_STEPS if found is None else found

    def longest_sum(self, count: int) -> int:
        """Return the longest time of so many consecutive executions, continued subadditively."""
        found = self._curve.sum(count)
        return 2 * HORIZON_NS if found is None else found


def interference(joint: Steps, sources: Sequence[Source], kind: Interrupts) -> Interference:
    """Return Q as one of the models has it."""
    if kind == "joint":
        return joint
    if kind == "sources":
        return lambda length: sum(each.steps(length) for each in sources)
    if kind == "curves":
        return lambda length: sum(each.longest_sum(each.begins(length)) for each in sources)
    return lambda length: sum(each.longest * each.begins(length) for each in sources)


def least_fixed_point(work: int, taken: Interference, horizon: int = HORIZON_NS) -> int | None:
    """Return the least x > 0 with x = work + taken(x), None if there is none up to the horizon."""
    length = max(work, 1)
    for _ in range(_MOST_STEPS):
        following = max(work + taken(length), 1)
        if following <= length:
            return length
        if following > horizon:
            return None
        length = following
    return None


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound and what it is made of.

    Attributes:
        bound_ns: The bound; None if the interrupts leave none up to the horizon.
        holding: Which term holds the arrival: `blocking`, `switching` or `idle`.
        holding_ns: For how long.
        scheduler_ns: The scheduler's part.
        to_user_ns: The way to user mode; 0 if it is not asked for.
        interrupts_ns: The interrupts' part.
    """

    bound_ns: int | None
    holding: str
    holding_ns: int
    scheduler_ns: int
    to_user_ns: int
    interrupts_ns: int


def bound(
    terms: Terms, taken: Interference, *, to_user: bool = False, horizon: int = HORIZON_NS
) -> Bound:
    """Return the bound of the wake-up latency: up to F, or until the thread has read the clock."""
    name, held = terms.holding
    work = terms.work(to_user=to_user)
    found = least_fixed_point(work, taken, horizon)
    return Bound(
        found,
        name,
        held,
        terms.scheduler,
        terms.to_user if to_user else 0,
        0 if found is None else found - work,
    )
