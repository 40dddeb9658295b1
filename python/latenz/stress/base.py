"""What every load does: check, start, settle, alive?, stop, account."""

from abc import abstractmethod
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from latenz.activity import Activity
from latenz.engines.base import Obstacle
from latenz.settings import Duration, Settings


class StressorSettings(Settings):
    """Settings that all loads share."""

    kind: str
    settle: Duration = 2_000_000_000
    """How long the load runs before measuring starts."""


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
    scratch = True

    def __init__(self, settings: SettingsT, folder: Path, planned_ns: int) -> None:
        super().__init__(folder)
        self.settings = settings
        self.planned_ns = planned_ns

    @classmethod
    @abstractmethod
    def obstacle(cls, settings: SettingsT) -> Obstacle | None:
        """Return why this load cannot run here, or None if it can."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the sample sets must say about the load."""
        return ()

    def account(self) -> dict[str, Any]:
        """Return what the load did, as evidence that it was on; called once, after the end."""
        return {}
