"""The stack `partitioned`: static partitions, one on each core, of our own hypervisor."""

from typing import TYPE_CHECKING, Literal

from latenz.engines.base import Obstacle
from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.stacks.base import Stack, StackSettings

if TYPE_CHECKING:
    from latenz.boards.console import Received
    from latenz.boards.payload import Payload


class PartitionedSettings(StackSettings):
    """Linux on one core, the firmware on another."""

    kind: Literal["partitioned"]


class Partitioned(Stack[PartitionedSettings]):
    """What Jailhouse is in `alonso2024`. The hypervisor is not part of this version."""

    name = "partitioned"
    settings_type = PartitionedSettings
    benches = ("virt", "zcu102", "zcu102-board")
    engines = ("interrupt",)
    loads = ("none", "spin", "stress-ng-cpu", "stress-ng-all")

    @classmethod
    def obstacle(cls, settings: PartitionedSettings, bench: str) -> Obstacle | None:  # noqa: ARG003
        """Return that there is no hypervisor yet."""
        return Obstacle("this version of Latenz has no hypervisor of its own")

    def payload(self) -> "Payload":
        """Refuse."""
        raise BadInput("this version of Latenz has no hypervisor of its own", "partitioned")

    def collect(self, received: "Received") -> list[SampleSet]:  # noqa: ARG002
        """Return nothing."""
        return []
