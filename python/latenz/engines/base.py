"""What every measuring engine does: check, prepare, run, alive?, stop, collect."""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from latenz.activity import Activity
from latenz.affinity import enterable_cpus, isolation
from latenz.idle import deep_idle_note, dma_latency_in_words, requested_us
from latenz.measuring.settings import EngineSettings, SleepingEngineSettings
from latenz.model import Metadata, SampleSet
from latenz.obstacle import Obstacle

if TYPE_CHECKING:
    from latenz.store.run import RunWriter


SettingsT = TypeVar("SettingsT", bound=EngineSettings)


@dataclass(frozen=True)
class Task:
    """One measurement that an engine is asked for.

    Attributes:
        writer: The run that takes the samples.
        folder: Folder inside the run for the engine's own files.
        metadata: What is known before measuring; its name is the condition's.
        duration_ns: How long to measure.
    """

    writer: "RunWriter"
    folder: Path
    metadata: Metadata
    duration_ns: int


class Engine(Activity, Generic[SettingsT]):
    """A program that measures.

    The life cycle is: `obstacle` (class), construct, `start`, `alive` until it ends or `stop`,
    `collect`. An engine that is stopped early keeps what it has measured.

    Args:
        settings: How to measure.
        task: What to measure and where the samples go.

    Attributes:
        notes: What the sample sets must say besides what the engine knows.
    """

    name: ClassVar[str]
    settings_type: ClassVar[type[EngineSettings]]
    measures: ClassVar[str]
    """What it measures, in a few words."""
    log_file = "engine.log"
    start_up_ns: ClassVar[int] = 2_000_000_000
    """The longest an undisturbed engine takes to start and to end, besides measuring."""

    def __init__(self, settings: SettingsT, task: Task) -> None:
        super().__init__(task.folder)
        self.cpus = enterable_cpus()
        self.settings = settings
        self.task = task
        self.notes: tuple[str, ...] = ()

    @classmethod
    def needed(cls) -> dict[str, Any]:
        """Return settings with which it can be tried, where it cannot do without any."""
        return {}

    @classmethod
    @abstractmethod
    def obstacle(cls, settings: SettingsT) -> Obstacle | None:
        """Return why this engine cannot measure here, or None if it can."""

    @abstractmethod
    def collect(self) -> list[SampleSet]:
        """Store what was measured; called once, after the end.

        Raises:
            BadInput: The program left nothing that can be read.
        """

    def account(self) -> dict[str, Any]:
        """Return what the run tells of the condition besides its samples, after `collect`."""
        return {}

    @classmethod
    def warm_up_ns(cls, settings: SettingsT) -> int:  # noqa: ARG003 - most have none
        """Return how long the engine runs before it starts to measure."""
        return 0

    @classmethod
    def planned_ns(cls, settings: SettingsT, duration_ns: int) -> int:
        """Return about how long the engine takes, from its start to its end.

        Args:
            settings: How to measure.
            duration_ns: How long to measure; 0 for what ends by itself.
        """
        return cls.warm_up_ns(settings) + duration_ns + cls.start_up_ns

    @classmethod
    def longest_ns(cls, settings: SettingsT, duration_ns: int) -> int:
        """Return after how long the engine is ended if it does not end by itself."""
        # A machine that holds it up for seconds must not cut short what was asked for.
        return cls.planned_ns(settings, duration_ns) + 60_000_000_000

    def maximum_ns(self) -> int | None:
        """Return the largest latency so far, None if that cannot be told while measuring."""
        return None

    def _circumstances(self, cpu: int | None) -> dict[str, Any]:
        """Return what is known of a CPU before measuring on it, as metadata."""
        settings = self.settings
        known: dict[str, Any] = {"isolation": None if cpu is None else isolation(cpu)}
        if isinstance(settings, SleepingEngineSettings):
            known["dma_latency"] = dma_latency_in_words(settings.held_ns, requested_us())
        return known

    def _place_notes(self, cpu: int | None) -> tuple[str, ...]:
        """Return what a reader must know of the CPU."""
        reason = None if cpu is None else isolation(cpu)
        return () if reason is None else (f"CPU {cpu} is isolated: {reason}",)

    def measured(self) -> frozenset[int]:
        """Return the CPUs on which latencies are measured; everything else is better off them."""
        return frozenset(self.settings.measured_cpus())

    def idle_note(self) -> str | None:
        """Return that idle states are part of what is going to be measured, if they are."""
        if not isinstance(self.settings, SleepingEngineSettings):
            return None
        held_ns = self.settings.held_ns
        held_us = requested_us() if held_ns is None else held_ns // 1000
        return deep_idle_note(self.settings.measured_cpus(), held_us)

    def _store(
        self, sample_set: SampleSet, cpu: int | None, *notes: str, **changes: object
    ) -> SampleSet:
        """Store an imported set under the name of the condition and the CPU."""
        known = {k: v for k, v in self.task.metadata.model_dump().items() if k in _FROM_TASK}
        suffix = "all" if cpu is None else f"cpu{cpu}"
        name = f"{self.task.metadata.name}/{suffix}"
        noted = (*notes, *self._place_notes(cpu), *self.notes)
        known |= {"source": None, "time_base_assumed": False}  # it was measured here, just now
        known["notes"] = (*sample_set.metadata.notes, *noted)
        known |= self._circumstances(cpu)
        stored = sample_set.with_metadata(**{**known, "name": name, "cpu": cpu, **changes})
        self.task.writer.add(stored)
        return stored


_FROM_TASK = ("bench", "stack", "stressor", "condition", "machine", "kernel", "deadlines")
