"""Simulation of systems whose slots may be of several processors, each by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from latenz.analysis.simulate import Irqs, Simulation, Simulator, Times
from latenz.system import Mode, System
from latenz.system.processors import Part, parts, shared_processors


class Simulators:
    """A simulator for each processor, run one after the other; used as a `Simulator` is.

    No processor waits for another one, and times of each count from the start of its own first
    cycle. `irqs` is how many interrupts arrive at most on each of them.

    Args:
        system: What to simulate, with slots on several processors.
        mode: Instead of the system's own.
        arrivals: As of `Simulator`: of each source of the system.
        monitored_from_ns: As of `Simulator`.
        options: The other options of `Simulator`.
    """

    def __init__(
        self,
        system: System,
        mode: Mode | None = None,
        *,
        arrivals: Sequence[Times] | None = None,
        monitored_from_ns: Mapping[str, int] | None = None,
        **options: Any,
    ) -> None:
        self.system = system
        self._parts = [part for part in parts(system) if part.system is not None]
        self._each = [
            _simulator(part, mode, arrivals, monitored_from_ns or {}, options)
            for part in self._parts
        ]
        self.mode = self._each[0].mode
        self.latency_from = self._each[0].latency_from

    @property
    def complete(self) -> bool:
        """Whether all is done."""
        return all(each.complete for each in self._each)

    def run(self) -> bool:
        """Go on by some steps of the first processor that is not done; as `Simulator.run`."""
        undone = next((each for each in self._each if not each.complete), None)
        if undone is not None:
            undone.run()
        return self.complete

    def take_irqs(self) -> Irqs:
        """Return the interrupts that ended since this was last called, by processor."""
        batches = [
            replace(irqs, source=np.array(part.sources, np.int64)[irqs.source])
            for part, irqs in zip(self._parts, (x.take_irqs() for x in self._each), strict=True)
        ]
        return Irqs(
            *(np.concatenate([getattr(x, name) for x in batches]) for name in Irqs.__slots__)
        )

    @property
    def now_ns(self) -> int:
        """How far time has come where it has come farthest."""
        return max(each.now_ns for each in self._each)

    @property
    def served(self) -> int:
        """How many interrupts have ended."""
        return sum(each.served for each in self._each)

    def outcome(self) -> Simulation:
        """Return the figures so far."""
        found = {x.name: x for each in self._each for x in each.outcome().sources}
        sources = tuple(found[source.name] for source in self.system.sources)
        return Simulation(self.mode, self.latency_from, sources, self.now_ns, self.complete)


def simulator_of(
    system: System, mode: Mode | None = None, **options: Any
) -> "Simulator | Simulators":
    """Return what simulates a system; the options are those of `Simulator`.

    Segments are watched on one processor only.
    """
    if len(shared_processors(system)) > 1:
        return Simulators(system, mode, **options)
    return Simulator(system, mode, **options)


AnySimulator: TypeAlias = Simulator | Simulators


def simulate(system: System, mode: Mode | None = None, **options: Any) -> Simulation:
    """Simulate to the end and return the figures; the options are those of `Simulator`."""
    simulator = simulator_of(system, mode, **options)
    while not simulator.run():
        pass
    return simulator.outcome()


def _simulator(
    part: Part[System],
    mode: Mode | None,
    arrivals: Sequence[Times] | None,
    monitored_from_ns: Mapping[str, int],
    options: Mapping[str, Any],
) -> Simulator:
    assert part.system is not None  # noqa: S101 - those alone are simulated
    names = {source.name for source in part.system.sources}
    return Simulator(
        part.system,
        mode,
        arrivals=None if arrivals is None else [arrivals[number] for number in part.sources],
        monitored_from_ns={name: ns for name, ns in monitored_from_ns.items() if name in names},
        **options,
    )
