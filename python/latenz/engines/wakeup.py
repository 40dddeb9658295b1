"""The engine `wakeup`: Latenz' own probe, which keeps every sample and every missed activation."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from latenz.engines.base import (
    NOT_AWAKE,
    NOT_LOCKED,
    Engine,
    EngineSettings,
    Obstacle,
    own_real_time_obstacle,
)
from latenz.errors import BadInput
from latenz.model import SampleSet, WorstSample
from latenz.programs import probe_program
from latenz.settings import Duration, Priority, format_cpu_list

_PROGRAM = "latenz-wakeup"
ACCOUNT_FILE = "probe.json"  # replaced as a whole, so that it can be read at any moment


class WakeupSettings(EngineSettings):
    """How the probe `latenz-wakeup` measures."""

    engine: Literal["wakeup"]
    period: Duration = 1_000_000
    """Distance of the activations of a thread."""
    policy: Literal["fifo", "deadline", "other"] = "fifo"
    priority: Priority = 80
    """Real-time priority, for policy fifo."""
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
        priority = None if settings.policy == "other" else settings.priority
        return own_real_time_obstacle(_PROGRAM, settings.measured_cpus(), priority)

    @classmethod
    def warm_up_ns(cls, settings: WakeupSettings) -> int:
        """Return how long the probe runs before it records."""
        return settings.warm_up

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        cpus = self.settings.measured_cpus()
        options = wakeup_options(self.settings, cpus, self.task.duration_ns, self.folder)
        return [str(probe_program(_PROGRAM)), *options]

    def start(self) -> None:
        """Announce the sample sets, so that the run is readable at any moment, and measure."""
        for cpu in self.settings.measured_cpus():
            announced = self.task.metadata.model_copy(
                update={"name": self._set_name(cpu), **wakeup_metadata(self.settings, cpu)}
            )
            self.task.writer.begin(announced)
        super().start()

    def maximum_ns(self) -> int | None:
        """Return the largest latency so far, as the probe's account of the last second has it."""
        try:
            account = json.loads((self.folder / ACCOUNT_FILE).read_bytes())
        except OSError:
            return None
        known = [each["max_ns"] for each in account["threads"] if each["max_ns"] is not None]
        return max(known, default=None)

    def collect(self) -> list[SampleSet]:
        """Turn the recording into sample sets, with the probe's own account of them."""
        self.result_file(ACCOUNT_FILE)
        known = wakeup_account(self.folder)
        found = []
        for cpu in self.settings.measured_cpus():
            changes = known(cpu)
            notes = (*changes.pop("notes"), *self.notes)
            sample_set = self.task.writer.finish(self._set_name(cpu), notes=notes, **changes)
            if sample_set is not None:
                found.append(sample_set)
        return found

    def _set_name(self, cpu: int) -> str:
        return f"{self.task.metadata.name}/cpu{cpu}"


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
        *breaking,
    ]


def wakeup_metadata(settings: WakeupSettings, cpu: int) -> dict[str, Any]:
    """Return what is known of a CPU's sample set before measuring."""
    return {
        "cpu": cpu,
        "tool": _PROGRAM,
        "from_event": "timer expiry due",
        "to_event": "thread runs",
        "period_ns": settings.period,
    }


def wakeup_account(folder: Path) -> Callable[[int], dict[str, Any]]:
    """Return what the probe's own account tells of the sample set of each CPU.

    Raises:
        BadInput: The account is not there, or is damaged.
    """
    path = folder / ACCOUNT_FILE
    try:
        account = json.loads(path.read_bytes())
        threads = {thread["cpu"]: thread for thread in account["threads"]}
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput("is no account of latenz-wakeup", str(path)) from None
    notes = []
    if account["status"] not in ("complete", "interrupted"):
        notes.append(f"the probe ended early: {account['status']}")
    if not account["mlockall"]:
        notes.append(NOT_LOCKED)
    if account["dma_latency"] != "held":
        notes.append(NOT_AWAKE)

    def known(cpu: int) -> dict[str, Any]:
        thread = threads.get(cpu)
        if thread is None:
            return {"notes": tuple(notes)}
        lost = [f"{thread['lost']} samples were lost: the recording could not keep up"]
        return {
            "tool_version": account["program_version"],
            "worst": tuple(WorstSample.model_validate(each) for each in thread["worst"]),
            "notes": (*notes, *(lost if thread["lost"] else ())),
        }

    return known
