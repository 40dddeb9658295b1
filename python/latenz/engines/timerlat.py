"""The engine `timerlat`: the kernel's own tracer, through `rtla timerlat hist`."""

from typing import Literal

from pydantic import Field

from latenz.durations import whole_seconds
from latenz.engines.base import Engine
from latenz.machine import measured_machine
from latenz.measuring.settings import SleepingEngineSettings
from latenz.model import SampleSet
from latenz.obstacle import Obstacle, forbidden_cpus, missing_program
from latenz.programs import program_version
from latenz.settings import Priority, WholeMicroseconds, format_cpu_list

_TRACERS = tuple(
    f"{root}/available_tracers" for root in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
)


class TimerlatSettings(SleepingEngineSettings):
    """How timerlat measures."""

    engine: Literal["timerlat"]
    period: WholeMicroseconds = 1_000_000
    """Distance of the activations."""
    priority: Priority = 95
    entries: int = Field(default=10_000, ge=10, le=9_999_999)
    """Cells of 1 us; longer latencies are counted as beyond the range."""


def available_tracers() -> list[str] | None:
    """Return the kernel's tracers; None if its tracing file system cannot be read."""
    for path in _TRACERS:
        tracers = measured_machine().content(path)
        if tracers is not None:
            return tracers.decode("ascii", "replace").split()
    return None


class Timerlat(Engine[TimerlatSettings]):
    """Runs `rtla timerlat hist`: latency of the timer interrupt and of a woken kernel thread."""

    name = "timerlat"
    settings_type = TimerlatSettings
    measures = "latency of timer interrupts and kernel threads"
    output_file = "timerlat.txt"
    start_up_ns = 5_000_000_000

    @classmethod
    def obstacle(cls, settings: TimerlatSettings) -> Obstacle | None:
        """Return why timerlat cannot measure here, or None if it can."""
        tracers = available_tracers()
        if tracers is None:
            return Obstacle(
                "the kernel's tracing file system cannot be read",
                "as root: mount -t tracefs tracefs /sys/kernel/tracing",
            )
        if "timerlat" not in tracers:
            return Obstacle(
                "this kernel has no timerlat tracer",
                "boot a kernel built with CONFIG_TIMERLAT_TRACER=y",
            )
        return missing_program("rtla", "apt-get install rtla") or forbidden_cpus(
            settings.measured_cpus()
        )

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        held_ns = self.settings.held_ns
        return [
            "rtla",
            "timerlat",
            "hist",
            f"--cpus={format_cpu_list(self.settings.measured_cpus())}",
            f"--period={self.settings.period // 1000}",
            f"--priority=f:{self.settings.priority}",
            f"--entries={self.settings.entries}",
            *([] if held_ns is None else [f"--dma-latency={held_ns // 1000}"]),
            f"--duration={whole_seconds(self.task.duration_ns)}s",
        ]

    def collect(self) -> list[SampleSet]:
        """Store one sample set for each CPU and kind of latency."""
        from latenz import importers

        version = program_version("rtla", "--version")
        return [
            self._store(
                found,
                found.metadata.cpu,
                name=f"{self.task.metadata.name}/{found.metadata.name}",
                tool_version=version,
                period_ns=self.settings.period,
            )
            for found in importers.read(self.folder / self.output_file)
        ]
