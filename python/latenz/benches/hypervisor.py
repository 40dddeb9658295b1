"""The bench `hypervisor`: systems that exist as a file, executed by our hypervisor on QEMU."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenz.benches.base import Watch
from latenz.benches.simulation import Execution, Simulation
from latenz.boards.places import emulator
from latenz.boards.setup import ensure_boards
from latenz.model import TimeBase
from latenz.obstacle import Obstacle

if TYPE_CHECKING:
    from latenz.analysis import Simulation as Outcome
    from latenz.hypervisor.results import Measured
    from latenz.measuring.condition import Condition
    from latenz.system import System

_BOARD = "virt"
_IRQ_NS = 2_000_000
"""About what an interrupt costs to execute and to tell, for the progress bar."""
_START_NS = 3_000_000_000
_UNKNOWN_IRQS = 10_000


class _Hosted(Execution):
    """A run under the hypervisor, on the board `virt`.

    Beside it stands what the analysis says of the same system with the costs that were measured:
    the bound, and how many interrupts a simulation handles alike.
    """

    time_base = TimeBase.VIRTUAL
    tool = "latenz hypervisor"
    _measured: "Measured"
    _compared: str

    def execute(self, folder: Path, path: Path, watch: Watch) -> "tuple[Outcome, dict[str, Any]]":
        """Build, boot, take what comes; compare it with bound and simulation."""
        from latenz.analysis.records import irq_file
        from latenz.hypervisor.arrivals import arrivals
        from latenz.hypervisor.build import build_system
        from latenz.hypervisor.comparison import compared
        from latenz.hypervisor.run import boot

        mode = self.settings.mode or self.system.mode
        raised = arrivals(self.system, mode, None, self.settings.irqs, self.seed)
        built = build_system(self._to_be_learned(), mode, raised)
        logs = folder / self.described.name
        logs.mkdir(exist_ok=True)
        found = boot(
            built, _BOARD, logs, stopped=lambda: watch.stopped, report=lambda n: _tell(watch, n)
        )
        (logs / "image.elf").unlink()
        self._measured = found.measured
        with irq_file(self.system, found.measured.outcome.latency_from, path) as write:
            write(found.measured.irqs)
        told: dict[str, Any] = {"command": list(found.command)}
        self._compared = "stopped before it told its costs"
        if found.measured.costs is not None:
            comparison = compared(self.system, built, found.measured, self._monitored_from_ns())
            self._compared = comparison.sentence()
            told |= {
                "costs_ns": found.measured.costs.to_json(),
                "statistics": found.measured.statistics.model_dump(),
                **comparison.to_json(),
            }
        return found.measured.outcome, told

    def drawn(self, path: Path) -> str:  # noqa: ARG002
        """Draw what the trace shows."""
        from latenz.analysis.timeline import drawable, schedule_picture, telling_part
        from latenz.hypervisor.schedule import each_processor, timeline_of

        system, own = next(each_processor(self.system, self._measured))
        part = telling_part(system, own.irqs)
        return schedule_picture(drawable(timeline_of(system, own, *part)))

    def notes(self) -> list[str]:
        """Return how the run compares with the analysis."""
        return [self._compared]

    def _monitored_from_ns(self) -> dict[str, int]:
        return {name: each.from_ns for name, each in self.described.learned.items()}

    def _to_be_learned(self) -> "System":
        """Return the system whose monitors learn by themselves, as far as they are to learn.

        What they are allowed is what the settings made of the same interrupts (Algorithm 2).
        """
        from latenz.system.hosting import Learning

        wanted, learned = self.settings.learn, self.described.learned
        if wanted is None:
            return self.system
        sources = tuple(
            replace(source, learning=Learning(learned[source.name].events, wanted.length))
            for source in self.system.sources
        )
        return replace(self.system, sources=sources)


def _tell(watch: Watch, records: int) -> None:
    if watch.report:
        phase = f"{records:,} records of the trace" if records else "running"
        watch.report(phase, None)


class Hypervisor(Simulation):
    """Executes systems with guests that take as long as their bottom handlers may."""

    name = "hypervisor"
    execution = _Hosted

    def obstacle(self, condition: "Condition") -> Obstacle | None:  # noqa: ARG002
        """Return what the emulated board lacks."""
        return ensure_boards()

    def describe(self) -> dict[str, Any]:
        """Return the emulator and what drives it."""
        return emulator()

    def planned_ns(self, condition: "Condition") -> int:
        """Return about how long booting and executing takes."""
        from latenz.benches.simulation import settings_of

        settings = settings_of(condition)
        irqs = settings.irqs or _UNKNOWN_IRQS
        return (_START_NS + irqs * _IRQ_NS) * len(settings.system)
