"""What every stack does: say what is missing, build what a board starts, read what it sends."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from latenz.measuring.settings import StackSettings
from latenz.model import Metadata, SampleSet
from latenz.obstacle import Obstacle

if TYPE_CHECKING:
    from latenz.boards.console import Received
    from latenz.boards.payload import Payload
    from latenz.measuring.condition import Condition
    from latenz.path.software import Program


SettingsT = TypeVar("SettingsT", bound=StackSettings)


@dataclass(frozen=True)
class Job:
    """One measurement on a board.

    Attributes:
        bench: Where: `virt`, `zcu102`, `mps3-an536` or `zcu102-board`.
        condition: What: engine, load, duration.
        folder: The measurement's folder inside the run; takes generated files.
        metadata: What is known before measuring; its name is the condition's.
    """

    bench: str
    condition: "Condition"
    folder: Path
    metadata: Metadata


class StackKind:
    """What is known of every kind of system software, wherever it runs."""

    name: ClassVar[str]
    settings_type: ClassVar[type[StackSettings]]
    benches: ClassVar[tuple[str, ...]]
    """Where it runs."""
    engines: ClassVar[tuple[str, ...]]
    """What measures on it."""
    with_logic: ClassVar[tuple[str, ...]] = ()
    """Where the Latencies IP in programmable logic can measure on it."""
    loads: ClassVar[tuple[str, ...]]
    """Kinds of load that run beside."""
    with_windows: ClassVar[tuple[str, ...]] = ()
    """Where the windows of its kernel can be recorded."""

    @classmethod
    def windows_obstacle(cls, settings: Any, engine: Any, bench: str) -> Obstacle | None:  # noqa: ARG003
        """Return why the kernel's windows cannot be recorded, or None if they can."""
        if bench in cls.with_windows:
            return None
        return Obstacle("windows are recorded of the stacks linux and linux-rt on the bench virt")


class Stack(StackKind, ABC, Generic[SettingsT]):
    """System software on a board, with the program in it that measures.

    The life cycle is: `obstacle` (class), construct, `payload`, then the bench boots it and
    receives what it sends, `collect`, `provenance`.

    Args:
        settings: Which variant of the stack.
        job: What to measure.
    """

    planned_s: ClassVar[int] = 10
    """About how long it takes, in seconds of wall time, on an emulated board."""

    def __init__(self, settings: SettingsT, job: Job) -> None:
        self.settings = settings
        self.job = job

    @classmethod
    def obstacle(cls, settings: SettingsT, bench: str) -> Obstacle | None:  # noqa: ARG003
        """Return why this stack cannot run, or None if it can."""
        return None

    @classmethod
    def engine_obstacle(cls, engine: Any, bench: str) -> Obstacle | None:
        """Return what of an engine's settings cannot be measured on a bench, or None if all can."""
        if getattr(engine, "measured_by", "timer") == "timer" or bench in cls.with_logic:
            return None
        where = ", ".join(cls.with_logic) or "no bench"
        return Obstacle(f"on {cls.name} the Latencies IP measures on {where}, not on {bench}")

    @abstractmethod
    def payload(self) -> "Payload":
        """Build every image and say where it goes.

        Raises:
            BadInput: An image cannot be had or built.
        """

    def done(self, received: "Received") -> bool:
        """Return whether all has come that will come."""
        return bool(received.ended)

    @abstractmethod
    def collect(self, received: "Received") -> list[SampleSet]:
        """Return what was measured; called once, after the end, also after an early one.

        Raises:
            BadInput: Nothing that can be read was received.
        """

    def programs(self) -> "list[Program]":
        """Return what an interrupt's path leads through, our firmware first; empty: not known.

        Raises:
            BadInput: A program's symbols cannot be read.
        """
        return []

    def provenance(self) -> dict[str, Any]:
        """Return where the software came from: packages with versions and hashes."""
        return {}
