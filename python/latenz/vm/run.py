"""Measures in a virtual machine: starts it, waits for what the guest sends, reads that."""

import io
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenz import environment
from latenz.boards.console import Collector
from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.programs import program_version
from latenz.stacks import guest_linux
from latenz.unpacking import Damaged, members
from latenz.vm.command import PROGRAM, TURN_US, arguments
from latenz.vm.guest import TRACE, Guest, guest_options
from latenz.vm.host import check_host
from latenz.vm.machine import Machine
from latenz.vm.settings import VmSettings

if TYPE_CHECKING:
    from latenz.measuring.condition import Condition
    from latenz.stacks.base import Job
    from latenz.traces.recording import Recorded, Recording

MEASURING = "latenz: measuring since"
"""How the guest begins the line that it prints just before its engine starts."""
MEASURED = "latenz: measured"
"""The line that the guest prints just after its engine has ended."""
_POLL_S = 0.1
_BOOT_LIMIT_S = {"kvm": 120, "tcg": 600}
_LAST_LIMIT_S = {"kvm": 60, "tcg": 300}
_WALL_FOR_VIRTUAL = {"kvm": 1, "tcg": 100}
_USUAL_S = {"kvm": (5, 1), "tcg": (30, 10)}
_MOST_BYTES = 1 << 30
_MOST_NOTES = 1 << 20
_NS = 1_000_000_000


@dataclass
class Measured:
    """What a run in a virtual machine brought.

    Attributes:
        sets: Sample sets, one for each measured vCPU; none if nothing came.
        trouble: Why not everything came; None if it did, or if it was stopped.
        stopped: Whether it was stopped early.
        account: What is kept of how it was measured.
        recorded: The traces of host and guest; None without.
    """

    sets: list[SampleSet] = field(default_factory=list)
    trouble: str | None = None
    stopped: bool = False
    account: dict[str, Any] = field(default_factory=dict)
    recorded: "Recorded | None" = None


def measure(
    settings: VmSettings,
    guest: Guest,
    job: "Job",
    *,
    trace: bool = False,
    stopped: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda _phase: None,
) -> Measured:
    """Boot a machine, measure in it, and return what came back.

    When it is stopped while it measures, the guest is asked to send what it has so far.

    Args:
        settings: The machine.
        guest: What it boots.
        job: What to measure; its folder takes logs and what was received.
        trace: Also record what the guest's kernel does meanwhile and, under KVM, the host's.
        stopped: Asked now and then; True ends the measurement.
        tell: Called with each phase: "booting", "measuring", "sending".

    Raises:
        BadInput: The host lacks something, or QEMU does not start.
    """
    check_host(settings)
    job.folder.mkdir(parents=True, exist_ok=True)
    options = guest_options(settings, job, trace=trace)
    with _host_recording(settings, trace) as recording:
        with Machine(settings, guest, options, job.folder) as machine:
            session = _Session(machine, job, stopped, tell, recording)
            session.run()
            account = _account(settings, guest, machine, session)
        if recording:
            recording.stop()
        on_host = recording.store(job.folder, ()) if recording else None
    measured = _measured(settings, guest, job, session, account)
    if trace:
        measured.recorded = _both(on_host, job.folder / "received" / TRACE)
    return measured


def _host_recording(
    settings: VmSettings, trace: bool
) -> "AbstractContextManager[Recording | None]":
    """Record what the host does, if its time is the guest's: only under KVM it is."""
    from latenz.traces.recording import Recording

    return Recording() if trace and settings.accelerator == "kvm" else nullcontext()


def _both(on_host: "Recorded | None", of_guest: Path) -> "Recorded | None":
    """Return what host and guest recorded; alone, the guest's trace stands for itself."""
    from latenz.traces.recording import Recorded

    guests = (of_guest,) if of_guest.exists() else ()
    if on_host is not None and on_host.paths:
        return replace(on_host, guests=guests)
    return Recorded(guests, (), ()) if guests else None


def _measured(
    settings: VmSettings,
    guest: Guest,
    job: "Job",
    session: "_Session",
    account: dict[str, Any],
) -> Measured:
    """Return what a guest sent."""
    measured = Measured(stopped=session.asked, account=account)
    received = session.collector.received
    measured.trouble = session.trouble
    try:
        archive = received.files.get(guest_linux.RESULTS, b"")
        received.notes += _notes(bytes(archive))
        sets = guest_linux.linux_sets(
            job, received, (settings.measured_cpu,), **_known(settings, guest)
        )
    except BadInput as mistake:
        measured.trouble = measured.trouble or (None if session.asked else str(mistake))
        return measured
    notes = settings_notes(settings)
    measured.sets = [
        each.with_metadata(notes=(*each.metadata.notes, *notes), cpu=settings.measured_cpu)
        for each in sets
    ]
    account["guest"] = guest_account(job.folder / "received", settings.measured_cpu)
    return measured


def planned_ns(settings: VmSettings, condition: "Condition") -> int:
    """Return about how long a measurement takes in wall time, boot included."""
    boot_s, for_virtual = _USUAL_S[settings.accelerator]
    return (boot_s + guest_linux.virtual_seconds(condition) * for_virtual) * _NS


def settings_notes(settings: VmSettings) -> tuple[str, ...]:
    """Return what a reader of the figures must know of the machine."""
    if settings.accelerator == "kvm":
        return ()
    notes = ["emulated, time counts instructions: tunings of the host and of KVM have no effect"]
    if settings.processors > 1:
        notes.append(
            f"{settings.processors} emulated vCPUs take turns of up to {TURN_US} us: whatever runs"
            " on the others delays the measured one"
        )
    return tuple(notes)


def guest_account(folder: Path, cpu: int) -> dict[str, Any]:
    """Return what the guest tells of itself: interrupts while measuring, stolen time.

    Args:
        folder: What was received.
        cpu: The measured vCPU.
    """
    before, after = ({name: _read(folder / when / name) for name in _COUNTERS} for when in _WHEN)
    stolen = [environment.steal_ns(each["stat"]).get(str(cpu), 0) for each in (before, after)]
    tables = [environment.interrupts(each["interrupts"]) for each in (before, after)]
    return {
        "snapshot": str(folder / "guest.tar"),
        "steal_ns": max(0, stolen[1] - stolen[0]),
        "interrupts": environment.difference(*tables).get(str(cpu), {}),
    }


_COUNTERS = ("interrupts", "stat")
_WHEN = ("before", "after")


def _read(path: Path) -> str:
    return environment.read_text(path) or ""


def _known(settings: VmSettings, guest: Guest) -> dict[str, Any]:
    realtime = " PREEMPT_RT" if settings.on("guest-rt-kernel") else ""
    vcpus = f"{settings.processors} vCPU{'s' if settings.processors > 1 else ''}"
    return {
        "machine": f"QEMU pc by {settings.accelerator}, {vcpus}",
        "kernel": guest.release + realtime,
    }


def _account(
    settings: VmSettings, guest: Guest, machine: Machine, session: "_Session"
) -> dict[str, Any]:
    return {
        "accelerator": settings.accelerator,
        "settings": settings.model_dump(mode="json"),
        "without_effect": settings.without_effect(),
        "command": arguments(machine.pieces),
        "threads": machine.threads,
        "qemu": program_version(PROGRAM, "--version"),
        "software": guest.provenance(),
        "wall_ns": session.elapsed_ns(),
        "boot_wall_ns": session.boot_wall_ns,
    }


def _notes(archive: bytes) -> list[str]:
    """Return what the first program noted in passing."""
    try:
        for member in members(io.BytesIO(archive), guest_linux.MOST_UNPACKED):
            if member.name == "./notes" and member.kind == "file":
                return member.content(_MOST_NOTES).decode("utf-8", "replace").splitlines()
    except Damaged:
        pass
    return []


class _Session:
    """Listening to a guest until it has sent all, has failed, or was stopped."""

    def __init__(
        self,
        machine: Machine,
        job: "Job",
        stopped: Callable[[], bool],
        tell: Callable[[str], None],
        recording: "Recording | None" = None,
    ) -> None:
        self.collector = Collector()
        self.trouble: str | None = None
        self.asked = False
        self.boot_wall_ns: int | None = None
        self._machine = machine
        self._stopped = stopped
        self._tell = tell
        self._recording = recording
        self._is_recorded = False
        self._results = self.collector.received.files.setdefault(guest_linux.RESULTS, bytearray())
        kind = machine.settings.accelerator
        self._boot_limit_s = _BOOT_LIMIT_S[kind]
        self._limit_s = (
            self._boot_limit_s
            + guest_linux.virtual_seconds(job.condition) * _WALL_FOR_VIRTUAL[kind]
        )
        self._last_limit_s = _LAST_LIMIT_S[kind]
        self._began_ns = time.monotonic_ns()
        self._asked_at_ns = 0

    def elapsed_ns(self) -> int:
        """Return how much wall time has gone since QEMU let the guest run."""
        return time.monotonic_ns() - self._began_ns

    def run(self) -> None:
        """Listen until there is nothing more to come."""
        self._tell("booting")
        while self._goes_on():
            piece = self._machine.results(_POLL_S)
            self._hear()
            if piece is None:
                self._tell("ending")
                break
            if piece and not self._results:
                self._tell("sending")
            self._results += piece
            if len(self._results) > _MOST_BYTES:
                self.trouble = "the guest sends without end"
                break
        self._hear()
        self.collector.finish()

    def _hear(self) -> None:
        """Take what the console has said."""
        self.collector.feed([(0, self._machine.console())])
        received = self.collector.received
        if self.boot_wall_ns is None and any(line.startswith(MEASURING) for line in received.lines):
            self.boot_wall_ns = self.elapsed_ns()
            self._tell("measuring")
            if self._recording:
                self._recording.start()
        if self._recording and not self._is_recorded and MEASURED in received.lines:
            self._recording.stop()  # what comes after would overwrite what was measured
            self._is_recorded = True

    def _goes_on(self) -> bool:
        """Tell whether to go on listening; if not, `trouble` or `asked` says why."""
        received = self.collector.received
        elapsed_s = self.elapsed_ns() / _NS
        if received.disaster is not None:
            self.trouble = received.disaster
        elif self.boot_wall_ns is None and elapsed_s > self._boot_limit_s:
            self.trouble = f"not booted in {self._boot_limit_s} s; last line: {received.last_words}"
        elif elapsed_s > self._limit_s:
            self.trouble = f"not done after {self._limit_s} s; last line: {received.last_words}"
        elif self._stopped() and not self.asked:
            self.asked = True
            self._asked_at_ns = time.monotonic_ns()
            self._machine.ask_to_stop()
        if self.asked:
            # Before it measures there is nothing to send.
            waited_s = (time.monotonic_ns() - self._asked_at_ns) / _NS
            return self.boot_wall_ns is not None and waited_s < self._last_limit_s
        return self.trouble is None
