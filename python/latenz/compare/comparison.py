"""Comparing two sides: differences, ratios and their intervals, pair by pair.

What an interval rests on, by what the sets hold:

repetitions
    If a condition was repeated often enough on both sides, the repetition is what is resampled:
    the interval then covers all that varies from one repetition to the next.
samples
    A block bootstrap (`latenz.compare.blocks`) within the run. It covers what varies within a run.
emulated time
    Emulated runs repeat bit for bit, so a difference is exact and its interval a point.
histograms, printed figures
    Nothing is known of the order of the values, hence nothing of their dependence: no interval.

The bootstrap does not work for a maximum: resampled series can never exceed the observed one, and
their maxima equal it most of the time. So the largest latency has no interval of its own. Instead
both series are cut into blocks of the same number of activations, and the medians of the blocks'
maxima, which are many, are compared as `block_max`. Of repetitions, each is such a block.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from latenz.compare.blocks import Integers
from latenz.compare.interval import percentiles, with_interval
from latenz.compare.matching import Match, group_repetitions, match
from latenz.compare.repetitions import repeated
from latenz.compare.result import (
    EXACT_NOTE,
    BlockMaxima,
    Comparison,
    Effect,
    Pair,
    Settings,
    Superiority,
    exact,
    plain,
)
from latenz.compare.series import block_maxima
from latenz.compare.side import FEWEST_BLOCKS, Resampled, Side, resample
from latenz.compare.superiority import probability_of, superiority_replicates
from latenz.errors import BadInput
from latenz.model import SampleSet, TimeBase

_TYPICAL_MAXIMA = 50
"""Blocks whose maxima are compared, of the shorter side."""
_APART = 4
"""A block of maxima is at least so many times as long as the series resembles itself."""


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
    matching = match(a, b)
    matches = _resampled_together(matching.matches, settings)
    pairs = []
    for done, found in enumerate(matches):
        progress(done, len(matches))
        pairs.append(_pair(found, settings))
    progress(len(matches), len(matches))
    return Comparison(settings, tuple(pairs), matching.unmatched_a, matching.unmatched_b)


def _resampled_together(matches: Sequence[Match], settings: Settings) -> list[Match]:
    """Group repetitions: all of them if asked for, else those that are enough for an interval."""
    if settings.paired is False:
        return list(matches)
    groups = group_repetitions(matches)
    if settings.paired:
        single = next((group.name for group in groups if len(group.a) == 1), None)
        if single is not None:
            raise BadInput(
                "there are no repetitions to pair",
                single,
                "repeat each condition in both runs, or compare with --unpaired",
            )
        return groups
    enough = [group for group in groups if len(group.a) >= settings.fewest_repetitions]
    grouped = {id(each) for group in enough for each in group.a}
    return enough + [found for found in matches if id(found.a[0]) not in grouped]


def _pair(found: Match, settings: Settings) -> Pair:
    limit_ns = _limit(found, settings)
    a = [Side.of(each, limit_ns) for each in found.a]
    b = [Side.of(each, limit_ns) for each in found.b]
    pair = Pair(
        name=found.name,
        time_base=found.a[0].metadata.time_base.value,
        identical=all(one.same_as(other) for one, other in zip(a, b, strict=True)),
        n_a=_total(a),
        n_b=_total(b),
        statistics={},
        miss_limit_ns=limit_ns,
    )
    random = np.random.default_rng([settings.seed, zlib.crc32(found.name.encode())])
    certain = found.a[0].metadata.time_base is TimeBase.VIRTUAL or (
        pair.identical and all(side.sample_set.form == "samples" for side in (*a, *b))
    )
    if len(a) > 1:
        return repeated(pair, a, b, settings, random, certain)
    if certain:
        return _certain(pair, a[0], b[0])
    return _single(pair, a[0], b[0], settings, random)


def _limit(found: Match, settings: Settings) -> int | None:
    if settings.deadline_ns is not None:
        return settings.deadline_ns
    sets = (*found.a, *found.b)
    limits = [{each.limit_ns for each in one.metadata.deadlines} for one in sets]
    return min(set.intersection(*limits), default=None)


def _total(sides: Sequence[Side]) -> int | None:
    counts = [side.summary.n for side in sides]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


# --- one sample set on each side


def _certain(pair: Pair, a: Side, b: Side) -> Pair:
    note = "both sides hold the same latencies" if pair.identical else EXACT_NOTE
    pair = _plainly(pair, a, b, exact, note)
    probability = probability_of(a, b)
    if probability is None:
        return pair
    return replace(pair, superiority=Superiority(probability, probability, probability))


def _single(pair: Pair, a: Side, b: Side, settings: Settings, random: np.random.Generator) -> Pair:
    forms = {a.sample_set.form, b.sample_set.form}
    if forms == {"samples"}:
        return _bootstrapped(pair, a, b, settings, random)
    why = (
        "only printed figures are known"
        if "summary" in forms
        else "a histogram keeps no order, so the dependence of its values is not known"
    )
    pair = _plainly(pair, a, b, lambda x, y: plain(x, y, why), f"no intervals: {why}")
    probability = probability_of(a, b)
    return replace(pair, superiority=None if probability is None else Superiority(probability))


def _plainly(
    pair: Pair,
    a: Side,
    b: Side,
    effect: Callable[[float | None, float | None], Effect],
    note: str,
) -> Pair:
    statistics = {name: effect(value, b.figures[name]) for name, value in a.figures.items()}
    statistics["block_max"] = plain(None, None)
    return replace(pair, statistics=statistics, notes=(note,))


def _bootstrapped(
    pair: Pair, a: Side, b: Side, settings: Settings, random: np.random.Generator
) -> Pair:
    first, second = (resample(side, settings.draws, random) for side in (a, b))
    statistics = {
        name: _interval(name, plain(value, b.figures[name]), first, second, settings.confidence)
        for name, value in a.figures.items()
    }
    length = max(first.drawn.block_length, second.drawn.block_length)
    statistics["block_max"], maxima = _typical_maximum(a, b, length, settings, random)
    return replace(
        pair,
        statistics=statistics,
        block_maxima=maxima,
        superiority=_superiority(a, b, first, second, settings.confidence),
        block_length_a=first.drawn.block_length,
        block_length_b=second.drawn.block_length,
        notes=tuple(
            f"{name}: intervals from {len(each.series.latency_ns):,} of {side.summary.n:,}"
            " samples, in contiguous pieces: wider than all samples would give"
            for name, side, each in (("A", a, first), ("B", b, second))
            if not each.series.whole
        ),
    )


def _interval(name: str, effect: Effect, a: Resampled, b: Resampled, confidence: float) -> Effect:
    why = a.missing.get(name) or b.missing.get(name)
    if effect.difference is None or why:
        return replace(effect, why_no_interval=effect.why_no_interval or why)
    figures = a.figures[name], b.figures[name]
    return with_interval(effect, figures, (a.replicates[name], b.replicates[name]), confidence)


def _superiority(
    a: Side, b: Side, first: Resampled, second: Resampled, confidence: float
) -> Superiority | None:
    probability = probability_of(a, b)
    if probability is None or min(first.drawn.blocks, second.drawn.blocks) < FEWEST_BLOCKS:
        return None if probability is None else Superiority(probability)
    replicates = superiority_replicates(
        first.series.latency_ns, second.series.latency_ns, first.drawn, second.drawn
    )
    return Superiority(probability, *percentiles(replicates, confidence))


def _typical_maximum(
    a: Side, b: Side, length: float, settings: Settings, random: np.random.Generator
) -> tuple[Effect, BlockMaxima | None]:
    """Compare the maxima of blocks that are long enough to be nearly independent."""
    from scipy.stats import mannwhitneyu

    n = min(a.summary.n or 0, b.summary.n or 0)
    activations = max(n // _TYPICAL_MAXIMA, round(_APART * length))
    if n // activations < FEWEST_BLOCKS:
        why = f"fewer than {FEWEST_BLOCKS} separate blocks of {activations} samples"
        return replace(plain(None, None), why_no_interval=why), None
    maxima = [_spread(block_maxima(side.sample_set, activations)) for side in (a, b)]
    first, second = maxima
    medians = float(np.median(first)), float(np.median(second))
    drawn_a, drawn_b = (
        np.median(random.choice(each, (settings.draws, len(each))), axis=1) for each in maxima
    )
    effect = with_interval(plain(*medians), medians, (drawn_a, drawn_b), settings.confidence)
    p_value = float(mannwhitneyu(first, second).pvalue)
    return effect, BlockMaxima(activations, len(first), len(second), p_value)


def _spread(maxima: Integers) -> Integers:
    """Keep at most so many maxima, evenly spread: the shorter side decides how sure we are."""
    most = 20 * _TYPICAL_MAXIMA
    if len(maxima) <= most:
        return maxima
    return maxima[np.linspace(0, len(maxima) - 1, most).astype(np.int64)]
