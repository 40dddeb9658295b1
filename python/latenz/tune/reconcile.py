"""Entries that know each other: which of them a plan may hold together.

An entry that another one supersedes, or that would undo another one, is left out; each time it is
told. What the user names is never left out without an error.
"""

from collections.abc import Sequence, Set

from latenz.errors import BadInput
from latenz.tune.check import Check
from latenz.tune.lasting import Draft
from latenz.tune.model import Entry

_EFFECTS = ("large", "medium", "small", "none")


def undo_each_other(one: Entry, other: Entry) -> bool:
    """Return whether two entries cannot both be in effect."""
    return one.id in other.conflicts or other.id in one.conflicts


def reconciled(
    entries: Sequence[Entry], checks: Sequence[Check], named: Set[str], draft: Draft
) -> list[Entry]:
    """Return the entries that can be applied together; note those that are left out.

    Args:
        entries: What would be applied, in the order of its effect.
        checks: All that was looked at: what is in effect already counts, too.
        named: Ids that the user named.
        draft: Where it is noted.

    Raises:
        BadInput: Two that the user named undo each other.
    """
    left = _without_superseded(entries, named, draft)
    left = _without_undoing(left, checks, named, draft)
    return _without_pairs(left, named, draft)


def _without_superseded(entries: Sequence[Entry], named: Set[str], draft: Draft) -> list[Entry]:
    left = []
    for entry in entries:
        by = next((each.id for each in entries if entry.id in each.supersedes), None)
        if by is None or entry.id in named:
            left.append(entry)
        else:
            draft.note(f"{entry.id}: left out, {by} does it at less cost; --include it")
    return left


def _without_undoing(
    entries: Sequence[Entry], checks: Sequence[Check], named: Set[str], draft: Draft
) -> list[Entry]:
    """Leave out what would undo something that is in effect already."""
    in_effect = [each.entry for each in checks if each.state == "ok" and each.found is not None]
    left = []
    for entry in entries:
        undone = next((each.id for each in in_effect if undo_each_other(entry, each)), None)
        if undone is None:
            left.append(entry)
        elif entry.id in named:
            draft.note(f"{entry.id}: {undone}, which is right now, is without effect then")
            left.append(entry)
        else:
            draft.note(f"{entry.id}: left out, it would undo {undone}, which is right now")
    return left


def _without_pairs(entries: Sequence[Entry], named: Set[str], draft: Draft) -> list[Entry]:
    """Leave out one of two that undo each other: the one not named, else of the smaller effect."""
    ranked = sorted(entries, key=lambda each: (each.id not in named, _EFFECTS.index(each.effect)))
    kept: list[Entry] = []
    for entry in ranked:
        other = next((each for each in kept if undo_each_other(entry, each)), None)
        if other is None:
            kept.append(entry)
        elif entry.id in named:
            raise BadInput(
                f"{other.id} and {entry.id} undo each other", "--include, --only", "name one"
            )
        else:
            draft.note(f"{entry.id}: left out, {other.id} and it undo each other")
    return [entry for entry in entries if entry in kept]
