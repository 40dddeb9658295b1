"""The load `forks`: stress-ng starts and ends processes all the time."""

from typing import Literal

from latenz.loads import Stressor
from latenz.measuring.settings import StressorSettings
from latenz.obstacle import Obstacle, missing_program


class ForksSettings(StressorSettings):
    """What a `[stressor.NAME]` table may hold besides `cpus` and `settle`."""

    kind: Literal["forks"]
    processes: int = 4


class Forks(Stressor[ForksSettings]):
    """Runs stress-ng's fork stressor."""

    name = "forks"
    settings_type = ForksSettings

    @classmethod
    def missing(cls) -> Obstacle | None:
        """Return that the program is not here."""
        return missing_program("stress-ng", "sudo apt install stress-ng")

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        return ["stress-ng", "--fork", str(self.settings.processes)]
