"""The bench `host`: the Linux that Latenz runs on."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from latenz import environment
from latenz.affinity import kept_off
from latenz.benches.base import Assignment, Bench, TraceKind, Watch
from latenz.benches.late import LateWatch
from latenz.clocks import ClockOffsets, notes_between
from latenz.engines import ENGINES, Engine, Task
from latenz.errors import BadInput
from latenz.loads import STRESSORS, Stressor
from latenz.machine import measured_machine
from latenz.model import SampleSet, TimeBase
from latenz.obstacle import Obstacle

if TYPE_CHECKING:
    from latenz.measuring.condition import Condition
    from latenz.traces.recording import Recording
    from latenz.traces.window_recording import WindowRecording

_POLL_S = 0.1
_REPORT_EVERY = 10  # polls; seldom, since reporting costs time on the measured machine


class Host(Bench):
    """Measures on this machine, while real loads run beside the engine."""

    name = "host"
    stacks = ("linux",)
    engines = tuple(ENGINES)
    loads = tuple(STRESSORS)
    watches = True
    traces = True

    def trace_obstacle(self, kind: TraceKind) -> Obstacle | None:  # noqa: ARG002
        """Return why this machine's kernel cannot be traced, or None if it can."""
        from latenz.traces import ring

        return ring.obstacle()

    def obstacle(self, condition: "Condition") -> Obstacle | None:
        """Return why a condition cannot be measured here and now, or None if it can."""
        return _engine(condition).obstacle(condition.engine) or _stressor(condition).obstacle(
            condition.load
        )

    def describe(self) -> dict[str, Any]:
        """Return kernel, processor, clocks, memory and software of this machine."""
        return environment.describe()

    def planned_ns(self, condition: "Condition") -> int:
        """Return settling, warm-up, measuring and start-up together."""
        engine = _engine(condition)
        return condition.load.settle + engine.planned_ns(condition.engine, condition.duration_ns)

    def time_base(self) -> TimeBase:
        """Return what the machine's clock counts."""
        return TimeBase.SILICON

    def measure(self, assignment: Assignment, watch: Watch) -> dict[str, Any]:
        """Measure under load, store the sample sets, and return an account."""
        condition = assignment.condition
        folder = assignment.folder()
        machine = {"machine": environment.machine(), "kernel": measured_machine().release}
        metadata = assignment.metadata(self.time_base()).model_copy(update=machine)
        task = Task(assignment.writer, folder, metadata, condition.duration_ns)
        engine = _engine(condition)(condition.engine, task)
        planned_ns = self.planned_ns(condition)
        stressor = _stressor(condition)(condition.load, folder, planned_ns)
        measurement = _Measurement(engine, stressor, condition, watch)
        if assignment.on_late:
            measurement.late = LateWatch(assignment.on_late, assignment.label, folder)
        if assignment.trace == "windows":
            return _with_windows(measurement, assignment)
        return _traced(measurement, assignment) if assignment.trace else measurement.account()


def _traced(measurement: "_Measurement", assignment: Assignment) -> dict[str, Any]:
    """Measure while recording what the kernel does, and tell why the worst were late."""
    from latenz.traces.recording import Recording, explained

    with Recording() as recording:
        measurement.recording = recording
        account = measurement.account()
        recorded = recording.store(assignment.folder(), measurement.collected)
    return {**account, **explained(recorded, assignment.writer.folder)}


def _with_windows(measurement: "_Measurement", assignment: Assignment) -> dict[str, Any]:
    """Measure while recording the windows that delay wake-ups."""
    from latenz.traces.window_recording import WindowRecording

    with WindowRecording(measurement.engine.measured()) as recording:
        measurement.recording = recording
        account = measurement.account()
        return {**account, **recording.store(assignment.folder())}


def _engine(condition: "Condition") -> type[Engine[Any]]:
    return ENGINES[condition.engine.engine]


def _stressor(condition: "Condition") -> type[Stressor[Any]]:
    return STRESSORS[condition.load.kind]


class _Measurement:
    """One engine under one load, from settling to collecting."""

    def __init__(
        self, engine: Engine[Any], stressor: Stressor[Any], condition: "Condition", watch: Watch
    ) -> None:
        self.engine = engine
        self.stressor = stressor
        self.condition = condition
        self.watch = watch
        self.recording: Recording | WindowRecording | None = None
        self.late: LateWatch | None = None
        self.collected: list[SampleSet] = []
        self.load_died_ns: int | None = None
        self._idle_note = engine.idle_note()
        self._clocks = ClockOffsets.read()
        self._started_ns = 0

    def account(self) -> dict[str, Any]:
        """Measure and tell what happened."""
        started = datetime.now(UTC).isoformat(timespec="seconds")
        before = environment.moment()
        self._clocks = ClockOffsets.read()
        try:
            with kept_off(self.engine.measured()):
                self._measure()
        finally:
            if self.recording:
                self.recording.stop()
            engine_status = self.engine.stop()
            after = environment.moment()
            load_status = self.stressor.stop()
            late = self._late()
        outcome = self._outcome()
        return {
            **outcome,
            **late,
            **_with_remedies(self.engine.account()),
            "started": started,
            "duration_ns": self.condition.duration_ns,
            "engine": {
                "name": self.engine.name,
                "settings": self.condition.engine.model_dump(),
                "command": self.engine.command,
                "exit_status": engine_status,
            },
            "load": {
                "name": self.stressor.name,
                "settings": self.condition.load.model_dump(),
                "command": self.stressor.command,
                "exit_status": load_status,
                "died_after_ns": self.load_died_ns,
                **self.stressor.account(),
            },
            "before": _without_tables(before),
            "after": _without_tables(after),
            **{table: environment.difference(before[table], after[table]) for table in _TABLES},
        }

    def _measure(self) -> None:
        self.stressor.start()
        self._wait("settling", self.condition.load.settle, lambda: self.load_died_ns is None)
        if self.load_died_ns is not None or self.watch.stopped:
            return
        if self.recording:
            self.recording.start()
        self.engine.start()
        longest_ns = self.engine.longest_ns(self.condition.engine, self.condition.duration_ns)
        self._wait("measuring", longest_ns, lambda: self.engine.alive and not self._ends_late)

    @property
    def _ends_late(self) -> bool:
        return self.late is not None and self.late.ends

    def _late(self) -> dict[str, Any]:
        """Look a last time, and wait for what was started."""
        if self.late is None:
            return {}
        if self.engine.command:
            self.late.see(self.engine.maximum_ns())
        return self.late.finish()

    def _wait(self, phase: str, limit_ns: int, going_on: Callable[[], bool]) -> None:
        """Wait until something is over, watching the load, the clock and the user."""
        began = time.monotonic_ns()
        self._started_ns = self._started_ns or began
        polls = 0
        while going_on() and not self.watch.stopped and time.monotonic_ns() - began < limit_ns:
            if self.load_died_ns is None and not self.stressor.alive:
                self.load_died_ns = time.monotonic_ns() - self._started_ns
            if polls % _REPORT_EVERY == 0:
                self._look(phase)
            polls += 1
            time.sleep(_POLL_S)

    def _look(self, phase: str) -> None:
        """Look for the largest latency so far, if anybody wants to know it."""
        if not self.watch.report and not self.recording and not self.late:
            return
        largest_ns = self.engine.maximum_ns() if self.engine.command else None
        if self.recording:
            self.recording.notice(largest_ns)
        if self.late:
            self.late.see(largest_ns)
        if self.watch.report:
            self.watch.report(phase, largest_ns)

    def _outcome(self) -> dict[str, Any]:
        """Collect the samples; what cannot be collected is told, and the run goes on."""
        notes = [*self.stressor.notes, *notes_between(self._clocks, ClockOffsets.read())]
        notes += [self._idle_note] if self._idle_note else []
        if self.load_died_ns is not None:
            notes.append(
                f"the load {self.stressor.name} ended {self.load_died_ns / 1e9:.1f} s after its"
                f" start, before measuring was over: {self.stressor.last_words()}"
            )
        notes += self.late.notes() if self.late else []
        if not self.engine.command:
            if self.watch.stopped:
                return {"state": "interrupted", "reason": "stopped before measuring began"}
            return {"state": "failed", "reason": notes[-1]}
        self.engine.notes = tuple(notes)
        state = "interrupted" if self.watch.stopped else "measured"
        try:
            self.collected = self.engine.collect()
        except BadInput as mistake:
            failed = state if self.watch.stopped else "failed"
            return {"state": failed, "reason": str(mistake), "notes": notes}
        stored = [each.metadata.name for each in self.collected]
        return {"state": state, "sample_sets": stored, "notes": notes}


def _with_remedies(account: dict[str, Any]) -> dict[str, Any]:
    """Say of causes that an engine told what removes or shortens them."""
    from latenz.traces.advice import remedy

    for cause in account.get("causes", ()):
        known = remedy(cause["cause"])
        cause.update(tunings=list(known.tunings), advice=known.advice)
    return account


_TABLES = ("interrupts", "softirqs")


def _without_tables(moment: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in moment.items() if key not in _TABLES}
