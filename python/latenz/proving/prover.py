"""Proving settings: the machine is switched back and forth, and measured in each state.

At every moment one ordinary transaction (`latenz.tune.transaction`) holds all that differs from
before, and names the proof's folder. Whatever ends a proof, `latenz tune revert` restores every
byte and value. Samples and record lie in the proof's folder; only a trial that was cut short is
repeated.
"""

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from latenz.benches import BENCHES
from latenz.benches.base import Assignment, Bench, Watch
from latenz.benches.target import bench_on
from latenz.errors import BadInput
from latenz.experiment.ordering import interleave
from latenz.experiment.runner import Observer, begin_run, record, select
from latenz.experiment.schema import Experiment
from latenz.files import OwnFolder
from latenz.machine import measured_target
from latenz.measuring.condition import Condition
from latenz.model import SampleSet
from latenz.proving.proof import (
    Record,
    State,
    Trial,
    Wanted,
    changes_of,
    judge_trial,
    judged_sets,
    repetitions_for,
    statements_of,
    untold,
)
from latenz.remote import Target
from latenz.signals import stopped_by_signals
from latenz.store.run import Run, RunWriter, Status
from latenz.tune.applying import Stopped, carry_out, refused_of, take_back, told_of, unfinished
from latenz.tune.catalogue import load
from latenz.tune.changes import AnyChange
from latenz.tune.check import check
from latenz.tune.context import Context
from latenz.tune.cpus import parse_list
from latenz.tune.model import Entry
from latenz.tune.places import Place
from latenz.tune.plan import Choice, Plan, plan
from latenz.tune.root import Root
from latenz.tune.transaction import Restored, Transaction, find, sweep

_BENCHES = ("host", "vm")  # the others do not depend on this machine's settings
_ONE_BOOT = "each side was measured in one boot: what differs between boots is not in its interval"
_SIDES = {False: "without", True: "with"}


class Teller(Observer, Protocol):
    """Whoever is told how far a proof has come."""

    def tried(self, trial: Trial) -> None:
        """Called after each trial."""

    def __enter__(self) -> Self:
        """Start to show."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Show no more."""


class _Stopped(Exception):  # noqa: N818 - the user wants it to end
    """A signal came; samples are kept."""


class _Failed(Exception):  # noqa: N818 - is told in the trial
    """A trial cannot be measured; its text says why."""


class _NotRestored(Exception):  # noqa: N818 - is told in the record
    """The machine did not take something back: whatever is measured now is not what it was.

    Args:
        refusals: What, and why.
    """

    def __init__(self, refusals: Sequence[Restored]) -> None:
        super().__init__(told_of(refusals))
        self.told = tuple(f"{each.change.what} ({each.reason})" for each in refusals)


def measurable(
    experiment: Experiment, pattern: str | None, duration_ns: int | None
) -> list[Condition]:
    """Return the conditions that a setting of this machine can change.

    Raises:
        BadInput: There are none, or one cannot be measured here.
    """
    chosen = [
        each
        for each in select(experiment, [] if pattern is None else [pattern])
        if each.bench in _BENCHES
    ]
    if not chosen:
        where = str(experiment.path)
        raise BadInput("measures nothing on this machine", where, "it takes the bench host or vm")
    for each in chosen:
        if obstacle := _bench(each.bench).obstacle(each):
            raise BadInput(f"cannot be measured here: {obstacle}", each.name, "see --condition")
    return [replace(each, duration_ns=duration_ns or each.duration_ns) for each in chosen]


def _bench(name: str) -> Bench:
    """Return a bench of the measured machine, be it a target."""
    target = measured_target()
    return bench_on(target, name) if isinstance(target, Target) else BENCHES[name]()


def planned(place: Place, wanted: Wanted, only: Sequence[str] = ()) -> Plan:
    """Return what the user wants changed of a machine as it is.

    Args:
        place: The machine.
        wanted: What the user asked for.
        only: No other entries than these; none: all that were asked for.
    """
    root = Root(place.top)
    context = Context.of(root, wanted.cpus, wanted.profile)
    choice = Choice(wanted.include, tuple(only) or wanted.only, wanted.skip)
    return plan(context, check(context, load()), choice)


def checked(place: Place, wanted: Wanted) -> list[Entry]:
    """Return all entries, that with the greatest expected effect first."""
    context = Context.of(Root(place.top), wanted.cpus, wanted.profile)
    return [each.entry for each in check(context, load())]


def nothing_applied(place: Place) -> None:
    """Refuse to prove anything on top of what is applied.

    Call it with the machine locked.

    Raises:
        BadInput: Something is applied, or half done.
    """
    sweep(place)
    if unfinished(place) is not None:
        raise BadInput("an apply was interrupted", place.name, f"{place.command('revert')} first")


def returned(place: Place, folder: Path | None) -> tuple[Path, Record]:
    """Take back what an ended proof left, unless that is what was restarted for.

    Call it with the machine locked. What the journal of somebody else's tree names is not followed.

    Args:
        place: The machine.
        folder: The proof's folder, if the user named it.

    Returns:
        The proof's folder, and how far it is.

    Raises:
        BadInput: No proof is under way, it is another one, it still waits for the restart, or it
            has ended.
    """
    sweep(place)
    found = find(place)
    named = found.journal.head.proof if found else ""
    if found is not None and not named:
        nothing_applied(place)  # tells what else it is
    if folder is None and (not named or not place.live):
        raise BadInput("no proof is known here", "--resume", "name its folder with -o")
    if folder is not None and named and folder.absolute() != Path(named):
        raise BadInput(f"the proof under way here is another: {named}", str(folder), "resume that")
    chosen = folder or Path(named)
    noted = Record.read(chosen)
    if noted.waiting and found is not None and found.phase == "applied":
        if noted.waiting == place.boot_id():
            remedy = f"restart it and resume, or {place.command('revert')}"
            raise BadInput("the machine was not restarted yet", place.name, remedy)
        return chosen, noted
    if refusals := refused_of(take_back(place)):
        told = f"is not as before: {told_of(refusals)}"
        raise BadInput(told, place.name, "set it by hand, then resume with -o")
    if noted.state == "ended":
        raise BadInput("that proof has ended", str(chosen), "begin another one")
    return chosen, noted.with_(waiting="")


class Prover:
    """Carries out a proof on a machine that the caller has locked.

    Args:
        place: The machine.
        folder: Where to write runs and record; made if absent.
        plan: All that was asked for, of the machine as it is without.
        experiment: What is measured.
        conditions: Those of the experiment that are.
        observer: Is told how far it has come.

    Attributes:
        folder: What to write by: see `OwnFolder`.
        name: What the user calls it, as an absolute path.
    """

    def __init__(
        self,
        place: Place,
        folder: Path,
        plan: Plan,
        experiment: Experiment,
        conditions: Sequence[Condition],
        observer: Teller,
    ) -> None:
        self.place = place
        self.name = str(folder.absolute())
        self._is_new = not folder.exists()
        self._own = OwnFolder(folder.absolute())  # loads run in folders of their own
        self.folder = self._own.path
        self.plan = plan
        self.experiment = experiment
        self.conditions = conditions
        self.observer = observer
        self.watch = Watch(report=observer.update if observer.visible else None)
        self._benches = {name: _bench(name) for name in {each.bench for each in conditions}}
        self._environment = {name: each.describe() for name, each in self._benches.items()}

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Show progress, and let signals end the work early and in order."""
        with stopped_by_signals(self.watch.stop), self.observer:
            yield

    @property
    def once_ns(self) -> int:
        """How long it takes to measure all conditions once."""
        return sum(self._benches[each.bench].planned_ns(each) for each in self.conditions)

    def tests(self, noted: Record) -> int:
        """Return how many trials there are left, at the most."""
        return len(noted.left) + (len(noted.groups) > 1) + noted.restart_left

    def before(
        self, wanted: Wanted, groups: Sequence[tuple[str, ...]], later: tuple[str, ...]
    ) -> Record | None:
        """Measure the machine once as it is, and settle how to go on; nothing is changed.

        Args:
            wanted: What the user asked for.
            groups: What is to be tried while the machine runs.
            later: What takes a restart.

        Returns:
            The record of the proof, which is not written yet; None if a signal came first.

        Raises:
            BadInput: It cannot be measured.
        """
        seed = self.experiment.file.seed
        seed = secrets.randbits(32) if seed is None else seed
        writer = self._run(self.folder / "before", seed)
        status: Status = "failed"
        try:
            self.observer.planned(self.once_ns)
            self._measure(writer, 1, "before")
            status = "complete"
        except _Stopped:
            status = "interrupted"
            return None
        except _Failed as reason:
            what = f"was not measured: {reason}"
            raise BadInput(what, "the machine as it is", "nothing was changed") from None
        finally:
            writer.close(status)
        sets = _sets(writer.folder, self.plan.isolated)
        if not sets:
            where = str(self.experiment.path)
            raise BadInput("measures nothing by a real clock", where, "take the bench host")
        if name := untold(sets, wanted.figure):
            what = f"{name} is too short to tell {wanted.figure}"
            raise BadInput(what, "the machine as it is", "take a longer --duration, or --figure")
        return self._settled(wanted, groups, later, len(sets), seed)

    def withdraw(self) -> None:
        """Remove what `before` measured: the user does not want to go on, or cannot."""
        shutil.rmtree(self.folder / "before", ignore_errors=True)
        if self._is_new and str(self.folder) == self.name:  # else others could exchange it
            with suppress(OSError):
                self.folder.rmdir()

    def _settled(
        self,
        wanted: Wanted,
        groups: Sequence[tuple[str, ...]],
        later: tuple[str, ...],
        sets: int,
        seed: int,
    ) -> Record:
        """Return the record of a proof that begins."""
        statements = statements_of(len(groups), wanted.restart and bool(later), sets)
        return Record(
            wanted=wanted,
            began=datetime.now(UTC).isoformat(timespec="seconds"),
            isolated=self.plan.isolated,
            profile=self.plan.profile,
            groups=tuple(groups),
            later=later,
            statements=statements,
            repetitions=repetitions_for(statements, self.experiment.file.repetitions),
            seed=seed,
        )

    def go_on(self, noted: Record) -> Record:
        """Try what is left to be tried; the machine is as before at the end, unless it waits.

        Args:
            noted: How far the proof is.

        Returns:
            How far it has come then.

        Raises:
            BadInput: The machine cannot be switched back: what is left is told.
        """
        self.observer.planned(self.tests(noted) * 2 * noted.repetitions * self.once_ns)
        try:
            noted = self._all(noted.with_(state="under way", not_restored=()))
        except _Stopped:
            noted = self._noted("interrupted")
        except _NotRestored as told:
            noted = self._noted("interrupted", told.told)
        finally:
            if noted.state != "waiting for a restart":
                noted = self._restored(noted)
        return noted

    def _noted(self, state: State, not_restored: tuple[str, ...] = ()) -> Record:
        """Return the record as it lies on the disk, with how it ended."""
        noted = Record.read(self.folder)
        told = tuple(dict.fromkeys((*noted.not_restored, *not_restored)))
        noted = noted.with_(state=state, not_restored=told)
        noted.save(self.folder)
        return noted

    def _restored(self, noted: Record) -> Record:
        """Take back what is applied; return the record with what the machine did not take back."""
        refusals = refused_of(take_back(self.place))
        return self._noted(noted.state, _NotRestored(refusals).told) if refusals else noted

    def after_restart(self, noted: Record) -> Record:
        """Measure what a restart has brought; the files are as before at the end.

        Raises:
            BadInput: As `go_on`.
        """
        self.observer.planned(noted.repetitions * self.once_ns)
        folder = self._free(f"{noted.waiting_in}-restarted")
        writer = self._run(folder, noted.seed)
        before = self.folder / noted.waiting_in / _SIDES[False]
        try:
            for repetition in range(1, noted.repetitions + 1):
                self._measure(writer, repetition, f"{noted.waiting_in}: with, {repetition}")
            writer.close()
            trial = _judged(noted, noted.later, before, folder, noted.waiting_in)
            reason = "; ".join([_ONE_BOOT, *self._without_effect(noted)])
            trial = trial.model_copy(update={"reason": reason})
        except _Failed as reason:
            writer.close("failed")
            trial = Trial(entries=noted.later, outcome="not measured", reason=str(reason))
        except _Stopped:
            writer.close("interrupted")
            return noted.with_(state="interrupted")  # on the disk it waits, as it was tried
        self.observer.tried(trial)
        noted = noted.with_(trials=(*noted.trials, trial), waiting="", state="ended")
        noted.save(self.folder)
        return self._restored(noted)

    def keep(self, noted: Record, stopped: Stopped) -> Transaction:
        """Apply what helps, to stay, as `latenz tune apply` does.

        Args:
            noted: What the proof found.
            stopped: Tells whether to end early; `latenz tune apply` finishes it then.

        Raises:
            BadInput: It cannot be applied; all is as before then, or the message says what is left.
        """
        found = planned(self.place, noted.wanted, noted.helping)
        about = found.isolated, found.profile
        return carry_out(self.place, found.changes, *about, stopped=stopped)

    def _all(self, noted: Record) -> Record:
        for group in noted.left:
            number = 1 + len(noted.trials)
            base = changes_of(self.plan, noted.helping)
            tried = changes_of(self.plan, (*noted.helping, *group))
            trial = self._trial(noted, group, base, tried, f"{number:02d}-{group[0]}")
            noted = noted.with_(trials=(*noted.trials, trial))
            noted.save(self.folder)
            self.observer.tried(trial)
        if noted.together is None and sum(each.outcome == "helps" for each in noted.trials) > 1:
            helping = noted.helping
            trial = self._trial(noted, helping, [], changes_of(self.plan, helping), "together")
            noted = noted.with_(together=trial)
            noted.save(self.folder)
            self.observer.tried(trial)
        noted = self._restart_tried(noted) if noted.restart_left else noted.with_(state="ended")
        noted.save(self.folder)
        return noted

    def _trial(
        self,
        noted: Record,
        entries: tuple[str, ...],
        base: Sequence[AnyChange],
        tried: Sequence[AnyChange],
        name: str,
    ) -> Trial:
        """Measure with and without some entries, in turns; say what the samples tell."""
        try:
            refused = self._refused(entries, tried)
        except _Failed as reason:
            return Trial(entries=entries, outcome="not measured", reason=str(reason))
        if refused is not None and refused[1]:
            return Trial(entries=entries, outcome="refused", reason=refused[0])
        folder = self._free(name)
        try:
            without, with_ = self._in_turns(noted, folder, base, tried)
        except _Failed as reason:
            return Trial(entries=entries, outcome="not measured", reason=str(reason))
        trial = _judged(noted, entries, without, with_, folder.name)
        told = "; ".join(filter(None, (trial.reason, refused and refused[0])))
        return trial.model_copy(update={"reason": told})

    def _in_turns(
        self, noted: Record, folder: Path, base: Sequence[AnyChange], tried: Sequence[AnyChange]
    ) -> tuple[Path, Path]:
        """Measure both states, in random order within each repetition; return the two runs.

        Raises:
            _Failed: It cannot be measured.
            _Stopped: A signal came.
        """
        runs = {side: self._run(folder / _SIDES[side], noted.seed) for side in (False, True)}
        status: Status = "failed"
        try:
            order = interleave((False, True), noted.repetitions, noted.seed + len(noted.trials))
            for side, repetition in order:
                self._switch(tried if side else base)
                label = f"{folder.name}: {_SIDES[side]}, {repetition} of {noted.repetitions}"
                self._measure(runs[side], repetition, label)
                self._look_undisturbed()
            status = "complete"
        except _Stopped:
            status = "interrupted"
            raise
        finally:
            for writer in runs.values():
                writer.close(status)
        return runs[False].folder, runs[True].folder

    def _refused(
        self, entries: Sequence[str], tried: Sequence[AnyChange]
    ) -> tuple[str, bool] | None:
        """Apply once to see what the kernel takes: what it refuses, and whether that is all."""
        transaction = self._switch(tried)
        steps = [each for each in transaction.steps() if set(entries) & set(each.change.entries)]
        if not steps:
            raise _Failed("there is nothing to change any more")
        refused = [each for each in steps if each.state == "refused"]
        if not refused:
            return None
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        what = f"refused: {refused[0].change.what} ({refused[0].reason}){more}"
        return what, len(refused) == len(steps)

    def _switch(self, changes: Sequence[AnyChange]) -> Transaction:
        """Let the machine be as before but for these changes.

        Raises:
            _Failed: These cannot be made; the machine is as before.
            _NotRestored: The machine did not take back what was applied before.
            BadInput: The machine cannot be brought back.
        """
        self._take_back()
        about = self.plan.isolated, self.plan.profile
        try:
            return carry_out(self.place, changes, *about, proof=self.name)
        except BadInput as mistake:
            if find(self.place) is not None:
                raise
            raise _Failed(str(mistake)) from None

    def _take_back(self) -> None:
        """Let the machine be as before.

        Raises:
            _NotRestored: It did not take something back.
        """
        if refusals := refused_of(take_back(self.place)):
            raise _NotRestored(refusals)

    def _look_undisturbed(self) -> None:
        """Look whether all is still as it was applied.

        Raises:
            _Failed: Somebody changed something while it was measured.
        """
        transaction = find(self.place)
        for step in transaction.steps() if transaction else ():
            if step.state == "done" and step.now in ("as before", "changed since"):
                raise _Failed(f"{step.change.what} was changed by somebody while it was measured")

    def _restart_tried(self, noted: Record) -> Record:
        """Measure without what takes a restart, apply it, and wait for the restart."""
        folder = self._free(f"{1 + len(noted.trials):02d}-restart")
        writer = self._run(folder / _SIDES[False], noted.seed)
        status: Status = "failed"
        try:
            self._switch([])
            for repetition in range(1, noted.repetitions + 1):
                self._measure(writer, repetition, f"{folder.name}: without, {repetition}")
            status = "complete"
        except _Failed as reason:
            trial = Trial(entries=noted.later, outcome="not measured", reason=str(reason))
            return noted.with_(trials=(*noted.trials, trial), state="ended")
        except _Stopped:
            status = "interrupted"
            raise
        finally:
            writer.close(status)
        self._take_back()
        changes = planned(self.place, noted.wanted, noted.later).changes
        waiting = noted.with_(
            state="waiting for a restart", waiting=self.place.boot_id(), waiting_in=folder.name
        )
        waiting.save(self.folder)  # first: what is applied has to be known to whoever goes on
        carry_out(self.place, changes, noted.isolated, noted.profile, proof=self.name)
        return waiting

    def _without_effect(self, noted: Record) -> list[str]:
        """Tell which entries are not as they should be although the machine was restarted."""
        context = Context.of(Root(self.place.top), noted.wanted.cpus, noted.wanted.profile)
        wrong = [each.id for each in check(context, load()) if each.state == "wrong"]
        left = [entry for entry in noted.later if entry in wrong]
        return [f"not in effect after the restart: {', '.join(left)}"] if left else []

    def _run(self, folder: Path, seed: int) -> RunWriter:
        return begin_run(self.experiment, folder, self.conditions, self._environment, seed)

    def _free(self, name: str) -> Path:
        """Return a folder for a trial; one that was cut short keeps its own."""
        folder, count = self.folder / name, 1
        while folder.exists():
            count += 1
            folder = self.folder / f"{name}.{count}"
        return folder

    def _measure(self, writer: RunWriter, repetition: int, label: str) -> None:
        """Measure all conditions once.

        Raises:
            _Stopped: A signal came.
            _Failed: One was not measured.
        """
        for condition in self.conditions:
            bench = self._benches[condition.bench]
            self.observer.measuring(label, bench.planned_ns(condition))
            name = f"{condition.name}-r{repetition}"
            assignment = Assignment(condition, name, self.experiment.deadlines, writer, repetition)
            account = {} if self.watch.stopped else bench.measure(assignment, self.watch)
            if self.watch.stopped:
                raise _Stopped
            record(writer, self.observer, condition, repetition, account)
            if account["state"] != "measured":
                raise _Failed(f"{condition.name}: {account.get('reason', account['state'])}")


def _sets(folder: Path, isolated: str) -> list[SampleSet]:
    return judged_sets(Run.open(folder).sample_sets, frozenset(parse_list(isolated)))


def _judged(
    noted: Record, entries: tuple[str, ...], without: Path, with_: Path, name: str
) -> Trial:
    first, second = (_sets(folder, noted.isolated) for folder in (without, with_))
    about = noted.wanted.figure, noted.confidence_of_each
    trial = judge_trial(entries, first, second, *about)
    return trial.model_copy(update={"folder": name})
