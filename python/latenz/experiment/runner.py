"""Carries out an experiment and leaves a run folder."""

import secrets
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from latenz.benches import BENCHES
from latenz.benches.base import Assignment, Bench, Watch
from latenz.benches.host import Host
from latenz.engines import ENGINES, Engine
from latenz.errors import BadInput, closest
from latenz.experiment.ordering import interleave
from latenz.experiment.schema import Experiment
from latenz.measuring.condition import Condition
from latenz.signals import stopped_by_signals

if TYPE_CHECKING:
    from latenz.benches.late import OnLate
    from latenz.remote import TargetUrl
    from latenz.store.run import RunWriter, Status


class Observer(Protocol):
    """Whoever wants to know how far a run has come."""

    visible: bool
    """Whether anybody looks; if not, the measurement is not disturbed by asking for progress."""

    def planned(self, total_ns: int) -> None:
        """Called once: how long the run is going to take."""

    def measuring(self, label: str, planned_ns: int) -> None:
        """Called before each measurement, with how long it is going to take."""

    def update(self, phase: str, maximum_ns: int | None) -> None:
        """Called now and then, with the largest latency so far, None if it cannot be told."""

    def measured(self, account: dict[str, Any]) -> None:
        """Called after each measurement, with its account."""


def select(experiment: Experiment, patterns: Sequence[str]) -> list[Condition]:
    """Return the conditions whose names match one of patterns such as "idle-*"; all without any.

    Raises:
        BadInput: One of the patterns matches none.
    """
    names = [condition.name for condition in experiment.conditions]
    for each in patterns:
        if not any(fnmatchcase(name, each) for name in names):
            raise BadInput(f"no condition is named {each!r}", "--only", closest(each, names))
    if not patterns:
        return experiment.conditions
    return [
        condition
        for condition in experiment.conditions
        if any(fnmatchcase(condition.name, each) for each in patterns)
    ]


def run_experiment(
    experiment: Experiment,
    folder: Path,
    conditions: Sequence[Condition],
    observer: Observer,
    required: bool = False,
    trace: bool = False,
    on_late: "OnLate | None" = None,
    on: "TargetUrl | None" = None,
) -> "RunWriter":
    """Measure conditions in random order; SIGINT and SIGTERM end the run early and in order.

    A condition that this machine cannot measure is listed in the run with the reason, and the
    others go on.

    Args:
        experiment: What to measure and judge by.
        folder: The run folder to write; must be new.
        conditions: Those of the experiment to measure.
        observer: Is told how far the run has come.
        required: The conditions were asked for by name: one that cannot be measured is an error.
        trace: Also record what the kernel does meanwhile, and tell why the worst were late.
        on_late: What to do once a measurement's latency passes a limit.
        on: The target to measure instead of this machine; None: this machine.

    Returns:
        The closed run; its `info.status` is "complete" or "interrupted".

    Raises:
        BadInput: The folder cannot be written, no condition can be measured here, or one cannot
            be traced or watched.
    """
    benches = {name: _bench(name, on) for name in {each.bench for each in conditions}}
    with ExitStack() as stack:
        for bench in benches.values():
            stack.enter_context(bench.opened())
        return _run(experiment, folder, conditions, observer, benches, required, trace, on_late)


def _bench(name: str, on: "TargetUrl | None") -> Bench:
    if on is None:
        return BENCHES[name]()
    from latenz.benches.target import Elsewhere, TargetBench

    return TargetBench(on) if name == Host.name else Elsewhere(name)


def _run(
    experiment: Experiment,
    folder: Path,
    conditions: Sequence[Condition],
    observer: Observer,
    benches: dict[str, Bench],
    required: bool,
    trace: bool,
    on_late: "OnLate | None",
) -> "RunWriter":
    if trace:
        _require_traces(conditions, benches)
    if on_late:
        _require_watches(conditions, benches)
    obstacles = {each.name: benches[each.bench].obstacle(each) for each in conditions}
    able = [each for each in conditions if obstacles[each.name] is None]
    unable = [each for each in conditions if obstacles[each.name] is not None]
    if unable and (required or not able):
        first = unable[0]
        raise BadInput(f"cannot be measured here: {obstacles[first.name]}", first.name)
    file = experiment.file
    seed = secrets.randbits(32) if file.seed is None else file.seed
    plan = interleave(able, file.repetitions, seed)
    described = {name: bench.describe() for name, bench in benches.items()}
    environment = {name: told for name, told in described.items() if told}
    writer = begin_run(experiment, folder, conditions, environment, seed)
    for each in unable:
        account = {"state": "not measured", "reason": str(obstacles[each.name])}
        record(writer, observer, each, None, account)
    observer.planned(sum(benches[each.bench].planned_ns(each) for each, _ in plan))
    watch = Watch(report=observer.update if observer.visible else None)
    status: Status = "failed"
    try:
        with stopped_by_signals(watch.stop):
            _measure_all(experiment, plan, benches, writer, observer, watch, trace, on_late)
        status = "interrupted" if watch.stopped else "complete"
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror})", str(folder)) from None
    finally:
        writer.close(status)
    return writer


def begin_run(
    experiment: Experiment,
    folder: Path,
    conditions: Sequence[Condition],
    environment: dict[str, Any],
    seed: int,
) -> "RunWriter":
    """Begin a run folder with what is known before measuring.

    Args:
        experiment: What is measured.
        folder: The run folder to write; must be new.
        conditions: Those of the experiment that are measured.
        environment: What each bench tells of itself.
        seed: Of the order in which they are measured.

    Raises:
        BadInput: The folder cannot be written.
    """
    from latenz.store.run import RunWriter

    return RunWriter(
        folder.absolute(),  # loads run in folders of their own
        command=sys.argv,
        experiment={"file": experiment.path.name, **experiment.file.model_dump(mode="json")},
        seed=seed,
        environment=environment,
        condition_order=[each.name for each in conditions],
        published=list(experiment.file.published),
    )


def _require_traces(conditions: Sequence[Condition], benches: dict[str, Bench]) -> None:
    """Refuse conditions that cannot be traced: whoever asks for causes wants them of all."""
    for each in conditions:
        obstacle = benches[each.bench].trace_obstacle()
        if obstacle is not None:
            remedy = obstacle.fix or "measure others with --only, or leave --trace out"
            raise BadInput(f"{each.name} cannot be traced: {obstacle.reason}", "--trace", remedy)


def _require_watches(conditions: Sequence[Condition], benches: dict[str, Bench]) -> None:
    """Refuse conditions whose latencies are not known before they are over."""
    for each in conditions:
        if not benches[each.bench].watches:
            what = f"{each.name} runs on the bench {each.bench}, which tells no latency meanwhile"
            raise BadInput(what, "--late", "measure others with --only, or leave --late out")
        if ENGINES[each.engine.engine].maximum_ns is Engine.maximum_ns:
            what = f"{each.name}: the engine {each.engine.engine} tells no latency meanwhile"
            raise BadInput(what, "--late", "take the engine wakeup, robot or intercore")


def _measure_all(
    experiment: Experiment,
    plan: list[tuple[Condition, int]],
    benches: dict[str, Bench],
    writer: "RunWriter",
    observer: Observer,
    watch: Watch,
    trace: bool,
    on_late: "OnLate | None",
) -> None:
    for condition, repetition in plan:
        if watch.stopped:
            break
        repeated = experiment.file.repetitions > 1
        label = f"{condition.name}-r{repetition}" if repeated else condition.name
        bench = benches[condition.bench]
        observer.measuring(label, bench.planned_ns(condition))
        assignment = Assignment(
            condition, label, experiment.deadlines, writer, repetition, trace, on_late
        )
        account = bench.measure(assignment, watch)
        record(writer, observer, condition, repetition, account)


def record(
    writer: "RunWriter",
    observer: Observer,
    condition: Condition,
    repetition: int | None,
    account: dict[str, Any],
) -> None:
    """Write the account of a measurement into its run; None as repetition: it was not measured."""
    known = {"condition": condition.name, "repetition": repetition, **account}
    writer.info.conditions.append(known)
    doubts = [*account.get("notes", ()), *([account["reason"]] if "reason" in account else [])]
    writer.info.notes += [f"{condition.name}: {account['state']}: {doubt}" for doubt in doubts]
    writer.save()
    observer.measured(known)
