"""The engine `oslat` of the rt-tests: gaps in a busy loop."""

import os
from typing import Literal

from latenz.durations import whole_seconds
from latenz.engines.base import Engine
from latenz.engines.cyclictest import INSTALL
from latenz.measuring.settings import EngineSettings
from latenz.model import SampleSet
from latenz.obstacle import Obstacle, forbidden_cpus, forbidden_priority, missing_program
from latenz.settings import Priority, format_cpu_list

_CELLS = 1024  # the most that oslat takes


class OslatSettings(EngineSettings):
    """How oslat measures."""

    engine: Literal["oslat"]
    priority: Priority | None = None
    """Real-time priority of the busy loops; None: ordinary scheduling. A real-time busy loop
    leaves its CPU to nothing else but for the kernel's real-time throttling."""
    workload: Literal["no", "memmove"] = "no"


class Oslat(Engine[OslatSettings]):
    """Runs oslat, which reads the time stamp counter in a busy loop and records the gaps.

    It keeps 1024 cells of 1 us; longer gaps are counted as beyond its range.
    """

    name = "oslat"
    settings_type = OslatSettings
    measures = "gaps in a busy loop"
    output_file = "oslat.txt"
    start_up_ns = 5_000_000_000  # it measures the counter's frequency first

    @classmethod
    def obstacle(cls, settings: OslatSettings) -> Obstacle | None:
        """Return why oslat cannot measure here, or None if it can."""
        return (
            missing_program("oslat", INSTALL)
            or forbidden_cpus(settings.measured_cpus())
            or (settings.priority and forbidden_priority(os.SCHED_FIFO, settings.priority))
            or None
        )

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        priority = [f"--rtprio={self.settings.priority}"] if self.settings.priority else []
        return [
            "oslat",
            f"--cpu-list={format_cpu_list(self.settings.measured_cpus())}",
            f"--duration={whole_seconds(self.task.duration_ns)}",
            f"--bucket-size={_CELLS}",
            f"--workload={self.settings.workload}",
            f"--json={self.place / 'oslat.json'}",
            "--quiet",
            *priority,
        ]

    def collect(self) -> list[SampleSet]:
        """Store one sample set for each CPU."""
        from latenz import importers

        result = self.result_file("oslat.json")
        return [self._store(found, found.metadata.cpu) for found in importers.read(result)]
