"""Applying a plan and reverting it, as `latenz tune` does: whole, or told how far it came."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from latenz.errors import BadInput, OutOfReach
from latenz.tune.changes import AnyChange, Change
from latenz.tune.places import Place
from latenz.tune.transaction import (
    STATE,
    Restored,
    Transaction,
    begin,
    find,
    locked,
    sweep,
)

_MOST_NAMED = 5
Stopped = Callable[[], bool]
Progress = Callable[[int], None]


def unfinished(place: Place) -> Transaction | None:
    """Return the transaction that was interrupted while it was applied; None if there is none.

    Raises:
        BadInput: Another one is applied, or was interrupted so that it has to be reverted first.
    """
    found = find(place)
    if found is None or found.phase == "reverted":
        return None
    began = found.journal.head.began
    where = place.name
    revert_it = place.command("revert")
    if found.journal.head.proof:
        raise BadInput(
            f"a proof is under way since {began}",
            where,
            f"{place.command('prove')} --resume goes on, {revert_it} ends it",
        )
    if found.phase == "applied":
        raise BadInput(f"tunings are applied since {began}", where, f"{revert_it} first")
    if found.phase == "reverting":
        raise BadInput("a revert was interrupted", where, f"{revert_it} takes the rest back")
    if not found.same_boot:
        raise BadInput(
            f"the machine was restarted in the middle of what was applied at {began}",
            where,
            f"{revert_it}, then apply again",
        )
    return found


def apply(
    place: Place,
    changes: Sequence[AnyChange],
    isolated: str,
    profile: str,
    stopped: Stopped,
    progress: Progress,
) -> Transaction:
    """Carry out changes as one transaction, or finish the one that was interrupted.

    If one cannot be carried out, all before it are taken back. What the kernel refuses is no such
    case: `Transaction.steps` tells.

    Args:
        place: The machine.
        changes: What to change; of no account if an interrupted transaction is finished.
        isolated: The CPUs chosen, as a list.
        profile: What the machine is for.
        stopped: Tells whether to end early; all that was done is kept then, and can be finished.
        progress: Takes how many changes are done.

    Raises:
        BadInput: Nothing is changed; or, if the message says so, not all could be taken back.
    """
    with in_reach(place), locked(place):
        return carry_out(place, changes, isolated, profile, stopped=stopped, progress=progress)


def carry_out(
    place: Place,
    changes: Sequence[AnyChange],
    isolated: str,
    profile: str,
    *,
    proof: str = "",
    stopped: Stopped = lambda: False,
    progress: Progress = lambda _: None,
) -> Transaction:
    """Do what `apply` does on a machine that the caller has locked.

    Args:
        place: The machine.
        changes: As for `apply`.
        isolated: The CPUs chosen, as a list.
        profile: What the machine is for.
        proof: The folder of the proof that tries it; empty if it was asked for.
        stopped: As for `apply`.
        progress: As for `apply`.

    Raises:
        BadInput: As `apply`.
    """
    sweep(place)
    transaction = unfinished(place)
    if transaction is None:
        try:
            transaction = begin(place, changes, isolated, profile, proof)
        except OSError as error:
            where = str(error.filename or place.at(STATE))
            raise BadInput(_told(error), where, "nothing is changed; make it so") from None
    try:
        transaction.carry_out(stopped, progress)
    except OutOfReach:
        raise
    except (BadInput, OSError) as mistake:
        _roll_back(transaction, mistake)
    return transaction


@contextmanager
def in_reach(place: Place) -> Iterator[None]:
    """Say how to go on with a target that is lost amid its changes: it has noted them itself.

    Raises:
        OutOfReach: It is lost.
    """
    try:
        yield
    except OutOfReach as lost:
        told = place.command("status")
        how = f"{told} tells how far it came; apply goes on, revert takes it back"
        raise OutOfReach(lost.what, place.name, how) from None


def _roll_back(transaction: Transaction, mistake: BadInput | OSError) -> None:
    """Take back what was done before a mistake.

    Raises:
        BadInput: Always: with the mistake.
    """
    where = transaction.place.name
    reason = _told(mistake)
    try:
        results = transaction.take_back(lambda: False, lambda _: None)
    except (BadInput, OSError) as another:
        raise BadInput(
            f"{reason}, and what was done could not be taken back: {_told(another)}",
            where,
            f"make room, then {transaction.place.command('revert')}",
        ) from None
    if refusals := refused_of(results):
        told = f"{reason}, and is not as before: {told_of(refusals)}"
        raise BadInput(told, where, "set it by hand; all else is as before") from None
    raise BadInput(reason, where, "all is as before") from None


def _told(mistake: BadInput | OSError) -> str:
    if isinstance(mistake, BadInput):
        return str(mistake)
    reason = f"cannot be written ({mistake.strerror})"
    return f"{mistake.filename} {reason}" if mistake.filename else reason


def revert(
    place: Place, force: bool, stopped: Stopped, progress: Progress
) -> list[Restored] | None:
    """Take back what was applied, as far as it came.

    Args:
        place: The machine.
        force: Overwrite what somebody changed since.
        stopped: Tells whether to end early; the rest can be taken back later.
        progress: Takes how many changes were looked at.

    Returns:
        What became of each change; None if it ended early.

    Raises:
        BadInput: Somebody changed something since; or a file cannot be written: the rest is kept.
    """
    with in_reach(place), locked(place):
        return take_back(place, force, stopped, progress)


def take_back(
    place: Place,
    force: bool = False,
    stopped: Stopped = lambda: False,
    progress: Progress = lambda _: None,
) -> list[Restored] | None:
    """Do what `revert` does on a machine that the caller has locked.

    Raises:
        BadInput: As `revert`.
    """
    try:
        sweep(place)
        transaction = find(place)
        if transaction is None:
            return []
        others = transaction.changed_since()
        if others and not force:
            raise BadInput(
                f"changed by somebody since: {_names(others)}",
                place.name,
                "nothing is reverted; --force overwrites it with what was there before",
            )
        return transaction.take_back(stopped, progress)
    except OSError as error:
        raise BadInput(
            _told(error),
            place.name,
            f"make it so, then {place.command('revert')} takes back the rest",
        ) from None


def refused_of(results: Sequence[Restored] | None) -> list[Restored]:
    """Return what the machine did not take back."""
    return [each for each in results or () if each.refused]


def told_of(refusals: Sequence[Restored]) -> str:
    """Return what was not taken back, and why, in a few words."""
    more = len(refusals) - _MOST_NAMED
    named = "; ".join(f"{each.change.what} ({each.reason})" for each in refusals[:_MOST_NAMED])
    return f"{named} and {more} more" if more > 0 else named


def _names(changes: Sequence[Change]) -> str:
    more = len(changes) - _MOST_NAMED
    named = ", ".join(change.what for change in changes[:_MOST_NAMED])
    return f"{named} and {more} more" if more > 0 else named
