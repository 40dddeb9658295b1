"""The stack `standalone`: our firmware alone on a core."""

from typing import TYPE_CHECKING, Literal

from latenz.measuring.settings import StackSettings
from latenz.model import SampleSet
from latenz.obstacle import Obstacle
from latenz.stacks.base import Stack

if TYPE_CHECKING:
    from latenz.boards.console import Received
    from latenz.boards.payload import Payload
    from latenz.path.software import Program


class StandaloneSettings(StackSettings):
    """Nothing but the firmware runs."""

    kind: Literal["standalone"]
    core: Literal["first", "real-time"] = "first"
    """`real-time` refuses benches whose first core is none, so that figures of another core never
    stand under its name."""


class Standalone(Stack[StandaloneSettings]):
    """The firmware on the first core of the board."""

    name = "standalone"
    settings_type = StandaloneSettings
    benches = ("virt", "zcu102", "mps3-an536", "zcu102-board")
    engines = ("interrupt",)
    with_logic = ("zcu102", "zcu102-board")
    loads = ("none",)
    planned_s = 3

    @classmethod
    def obstacle(cls, settings: StandaloneSettings, bench: str) -> Obstacle | None:
        """Return that the wanted core is not the first one, where that is so."""
        if settings.core == "first" or bench in _REAL_TIME:
            return None
        return Obstacle(f"the first core of {bench} is not a real-time core", "take mps3-an536")

    def payload(self) -> "Payload":
        """Return the firmware with its parameters."""
        from latenz.boards.payload import Payload
        from latenz.stacks.measured import measuring_firmware, measuring_logic

        return Payload(
            kernel=measuring_firmware(self.job, self._board),
            cpus=1,
            memory_mib=_MEMORY_MIB.get(self.job.bench, 128),
            logic=measuring_logic(self.job),
        )

    def collect(self, received: "Received") -> list[SampleSet]:
        """Return the latencies of the firmware's interrupts."""
        from latenz.stacks.measured import firmware_sets

        return firmware_sets(self.job, received)

    def programs(self) -> "list[Program]":
        """Return the firmware."""
        from latenz.stacks.measured import firmware_program

        return [firmware_program(self.job, self._board)]

    @property
    def _board(self) -> str:
        return "zcu102" if self.job.bench == "zcu102-board" else self.job.bench


_REAL_TIME = ("mps3-an536",)
_MEMORY_MIB = {"zcu102": 2048}
