"""Carrying out changes so that, wherever it ends, what was done is known and can be taken back.

What a transaction found lies in a folder of the machine itself, `STATE`: the journal, and copies of
the files. The folder is made elsewhere and takes its place whole, before the first change; it is
taken away at once, after the last one was taken back. Killed between any two steps, `find` gives
the transaction as far as it came.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from latenz.errors import BadInput
from latenz.tune.changes import (
    AnyChange,
    BootMenuChange,
    FollowingChange,
    Left,
    Now,
    Refused,
    ServiceChange,
)
from latenz.tune.journal import Event, Head, Journal, Record
from latenz.tune.places import Place

STATE = "/var/lib/latenz/tune"
_PARTS = tuple(STATE.strip("/").split("/"))
_NEW, _OLD = ".latenz-tune.new", ".latenz-tune.old"
_JOURNAL = "journal"
_STEPS: tuple[Event, ...] = ("begin", "done", "refused", "undone")

Phase = Literal["applying", "applied", "reverting", "reverted"]
"""Applying and reverting were interrupted, unless somebody is at it."""
Outcome = Literal["restored", "was as before", "overwritten", "gone", "left"]


@dataclass(frozen=True)
class Step:
    """A change of a transaction, and how far it is.

    Attributes:
        state: What the journal says.
        reason: Why it was refused, or not taken back.
        now: How it looks.
    """

    change: AnyChange
    state: Literal["not begun", "begun", "done", "refused", "reverted"]
    reason: str
    now: Now


@dataclass(frozen=True)
class Restored:
    """A change that was taken back, or why not.

    Attributes:
        refused: The machine did not take it back, so that it is not as before.
    """

    change: AnyChange
    outcome: Outcome
    reason: str = ""
    refused: bool = False


class Transaction:
    """Changes with their journal.

    Attributes:
        journal: What was found, and what happened.
    """

    def __init__(self, place: Place, folder: Path) -> None:
        self.place = place
        self.folder = folder
        self.journal = Journal.read(place, folder / _JOURNAL)

    @property
    def changes(self) -> Sequence[AnyChange]:
        """What it changes."""
        return self.journal.head.changes

    @property
    def phase(self) -> Phase:
        """How far it is as a whole."""
        order: tuple[Phase, ...] = ("reverted", "reverting", "applied")
        events = {record.event for record in self.journal.records}
        names = {"reverted": "reverted", "reverting": "revert", "applied": "applied"}
        return next((phase for phase in order if names[phase] in events), "applying")

    @property
    def same_boot(self) -> bool:
        """Whether the machine was not restarted since."""
        return self.journal.head.boot == self.place.boot_id()

    def steps(self) -> list[Step]:
        """Return all changes, and how they look now."""
        events = {event: self.journal.happened(event) for event in _STEPS}
        done = events["done"]
        steps = []
        for number, change in enumerate(self.changes):
            now = change.now(self.place, done[number].text if number in done else None)
            if number in events["undone"]:
                steps.append(Step(change, "reverted", events["undone"][number].text, now))
            elif number in events["refused"]:
                steps.append(Step(change, "refused", events["refused"][number].text, now))
            elif number in done:
                steps.append(Step(change, "done", "", now))
            else:
                steps.append(
                    Step(change, "begun" if number in events["begin"] else "not begun", "", now)
                )
        return steps

    def carry_out(self, stopped: Callable[[], bool], progress: Callable[[int], None]) -> bool:
        """Carry out what is not yet; return whether all of it was, which `stopped` prevents.

        Raises:
            BadInput: A file was changed by somebody meanwhile.
            OSError: A file cannot be written.
        """
        over = self.journal.happened("done").keys() | self.journal.happened("refused").keys()
        for number, change in enumerate(self.changes):
            if number not in over:
                if stopped():
                    return False
                self._carry_out(number, change)
            progress(number + 1)
        self.journal.append("applied")
        return True

    def _carry_out(self, number: int, change: AnyChange) -> None:
        self.journal.append("begin", number)
        try:
            after = change.do(self.place)
        except Refused as reason:
            self.journal.append("refused", number, str(reason))
        except BadInput as mistake:  # somebody was first: theirs is not ours to take back
            self.journal.append("refused", number, mistake.what)
            raise
        else:
            self.journal.append("done", number, after)

    def changed_since(self) -> list[AnyChange]:
        """Return what somebody changed after us, so that taking it back would overwrite that."""
        return [
            step.change
            for step in self.steps()
            if step.state in ("begun", "done") and self._is_others(step.change, step.now)
        ]

    def _is_others(self, change: AnyChange, now: Now) -> bool:
        """Return whether it is somebody's: not what a restart set, and not what is made again."""
        set_by_restart = change.fleeting and not self.same_boot
        return now == "changed since" and not set_by_restart and not _remade(change)

    def take_back(
        self, stopped: Callable[[], bool], progress: Callable[[int], None]
    ) -> list[Restored] | None:
        """Take all changes back and remove the transaction; None if `stopped` prevented it.

        What `changed_since` names is overwritten.

        Raises:
            BadInput: The copy of a file is damaged.
            OSError: A file cannot be written.
        """
        happened = {event: self.journal.happened(event) for event in _STEPS}
        self.journal.append("revert")
        results = []
        for count, number in enumerate(reversed(range(len(self.changes))), 1):
            if stopped():
                return None
            if result := self._take_back(number, happened):
                results.append(result)
            progress(count)
        results += self._remake()
        self.journal.append("reverted")
        self.remove()
        return results[::-1]

    def _take_back(self, number: int, events: dict[Event, dict[int, Record]]) -> Restored | None:
        change = self.changes[number]
        if number not in events["begin"] or number in events["undone"]:
            return None
        if number in events["refused"] and not isinstance(change, BootMenuChange | ServiceChange):
            return None
        done = events["done"].get(number)
        now = change.now(self.place, done.text if done else None)
        self.journal.append("undo", number)
        if now == "changed since" and (_remade(change) or not self._is_others(change, now)):
            reason = "" if _remade(change) else "the restart of the machine set it"
            result = Restored(change, "left", reason)
        else:
            result = self._undone(number, change, now)
        remake = isinstance(change, FollowingChange) or (_remade(change) and now == "changed since")
        self.journal.append("undone", number, result.reason, remake=remake)
        return None if remake else result

    def _undone(self, number: int, change: AnyChange, now: Now) -> Restored:
        outcomes: dict[Now, Outcome] = {
            "as applied": "restored",
            "as before": "was as before",
            "changed since": "overwritten",
            "gone": "gone",
        }
        try:
            change.undo(self.place, self.folder / str(number))
        except Refused as reason:
            return _left(change, reason)
        return Restored(change, outcomes[now])

    def _remake(self) -> list[Restored]:
        results = []
        for number, record in self.journal.happened("undone").items():
            change = self.changes[number]
            if not record.remake or not isinstance(change, BootMenuChange | FollowingChange):
                continue
            try:
                change.make(self.place)
                results.append(Restored(change, "restored", "made again"))
            except Refused as reason:
                results.append(_left(change, reason))
        return results

    def remove(self) -> None:
        """Remove journal and copies, and the folders that were made for them."""
        old = _ancestor(self.place, len(_PARTS) - self.journal.head.made) / _OLD
        self.place.calls.rename(self.folder, old)
        self.place.calls.sync(old.parent)
        _remove_old(self.place, old)


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Keep others from changing the same machine; the kernel ends that with the process.

    Raises:
        BadInput: Somebody is at it.
    """
    with ExitStack() as held:
        try:
            held.enter_context(place.calls.locked(place.top))
        except BlockingIOError:
            raise BadInput(
                "another latenz tune is at work there", place.name, "wait until it has ended"
            ) from None
        yield


def is_busy(place: Place) -> bool:
    """Return whether somebody changes the machine right now."""
    try:
        with locked(place):
            return False
    except BadInput:
        return True


def find(place: Place) -> Transaction | None:
    """Return the transaction of a machine; None if there is none.

    Raises:
        BadInput: Its journal is damaged.
    """
    folder = place.at(STATE)
    return Transaction(place, folder) if place.mode(folder / _JOURNAL) else None


def sweep(place: Place) -> None:
    """Remove what is left of a transaction that did not begin, or that was taken back.

    Call it with the machine locked.
    """
    for count in range(len(_PARTS)):
        folder = _ancestor(place, count)
        if place.is_folder(folder / _NEW):
            place.remove_tree(folder / _NEW)
        if place.is_folder(folder / _OLD):
            _remove_old(place, folder / _OLD)
    found = find(place)
    if found and found.phase == "reverted":
        found.remove()


def begin(
    place: Place, changes: Sequence[AnyChange], isolated: str, profile: str, proof: str = ""
) -> Transaction:
    """Note what is there, and make the transaction; nothing else is changed yet.

    Call it with the machine locked, after `sweep`.

    Args:
        place: The machine.
        changes: What is going to be changed.
        isolated: The CPUs chosen, as a list.
        profile: What the machine is for.
        proof: The folder of the proof that tries it; empty if it was asked for.

    Raises:
        BadInput: Something cannot be changed, or not so that it could be taken back.
        OSError: Journal or copies cannot be written.
    """
    count = _existing(place)
    anchor = _ancestor(place, count)
    new = anchor / _NEW
    folder = new.joinpath(*_PARTS[count + 1 :])
    try:
        for each in reversed((folder, *folder.parents[: len(_PARTS) - count - 1])):
            place.calls.make_folder(each, 0o755)
        captured = [each.captured(place, folder / str(i)) for i, each in enumerate(changes)]
        head = Head(
            boot=place.boot_id(),
            began=datetime.now(UTC).isoformat(timespec="seconds"),
            isolated=isolated,
            profile=profile,
            made=len(_PARTS) - count,
            proof=proof,
            changes=tuple(captured),
        )
        Journal.create(place, folder / _JOURNAL, head)
        place.calls.set_mode(folder, 0o700)
        for each in (folder, *folder.parents[: len(_PARTS) - count]):
            place.calls.sync(each)
    except BaseException:
        with suppress(BadInput, OSError):  # the next one sweeps it away
            place.remove_tree(new)
        raise
    place.calls.rename(new, anchor / _PARTS[count])
    place.calls.sync(anchor)
    return Transaction(place, place.at(STATE))


def _left(change: AnyChange, reason: Refused) -> Restored:
    return Restored(change, "left", str(reason), refused=not isinstance(reason, Left))


def _remade(change: AnyChange) -> bool:
    return isinstance(change, BootMenuChange | FollowingChange)


def _ancestor(place: Place, count: int) -> Path:
    """Return the folder that the first parts of the state folder's path name."""
    return place.at("/" + "/".join(_PARTS[:count]))


def _existing(place: Place) -> int:
    """Return how many folders of the state folder's path are there.

    Raises:
        BadInput: All of them, or one of them is something else.
    """
    for count in range(1, len(_PARTS) + 1):
        path = _ancestor(place, count - 1) / _PARTS[count - 1]
        if not place.mode(path):
            return count - 1
        if not place.is_folder(_ancestor(place, count)):
            raise BadInput("is not a folder", str(path), "move it away")
    raise BadInput("is there, but holds no journal", str(place.at(STATE)), "move it away")


def _remove_old(place: Place, old: Path) -> None:
    """Remove a folder whose transaction is over, its journal last: it tells what else is ours."""
    made = 1
    with suppress(BadInput):
        made = Journal.read(place, old / _JOURNAL).head.made
    for count in range(len(_PARTS) - 1, len(_PARTS) - made, -1):
        with suppress(OSError):  # somebody put something else in
            place.calls.remove_folder(_ancestor(place, count))
    for name in place.calls.names(old):
        if name != _JOURNAL:
            place.calls.remove(old / name)
    place.calls.remove(old / _JOURNAL)
    place.calls.remove_folder(old)
    place.calls.sync(old.parent)
