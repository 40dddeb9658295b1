"""What every load does: check, start, settle, alive?, stop, account."""

from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Generic, Literal, TypeVar

from pydantic import Field

from latenz.activity import Activity
from latenz.measuring.settings import StressorSettings
from latenz.obstacle import Obstacle, forbidden_cpus

PER_CPU: Final = "per-cpu"
PerCpu = Literal["per-cpu"]
Instances = Annotated[int, Field(ge=1, le=1024)]


SettingsT = TypeVar("SettingsT", bound=StressorSettings)


class Stressor(Activity, Generic[SettingsT]):
    """A load that runs while an engine measures.

    Args:
        settings: What to load.
        folder: Folder for the load's own files.
        planned_ns: How long the load is going to be needed.
    """

    name: ClassVar[str]
    settings_type: ClassVar[type[StressorSettings]]
    output_file = "stressor.out"
    log_file = "stressor.log"

    def __init__(self, settings: SettingsT, folder: Path, planned_ns: int) -> None:
        super().__init__(folder)
        self.cpus = frozenset(settings.cpus or ()) or self.cpus
        self.settings = settings
        self.planned_ns = planned_ns

    @classmethod
    def obstacle(cls, settings: SettingsT) -> Obstacle | None:
        """Return why this load cannot run here, or None if it can."""
        return cls.missing() or forbidden_cpus(settings.cpus or ())

    @classmethod
    @abstractmethod
    def missing(cls) -> Obstacle | None:
        """Return that the load's program is not here, or None if it is."""

    def _count(self, instances: int | PerCpu) -> int:
        """Return how many instances are asked for."""
        return instances if isinstance(instances, int) else len(self.cpus)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the sample sets must say about the load."""
        return ()

    def account(self) -> dict[str, Any]:
        """Return what the load did, as evidence that it was on; called once, after the end."""
        return {}
