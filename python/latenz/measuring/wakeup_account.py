"""What the probe `latenz-wakeup` tells of a run: its account, beside its recordings."""

from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from latenz.clocks import clock_notes
from latenz.errors import BadInput
from latenz.files import file_in
from latenz.idle import dma_latency_in_words
from latenz.measuring.notes import NOT_AWAKE, NOT_LOCKED
from latenz.model import WorstSample

PROGRAM: Final = "latenz-wakeup"
ACCOUNT_FILE: Final = "probe.json"  # replaced as a whole, so that it can be read at any moment
WHAT: Final = {"tool": PROGRAM, "from_event": "timer expiry due", "to_event": "thread runs"}

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
            raise BadInput("is not an account of latenz-wakeup", place) from None

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
        known = {"cpu": thread and thread.cpu, "period_ns": self.interval_ns, **WHAT, **told}
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
