"""Which sample set of one side belongs to which of the other."""

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

from latenz.errors import BadInput
from latenz.model import SampleSet

_REPETITION = re.compile(r"[-/]r(\d+)(?=/|$)")

MatchedBy = Literal[
    "the only set of each side", "name", "repetitions", "condition and CPU", "order"
]
"""What says that sets belong together."""


@dataclass(frozen=True)
class Match:
    """Sets to compare with each other: one of each side, or the repetitions of one condition.

    Attributes:
        name: Name of the pair; for repetitions the name without their number.
        a: The sets of the first side.
        b: Those of the second, in the same order.
        by: What says that they belong together.
    """

    name: str
    a: tuple[SampleSet, ...]
    b: tuple[SampleSet, ...]
    by: MatchedBy


@dataclass(frozen=True)
class Matching:
    """All matches, and the names of the sets that have no counterpart."""

    matches: tuple[Match, ...]
    unmatched_a: tuple[str, ...]
    unmatched_b: tuple[str, ...]


def match(a: Sequence[SampleSet], b: Sequence[SampleSet], paired: bool = False) -> Matching:
    """Match sets by name, then by condition and CPU; a single set each matches whatever its name.

    Where nothing matches so, files of one tool with as many sets each match in order: cyclictest
    calls a thread `thread0` in its text and `cpu0` in its JSON.

    Repetitions of a condition (`idle-r1/cpu0`, `idle-r2/cpu0`) are matched together.

    Args:
        a: Sets of the first side.
        b: Sets of the second side.
        paired: Whether the repetitions of the same number belong together, and only those count.

    Raises:
        BadInput: A name stands twice on one side, matched sets have different time bases, or
            there are no repetitions to pair.
    """
    for side, sets in (("A", a), ("B", b)):
        names = [each.metadata.name for each in sets]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise BadInput(f"the name {repeated[0]!r} stands for several sample sets", side)
    if len(a) == len(b) == 1:
        found = [Match(b[0].metadata.name, (a[0],), (b[0],), "the only set of each side")]
    else:
        found = _by_repeated_name(a, b)
        rest_a, rest_b = _rest(a, found, 0), _rest(b, found, 1)
        found += _by_condition(rest_a, rest_b)
        found = found or _by_order(a, b)
    if paired:
        found = [_paired(each) for each in found]
    for pair in found:
        _check_time_bases(pair)
    return Matching(
        tuple(found),
        tuple(each.metadata.name for each in _rest(a, found, 0)),
        tuple(each.metadata.name for each in _rest(b, found, 1)),
    )


def _by_repeated_name(a: Sequence[SampleSet], b: Sequence[SampleSet]) -> list[Match]:
    """Match sets of one name, and all repetitions of one."""
    repeated = _repeated(a) | _repeated(b)
    groups: list[dict[str, list[SampleSet]]] = [{}, {}]
    for group, sets in zip(groups, (a, b), strict=True):
        for each in sorted(sets, key=lambda one: _number(one.metadata.name)):
            name = each.metadata.name
            base = _base(name)
            group.setdefault(base if base in repeated else name, []).append(each)
    order = dict.fromkeys(
        base if (base := _base(each.metadata.name)) in repeated else each.metadata.name
        for each in a
    )
    first, second = groups
    return [
        Match(
            name,
            tuple(first[name]),
            tuple(second[name]),
            "repetitions" if name in repeated else "name",
        )
        for name in order
        if name in second
    ]


def _repeated(sets: Sequence[SampleSet]) -> set[str]:
    """Return the names, without their numbers, of what was repeated: there is a first and another.

    A name such as `standalone-r5` may also be that of a processor.
    """
    names = [each.metadata.name for each in sets]
    counted = [_base(name) for name in names if _number(name)]
    first = {_base(name) for name in names if _number(name) == 1}
    plain = {name for name in names if not _number(name)}
    return {base for base in first - plain if counted.count(base) > 1}


def _base(name: str) -> str:
    return _REPETITION.sub("", name, count=1)


def _number(name: str) -> int:
    """Return the number of a repetition, 0 if the name has none."""
    found = _REPETITION.search(name)
    return int(found[1]) if found else 0


def _paired(found: Match) -> Match:
    """Keep the repetitions whose number both sides have."""
    first, second = (
        {_number(each.metadata.name): each for each in side} for side in (found.a, found.b)
    )
    numbers = [number for number in first if number in second]
    if len(numbers) < 2:
        raise BadInput(
            "there are no repetitions to pair",
            found.name,
            "repeat each condition in both runs, or compare without --paired",
        )
    return Match(
        found.name,
        tuple(first[number] for number in numbers),
        tuple(second[number] for number in numbers),
        found.by,
    )


def _by_condition(a: Sequence[SampleSet], b: Sequence[SampleSet]) -> list[Match]:
    """Match sets of a condition and CPU that no other set on their side has."""
    first, second = _unique(a), _unique(b)
    return [
        Match(
            second[shared].metadata.name, (first[shared],), (second[shared],), "condition and CPU"
        )
        for shared in first
        if shared in second
    ]


def _by_order(a: Sequence[SampleSet], b: Sequence[SampleSet]) -> list[Match]:
    """Match all sets of two files of one tool, in their order, if that is all there is to go by."""
    known = [each.metadata for each in (*a, *b)]
    alike = len({(each.tool, each.time_base) for each in known}) == 1
    if len(a) != len(b) or not alike or any(each.condition for each in known):
        return []
    return [
        Match(second.metadata.name, (first,), (second,), "order")
        for first, second in zip(a, b, strict=True)
    ]


def _unique(sets: Sequence[SampleSet]) -> dict[Hashable, SampleSet]:
    keys = [_condition(each) for each in sets]
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
