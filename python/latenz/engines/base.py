"""What every measuring engine does: check, prepare, run, alive?, stop, collect."""

import errno
import os
import re
import shutil
import subprocess
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from latenz.activity import Activity
from latenz.affinity import enterable_cpus, isolation
from latenz.engines.refusal import Rights, why_refused
from latenz.errors import BadInput
from latenz.idle import LEFT_ALONE, DmaLatency, deep_idle_note, requested_us
from latenz.model import Metadata, SampleSet
from latenz.programs import probe_program
from latenz.settings import CpuList, Settings, format_cpu_list

if TYPE_CHECKING:
    from latenz.store.run import RunWriter


NOT_LOCKED = "memory could not be locked: page faults may count as latency"
NOT_AWAKE = "/dev/cpu_dma_latency could not be held: leaving idle states counts as latency"
"""Notes on samples of programs that asked for both."""


@dataclass(frozen=True)
class Obstacle:
    """Why something cannot be done on this machine.

    Attributes:
        reason: What is missing, as a clause.
        fix: The command that changes it; empty if none can.
    """

    reason: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.reason} (fix: {self.fix})" if self.fix else self.reason


class EngineSettings(Settings):
    """Settings that all engines share."""

    engine: str
    cpus: CpuList | None = None
    """CPUs to measure on; None: all that can be entered, isolated ones included."""

    def measured_cpus(self) -> tuple[int, ...]:
        """Return the CPUs to measure on."""
        return self.cpus or tuple(sorted(enterable_cpus()))

    @property
    def held_ns(self) -> int | None:
        """What is held in /dev/cpu_dma_latency meanwhile; None: it is left alone."""
        return None


class SleepingEngineSettings(EngineSettings):
    """Settings of the engines whose threads sleep, so that idle states matter to them."""

    dma_latency: DmaLatency = None
    """Held in /dev/cpu_dma_latency while measuring, which keeps CPUs out of idle states that take
    longer to leave: "0 us", "20 us", or "left alone", as it is for a program that asks for
    nothing."""

    @property
    def held_ns(self) -> int | None:
        """What is held in /dev/cpu_dma_latency meanwhile; None: it is left alone."""
        return self.dma_latency


SettingsT = TypeVar("SettingsT", bound=EngineSettings)


@dataclass(frozen=True)
class Task:
    """One measurement that an engine is asked for.

    Attributes:
        writer: The run that takes the samples.
        folder: Folder inside the run for the engine's own files.
        metadata: What is known before measuring; its name is the condition's.
        duration_ns: How long to measure.
    """

    writer: "RunWriter"
    folder: Path
    metadata: Metadata
    duration_ns: int


class Engine(Activity, Generic[SettingsT]):
    """A program that measures.

    The life cycle is: `obstacle` (class), construct, `start`, `alive` until it ends or `stop`,
    `collect`. An engine that is stopped early keeps what it has measured.

    Args:
        settings: How to measure.
        task: What to measure and where the samples go.

    Attributes:
        notes: What the sample sets must say besides what the engine knows.
    """

    name: ClassVar[str]
    settings_type: ClassVar[type[EngineSettings]]
    measures: ClassVar[str]
    """What it measures, in a few words."""
    log_file = "engine.log"
    start_up_ns: ClassVar[int] = 2_000_000_000
    """The longest an undisturbed engine takes to start and to end, besides measuring."""

    def __init__(self, settings: SettingsT, task: Task) -> None:
        super().__init__(task.folder)
        self.cpus = enterable_cpus()
        self.settings = settings
        self.task = task
        self.notes: tuple[str, ...] = ()

    @classmethod
    @abstractmethod
    def obstacle(cls, settings: SettingsT) -> Obstacle | None:
        """Return why this engine cannot measure here, or None if it can."""

    @abstractmethod
    def collect(self) -> list[SampleSet]:
        """Store what was measured; called once, after the end.

        Raises:
            BadInput: The program left nothing that can be read.
        """

    @classmethod
    def warm_up_ns(cls, settings: SettingsT) -> int:  # noqa: ARG003 - most have none
        """Return how long the engine runs before it starts to measure."""
        return 0

    @classmethod
    def planned_ns(cls, settings: SettingsT, duration_ns: int) -> int:
        """Return about how long the engine takes, from its start to its end.

        Args:
            settings: How to measure.
            duration_ns: How long to measure; 0 for what ends by itself.
        """
        return cls.warm_up_ns(settings) + duration_ns + cls.start_up_ns

    @classmethod
    def longest_ns(cls, settings: SettingsT, duration_ns: int) -> int:
        """Return after how long the engine is ended if it does not end by itself."""
        # A machine that holds it up for seconds must not cut short what was asked for.
        return cls.planned_ns(settings, duration_ns) + 60_000_000_000

    def maximum_ns(self) -> int | None:
        """Return the largest latency so far, None if that cannot be told while measuring."""
        return None

    def _circumstances(self, cpu: int | None) -> dict[str, Any]:
        """Return what is known of a CPU before measuring on it, as metadata."""
        settings = self.settings
        known: dict[str, Any] = {"isolation": None if cpu is None else isolation(cpu)}
        if isinstance(settings, SleepingEngineSettings):
            known["dma_latency"] = dma_latency_in_words(settings.held_ns, requested_us())
        return known

    def _place_notes(self, cpu: int | None) -> tuple[str, ...]:
        """Return what a reader must know of the CPU."""
        reason = None if cpu is None else isolation(cpu)
        return () if reason is None else (f"CPU {cpu} is isolated: {reason}",)

    def measured(self) -> frozenset[int]:
        """Return the CPUs on which latencies are measured; everything else is better off them."""
        return frozenset(self.settings.measured_cpus())

    def idle_note(self) -> str | None:
        """Return that idle states are part of what is going to be measured, if they are."""
        if not isinstance(self.settings, SleepingEngineSettings):
            return None
        held_ns = self.settings.held_ns
        held_us = requested_us() if held_ns is None else held_ns // 1000
        return deep_idle_note(self.settings.measured_cpus(), held_us)

    def _store(
        self, sample_set: SampleSet, cpu: int | None, *notes: str, **changes: object
    ) -> SampleSet:
        """Store an imported set under the name of the condition and the CPU."""
        known = {k: v for k, v in self.task.metadata.model_dump().items() if k in _FROM_TASK}
        suffix = "all" if cpu is None else f"cpu{cpu}"
        name = f"{self.task.metadata.name}/{suffix}"
        noted = (*notes, *self._place_notes(cpu), *self.notes)
        known |= {"source": None, "time_base_assumed": False}  # it was measured here, just now
        known["notes"] = (*sample_set.metadata.notes, *noted)
        known |= self._circumstances(cpu)
        stored = sample_set.with_metadata(**{**known, "name": name, "cpu": cpu, **changes})
        self.task.writer.add(stored)
        return stored


_FROM_TASK = ("bench", "stack", "stressor", "condition", "machine", "kernel", "deadlines")


def dma_latency_in_words(held_ns: int | None, others_us: int | None = None) -> str:
    """Return what became of /dev/cpu_dma_latency while measuring.

    Args:
        held_ns: What we held in it; None: nothing.
        others_us: What others held in it.
    """
    if held_ns is not None:
        return f"held at {held_ns // 1000} us"
    return LEFT_ALONE if others_us is None else f"{LEFT_ALONE}, others held {others_us} us"


def program_version(*command: str) -> str | None:
    """Return the first thing like a version that a program prints, None without the program."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"\d+\.\d[\w.]*", done.stdout + done.stderr)
    return match.group() if match else None


def missing_program(program: str, fix: str) -> Obstacle | None:
    """Return an obstacle if a program is not on the PATH."""
    return None if shutil.which(program) else Obstacle(f"{program} is not installed", fix)


def missing_own_program(program: str) -> Obstacle | None:
    """Return an obstacle if a native program of ours has not been built."""
    try:
        probe_program(program)
    except BadInput as mistake:
        return Obstacle(f"{program} {mistake.what}", mistake.remedy)
    return None


def forbidden_cpus(cpus: tuple[int, ...]) -> Obstacle | None:
    """Return an obstacle if this process cannot enter all of the CPUs."""
    enterable = enterable_cpus()
    if set(cpus) <= enterable:
        return None
    outside = format_cpu_list(tuple(set(cpus) - enterable))
    others = format_cpu_list(tuple(enterable))
    return Obstacle(
        f"CPU {outside} cannot be entered (absent, offline or outside of the cpuset); {others} can"
    )


def forbidden_priority(policy: int, priority: int) -> Obstacle | None:
    """Return an obstacle if this process may not take a real-time priority.

    It is tried in a child process, because many things can forbid it: capabilities, resource
    limits, cgroups without real-time bandwidth, container filters.
    """
    child = os.fork()
    if child == 0:
        try:
            os.sched_setscheduler(0, policy, os.sched_param(priority))
            os._exit(0)
        except OSError as error:
            os._exit(error.errno or 1)
    _, status = os.waitpid(child, 0)
    if status == 0:
        return None
    code = os.waitstatus_to_exitcode(status)
    if code != errno.EPERM:
        return Obstacle(f"real-time priority {priority} is refused ({os.strerror(code)})")
    reason, fix = why_refused(Rights.read(), priority)
    return Obstacle(f"real-time priority {priority} is refused: {reason}", fix)


def own_real_time_obstacle(
    program: str, cpus: tuple[int, ...], priority: int | None
) -> Obstacle | None:
    """Return an obstacle if a native program of ours cannot measure as it is asked to.

    Args:
        program: Its name.
        cpus: Where it is to run; none: anywhere.
        priority: Of its real-time threads; None: it has none.
    """
    obstacle = missing_own_program(program) or forbidden_cpus(cpus)
    if obstacle or priority is None:
        return obstacle
    return forbidden_priority(os.SCHED_FIFO, priority)


def seconds(duration_ns: int) -> int:
    """Return a duration in whole seconds, rounded up, as the other tools take it."""
    return -(-duration_ns // 1_000_000_000)
