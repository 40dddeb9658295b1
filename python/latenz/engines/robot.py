"""The engine `robot`: a control application, whose delays show as control error.

`latenz-robot` is a servo in real time and its planner; docs/robot.md tells what they do.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from latenz.engines.base import Engine
from latenz.measuring.notes import NOT_AWAKE, NOT_LOCKED
from latenz.measuring.settings import SleepingEngineSettings
from latenz.model import SampleSet
from latenz.obstacle import Obstacle, own_real_time_obstacle
from latenz.programs import own_program
from latenz.robot_account import ACCOUNT_FILE, Control
from latenz.settings import Duration, Priority

_PROGRAM = "latenz-robot"
KINDS = {"activation": "servo runs", "completion": "command is written"}
"""The sample sets of a condition, and the folders that the program writes them into."""


class RobotSettings(SleepingEngineSettings):
    """How the robot is controlled; `cpus` names the servo's CPU, by default the last one."""

    engine: Literal["robot"]
    period: Duration = Field(default=1_000_000, ge=100_000, le=4_000_000)
    """Of the servo's cycles."""
    joints: int = Field(default=6, ge=1, le=6)
    real_time: bool = True
    """`true`: the servo has a real-time priority, a CPU it stays on, and locked memory, and CPUs
    are kept awake (dma_latency = "0 us"); `false`: what a program has that asks for nothing.
    `dma_latency` and the three keys below change one of these each."""
    policy: Literal["fifo", "other"] | None = None
    """Of the servo; None: `fifo` if real_time."""
    pinned: bool | None = None
    """The servo stays on one CPU, and everything else of the program leaves it, if it can."""
    locked: bool | None = None
    """Memory cannot be paged out, and is all there before the start."""
    priority: Priority = 80
    """Real-time priority, for policy fifo."""
    warm_up: Duration = 500_000_000
    """Cycles before the recording starts."""
    stale: Duration = Field(default=100_000_000, ge=20_000_000, le=120_000_000)
    """Set-points older than this stop the robot."""
    most_missed: int = Field(default=20, ge=0, le=1000)
    """More cycles missed at once stop it, too."""

    @model_validator(mode="after")
    def _fits(self) -> "RobotSettings":
        if self.cpus is not None and len(self.cpus) != 1:
            raise ValueError("the servo runs on one CPU; write for example cpus = [1]")
        if self.cpus is not None and not self.is_pinned:
            raise ValueError("a servo that is not pinned has no CPU; leave cpus out, or pin it")
        return self

    @property
    def is_fifo(self) -> bool:
        """The servo has a real-time priority."""
        return self.real_time if self.policy is None else self.policy == "fifo"

    @property
    def is_pinned(self) -> bool:
        """The servo stays on one CPU."""
        return self.real_time if self.pinned is None else self.pinned

    @property
    def is_locked(self) -> bool:
        """Memory cannot be paged out."""
        return self.real_time if self.locked is None else self.locked

    @property
    def held_ns(self) -> int | None:
        """What is held in /dev/cpu_dma_latency meanwhile; None: it is left alone."""
        if "dma_latency" in self.model_fields_set:
            return self.dma_latency
        return 0 if self.real_time else None

    @property
    def cpu(self) -> int | None:
        """CPU that the servo stays on; None: any."""
        return self.measured_cpus()[-1] if self.is_pinned else None


class Robot(Engine[RobotSettings]):
    """Runs `latenz-robot`, which records into the run folder itself.

    A condition has two sample sets, both from the time a cycle is due: until it runs, and until its
    command is written.
    """

    name = "robot"
    settings_type = RobotSettings
    measures = "a servo's cycles from due to running and to command, and the control error"
    output_file = "robot.out"

    @classmethod
    def obstacle(cls, settings: RobotSettings) -> Obstacle | None:
        """Return why the robot cannot be controlled here, or None if it can."""
        priority = settings.priority if settings.is_fifo else None
        return own_real_time_obstacle(_PROGRAM, settings.cpus or (), priority)

    @classmethod
    def warm_up_ns(cls, settings: RobotSettings) -> int:
        """Return how long the servo runs before it is recorded."""
        return settings.warm_up

    def arguments(self) -> list[str]:
        """Return the program with its arguments."""
        settings = self.settings
        options = robot_options(settings, settings.cpu, self.task.duration_ns, self.place)
        return [*own_program(_PROGRAM), *options]

    def measured(self) -> frozenset[int]:
        """Return the servo's CPU, if it has one."""
        cpu = self.settings.cpu
        return frozenset() if cpu is None else frozenset({cpu})

    def start(self) -> None:
        """Announce the sample sets, so that the run is readable at any moment, and measure."""
        for kind in KINDS:
            known = robot_metadata(self.settings, self.settings.cpu, kind)
            circumstances = self._circumstances(self.settings.cpu)
            announced = {"name": self._set_name(kind), **known, **circumstances}
            self.task.writer.begin(self.task.metadata.model_copy(update=announced))
        super().start()

    def maximum_ns(self) -> int | None:
        """Return the largest latency so far, as the program's account of the last second has it."""
        path = self.folder / ACCOUNT_FILE
        return Control.read(path).max_ns if path.exists() else None

    def collect(self) -> list[SampleSet]:
        """Turn the recording into sample sets, with the program's own account of them."""
        control = Control.read(self.result_file(ACCOUNT_FILE))
        found = []
        for kind in KINDS:
            sample_set = self.task.writer.finish(
                self._set_name(kind),
                tool_version=control.program_version,
                notes=(
                    *robot_notes(self.settings, control),
                    *self._place_notes(self.settings.cpu),
                    *self.notes,
                ),
            )
            if sample_set is not None:
                found.append(sample_set)
        return found

    def _set_name(self, kind: str) -> str:
        return f"{self.task.metadata.name}/{kind}"


def robot_options(
    settings: RobotSettings, cpu: int | None, duration_ns: int, folder: Path
) -> list[str]:
    """Return the program's arguments.

    Args:
        settings: How the robot is controlled.
        cpu: CPU that the servo stays on; None: any.
        duration_ns: How long to measure after the warm-up.
        folder: Takes the recording, where the program runs.
    """
    return [
        f"--output={folder}",
        f"--joints={settings.joints}",
        f"--interval={settings.period}",
        f"--duration={duration_ns}",
        f"--warm-up={settings.warm_up}",
        f"--cpu={'any' if cpu is None else cpu}",
        f"--policy={'fifo' if settings.is_fifo else 'other'}",
        f"--priority={settings.priority}",
        f"--memory={'locked' if settings.is_locked else 'pageable'}",
        f"--dma-latency={'off' if settings.held_ns is None else settings.held_ns}",
        f"--stale={settings.stale}",
        f"--most-missed={settings.most_missed}",
    ]


def robot_metadata(settings: RobotSettings, cpu: int | None, kind: str) -> dict[str, Any]:
    """Return what is known of a sample set before measuring; `kind`: one of `KINDS`."""
    return {
        "cpu": cpu,
        "tool": _PROGRAM,
        "from_event": "servo cycle due",
        "to_event": KINDS[kind],
        "period_ns": settings.period,
    }


def robot_notes(settings: RobotSettings, control: Control) -> tuple[str, ...]:
    """Return what a reader of the sample sets must know."""
    missing = {
        NOT_LOCKED: settings.is_locked and not control.memory_locked,
        NOT_AWAKE: settings.held_ns is not None and control.dma_latency != "held",
    }
    return (*control.notes(), *(note for note, applies in missing.items() if applies))
