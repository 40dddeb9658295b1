"""The engine `wakeup`: Latenz' own probe, which keeps every sample and every missed activation."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from latenz.engines.base import Engine
from latenz.idle import LEFT_ALONE
from latenz.measuring.settings import WakingEngineSettings
from latenz.measuring.wakeup_account import ACCOUNT_FILE, PROGRAM, WHAT, WakeupAccount
from latenz.model import SampleSet
from latenz.obstacle import Obstacle, own_real_time_obstacle
from latenz.programs import own_program
from latenz.settings import Duration, Priority, format_cpu_list


class WakeupSettings(WakingEngineSettings):
    """How the probe `latenz-wakeup` measures."""

    engine: Literal["wakeup"]
    period: Duration = 1_000_000
    """Distance of the activations of a thread."""
    policy: Literal["fifo", "rr", "deadline", "other", "batch", "idle"] = "fifo"
    """Of the measuring threads. Those of `deadline` stay on no CPU: `cpus` says how many."""
    priority: Priority = 80
    """Real-time priority, for policies fifo and rr."""
    record: Literal["samples", "histogram"] = "samples"
    """`samples`: every latency, 16 bytes each; `histogram`: bounded memory and disk, with the
    peak of each second."""
    warm_up: Duration = 100_000_000
    """Activations before the recording starts."""
    worst: int = Field(default=10, ge=0, le=1000)
    """How many of the latest wake-ups of each CPU to keep with what happened around them."""
    break_above: Duration | None = None
    """Ends the measurement at the first latency above this, and stops the kernel's tracing."""


class Wakeup(Engine[WakeupSettings]):
    """Runs `latenz-wakeup` with one thread for each CPU; it records into the run folder itself."""

    name = "wakeup"
    settings_type = WakeupSettings
    measures = "wake-up latency of user threads, every activation counted"
    output_file = "wakeup.out"

    @classmethod
    def obstacle(cls, settings: WakeupSettings) -> Obstacle | None:
        """Return why the probe cannot measure here, or None if it can."""
        real_time = settings.policy in ("fifo", "rr", "deadline")
        priority = settings.priority if real_time else None
        return own_real_time_obstacle(PROGRAM, settings.measured_cpus(), priority)

    @classmethod
    def warm_up_ns(cls, settings: WakeupSettings) -> int:
        """Return how long the probe runs before it records."""
        return settings.warm_up

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        cpus = self.settings.measured_cpus()
        options = wakeup_options(self.settings, cpus, self.task.duration_ns, self.place)
        return [*own_program(PROGRAM), *options]

    def start(self) -> None:
        """Announce the sample sets, so that the run is readable at any moment, and measure."""
        for folder, cpu in self._threads():
            announced = {
                "name": self._set_name(folder),
                **wakeup_metadata(self.settings, cpu),
                **self._circumstances(cpu),
            }
            self.task.writer.begin(self.task.metadata.model_copy(update=announced))
        super().start()

    def maximum_ns(self) -> int | None:
        """Return the largest latency so far, as the probe's account of the last second has it."""
        try:
            account = json.loads((self.folder / ACCOUNT_FILE).read_bytes())
        except (OSError, ValueError):
            return None
        known = [each["max_ns"] for each in account["threads"] if each["max_ns"] is not None]
        return max(known, default=None)

    def collect(self) -> list[SampleSet]:
        """Turn the recording into sample sets, with the probe's own account of them."""
        self.result_file(ACCOUNT_FILE)
        account = WakeupAccount.of(self.folder)
        found = []
        for folder, cpu in self._threads():
            changes = account.metadata(folder)
            notes = (*changes.pop("notes"), *self._place_notes(cpu), *self.notes)
            if changes.get("dma_latency") == LEFT_ALONE:
                del changes["dma_latency"]  # what others hold is known already
            sample_set = self.task.writer.finish(self._set_name(folder), notes=notes, **changes)
            if sample_set is not None:
                found.append(sample_set)
        return found

    def _threads(self) -> list[tuple[str, int | None]]:
        return wakeup_threads(self.settings, self.settings.measured_cpus())

    def _set_name(self, folder: str) -> str:
        return f"{self.task.metadata.name}/{folder}"


def wakeup_threads(settings: WakeupSettings, cpus: Iterable[int]) -> list[tuple[str, int | None]]:
    """Return the folder of each thread, and the CPU that it stays on; None: on none."""
    if settings.policy == "deadline":
        return [(f"thread{number}", None) for number, _ in enumerate(cpus)]
    return [(f"cpu{cpu}", cpu) for cpu in cpus]


def wakeup_options(
    settings: WakeupSettings, cpus: tuple[int, ...], duration_ns: int, folder: Path
) -> list[str]:
    """Return the probe's arguments.

    Args:
        settings: How to measure.
        cpus: The CPUs to measure on.
        duration_ns: How long to measure after the warm-up.
        folder: Takes the recording, where the probe runs.
    """
    breaking = [] if settings.break_above is None else [f"--break-above={settings.break_above}"]
    return [
        f"--output={folder}",
        f"--cpus={format_cpu_list(cpus)}",
        f"--interval={settings.period}",
        f"--duration={duration_ns}",
        f"--warm-up={settings.warm_up}",
        f"--policy={settings.policy}",
        f"--priority={settings.priority}",
        f"--keep={settings.record}",
        f"--worst={settings.worst}",
        f"--dma-latency={'off' if settings.held_ns is None else settings.held_ns}",
        *breaking,
    ]


def wakeup_metadata(settings: WakeupSettings, cpu: int | None) -> dict[str, Any]:
    """Return what is known of a thread's sample set before measuring; `cpu`: where it stays."""
    return {"cpu": cpu, "period_ns": settings.period, **WHAT}
