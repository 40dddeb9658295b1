"""A run of the hypervisor beside what the analysis says of the same system with its costs.

Each processor is compared by itself, with the costs that were measured on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from latenz.analysis import bound
from latenz.analysis.simulate import Irqs, Simulator, Times, simulated_irqs
from latenz.hypervisor.build import Built
from latenz.hypervisor.costs import with_costs
from latenz.hypervisor.results import Measured, OnProcessor, joined_irqs
from latenz.hypervisor.stamps import as_stamped
from latenz.system import Learning, RecordedTrace, System
from latenz.system.processors import Part, parts

_LONGEST_VECTOR = 64


@dataclass(frozen=True, slots=True)
class Comparison:
    """What became of the same interrupts in a simulation, and what the analysis bounds them by.

    Attributes:
        irqs: Interrupts that the run served.
        alike: Those that the simulation handles the same way: direct, interposed or delayed.
        bounds_ns: Of each source; None where there is none. Drawn arrivals are bounded by the
            distances that these very interrupts kept.
        exceeding: Interrupts that took longer than their bound.
    """

    irqs: int
    alike: int
    bounds_ns: dict[str, int | None]
    exceeding: int

    def sentence(self) -> str:
        """Return it for a reader."""
        share = 100 * self.alike / self.irqs if self.irqs else 0
        known = {name: ns for name, ns in self.bounds_ns.items() if ns is not None}
        told = ", ".join(f"{name} {ns / 1000:.1f} us" for name, ns in known.items()) or "none"
        return (
            f"{self.alike} of {self.irqs} interrupts ({share:.2f} %) are handled as in a simulation"
            f" with the measured costs; bounds with them: {told}; {self.exceeding} are above"
        )

    def to_json(self) -> dict[str, Any]:
        """Return it for the run's account."""
        return {"compared": asdict(self)}


def compared(
    system: System,
    built: Built,
    run: Measured,
    monitored_from_ns: Mapping[str, int] | None = None,
) -> Comparison:
    """Compare a run with simulation and bound, both with the costs that were measured in it.

    Args:
        system: What was run, with the monitors that it had after learning.
        built: Its mode and interrupts, and which sources learned.
        run: What it showed; complete.
        monitored_from_ns: When each source's monitor was switched on, where that was not at once.
    """
    stamped = as_stamped(system, built.mode)
    masked = {at for at, each in enumerate(run.statistics.sources) if each.masked}
    seen = built.arrivals.by_source(system, run.irqs, masked)
    own = {each.processor: each for each in run.processors}
    found = [
        _compared_on(part, own[part.processor], built, seen, monitored_from_ns or {})
        for part in parts(stamped)
        if part.system is not None
    ]
    alike, told = (list(each) for each in zip(*found, strict=True))
    bounds_ns = {name: ns for each in told for name, ns in each.items()}
    bounds_ns = {source.name: bounds_ns[source.name] for source in system.sources}
    return Comparison(len(run.irqs.source), sum(alike), bounds_ns, _exceeding(run, bounds_ns))


def _compared_on(
    part: Part[System],
    run: OnProcessor,
    built: Built,
    arrivals: Sequence[Times],
    monitored_from_ns: Mapping[str, int],
) -> tuple[int, dict[str, int | None]]:
    """Return how many interrupts of a processor are alike, and the bounds of its sources."""
    assert part.system is not None  # noqa: S101 - the caller has looked
    assert run.costs is not None  # noqa: S101 - complete runs have them
    assert run.sections is not None  # noqa: S101 - likewise
    costly, _ = with_costs(part.system, run.costs, run.sections)
    seen = [arrivals[number] for number in part.sources]
    names = {source.name for source in costly.sources}
    simulator = Simulator(
        costly,
        built.mode,
        arrivals=seen,
        monitored_from_ns={name: ns for name, ns in monitored_from_ns.items() if name in names},
        limited=False,  # what was seen had passed the limits
        watch="irqs",
    )
    simulated = joined_irqs(list(simulated_irqs(simulator)))
    simulated = replace(simulated, source=np.array(part.sources, np.int64)[simulated.source])
    learning = {source.name: source.learning for source in built.system.sources}
    judged = _as_arrived(_with_learning(costly, learning), seen)
    bounds_ns = {each.name: each.wcrt_ns for each in bound(judged, built.mode).sources}
    return _alike(run.irqs, simulated), bounds_ns


def _with_learning(system: System, learning: Mapping[str, Learning | None]) -> System:
    """Return a system whose sources learn, by their names: bounds hold from the start on."""
    sources = (replace(source, learning=learning[source.name]) for source in system.sources)
    return replace(system, sources=tuple(sources))


def _as_arrived(system: System, arrivals: list[Times]) -> System:
    """Return a system whose sources keep the distances that were seen."""
    sources = []
    for source, seen in zip(system.sources, arrivals, strict=True):
        length = min(_LONGEST_VECTOR, len(seen) - 1)
        known = length >= 1 and seen[-1] > seen[0]
        sources.append(replace(source, arrival=RecordedTrace(seen, length)) if known else source)
    return replace(system, sources=tuple(sources))


def _alike(run: Irqs, simulated: Irqs) -> int:
    """Return how many interrupts two records handle the same way; they have the same arrivals."""
    first, second = (
        each.handling[np.lexsort((each.source, each.arrival_ns))] for each in (run, simulated)
    )
    common = min(len(first), len(second))
    return int(np.count_nonzero(first[:common] == second[:common]))


def _exceeding(run: Measured, bounds_ns: Mapping[str, int | None]) -> int:
    endless = 2**63 - 1
    most = np.array([endless if ns is None else ns for ns in bounds_ns.values()], dtype=np.int64)
    latency_ns = run.irqs.end_ns - run.irqs.arrival_ns
    return int(np.count_nonzero(latency_ns > most[run.irqs.source]))
