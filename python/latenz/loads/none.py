"""No load: what the machine does by itself."""

from typing import Literal

from latenz.loads.base import Stressor
from latenz.measuring.settings import StressorSettings
from latenz.obstacle import Obstacle
from latenz.settings import Duration


class NoneSettings(StressorSettings):
    """No load has nothing to set but the time to come to rest."""

    kind: Literal["none"]
    settle: Duration = 500_000_000


class NoLoad(Stressor[NoneSettings]):
    """Leaves the machine as it is."""

    name = "none"
    settings_type = NoneSettings

    @classmethod
    def missing(cls) -> Obstacle | None:
        """Return None: this can be had everywhere."""
        return None

    def arguments(self) -> list[str]:
        """Return no program."""
        return []
