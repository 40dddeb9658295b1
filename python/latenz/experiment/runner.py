"""Carries out an experiment and leaves a run folder."""

import secrets
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from latenz.benches import BENCHES
from latenz.benches.base import Assignment, Bench, TraceKind, Watch
from latenz.benches.host import Host
from latenz.engines import ENGINES, Engine
from latenz.errors import BadInput, OutOfReach, closest
from latenz.experiment.ordering import interleave
from latenz.experiment.schema import Experiment
from latenz.measuring.condition import Condition
from latenz.signals import stopped_by_signals

if TYPE_CHECKING:
    from latenz.benches.late import OnLate
    from latenz.obstacle import Obstacle
    from latenz.remote import Target, TargetUrl
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
    trace: TraceKind | None = None,
    on_late: "OnLate | None" = None,
    on: "TargetUrl | Target | Bench | None" = None,
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
        trace: Also record what the kernel does meanwhile, and for what; None: do not.
        on_late: What to do once a measurement's latency passes a limit.
        on: The target to measure instead of this machine, which may be open already, or the bench
            to measure on instead of those that the conditions name; None: neither.

    Returns:
        The closed run; its `info.status` is "complete" or "interrupted".

    Raises:
        BadInput: The folder cannot be written, no condition can be measured here, or one cannot
            be traced or watched.
    """
    benches = {each.place: _bench(each, on) for each in conditions}
    if trace:  # before a target is reached for nothing
        _require_traces(conditions, benches, trace)
    with ExitStack() as stack:
        for name, bench in list(benches.items()):
            benches[name] = _opened(bench, name, stack, one_of_many=len(benches) > 1)
        return _run(experiment, folder, conditions, observer, benches, required, trace, on_late)


def _opened(bench: Bench, name: str, stack: ExitStack, *, one_of_many: bool) -> Bench:
    """Open a bench; one of several that is out of reach does not keep the others waiting."""
    try:
        stack.enter_context(bench.opened())
    except BadInput as reason:
        if not one_of_many:
            raise
        from latenz.benches.target import Elsewhere

        return Elsewhere(name, str(reason))
    return bench


def _bench(condition: Condition, on: "TargetUrl | Target | Bench | None") -> Bench:
    if isinstance(on, Bench):
        return on
    if on is None and not condition.target:
        return BENCHES[condition.bench]()
    from latenz.benches.target import Elsewhere, TargetBench
    from latenz.remote import TargetUrl

    if condition.target and on is not None:
        what = f"is measured on the target {condition.target!r} of the experiment"
        raise BadInput(what, condition.name, "leave out --on, or choose others with --only")
    if condition.target:
        return TargetBench(TargetUrl.parse(condition.target_url), condition.target)
    if on is None or condition.bench != Host.name:
        return Elsewhere(condition.bench)
    return TargetBench(on)


def _run(
    experiment: Experiment,
    folder: Path,
    conditions: Sequence[Condition],
    observer: Observer,
    benches: dict[str, Bench],
    required: bool,
    trace: TraceKind | None,
    on_late: "OnLate | None",
) -> "RunWriter":
    if on_late:
        _require_watches(conditions, benches)
    obstacles, described = _asked(conditions, benches)
    able = [each for each in conditions if obstacles[each.name] is None]
    unable = [each for each in conditions if obstacles[each.name] is not None]
    if unable and (required or not able):
        first = unable[0]
        raise BadInput(f"cannot be measured here: {obstacles[first.name]}", first.name)
    file = experiment.file
    seed = secrets.randbits(32) if file.seed is None else file.seed
    plan = interleave(able, file.repetitions, seed)
    environment = {name: told for name, told in described.items() if told}
    writer = begin_run(experiment, folder, conditions, environment, seed)
    for each in unable:
        account = {"state": "not measured", "reason": str(obstacles[each.name])}
        record(writer, observer, each, None, account)
    measuring = _Measuring(experiment, benches, writer, observer, trace, on_late)
    status: Status = "failed"
    try:
        with stopped_by_signals(measuring.stop):
            measuring.all_of(plan)
        status = "interrupted" if measuring.stopped else "complete"
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror})", str(folder)) from None
    finally:
        writer.close(status)
    return writer


def _asked(
    conditions: Sequence[Condition], benches: dict[str, Bench]
) -> "tuple[dict[str, Obstacle | None], dict[str, dict[str, Any]]]":
    """Return what keeps each condition from being measured, and what each bench tells of itself.

    A target may be lost meanwhile: one of several becomes one that is out of reach.
    """
    obstacles: dict[str, Obstacle | None] = {}
    described: dict[str, dict[str, Any]] = {}
    for name in benches:
        own = [each for each in conditions if each.place == name]
        try:
            found = {each.name: benches[name].obstacle(each) for each in own}
            described[name] = benches[name].describe()
        except OutOfReach as reason:
            if len(benches) == 1:
                raise
            from latenz.benches.target import Elsewhere

            benches[name] = Elsewhere(name, str(reason))
            found = {each.name: benches[name].obstacle(each) for each in own}
        obstacles |= found
    return obstacles, described


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


def _require_traces(
    conditions: Sequence[Condition], benches: dict[str, Bench], kind: TraceKind
) -> None:
    """Refuse conditions that cannot be traced: whoever asks for traces wants them of all."""
    for each in conditions:
        obstacle = benches[each.place].trace_obstacle(kind)
        if obstacle is not None:
            remedy = obstacle.fix or "measure others with --only, or leave --trace out"
            raise BadInput(f"{each.name} cannot be traced: {obstacle.reason}", "--trace", remedy)


def _require_watches(conditions: Sequence[Condition], benches: dict[str, Bench]) -> None:
    """Refuse conditions whose latencies are not known before they are over."""
    for each in conditions:
        if not benches[each.place].watches:
            what = f"{each.name} runs on the bench {each.place}, which tells no latency meanwhile"
            raise BadInput(what, "--late", "measure others with --only, or leave --late out")
        if ENGINES[each.engine.engine].maximum_ns is Engine.maximum_ns:
            what = f"{each.name}: the engine {each.engine.engine} tells no latency meanwhile"
            raise BadInput(what, "--late", "take the engine wakeup, robot or intercore")


Plan = list[tuple[Condition, int]]
"""Conditions and which of their repetitions it is, in the order of measuring."""


class _Measuring:
    """Measures what this machine measures in turn, then all targets at the same time.

    The target that takes the longest leads: the observer is told of it alone.

    Attributes:
        stopped: Whether it was asked to end early.
    """

    def __init__(
        self,
        experiment: Experiment,
        benches: dict[str, Bench],
        writer: "RunWriter",
        observer: Observer,
        trace: TraceKind | None,
        on_late: "OnLate | None",
    ) -> None:
        self._experiment = experiment
        self._benches = benches
        self._writer = writer
        self._observer = observer
        self._trace = trace
        self._on_late = on_late
        self._watches: list[Watch] = []
        self.stopped = False

    def stop(self) -> None:
        """End all that is measured early."""
        self.stopped = True
        for each in list(self._watches):
            each.stop()

    def all_of(self, plan: Plan) -> None:
        """Measure a plan.

        Raises:
            OSError: The run cannot be written.
        """
        here = [item for item in plan if not item[0].target]
        names = dict.fromkeys(each.target for each, _ in plan if each.target)
        targets = [[item for item in plan if item[0].target == name] for name in names]
        targets.sort(key=self._planned_ns)
        longest_ns = max(map(self._planned_ns, targets), default=0)
        self._observer.planned(self._planned_ns(here) + longest_ns)
        self._in_turn(here, self._observer)
        if targets:
            self._at_once(targets[:-1], targets[-1])

    def _planned_ns(self, plan: Plan) -> int:
        return sum(self._benches[each.place].planned_ns(each) for each, _ in plan)

    def _at_once(self, others: Sequence[Plan], longest: Plan) -> None:
        called = f"{len(others) + 1} targets: " if others else ""
        with ThreadPoolExecutor(len(others) + 1) as pool:
            beside = [pool.submit(self._in_turn, each, None) for each in others]
            try:
                self._in_turn(longest, self._observer, called)
                for each in beside:
                    each.result()
            except BaseException:
                self.stop()
                raise

    def _in_turn(self, plan: Plan, observer: Observer | None, called: str = "") -> None:
        watch = Watch(report=observer.update if observer and observer.visible else None)
        self._watches.append(watch)
        for condition, repetition in plan:
            if self.stopped:
                break
            repeated = self._experiment.file.repetitions > 1
            label = f"{condition.name}-r{repetition}" if repeated else condition.name
            bench = self._benches[condition.place]
            if observer:
                observer.measuring(called + label, bench.planned_ns(condition))
            assignment = Assignment(
                *(condition, label, self._experiment.deadlines, self._writer, repetition),
                *(self._trace, self._on_late),
            )
            account = bench.measure(assignment, watch)
            record(self._writer, observer, condition, repetition, account)


def record(
    writer: "RunWriter",
    observer: Observer | None,
    condition: Condition,
    repetition: int | None,
    account: dict[str, Any],
) -> None:
    """Write the account of a measurement into its run; None as repetition: it was not measured."""
    known = {"condition": condition.name, "repetition": repetition, **account}
    doubts = [*account.get("notes", ()), *([account["reason"]] if "reason" in account else [])]
    with writer.lock:
        writer.info.conditions.append(known)
        writer.info.notes += [f"{condition.name}: {account['state']}: {doubt}" for doubt in doubts]
        writer.save()
    if observer:
        observer.measured(known)
