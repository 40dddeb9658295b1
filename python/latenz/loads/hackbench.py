"""Scheduling and communication, by the hackbench of the rt-tests, as rteval loads a machine."""

from typing import Annotated, Any, Literal

from pydantic import Field

from latenz.engines.cyclictest import INSTALL
from latenz.loads.base import PER_CPU, Instances, PerCpu, Stressor
from latenz.measuring.settings import StressorSettings
from latenz.obstacle import Obstacle, missing_program

_ENDLESS = 2_000_000_000
_TASKS = 40  # of each group: 20 that send, 20 that receive
_THROUGH: dict[str, list[str]] = {"socket": [], "pipe": ["-p"], "tcp": ["-i"]}


class HackbenchSettings(StressorSettings):
    """Groups of 40 processes that send messages to one another."""

    kind: Literal["hackbench"]
    groups: Instances | PerCpu = PER_CPU
    """`per-cpu`: one for each CPU that the load runs on."""
    bytes: Annotated[int, Field(ge=1, le=65536)] = 100
    """Of a message."""
    through: Literal["socket", "pipe", "tcp"] = "socket"
    """Sockets within the machine, pipes, or TCP over the loopback device."""


class Hackbench(Stressor[HackbenchSettings]):
    """Wakes up and switches between many processes all the time."""

    name = "hackbench"
    settings_type = HackbenchSettings

    @classmethod
    def missing(cls) -> Obstacle | None:
        """Return that hackbench is not here, or None if it is."""
        return missing_program("hackbench", INSTALL)

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        settings = self.settings
        return [
            "hackbench",
            # Of its long options it knows none that has a value.
            f"-g{self._count(settings.groups)}",
            f"-l{_ENDLESS}",
            f"-s{settings.bytes}",
            *_THROUGH[settings.through],
        ]

    def account(self) -> dict[str, Any]:
        """Return how many processes it was; hackbench counts nothing before its end."""
        return {"tasks": self._count(self.settings.groups) * _TASKS}
