"""How well a robot was controlled in a run: what `latenz-robot` tells of it.

A control error is an angle, not a time: it has no place in a sample set.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from latenz.errors import BadInput
from latenz.files import file_in

ACCOUNT_FILE = "robot.json"  # replaced as a whole, so that it can be read at any moment
_PLACES = ("", "received/")
"""Where it lies in a condition's folder: measured here, or sent by a virtual machine."""
_LARGEST = 1 << 20  # bytes; an account has some 20,000

Count = Annotated[int, Field(ge=0, lt=2**63, strict=True)]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True)


class JointError(_Told):
    """The tracking error of one joint, in microradians."""

    error_rms_urad: Count
    error_max_urad: Count


class ErrorOverTime(_Told):
    """The greatest error of all joints, and the cycles missed, in consecutive stretches of time."""

    stretch_ns: Annotated[Count, Field(gt=0)]
    max_urad: tuple[Count, ...]
    missed: tuple[Count, ...]


class Control(_Told):
    """What the robot's program tells of a run, as docs/robot.md explains it."""

    program_version: str
    status: str
    """"running" (or killed), "complete", "interrupted", or why it ended early."""
    cpu: Count | None
    """CPU that the servo was bound to; None: any."""
    policy: str
    memory_locked: bool
    dma_latency: str
    """"held", "denied", "absent" or "off"."""
    cycles: Count
    missed: Count
    """Cycles that never ran, because the one before was late."""
    tracked: Count
    """Cycles that followed the planner's way; the others stood or braked."""
    saturated: Count
    """Cycles with a torque at its limit."""
    lost: Count
    """Cycles whose record was lost, since the recording could not keep up."""
    elsewhere: Count = 0
    """Cycles on another CPU than the servo's, because others moved it."""
    safe_stops: Count
    """Since the start, warm-up included; the sum of the next two."""
    stops_stale: Count
    stops_missed: Count
    error_rms_urad: Count
    """Tracking error of all joints: where they should be, minus where they are."""
    error_max_urad: Count
    joints: tuple[JointError, ...]
    jitter_rms_ns: Count
    """Distance of two activations, minus that of their due times."""
    jitter_max_ns: Count
    set_point_age_max_ns: Count
    page_faults: Count | None = None
    """Of the servo's thread while it was measured; None: it was killed before it told."""
    involuntary_switches: Count | None = None
    """Times that others took its CPU from it; None as above."""
    max_ns: Count | None
    """Longest time from due to command so far; None before the first cycle."""
    over_time: ErrorOverTime

    @classmethod
    def read(cls, path: Path) -> "Control":
        """Read the account that the program keeps beside its recordings.

        Raises:
            BadInput: It is damaged.
        """
        try:
            with path.open("rb") as file:
                return cls.model_validate_json(file.read(_LARGEST))
        except (OSError, ValidationError):
            raise BadInput("is not an account of latenz-robot", str(path)) from None

    def to_json(self, label: str) -> dict[str, Any]:
        """Return the figures under the name of their condition."""
        return {"name": label, **self.model_dump(exclude={"program_version", "over_time"})}

    def notes(self) -> tuple[str, ...]:
        """Return what a reader of the sample sets must know."""
        notes = []
        if self.safe_stops:
            times = "once" if self.safe_stops == 1 else f"{self.safe_stops} times"
            notes.append(
                f"the robot stopped safely {times}: {self.stops_stale} for set-points too old,"
                f" {self.stops_missed} for cycles missed"
            )
        if self.lost:
            notes.append(f"{self.lost} cycles were lost: the recording could not keep up")
        if self.elsewhere:
            notes.append(f"others moved the servo off CPU {self.cpu} for {self.elsewhere} cycles")
        if self.status not in ("complete", "interrupted", "running"):
            notes.append(f"the robot's program ended early: {self.status}")
        return tuple(notes)


def controls(folder: Path, names: Iterable[str]) -> list[tuple[str, Control]]:
    """Return how well robots were controlled in a run, by condition; often nothing.

    Args:
        folder: A run folder; anything else has no robots.
        names: Of the run's sample sets, whose order the robots get.

    Raises:
        BadInput: An account is damaged.
    """
    conditions = dict.fromkeys(name.rpartition("/")[0] for name in names)
    found = ((each, _account_of(folder, each)) for each in conditions)
    return [(each, Control.read(path)) for each, path in found if path is not None]


def _account_of(run: Path, condition: str) -> Path | None:
    if not condition or "/" in condition or not run.is_dir():
        return None
    places = (file_in(run, f"{condition}/{place}{ACCOUNT_FILE}") for place in _PLACES)
    return next(filter(None, places), None)
