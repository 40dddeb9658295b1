"""Comparing two sides: differences, ratios and their intervals, pair by pair.

What an interval rests on, by what the sets hold:

repetitions
    If a condition was repeated on both sides, the variance between the repetitions
    (`latenz.compare.repetitions`): it covers all that varies from one to the next.
one run of each side
    The variance between long stretches of the run (`latenz.compare.blocks`), if the run is long
    enough for it. It covers what varies within a run, in phases of seconds.
emulated time
    Emulated runs repeat bit for bit, so a difference is exact and its interval a point.

Where the data cannot carry an interval there is none: why, and what would give one, is told. All
figures are of activations as they were due where the sources count those that were skipped.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from latenz.compare.blocks import within_runs
from latenz.compare.matching import Match, match
from latenz.compare.repetitions import over_runs, together
from latenz.compare.result import (
    EXACT_NOTE,
    Comparison,
    Effect,
    Pair,
    Settings,
    Superiority,
    exact,
    plain,
)
from latenz.compare.side import Side, common_view
from latenz.compare.superiority import class_edges, probability_of
from latenz.model import SampleSet, TimeBase
from latenz.statistics.sentence import elsewhere

_UNLIKE = "only one side counts the activations that were skipped, the other cannot tell them"


def compare(
    a: Sequence[SampleSet],
    b: Sequence[SampleSet],
    settings: Settings | None = None,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> Comparison:
    """Compare two sides.

    Args:
        a: Sample sets of the first side, such as before a change.
        b: Sample sets of the second side, such as after it.
        settings: How to compare.
        progress: Called with the number of pairs done and of all pairs.

    Raises:
        BadInput: Matched sets have different time bases, a set holds no samples, or there are no
            repetitions to pair.
    """
    settings = settings or Settings()
    matching = match(a, b, settings.paired)
    pairs = []
    for done, found in enumerate(matching.matches):
        progress(done, len(matching.matches))
        pairs.append(_pair(found, settings))
    progress(len(matching.matches), len(matching.matches))
    return Comparison(settings, tuple(pairs), matching.unmatched_a, matching.unmatched_b)


def _pair(found: Match, settings: Settings) -> Pair:
    limit_ns = _limit(found, settings)
    view = common_view((*found.a, *found.b))
    a = [Side.of(each, limit_ns, view) for each in found.a]
    b = [Side.of(each, limit_ns, view) for each in found.b]
    equally_many = len(a) == len(b)
    pair = Pair(
        name=found.name,
        sets_a=tuple(each.metadata.name for each in found.a),
        sets_b=tuple(each.metadata.name for each in found.b),
        matched_by=found.by,
        time_base=found.a[0].metadata.time_base.value,
        view=view,
        identical=equally_many and all(x.same_as(y) for x, y in zip(a, b, strict=True)),
        n_a=_total([side.summary.n for side in a]),
        n_b=_total([side.summary.n for side in b]),
        skipped_a=_total([side.summary.missed_periods for side in a]),
        skipped_b=_total([side.summary.missed_periods for side in b]),
        statistics={},
        miss_limit_ns=limit_ns,
    )
    certain = found.a[0].metadata.time_base is TimeBase.VIRTUAL or (
        pair.identical and all(side.sample_set.form == "samples" for side in (*a, *b))
    )
    if len(a) > 1 or len(b) > 1:
        pair = over_runs(pair, a, b, settings, certain)
        exactly = (EXACT_NOTE,) if certain and not pair.identical else ()
        pair = replace(pair, notes=(*pair.notes, *exactly))
    elif certain:
        pair = _certain(pair, a[0], b[0])
    else:
        pair = within_runs(pair, a[0], b[0], settings)
    pair = replace(pair, notes=(*pair.notes, *_moved(found)))
    pair = _with_sampled(pair, a, b)
    return _unlike(pair) if view == "unlike" else pair


def _moved(found: Match) -> list[str]:
    """Say which sets hold samples of other CPUs than the one that they are named after."""
    return [
        f"{side}: {each.metadata.name}: {told}"
        for side, sets in (("A", found.a), ("B", found.b))
        for each in sets
        if (told := elsewhere(each.metadata))
    ]


def _with_sampled(pair: Pair, a: Sequence[Side], b: Sequence[Side]) -> Pair:
    """Add the figures of the samples alone, which leave skipped activations out."""
    statistics = {
        name: replace(effect, a_sampled=together(name, a), b_sampled=together(name, b))
        for name, effect in pair.statistics.items()
    }
    return replace(pair, statistics=statistics)


def _limit(found: Match, settings: Settings) -> int | None:
    if settings.deadline_ns is not None:
        return settings.deadline_ns
    sets = (*found.a, *found.b)
    limits = [{each.limit_ns for each in one.metadata.deadlines} for one in sets]
    return min(set.intersection(*limits), default=None)


def _total(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _certain(pair: Pair, a: Side, b: Side) -> Pair:
    probability = probability_of(a, b, class_edges((a, b)))
    certain = None if probability is None else Superiority(probability, probability, probability)
    statistics = {name: exact(value, b.figures[name]) for name, value in a.figures.items()}
    return replace(
        pair,
        statistics={**statistics, "block_max": exact(None, None)},
        superiority=certain,
        notes=("both sides hold the same latencies" if pair.identical else EXACT_NOTE,),
    )


def _unlike(pair: Pair) -> Pair:
    """Take the intervals of what is not the same thing on both sides.

    The largest latency is: no skipped activation waited longer than the one it was skipped for.
    """
    statistics = {
        name: effect if name == "max" else _without_interval(effect)
        for name, effect in pair.statistics.items()
    }
    return replace(pair, statistics=statistics, superiority=None, notes=(*pair.notes, _UNLIKE))


def _without_interval(effect: Effect) -> Effect:
    return replace(
        plain(effect.a, effect.b, _UNLIKE),
        alike=False,
        a_sampled=effect.a_sampled,
        b_sampled=effect.b_sampled,
    )
