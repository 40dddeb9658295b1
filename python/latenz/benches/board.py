"""Benches that are boards, emulated or real: a labgrid environment, and what boots in it."""

import hashlib
import time
from abc import abstractmethod
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from latenz.benches.base import Assignment, Bench, Watch
from latenz.boards.places import ENVIRONMENTS, emulator, environment_of
from latenz.boards.setup import ensure_boards
from latenz.engines import InterruptSettings
from latenz.engines.cyclictest import CyclictestSettings
from latenz.engines.wakeup import WakeupSettings
from latenz.errors import BadInput
from latenz.linux_bound.windows import WINDOWS_FILE
from latenz.loads.stress_ng import StressNgOneSettings
from latenz.model import SampleSet, TimeBase
from latenz.obstacle import Obstacle
from latenz.stacks import STACKS, Job, Stack
from latenz.stacks.linux import AnyLinux

if TYPE_CHECKING:
    from latenz.boards.console import Collector, Received
    from latenz.boards.payload import Payload
    from latenz.boards.protocol import PayloadProtocol
    from latenz.measuring.condition import Condition

_NS = 1_000_000_000
_FILES = ("kernel", "device_tree", "initrd", "loads", "logic")
"""What of a payload is identified by the files' content."""
_CAPTURES = 512
"""Interrupts whose paths are recorded: all of the publications' 400, the rare ones among them."""


class Board(Bench):
    """A board that boots what a stack has built, and sends what was measured as frames."""

    time_base: ClassVar[TimeBase] = TimeBase.VIRTUAL
    stacks: ClassVar[tuple[str, ...]]
    engines = ("interrupt", "cyclictest", "wakeup", "intercore")
    loads = ("none", "spin", "stress-ng-cpu", "stress-ng-all", "stress-ng", "memory")

    def __init_subclass__(cls) -> None:
        """Take the stacks that run on the board."""
        super().__init_subclass__()
        if hasattr(cls, "name"):
            cls.stacks = tuple(key for key, each in STACKS.items() if cls.name in each.benches)

    def obstacle(self, condition: "Condition") -> Obstacle | None:
        """Return why a condition cannot be measured here and now, or None if it can."""
        stack = _stack(condition)
        if self.name not in stack.benches:
            able = ", ".join(stack.benches)
            return Obstacle(f"the stack {stack.name} does not run on {self.name}, only on {able}")
        return (
            stack.engine_obstacle(condition.engine, self.name)
            or stack.obstacle(condition.system, self.name)
            or self._own_obstacle()
        )

    def environment(self) -> Path:
        """Return the labgrid environment that describes the board: the user's own, or ours."""
        return environment_of(self.name)

    @abstractmethod
    def _own_obstacle(self) -> Obstacle | None:
        """Return what the board itself lacks."""

    def planned_ns(self, condition: "Condition") -> int:
        """Return about how long building, booting and measuring take."""
        settings = condition.engine
        boots = 2 if _records_path(settings) or _records_windows(settings) else 1
        return boots * _stack(condition).planned_s * _NS

    def measure(self, assignment: Assignment, watch: Watch) -> dict[str, Any]:
        """Boot, receive, store the sample sets, and return an account."""
        condition = assignment.condition
        folder = assignment.folder()
        job = Job(self.name, condition, folder, assignment.metadata(self.time_base))
        stack = _stack(condition)(condition.system, job)
        return _Measurement(self, stack, assignment, watch, folder).account()


class EmulatedBoard(Board):
    """A board in QEMU, where time is the number of instructions."""

    def _own_obstacle(self) -> Obstacle | None:
        return ensure_boards()

    def describe(self) -> dict[str, Any]:
        """Return the emulator and what drives it."""
        return emulator()


class Virt(EmulatedBoard):
    """QEMU's board for virtual machines: Cortex-A53, GICv2, EL2."""

    name = "virt"


class VirtGicv3(EmulatedBoard):
    """The same with a GICv3, for the hypervisor alone."""

    name = "virt-gicv3"


class Zcu102(EmulatedBoard):
    """QEMU's ZCU102: four Cortex-A53, two Cortex-R5."""

    name = "zcu102"


class Raspi4b(EmulatedBoard):
    """QEMU's Raspberry Pi 4: four Cortex-A72, GICv2, for the hypervisor alone."""

    name = "raspi4b"


class Mps3An536(EmulatedBoard):
    """QEMU's MPS3-AN536: a Cortex-R52."""

    name = "mps3-an536"


class Zcu102Board(Board):
    """A real ZCU102, described in the user's own environment file. Not run yet."""

    name = "zcu102-board"
    time_base = TimeBase.SILICON

    def _own_obstacle(self) -> Obstacle | None:
        example = self.environment()
        if example.parent != ENVIRONMENTS:
            return ensure_boards()
        return Obstacle(
            "nothing says how the board is reached",
            f"copy {example} to ~/.config/latenz and fill it in",
        )

    def describe(self) -> dict[str, Any]:
        """Return what drives the board."""
        from importlib.metadata import version

        return {"labgrid": version("labgrid")}


def _named(condition: "Condition") -> str:
    load = condition.load
    return f"{load.kind} {load.stressor}" if isinstance(load, StressNgOneSettings) else load.kind


def _records_path(settings: Any) -> bool:
    return isinstance(settings, InterruptSettings) and settings.path


def _records_windows(settings: Any) -> bool:
    return isinstance(settings, CyclictestSettings | WakeupSettings) and settings.windows


def _stack(condition: "Condition") -> type[Stack[Any]]:
    assert condition.system is not None  # noqa: S101 - the schema gives every board a stack
    kind = STACKS[condition.system.kind]
    assert issubclass(kind, Stack)  # noqa: S101 - all others run on other benches
    return kind


class _Measurement:
    """One boot of one stack, from building images to collecting."""

    def __init__(
        self, board: Board, stack: Stack[Any], assignment: Assignment, watch: Watch, folder: Path
    ) -> None:
        self.board = board
        self.stack = stack
        self.assignment = assignment
        self.watch = watch
        self.folder = folder

    def account(self) -> dict[str, Any]:
        """Measure and tell what happened."""
        condition = self.assignment.condition
        assert condition.system is not None  # noqa: S101 - as in _stack
        known: dict[str, Any] = {
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "bench": self.board.name,
            "engine": {
                "name": condition.engine.engine,
                "settings": condition.engine.model_dump(),
            },
            "stack": condition.system.model_dump(),
            "load": {"name": condition.load.kind, "settings": condition.load.model_dump()},
        }
        try:
            return {**self._measured(known), **known}
        except BadInput as mistake:
            return {"state": "failed", "reason": str(mistake), **known}

    def _measured(self, known: dict[str, Any]) -> dict[str, Any]:
        self._tell("building images")
        payload = self.stack.payload()
        known["software"] = self.stack.provenance()
        began = time.monotonic()
        received, trouble = self._boot(payload, known, self.folder)
        known["wall_ns"] = int((time.monotonic() - began) * _NS)
        known["frames"] = {
            "received": received.frames,
            "damaged": received.damaged,
            "missing": received.missing,
        }
        outcome = self._outcome(received, trouble)
        settings = self.assignment.condition.engine
        if _records_path(settings) and not trouble:
            outcome["path"] = told = self._path(payload, received)
            if "reason" in told:
                outcome["notes"] = [f"no path was recorded: {told['reason']}"]
        if _records_windows(settings) and not trouble:
            outcome["windows"] = told = self._windows(payload, received)
            if "reason" in told:
                outcome["notes"] = [f"no windows were recorded: {told['reason']}"]
        return outcome

    def _windows(self, payload: "Payload", measured: "Received") -> dict[str, Any]:
        """Run the payload once more, recording the kernel's windows; tell what came of it.

        Recording costs no virtual time: whatever the board sends must be the same.
        """
        from latenz.linux_bound.recording import WindowRecorder

        assert isinstance(self.stack, AnyLinux)  # noqa: S101 - the schema asks no other for windows
        condition = self.assignment.condition
        settings = condition.engine
        assert isinstance(settings, CyclictestSettings | WakeupSettings)  # noqa: S101 - likewise
        folder = self.folder / "windows"
        folder.mkdir(exist_ok=True)
        try:
            if self.watch.stopped:
                return {"state": "failed", "reason": "stopped"}
            self._tell("recording windows")
            recorder = WindowRecorder(folder, self.stack.flavour, settings.priority)
            received, trouble = self._boot(payload, {}, folder, recorder.arguments())
            if trouble is not None or self.watch.stopped:
                return {"state": "failed", "reason": trouble or "stopped"}
            if received.files != measured.files:
                return {"state": "failed", "reason": "recording changed the samples"}
            recorder.read(self.folder, condition=condition.name, load=_named(condition))
        except BadInput as mistake:
            return {"state": "failed", "reason": str(mistake)}
        return {"state": "recorded", "file": WINDOWS_FILE}

    def _path(self, payload: "Payload", measured: "Received") -> dict[str, Any]:
        """Run the payload once more, recording the paths of some interrupts; tell what came of it.

        Recording costs no virtual time: the samples must be the same.
        """
        from latenz.path.recorder import Recorder, handlers
        from latenz.path.software import Software
        from latenz.stacks.measured import WARM_UP, ticks_ns

        folder = self.folder / "path"
        folder.mkdir(exist_ok=True)
        try:
            programs = self.stack.programs()
            if not programs:
                return {"state": "failed", "reason": "this stack's programs are not known"}
            if self.watch.stopped:
                return {"state": "failed", "reason": "stopped"}
            self._tell("recording paths")
            recorder = Recorder(folder, handlers(programs[0].symbols), _CAPTURES, WARM_UP)
            received, trouble = self._boot(payload, {}, folder, recorder.arguments())
            if trouble is not None or self.watch.stopped:
                return {"state": "failed", "reason": trouble or "stopped"}
            latencies_ns, tick_ns = ticks_ns(received)
            if received.streams != measured.streams:
                return {"state": "failed", "reason": "recording changed the samples"}
            recorder.read(Software(*programs), latencies_ns[:_CAPTURES], tick_ns).save(self.folder)
        except BadInput as mistake:
            return {"state": "failed", "reason": str(mistake)}
        return {"state": "recorded", "file": "path.json"}

    def _boot(
        self,
        payload: "Payload",
        known: dict[str, Any],
        folder: Path,
        extra: tuple[str, ...] = (),
    ) -> "tuple[Received, str | None]":
        """Run the payload; return what it sent, and why it was ended early if it was."""
        from latenz.boards.console import Collector
        from latenz.boards.environment import board_in

        collector = Collector(payload.uarts)
        with board_in(self.board.environment()) as (target, driver):
            driver.prepare(payload, folder, extra)
            target.activate(driver)
            self._tell("booting")
            driver.on()
            known["command"] = driver.command
            known["identity"] = _identity(driver, payload)
            trouble = self._receive(driver, collector, payload)
            collector.finish()
        return collector.received, trouble or self._losses(collector.received)

    def _losses(self, received: "Received") -> str | None:
        """Return what was lost on the way, None if all that was sent has arrived."""
        if all(stream.complete for stream in received.streams.values()) or self.watch.stopped:
            return None
        return (
            f"not all samples arrived: {received.damaged} frames were damaged,"
            f" {received.missing} lost"
        )

    def _receive(
        self, driver: "PayloadProtocol", collector: "Collector", payload: "Payload"
    ) -> str | None:
        """Read until the last frame; return why that did not come, None if it did."""
        from latenz.boards.reception import Listener

        def tell(received: "Received") -> None:
            self._tell("measuring" if received.frames else "booting")

        listener = Listener(self.stack.done, lambda: self.watch.stopped, tell)
        return listener.receive(driver, collector, payload)

    def _outcome(self, received: "Received", trouble: str | None) -> dict[str, Any]:
        """Store what was measured, whole or not, and say which."""
        stopped = self.watch.stopped and not self.stack.done(received)
        state = "interrupted" if stopped else "failed" if trouble else "measured"
        notes = [f"ended early: {trouble}"] if trouble else []
        told = {"reason": trouble} if trouble else {}
        try:
            sets = self.stack.collect(received)
        except BadInput as mistake:
            state = state if stopped else "failed"
            return {"state": state, "reason": trouble or str(mistake)}
        stored = []
        for each in sets:
            kept = each.with_metadata(notes=(*each.metadata.notes, *notes))
            self.assignment.writer.add(kept)
            stored.append(kept.metadata.name)
        return {"state": state, **told, "sample_sets": stored, "samples_sha256": _hashes(sets)}

    def _tell(self, phase: str) -> None:
        if self.watch.report:
            self.watch.report(phase, None)


def _identity(driver: "PayloadProtocol", payload: "Payload") -> dict[str, Any]:
    """Return all that decides what is measured; equal identities give equal samples."""
    options = {
        key: value
        for key, value in asdict(payload).items()
        if not key.endswith("limit_s") and key not in _FILES
    }
    if payload.logic:
        options["logic"] = asdict(payload.logic) | {"design": _sha256(payload.logic.design)}
    loads = [
        {"sha256": _sha256(each.path), "address": each.address, "cpu": each.cpu}
        for each in payload.loads
    ]
    files = {
        name: _sha256(path)
        for name in ("kernel", "device_tree", "initrd")
        if (path := getattr(payload, name)) is not None
    }
    return {**driver.identity(), **options, **files, "loads": loads}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hashes(sets: list[SampleSet]) -> dict[str, str]:
    """Return a hash of each set's samples, to tell at a glance whether two runs are alike."""
    found = {}
    for each in sets:
        digest = hashlib.sha256()
        for batch in each.batches():
            for column in batch.columns:
                digest.update(column.to_numpy(zero_copy_only=False).tobytes())
        found[each.metadata.name] = digest.hexdigest()
    return found
