"""Which sample set of one side belongs to which of the other."""

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from latenz.errors import BadInput
from latenz.model import SampleSet

_REPETITION = re.compile(r"[-/]r(\d+)(?=/|$)")


@dataclass(frozen=True)
class Match:
    """Sets to compare with each other: one of each side, or the repetitions of one condition.

    Attributes:
        name: Name of the pair; for repetitions the name without their number.
        a: The sets of the first side.
        b: Those of the second, in the same order.
    """

    name: str
    a: tuple[SampleSet, ...]
    b: tuple[SampleSet, ...]


@dataclass(frozen=True)
class Matching:
    """All matches, and the names of the sets that have no counterpart."""

    matches: tuple[Match, ...]
    unmatched_a: tuple[str, ...]
    unmatched_b: tuple[str, ...]


def match(a: Sequence[SampleSet], b: Sequence[SampleSet]) -> Matching:
    """Match sets by name, then by condition and CPU; a single set each matches whatever its name.

    Raises:
        BadInput: A name stands twice on one side, or matched sets have different time bases.
    """
    for side, sets in (("A", a), ("B", b)):
        names = [each.metadata.name for each in sets]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise BadInput(f"the name {repeated[0]!r} stands for several sample sets", side)
    if len(a) == len(b) == 1:
        found = [Match(b[0].metadata.name, (a[0],), (b[0],))]
    else:
        found = _by(a, b, lambda each: each.metadata.name)
        rest_a, rest_b = _rest(a, found, 0), _rest(b, found, 1)
        found += _by(rest_a, rest_b, _condition)
    for pair in found:
        _check_time_bases(pair)
    return Matching(
        tuple(found),
        tuple(each.metadata.name for each in _rest(a, found, 0)),
        tuple(each.metadata.name for each in _rest(b, found, 1)),
    )


def group_repetitions(matches: Sequence[Match]) -> list[Match]:
    """Put the matches of one condition's repetitions (`idle-r1/cpu0`, `idle-r2/cpu0`) together."""
    groups: dict[str, list[Match]] = {}
    for pair in matches:
        name = _REPETITION.sub("", pair.name, count=1)
        numbers = [_REPETITION.search(each.metadata.name) for each in (*pair.a, *pair.b)]
        same = all(numbers) and len({number[1] for number in numbers if number}) == 1
        groups.setdefault(name if same else pair.name, []).append(pair)
    return [
        Match(
            name if len(pairs) > 1 else pairs[0].name,
            tuple(each for pair in pairs for each in pair.a),
            tuple(each for pair in pairs for each in pair.b),
        )
        for name, pairs in groups.items()
    ]


def _by(
    a: Sequence[SampleSet], b: Sequence[SampleSet], key: Callable[[SampleSet], Hashable | None]
) -> list[Match]:
    """Match sets that share a key which no other set on their side has."""
    first, second = _unique(a, key), _unique(b, key)
    return [
        Match(second[shared].metadata.name, (first[shared],), (second[shared],))
        for shared in first
        if shared in second
    ]


def _unique(
    sets: Sequence[SampleSet], key: Callable[[SampleSet], Hashable | None]
) -> dict[Hashable, SampleSet]:
    keys = [key(each) for each in sets]
    return {
        found: each
        for found, each in zip(keys, sets, strict=True)
        if found is not None and keys.count(found) == 1
    }


def _condition(sample_set: SampleSet) -> Hashable | None:
    metadata = sample_set.metadata
    if metadata.condition is None and metadata.cpu is None:
        return None
    return metadata.condition, metadata.cpu


def _rest(sets: Sequence[SampleSet], found: Sequence[Match], side: int) -> list[SampleSet]:
    used = {id(each) for pair in found for each in (pair.a, pair.b)[side]}
    return [each for each in sets if id(each) not in used]


def _check_time_bases(pair: Match) -> None:
    first, second = pair.a[0].metadata, pair.b[0].metadata
    if first.time_base is not second.time_base:
        raise BadInput(
            f"A is {first.time_base.value} time and B is {second.time_base.value} time",
            pair.name,
            "compare sets of one time base: their nanoseconds are not the same thing",
        )
