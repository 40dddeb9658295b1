"""The engine `wakeup`: Latenz' own probe, which keeps every sample and every missed activation."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from latenz.clocks import clock_notes
from latenz.engines.base import (
    NOT_AWAKE,
    NOT_LOCKED,
    Engine,
    Obstacle,
    SleepingEngineSettings,
    dma_latency_in_words,
    own_real_time_obstacle,
)
from latenz.errors import BadInput
from latenz.files import file_in
from latenz.idle import LEFT_ALONE
from latenz.model import SampleSet, WorstSample
from latenz.programs import probe_program
from latenz.settings import Duration, Priority, format_cpu_list

_PROGRAM = "latenz-wakeup"
ACCOUNT_FILE = "probe.json"  # replaced as a whole, so that it can be read at any moment


class WakeupSettings(SleepingEngineSettings):
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
        except OSError:
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
    return {"cpu": cpu, "period_ns": settings.period, **_WHAT}


_WHAT = {"tool": _PROGRAM, "from_event": "timer expiry due", "to_event": "thread runs"}

Count = Annotated[int, Field(ge=0, lt=2**63, strict=True)]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True)


class WakeupThread(_Told):
    """What the probe tells of one of its threads."""

    cpu: Count | None
    """Where it was to stay; None: nowhere."""
    folder: Annotated[str, Field(pattern=r"^(cpu|thread)[0-9]{1,4}(-[0-9]{1,4})?$")]
    ran_on: dict[int, Count] = Field(default_factory=dict)
    """Samples by CPU."""
    smis: Count | None = None
    lost: Count = 0
    worst: tuple[WorstSample, ...] = ()

    def metadata(self) -> dict[str, Any]:
        """Return what is told of its sample set, with notes."""
        elsewhere = {cpu: n for cpu, n in self.ran_on.items() if cpu != self.cpu}
        known: dict[str, Any] = {"worst": self.worst, "smis": self.smis, "notes": self._notes()}
        if len(self.ran_on) == 1 and self.cpu is None:
            known["cpu"] = next(iter(self.ran_on))
        elif elsewhere:
            known["ran_on"] = self.ran_on
        return known

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self.lost:
            notes.append(f"{self.lost} samples were lost: the recording could not keep up")
        total = sum(self.ran_on.values())
        places = ", ".join(f"{n} on CPU {cpu}" for cpu, n in sorted(self.ran_on.items()))
        if self.cpu is None:
            notes.append(f"the thread had no CPU of its own: {places}")
        elif total > self.ran_on.get(self.cpu, 0):
            notes.append(
                f"the thread was moved off CPU {self.cpu} by others (hotplug, a cpuset, taskset):"
                f" of {total} samples {places}"
            )
        if self.smis:
            notes.append(f"{self.smis} System Management Interrupts held the CPU up")
        return tuple(notes)


class WakeupAccount(_Told):
    """The probe's own account of a run, as docs/probe.md explains it."""

    program_version: str
    status: str
    interval_ns: Count
    started_realtime_ns: int | None = None
    mlockall: bool
    dma_latency: str
    """"held", "denied", "absent" or "off"."""
    dma_latency_ns: Count | None = None
    suspended_ns: Count = 0
    clock_steps: Count = 0
    clock_stepped_ns: int = 0
    threads: tuple[WakeupThread, ...]

    @classmethod
    def of(cls, folder: Path) -> "WakeupAccount":
        """Read the account that the probe keeps beside its recordings.

        Raises:
            BadInput: It is not there, or is damaged.
        """
        path = file_in(folder, ACCOUNT_FILE)
        try:
            with (path or folder / ACCOUNT_FILE).open("rb") as file:
                return cls.model_validate_json(file.read(_LARGEST_ACCOUNT))
        except (OSError, ValidationError):
            place = str(folder / ACCOUNT_FILE)
            raise BadInput("is no account of latenz-wakeup", place) from None

    def metadata(self, folder: str) -> dict[str, Any]:
        """Return what is told of the sample set in a folder, as metadata with notes."""
        held_ns = self.dma_latency_ns if self.dma_latency == "held" else None
        known = {
            "tool_version": self.program_version,
            "dma_latency": dma_latency_in_words(held_ns),
            "notes": self._notes(),
        }
        thread = self.thread(folder)
        if thread is None:
            return known
        told = thread.metadata()
        return {**known, **told, "notes": (*known["notes"], *told["notes"])}

    def alone(self, folder: str) -> dict[str, Any]:
        """Return all that is known of a sample set where nothing but the account tells of it."""
        thread = self.thread(folder)
        told = self.metadata(folder)
        known = {"cpu": thread and thread.cpu, "period_ns": self.interval_ns, **_WHAT, **told}
        return {**known, "notes": (*told["notes"], *self.clock_notes())}

    def thread(self, folder: str) -> WakeupThread | None:
        """Return what is told of the thread that recorded into a folder; None: nothing."""
        return next((each for each in self.threads if each.folder == folder), None)

    def _notes(self) -> tuple[str, ...]:
        notes = []
        if self.status not in ("complete", "interrupted"):
            notes.append(f"the probe ended early: {self.status}")
        if not self.mlockall:
            notes.append(NOT_LOCKED)
        if self.dma_latency in ("denied", "absent"):
            notes.append(NOT_AWAKE)
        return tuple(notes)

    def clock_notes(self) -> tuple[str, ...]:
        """Return what became of the machine's clocks meanwhile."""
        return clock_notes(self.suspended_ns, self.clock_steps, self.clock_stepped_ns)


_LARGEST_ACCOUNT = 64 << 20
"""Bytes; a thousand threads with a thousand worst samples each have more, which nobody asks for."""
