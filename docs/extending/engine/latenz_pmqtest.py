"""The engine `pmqtest` of the rt-tests: how late a thread runs after another one's message."""

import os
from typing import Literal

from latenz import importers
from latenz.durations import whole_seconds
from latenz.engines.base import Engine
from latenz.measuring.settings import EngineSettings
from latenz.model import SampleSet
from latenz.obstacle import Obstacle, forbidden_priority, missing_program


class PmqtestSettings(EngineSettings):
    """What a `[probe.NAME]` table may hold besides `cpus`."""

    engine: Literal["pmqtest"]
    priority: int = 80


class Pmqtest(Engine[PmqtestSettings]):
    """Runs pmqtest, which sends POSIX messages between pairs of threads."""

    name = "pmqtest"
    settings_type = PmqtestSettings
    measures = "from a POSIX message to the receiver's run"
    output_file = "pmqtest.out"

    @classmethod
    def obstacle(cls, settings: PmqtestSettings) -> Obstacle | None:
        """Return why it cannot measure here."""
        missing = missing_program("pmqtest", "sudo apt install rt-tests")
        return missing or forbidden_priority(os.SCHED_FIFO, settings.priority)

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        seconds = whole_seconds(self.task.duration_ns)
        result = f"--json={self.folder / 'pmqtest.json'}"
        return ["pmqtest", f"--prio={self.settings.priority}", f"--duration={seconds}", result]

    def collect(self) -> list[SampleSet]:
        """Store what the program's file says."""
        found = importers.read(self.result_file("pmqtest.json"))
        return [self._store(each, each.metadata.cpu) for each in found]
