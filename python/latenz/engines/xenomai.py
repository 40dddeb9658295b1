"""The engine `xenomai-latency`: Xenomai's own `latency` program."""

import os
from pathlib import Path
from typing import Literal

from latenz.durations import whole_seconds
from latenz.engines.base import Engine
from latenz.machine import measured_machine
from latenz.measuring.settings import EngineSettings
from latenz.model import SampleSet
from latenz.obstacle import Obstacle, forbidden_cpus
from latenz.settings import Priority, WholeMicroseconds

_PROGRAM = Path("/usr/xenomai/bin/latency")
_CELLS = 10_000


class XenomaiLatencySettings(EngineSettings):
    """How Xenomai's `latency` measures; on one CPU, the first of `cpus`."""

    engine: Literal["xenomai-latency"]
    period: WholeMicroseconds = 1_000_000
    priority: Priority = 99
    mode: Literal["user", "kernel", "timer"] = "user"
    """Latency of a user-space task, a kernel task, or the timer handler."""


_MODES = {"user": "0", "kernel": "1", "timer": "2"}


def _program() -> str | None:
    machine = measured_machine()
    installed = machine.may(str(_PROGRAM), os.X_OK)
    return str(_PROGRAM) if installed else machine.find_program("latency")


class XenomaiLatency(Engine[XenomaiLatencySettings]):
    """Runs `latency` with a histogram of 10,000 cells of 1 us."""

    name = "xenomai-latency"
    settings_type = XenomaiLatencySettings
    measures = "latency of Xenomai tasks"
    output_file = "latency.txt"

    @classmethod
    def obstacle(cls, settings: XenomaiLatencySettings) -> Obstacle | None:
        """Return why `latency` cannot measure here, or None if it can."""
        if not measured_machine().matching("/proc/xenomai"):
            return Obstacle("this kernel has no Xenomai (/proc/xenomai is absent)")
        if _program() is None:
            return Obstacle("Xenomai's `latency` is neither in /usr/xenomai/bin nor on the PATH")
        return forbidden_cpus(settings.measured_cpus())

    def measured(self) -> frozenset[int]:
        """Return the first of the CPUs."""
        return frozenset(self.settings.measured_cpus()[:1])

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        return [
            _program() or "latency",
            f"-T{whole_seconds(self.task.duration_ns)}",
            f"-p{self.settings.period // 1000}",
            f"-P{self.settings.priority}",
            f"-t{_MODES[self.settings.mode]}",
            f"-c{self.settings.measured_cpus()[0]}",
            f"-H{_CELLS}",
            "-h",
            "-s",
        ]

    def collect(self) -> list[SampleSet]:
        """Store what `latency` printed."""
        from latenz import importers

        cpu = self.settings.measured_cpus()[0]
        found = importers.read(self.folder / self.output_file)
        return [
            self._store(
                each,
                cpu,
                name=f"{self.task.metadata.name}/{each.metadata.name}",
                period_ns=self.settings.period,
            )
            for each in found
        ]
