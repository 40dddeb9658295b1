"""Simulation by the execution rules of docs/rules.md, to the nanosecond.

The rules are carried out by core/include/latenz/simulator.hpp.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from latenz import _core
from latenz.analysis.native import MODES, core_system
from latenz.errors import BadInput
from latenz.model import HANDLINGS as HANDLINGS
from latenz.system import (
    Distances,
    Exponential,
    LatencyFrom,
    Mode,
    Periodic,
    RecordedTrace,
    Source,
    System,
)
from latenz.system.fields import LONGEST_NS

BEGINNINGS = {"arrival": "arrival of the interrupt", "top": "start of the top handler"}
"""Where latencies begin, as sample sets say it."""
Times = npt.NDArray[np.int64]

ACTIVITIES = (
    "slot switch",
    "top handler",
    "bottom handler",
    "interposing",
    "interposed bottom handler",
)
"""What the processor does, by the number in `Segments.activity`; `interposing` is the scheduler
and context switches before and after an interposed bottom handler."""

Watch = Literal["figures", "irqs", "segments"]
"""What of a simulation is kept."""

_STEPS = 1 << 20
_EVERYTHING = 2**62


@dataclass(frozen=True, slots=True)
class SimulatedSource:
    """Latencies of one source.

    Attributes:
        name: The source.
        n: Interrupts that were simulated to their end.
        min_ns: The least latency; None without any.
        mean_ns: Their mean.
        max_ns: The greatest.
        direct: How many arrived in their own partition's slot.
        interposed: How many were granted in a foreign slot.
        delayed: How many had to wait for their own slot.
    """

    name: str
    n: int
    min_ns: int | None
    mean_ns: float | None
    max_ns: int | None
    direct: int
    interposed: int
    delayed: int


@dataclass(frozen=True, slots=True)
class Irqs:
    """Interrupts in the order in which their bottom handlers ended, one entry each.

    Attributes:
        source: Number of the source in the system.
        handling: Number in `HANDLINGS`.
        arrival_ns: When it arrived.
        top_start_ns: When its top handler started.
        end_ns: When its bottom handler ended.
    """

    source: Times
    handling: Times
    arrival_ns: Times
    top_start_ns: Times
    end_ns: Times


@dataclass(frozen=True, slots=True)
class Segments:
    """What the processor did, in order of time, one entry each; idle times have none.

    Attributes:
        activity: Number in `ACTIVITIES`.
        partition: Number of the partition in `System.partitions`.
        source: Number of the source; meaningless for slot switches.
        start_ns: When it began.
        end_ns: When it ended.
    """

    activity: Times
    partition: Times
    source: Times
    start_ns: Times
    end_ns: Times


@dataclass(frozen=True, slots=True)
class Simulation:
    """The outcome of a simulation.

    Attributes:
        mode: How interrupts in foreign slots were handled.
        latency_from: Where latencies began.
        sources: In the order of the system.
        end_ns: When the last interrupt had ended.
        complete: False if it was interrupted: the figures are of what had ended by then.
    """

    mode: Mode
    latency_from: LatencyFrom
    sources: tuple[SimulatedSource, ...]
    end_ns: int
    complete: bool

    def of(self, source: str) -> SimulatedSource:
        """Return the figures of a source by its name."""
        return next(each for each in self.sources if each.name == source)


class Simulator:
    """A simulation that is run in steps.

    Args:
        system: What to simulate.
        mode: Instead of the system's own.
        arrivals: Listed arrival times for each source, sorted; None: drawn from the sources'
            arrival models with the seed.
        irqs: How many interrupts, of all sources together, arrive at most.
        seed: Of drawn arrivals.
        latency_from: Instead of the system's own.
        monitored_from_ns: When a source's monitor is switched on, by the source's name: whatever
            arrives earlier is direct or delayed, as in a learning phase. From the start otherwise.
        limited: Whether a source that exceeds its event model is masked, as rule R7 has it. Drawn
            arrivals keep their models.
        watch: `irqs` keeps every interrupt for `take_irqs`, `segments` also what the processor
            does for `take_segments`; `figures` neither, in constant memory.
    """

    def __init__(
        self,
        system: System,
        mode: Mode | None = None,
        *,
        arrivals: Sequence[Times] | None = None,
        irqs: int | None = None,
        seed: int = 0,
        latency_from: LatencyFrom | None = None,
        monitored_from_ns: Mapping[str, int] | None = None,
        limited: bool = True,
        watch: Watch = "figures",
    ) -> None:
        self.system = system
        self.mode: Mode = mode or system.mode
        self.latency_from: LatencyFrom = latency_from or system.latency_from
        self.complete = False
        self._awaited = _awaited(system, arrivals, irqs)
        self._simulation = _core.simulation(
            core_system(system),
            MODES[self.mode],
            _streams(system, arrivals, irqs, seed),
            _EVERYTHING if irqs is None else irqs,
            self.latency_from == "top",
            getattr(_core.Watch, watch),
        )
        names = [source.name for source in system.sources]
        if limited and arrivals is not None:
            self._simulation.limit_arrivals()
        for name, at_ns in (monitored_from_ns or {}).items():
            self._simulation.monitor_from(names.index(name), at_ns)

    def run(self, steps: int = _STEPS) -> bool:
        """Go on by so many arrivals and slot switches; return whether all is done.

        What is watched must be taken in between: a full batch pauses the simulation.

        Raises:
            BadInput: Work or arrivals go on for longer than 64 bits of nanoseconds count.
        """
        self.complete = self._simulation.run(steps)
        too_few = self.complete and self.served < self._awaited
        if self.now_ns == LONGEST_NS or too_few:
            raise BadInput(
                "the simulation goes beyond 292 years",
                "arrivals",
                "let fewer interrupts arrive, more often, or take shorter handlers",
            )
        return self.complete

    def take_irqs(self) -> Irqs:
        """Return the interrupts that ended since this was last called."""
        return Irqs(*self._simulation.take_irqs())

    def take_segments(self) -> Segments:
        """Return what the processor did since this was last called."""
        return Segments(*self._simulation.take_segments())

    @property
    def now_ns(self) -> int:
        """How far time has come."""
        return self._simulation.now_ns

    @property
    def served(self) -> int:
        """How many interrupts have ended."""
        return sum(figures[0] for figures in self._simulation.figures())

    def outcome(self) -> Simulation:
        """Return the figures so far."""
        sources = tuple(
            _figures(source.name, *figures)
            for source, figures in zip(self.system.sources, self._simulation.figures(), strict=True)
        )
        return Simulation(
            self.mode, self.latency_from, sources, self._simulation.now_ns, self.complete
        )


class Watched(Protocol):
    """What is simulated in steps, its interrupts watched."""

    def run(self) -> bool:
        """Go on; return whether all is done."""

    def take_irqs(self) -> Irqs:
        """Return the interrupts that ended since this was last called."""


def simulated_irqs(simulator: Watched) -> Iterator[Irqs]:
    """Run a simulator that watches interrupts; yield them in batches."""
    while True:
        done = simulator.run()
        yield simulator.take_irqs()
        if done:
            return


def _figures(
    name: str, n: int, least: int, most: int, total: int, *handled: int
) -> SimulatedSource:
    if n == 0:
        return SimulatedSource(name, 0, None, None, None, *handled)
    return SimulatedSource(name, n, least, total / n, most, *handled)


def _streams(
    system: System, arrivals: Sequence[Times] | None, irqs: int | None, seed: int
) -> list[_core.Stream]:
    if arrivals is not None:
        return [_listed(times) for times in arrivals]
    if irqs is None and (endless := _endless(system)):
        raise BadInput(
            f"arrivals of {endless[0]} have no end", "irqs", "say how many interrupts to simulate"
        )
    return [_stream(source, seed) for source in system.sources]


def _awaited(system: System, arrivals: Sequence[Times] | None, irqs: int | None) -> int:
    """Return how many interrupts end at least, if time is long enough for them."""
    if arrivals is None:
        return irqs if irqs and _endless(system) else 0
    listed = sum(len(times) for times in arrivals)
    return listed if irqs is None else min(irqs, listed)


def _endless(system: System) -> list[str]:
    return [
        source.name for source in system.sources if not isinstance(source.arrival, RecordedTrace)
    ]


def _listed(times: Times) -> _core.Stream:
    times = np.ascontiguousarray(times, dtype=np.int64)
    if times.size and times[-1] == LONGEST_NS:  # the core's end of time
        raise BadInput(
            f"{LONGEST_NS} ns leaves no time to serve an interrupt", "arrivals", "end earlier"
        )
    return _core.listed(times)


def _stream(source: Source, seed: int) -> _core.Stream:
    arrival = source.arrival
    match arrival:
        case RecordedTrace():
            return _listed(arrival.times_ns)
        case Periodic(period_ns, jitter_ns, min_distance_ns):
            own = _seed(source, seed, 0)
            return _core.periodic(period_ns, jitter_ns, min_distance_ns, own)
        case Exponential(mean_ns, min_distance_ns, own_seed):
            return _core.exponential(mean_ns, min_distance_ns, _seed(source, seed, own_seed))
        case Distances(distances_ns):
            return _core.sporadic(distances_ns, _seed(source, seed, 0))


def _seed(source: Source, seed: int, own: int) -> int:
    """Give each source random numbers of its own, whatever else is in the system."""
    text = f"{seed}/{own}/{source.name}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
