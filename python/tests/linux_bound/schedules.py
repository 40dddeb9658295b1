"""A CPU with one Linux on it, simulated unit by unit; it knows nothing of the theorem.

Threads' units are masked or not, and preemptible or not; some end with a look at whether the
scheduler is needed. Interrupts are taken in the order of their requests, between units, as soon as
they are not masked. One of them wakes the measured thread.
"""

import random
from dataclasses import dataclass, field

Unit = tuple[bool, bool, bool]
"""Masked, counted (not preemptible), looks at its end whether the scheduler is needed."""
FREE: Unit = (False, False, False)


@dataclass
class Sections:
    """Units of a thread up to its next call of the scheduler."""

    units: list[Unit]


@dataclass
class Switch:
    """A call of the scheduler that is none of the measured thread's: before the choice, after it
    with interrupts masked, and after that up to a look whether the scheduler is needed again."""

    before: int
    masked: int
    after: int


@dataclass
class Idle:
    """A switch to the idle thread, its way to sleep, back to it, and from it to the scheduler."""

    before: int
    masked: int
    looking: int
    masked_before_sleep: int
    again: int
    out: int


Part = Sections | Switch | Idle


@dataclass
class Schedule:
    """What happens: the parts, one after the other, and the interrupts."""

    parts: list[Part]
    requests: list[tuple[int, int]]
    """When each interrupt is requested, and how long it executes."""
    waker: int
    """Which of them wakes the thread."""
    scheduler: tuple[int, int]
    """Its own switch: before the choice, and after it with interrupts masked."""


@dataclass
class Run:
    """What a simulation found: the executions' begins and lengths, and the wake-up's latency."""

    executions: list[tuple[int, int]] = field(default_factory=list)
    latency: int | None = None


class _Woken(Exception):  # noqa: N818 - it ends a simulation, it is not an error
    pass


class Simulation:
    """One run of a schedule."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.run = Run()
        self.now = 0
        self.taken = 0
        self.needed = False

    def simulate(self) -> Run:
        """Run until the woken thread runs, or all is over."""
        try:
            for part in self.schedule.parts:
                if isinstance(part, Sections):
                    self._sections(part)
                elif isinstance(part, Switch):
                    self._switch(part)
                else:
                    self._idle(part)
            while self._pending():
                self._interrupt()
            if self.needed:
                self._scheduler()
        except _Woken:
            pass
        return self.run

    def _pending(self) -> bool:
        requests = self.schedule.requests
        return self.taken < len(requests) and requests[self.taken][0] <= self.now

    def _interrupt(self) -> None:
        _, own = self.schedule.requests[self.taken]
        self.run.executions.append((self.now, own))
        self.needed = self.needed or self.taken == self.schedule.waker
        self.taken += 1
        self.now += own

    def _unit(self, masked: bool) -> None:
        while not masked and self._pending():
            self._interrupt()
        self.now += 1

    def _sections(self, part: Sections) -> None:
        for masked, counted, looks in part.units:
            while not masked and self._pending():
                self._interrupt()
                if self.needed and not counted:
                    self._scheduler()
            self.now += 1
            if looks and self.needed and not masked:
                self._scheduler()

    def _switch(self, part: Switch) -> None:
        for _ in range(part.before):
            self._unit(False)
        if self.needed:
            self._chosen(part.masked)
        for _ in range(part.masked):
            self._unit(True)
        for _ in range(part.after):
            self._unit(False)
        if self.needed:
            self._scheduler()

    def _idle(self, part: Idle) -> None:
        for _ in range(part.before):
            self._unit(False)
        if self.needed:
            self._chosen(part.masked)
        for _ in range(part.masked):
            self._unit(True)
        for _ in range(part.looking):
            self._unit(False)
        while not self.needed:
            if not self._sleep(part):
                return
        for _ in range(part.out):
            self._unit(False)
        self._scheduler()

    def _sleep(self, part: Idle) -> bool:
        """Sleep until an interrupt, and take it; return whether there was one."""
        for _ in range(part.masked_before_sleep):
            self._unit(True)
        if self.taken == len(self.schedule.requests):
            return False
        self.now = max(self.now, self.schedule.requests[self.taken][0])
        self._interrupt()
        if not self.needed:
            for _ in range(part.again):
                self._unit(False)
        return True

    def _scheduler(self) -> None:
        before, masked = self.schedule.scheduler
        for _ in range(before):
            self._unit(False)
        self._chosen(masked)

    def _chosen(self, masked: int) -> None:
        for _ in range(masked):
            self._unit(True)
        due = self.schedule.requests[self.schedule.waker][0]
        self.run.latency = self.now - due
        raise _Woken


def drawn(rng: random.Random) -> Schedule:
    """Return a random schedule."""
    parts: list[Part] = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        if kind < 0.55:
            parts.append(Sections(_units(rng)))
        elif kind < 0.8:
            parts.append(Switch(rng.randint(0, 4), rng.randint(1, 8), rng.randint(1, 8)))
        else:
            numbers = [rng.randint(0, 4), *(rng.randint(1, 9) for _ in range(5))]
            parts.append(Idle(*numbers))
    requests, at = [], rng.randint(0, 30)
    for _ in range(rng.randint(1, 7)):
        requests.append((at, rng.randint(1, 15)))
        at += rng.choice((0, 1, rng.randint(0, 12), rng.randint(0, 40)))
    scheduler = (rng.randint(0, 4), rng.randint(1, 6))
    return Schedule(parts, requests, rng.randrange(len(requests)), scheduler)


def _units(rng: random.Random) -> list[Unit]:
    units: list[Unit] = []
    masked, count = False, 0
    for _ in range(rng.randint(3, 14)):
        looks = False
        action = rng.randrange(5)
        if action == 0:
            masked = True
        elif action == 1:
            masked = False
        elif action == 2:
            count += 1
        elif action == 3:
            count = max(0, count - 1)
        elif count == 0 and not masked:
            looks = True
        units += [(masked, count > 0, looks and not index) for index in range(rng.randint(1, 5))]
    units += [(False, False, True)]  # on the way to the next part it looks
    return units
