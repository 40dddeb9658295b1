"""What every bench does: say what it cannot, describe itself, measure."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from latenz.benches.late import OnLate
from latenz.model import Deadline, Metadata, TimeBase
from latenz.obstacle import Obstacle

if TYPE_CHECKING:
    from latenz.measuring.condition import Condition
    from latenz.store.run import RunWriter

TraceKind = Literal["causes", "windows"]
"""What the kernel is traced for beside a measurement: why the worst samples were late, or the
windows that bound the wake-up latency."""


@dataclass
class Watch:
    """How a measurement is watched from outside while it lasts.

    Attributes:
        stopped: Set to end the measurement early; what was measured so far is kept.
        report: Called now and then with the phase, and with the largest latency so far (None if
            it cannot be told).
    """

    stopped: bool = False
    report: Callable[[str, int | None], None] | None = field(default=None, repr=False)

    def stop(self) -> None:
        """End the measurement early."""
        self.stopped = True


@dataclass(frozen=True)
class Assignment:
    """One measurement of a condition.

    Attributes:
        condition: What to measure.
        label: Folder and name prefix of its sample sets, unlike all others of the run.
        deadlines: What the sample sets will be judged by.
        writer: The run that takes the samples.
        repetition: Which of the condition's repetitions this is, from 1.
        trace: Also record what the kernel does meanwhile, and for what; None: do not.
        on_late: What to do once a latency passes a limit; only on benches that `watches`.
    """

    condition: "Condition"
    label: str
    deadlines: tuple[Deadline, ...]
    writer: "RunWriter"
    repetition: int = 1
    trace: TraceKind | None = None
    on_late: OnLate | None = None

    def folder(self) -> Path:
        """Return the measurement's own folder in the run; made if absent."""
        folder = self.writer.folder / self.label
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def metadata(self, time_base: TimeBase) -> Metadata:
        """Return what is known of its sample sets before measuring."""
        condition = self.condition
        return Metadata(
            name=self.label,
            time_base=time_base,
            bench=condition.place,
            stack=condition.stack,
            stressor=condition.stressor,
            condition=condition.name,
            deadlines=self.deadlines,
        )


class Bench(ABC):
    """A place to measure."""

    name: ClassVar[str]
    stacks: ClassVar[tuple[str, ...]]
    """System software that can be measured there; the first is taken unless another is named."""
    engines: ClassVar[tuple[str, ...]]
    """Engines that measure there."""
    loads: ClassVar[tuple[str, ...]]
    """Kinds of load that can run there."""
    watches: ClassVar[bool] = False
    """Whether latencies are seen while it measures, so that late ones can be acted on."""
    traces: ClassVar[bool] = False
    """Whether it can record what the kernel does while it measures."""

    def trace_obstacle(self, kind: TraceKind) -> Obstacle | None:  # noqa: ARG002
        """Return why it cannot record what the kernel does, or None if it can."""
        return None if self.traces else Obstacle(f"the bench {self.name} records no traces")

    def opened(self) -> AbstractContextManager[None]:
        """Give the bench what it needs from before the first question to the last measurement.

        Raises:
            BadInput: It cannot be had.
        """
        return nullcontext()

    @abstractmethod
    def obstacle(self, condition: "Condition") -> Obstacle | None:
        """Return why a condition cannot be measured here and now, or None if it can."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return what must be known about the bench to understand what it measures."""

    @abstractmethod
    def planned_ns(self, condition: "Condition") -> int:
        """Return how long measuring a condition takes, all in all."""

    @abstractmethod
    def measure(self, assignment: Assignment, watch: Watch) -> dict[str, Any]:
        """Measure, store the sample sets, and return an account of what happened.

        The account has at least `state`: "measured", "interrupted" or "failed" (with `reason`).
        """
