"""The bench `simulation`: systems that exist as a file, simulated to the nanosecond."""

import platform
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from latenz.benches.base import Assignment, Bench, Watch
from latenz.columns import as_numpy, int64_column
from latenz.engines import SimulationSettings
from latenz.errors import BadInput
from latenz.model import (
    HANDLINGS,
    Handling,
    Metadata,
    Reported,
    SampleSet,
    TimeBase,
)
from latenz.obstacle import Obstacle

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from latenz.analysis import Simulation as Outcome
    from latenz.analysis import Simulator
    from latenz.analysis.simulate import Irqs
    from latenz.analysis.simulate import Watch as Watched
    from latenz.benches.described import Described
    from latenz.measuring.condition import Condition

_IRQ_NS = 600
"""About what an interrupt costs to simulate and to store, for the progress bar."""
_START_NS = 100_000_000
_UNKNOWN_IRQS = 10_000
_REPORT_EVERY_S = 0.5


class Simulation(Bench):
    """Simulates systems by the rules that bounds and hypervisor follow, too."""

    name = "simulation"
    stacks = ("tdma",)
    engines = ("simulation",)
    loads = ("none",)
    execution: "ClassVar[type[Execution]]"

    def obstacle(self, condition: "Condition") -> Obstacle | None:  # noqa: ARG002
        """Return None: this can be had everywhere."""
        return None

    def describe(self) -> dict[str, Any]:
        """Return the versions of what simulates."""
        from latenz import environment

        return {"latenz": environment.own_version(), "python": platform.python_version()}

    def planned_ns(self, condition: "Condition") -> int:
        """Return about how long simulating and storing takes."""
        settings = settings_of(condition)
        irqs = (settings.irqs or _UNKNOWN_IRQS) * len(settings.system)
        return _START_NS + irqs * _IRQ_NS

    def measure(self, assignment: Assignment, watch: Watch) -> dict[str, Any]:
        """Simulate, store a sample set for each source, and return an account."""
        from latenz.benches.described import described

        started = datetime.now(UTC).isoformat(timespec="seconds")
        condition = assignment.condition
        settings = settings_of(condition)
        account: dict[str, Any] = {
            "started": started,
            "engine": {"name": "simulation", "settings": settings.model_dump()},
        }
        simulated: list[dict[str, Any]] = []
        stored: list[SampleSet] = []
        try:
            for system in described(settings, condition.folder):
                if watch.stopped:
                    break
                one = self.execution(assignment, settings, system)
                simulated.append(one.run(watch))
                stored += one.stored
            if len(simulated) > 1 and stored:
                stored.append(_summed_up(assignment, stored))
        except BadInput as mistake:
            return {"state": "failed", "reason": str(mistake), **account, "systems": simulated}
        whole = len(simulated) == len(settings.system) and all(s["complete"] for s in simulated)
        return {
            "state": "measured" if whole else "interrupted",
            "sample_sets": [each.metadata.name for each in stored],
            **account,
            "systems": simulated,
        }


def settings_of(condition: "Condition") -> SimulationSettings:
    """Return the settings of a condition that a system is executed in.

    Raises:
        BadInput: It measures something else.
    """
    settings = condition.engine
    if not isinstance(settings, SimulationSettings):
        raise BadInput(f"the engine {settings.engine!r} does not simulate", condition.name)
    return settings


@dataclass(frozen=True)
class _Part:
    """What becomes one sample set: a source's interrupts that arrive in a phase.

    Attributes:
        source: Its name.
        phase: None without a learning phase.
        from_ns: When the phase begins.
        until_ns: When it is over.
    """

    source: str
    phase: Literal["learning", "monitored"] | None
    from_ns: int
    until_ns: int


class Execution(ABC):
    """What becomes of one system's interrupts, from the system to sample sets.

    Every interrupt goes to a file on the way, so that memory stays bounded.
    """

    time_base: ClassVar[TimeBase]
    tool: ClassVar[str]

    def __init__(
        self, assignment: Assignment, settings: SimulationSettings, system: "Described"
    ) -> None:
        self.assignment = assignment
        self.settings = settings
        self.described = system
        self.system = system.system
        self.seed = settings.seed + assignment.repetition - 1
        self.stored: list[SampleSet] = []

    def run(self, watch: Watch) -> dict[str, Any]:
        """Execute until all is done or the watch says stop; return an account."""
        folder = self.assignment.writer.folder / self.assignment.label
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "irqs.parquet"
        outcome, told = self.execute(folder, path, watch)
        for part in self._parts():
            self._store(part, path, outcome)
        self._picture(folder).write_text(self.drawn(path), encoding="utf-8")
        path.unlink()
        return {
            "system": self.described.name,
            "file": str(self.described.path),
            "text": self.described.text,
            "seed": self.seed,
            "irqs": self.settings.irqs,
            "learned": {name: asdict(each) for name, each in self.described.learned.items()},
            **asdict(outcome),
            **told,
        }

    @abstractmethod
    def execute(self, folder: Path, path: Path, watch: Watch) -> "tuple[Outcome, dict[str, Any]]":
        """Write every interrupt to a file; return the figures, and what else is to be told.

        Args:
            folder: Takes what else is to be kept.
            path: The file, as `latenz.analysis.records.irq_file` writes it.
            watch: Says when to stop.
        """

    @abstractmethod
    def drawn(self, path: Path) -> str:
        """Return two cycles of the schedule as SVG; the report shows them."""

    def notes(self) -> list[str]:
        """Return what is to be said with every sample set."""
        return []

    def _picture(self, folder: Path) -> Path:
        several = len(self.settings.system) > 1
        return folder / (f"schedule-{self.described.name}.svg" if several else "schedule.svg")

    def _parts(self) -> Iterator[_Part]:
        end_ns = 2**63 - 1
        for source in self.system.sources:
            if source.name in self.described.learned:
                from_ns = self.described.learned[source.name].from_ns
                yield _Part(source.name, "learning", 0, from_ns)
                yield _Part(source.name, "monitored", from_ns, end_ns)
            else:
                yield _Part(source.name, None, 0, end_ns)

    def _store(self, part: _Part, path: Path, outcome: "Outcome") -> None:
        sample_set = SampleSet(
            self._metadata(part, outcome), "samples", _batches(part, path), tuple(_READ_FROM)
        )
        if handled := _handled([sample_set]):
            self.stored.append(_kept(self.assignment, sample_set.with_metadata(handled=handled)))

    def _metadata(self, part: _Part, outcome: "Outcome") -> Metadata:
        from latenz.analysis.simulate import BEGINNINGS

        names = [
            self.described.name if len(self.settings.system) > 1 else "",
            part.source if len(self.system.sources) > 1 else "",
            part.phase or "",
        ]
        name = "/".join(each for each in names if each) or part.source
        notes = self.notes()
        if not outcome.complete:
            notes.append("interrupted: only interrupts that had ended by then")
        condition = self.assignment.condition
        return Metadata(
            name=f"{self.assignment.label}/{name}",
            time_base=self.time_base,
            bench=condition.bench,
            stack=f"{condition.stack}, mode {outcome.mode}",
            condition=condition.name,
            from_event=BEGINNINGS[outcome.latency_from],
            to_event="end of the bottom handler",
            tool=self.tool,
            tool_version=version("latenz"),
            phase=part.phase,
            deadlines=self.assignment.deadlines,
            source=f"{self.described.path.name}, source {part.source}",
            notes=tuple(notes),
        )


class _Simulated(Execution):
    """A simulation."""

    time_base = TimeBase.SIMULATED
    tool = "latenz simulation"

    def execute(
        self,
        folder: Path,  # noqa: ARG002
        path: Path,
        watch: Watch,
    ) -> "tuple[Outcome, dict[str, Any]]":
        """Simulate."""
        simulator = self._simulator("irqs")
        self._simulate(simulator, path, watch)
        return simulator.outcome(), {}

    def drawn(self, path: Path) -> str:
        """Simulate once more what is most telling."""
        from latenz.analysis.timeline import drawable, schedule_picture, telling_part, timeline

        part = telling_part(self.system, _first_irqs(path))
        return schedule_picture(drawable(timeline(self._simulator("segments"), *part)))

    def _simulator(self, watch: "Watched") -> "Simulator":
        from latenz.analysis import Simulator

        return Simulator(
            self.system,
            self.settings.mode,
            irqs=self.settings.irqs,
            seed=self.seed,
            monitored_from_ns={name: each.from_ns for name, each in self.described.learned.items()},
            watch=watch,
        )

    def _simulate(self, simulator: "Simulator", path: Path, watch: Watch) -> None:
        from latenz.analysis.records import irq_file
        from latenz.analysis.simulate import simulated_irqs

        reported_s = 0.0
        with irq_file(self.system, simulator.latency_from, path) as write:
            for irqs in simulated_irqs(simulator):
                write(irqs)
                if watch.report and time.monotonic() - reported_s > _REPORT_EVERY_S:
                    reported_s = time.monotonic()
                    watch.report(f"{simulator.served:,} interrupts", _longest(simulator.outcome()))
                if watch.stopped:
                    break


Simulation.execution = _Simulated


_READ_FROM = {"latency_ns": "latency_ns", "t_ns": "arrival_ns", "handling": "handling"}
"""Columns of the sample sets, and the columns of the file of interrupts that they come from."""


def _batches(part: _Part, path: Path) -> "Callable[[list[str]], Iterator[pa.RecordBatch]]":
    """Return how to read a part of the interrupts in a file, as often as wanted."""

    def batches(wanted: list[str]) -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa
        from pyarrow import parquet

        read = ["source", "arrival_ns", *(_READ_FROM[name] for name in wanted)]
        for batch in parquet.ParquetFile(path).iter_batches(columns=list(dict.fromkeys(read))):
            arrival_ns = as_numpy(batch.column("arrival_ns"))
            kept = _numbers(batch.column("source"), [part.source]) == 0
            kept &= (part.from_ns <= arrival_ns) & (arrival_ns < part.until_ns)
            columns = {}
            for name in wanted:
                column = batch.column(_READ_FROM[name])
                values = _numbers(column, HANDLINGS) if name == "handling" else as_numpy(column)
                columns[name] = int64_column(values[kept])
            yield pa.RecordBatch.from_pydict(columns)

    return batches


def _first_irqs(path: Path) -> "Irqs":
    """Return the first interrupts of a file."""
    from pyarrow import parquet

    from latenz.analysis.simulate import Irqs

    for batch in parquet.ParquetFile(path).iter_batches():
        columns = (batch.column(name) for name in ("arrival_ns", "top_start_ns", "end_ns"))
        return Irqs(
            as_numpy(batch.column("source").indices),
            _numbers(batch.column("handling"), HANDLINGS),
            *(as_numpy(column) for column in columns),
        )
    import numpy as np

    return Irqs(*(np.empty(0, dtype=np.int64) for _ in range(5)))


def _numbers(column: "pa.DictionaryArray", names: Sequence[str]) -> "npt.NDArray[np.int64]":
    """Return the place of each word of a column among names; -1 for others."""
    import numpy as np

    known = column.dictionary.to_pylist()
    places = [names.index(word) if word in names else -1 for word in known]
    numbers: npt.NDArray[np.int64] = np.array(places, dtype=np.int64)[as_numpy(column.indices)]
    return numbers


def _handled(sets: Sequence[SampleSet]) -> dict[Handling, float] | None:
    """Return the share of each handling in some sets together; None without any sample."""
    import numpy as np

    counts = np.zeros(len(HANDLINGS), dtype=np.int64)
    for sample_set in sets:
        for batch in sample_set.batches("handling"):
            counts += np.bincount(as_numpy(batch.column(0)), minlength=len(HANDLINGS))
    n = int(counts.sum())
    return dict(zip(HANDLINGS, (counts / n).tolist(), strict=True)) if n else None


def _kept(assignment: Assignment, sample_set: SampleSet) -> SampleSet:
    """Store a set; return it as it can be read from the run."""
    from latenz.store.parquet import open_parquet

    assignment.writer.add(sample_set)
    entry = assignment.writer.info.sample_sets[-1]
    return open_parquet(assignment.writer.folder / entry.folder / "samples.parquet", entry.metadata)


def _summed_up(assignment: Assignment, sets: list[SampleSet]) -> SampleSet:
    """Store the figures of all systems together, as the publication has them."""
    from latenz.statistics import summarize

    first = sets[0].metadata

    def batches(wanted: list[str]) -> "Iterator[pa.RecordBatch]":
        for sample_set in sets:
            yield from sample_set.batches(*wanted)

    summary = summarize(SampleSet(first, "samples", batches, ("latency_ns",)))
    metadata = first.model_copy(
        update={
            "name": f"{assignment.label}/together",
            "source": None,
            "notes": (),
            "deadlines": (),
            "handled": _handled(sets),
            "sums_up": tuple(each.metadata.name for each in sets),
            "reported": Reported(
                n=summary.n,
                mean_ns=summary.mean_ns,
                median_ns=summary.median_ns,
                min_ns=summary.min_ns,
                max_ns=summary.max_ns,
                jitter_ns=summary.jitter_ns,
                stdev_ns=summary.stdev_ns,
            ),
        }
    )
    together = SampleSet.from_columns(metadata)
    assignment.writer.add(together)
    return together


def _longest(outcome: "Outcome") -> int | None:
    return max((each.max_ns for each in outcome.sources if each.max_ns is not None), default=None)
