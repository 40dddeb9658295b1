"""What repetitions of a condition tell: intervals that cover what varies from run to run.

Each repetition gives one value of a statistic. However latencies follow each other within a run,
and however long the phases of the machine are: the values of repetitions that were taken apart from
each other are independent, and what they vary by is all that there is to vary.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from latenz.compare.estimate import of_pairs, of_repetitions
from latenz.compare.result import (
    Basis,
    Effect,
    Needed,
    Pair,
    Settings,
    Superiority,
    estimated,
    exact,
    plain,
)
from latenz.compare.side import QUANTILES, Side
from latenz.compare.superiority import over_repetitions, with_ends

_EXTREMES: dict[str, Callable[[Sequence[float]], float]] = {"min": min, "max": max}
_TOGETHER = "of all repetitions together; see block_max for the mean of their maxima"


def over_runs(
    pair: Pair, a: Sequence[Side], b: Sequence[Side], settings: Settings, certain: bool
) -> Pair:
    """Fill in a pair from the repetitions of its condition.

    Each statistic is the mean over the repetitions, but `min` and `max`, which are the extremes
    of all; `block_max` is the mean of the repetitions' maxima. What is `certain` has points for
    intervals.
    """
    figures = {
        name: (_known([one.figures[name] for one in a]), _known([one.figures[name] for one in b]))
        for name in a[0].figures
    }
    figures["block_max"] = figures["max"]
    resolution = max(side.sample_set.metadata.resolution_ns for side in (*a, *b))
    statistics = {
        name: _mean_effect(
            first,
            second,
            settings,
            certain,
            _needed(a, b, settings),
            resolution if name in (*QUANTILES, "block_max") else 1,
        )
        for name, (first, second) in figures.items()
    }
    for name, extreme in _EXTREMES.items():
        first, second = figures[name]
        if first and second:
            ends = extreme(first), extreme(second)
            statistics[name] = exact(*ends) if certain else plain(*ends, _TOGETHER)
    return replace(
        pair,
        statistics=statistics,
        repetitions=(len(a), len(b)),
        superiority=_superiority(a, b, settings, certain),
        notes=(
            f"{len(a)} and {len(b)} repetitions: means over them, min and max of all together;"
            " intervals cover what varies between repetitions, if these were taken apart",
        ),
    )


def together(name: str, sides: Sequence[Side]) -> float | None:
    """Return a statistic of the samples alone: its mean over the repetitions, or the extreme."""
    known = _known([side.sampled.get(name) for side in sides])
    return _EXTREMES.get(name, fmean)(known) if known else None


def _needed(a: Sequence[Side], b: Sequence[Side], settings: Settings) -> Needed:
    durations = [side.duration_s for side in (*a, *b)]
    known = [each for each in durations if each is not None]
    longest = max(known) if len(known) == len(durations) else None
    return Needed(settings.fewest_repetitions, longest)


def _known(values: Sequence[float | None]) -> list[float]:
    """Return the values, or none of them if one is not known."""
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []


def _mean_effect(
    a: Sequence[float],
    b: Sequence[float],
    settings: Settings,
    certain: bool,
    needed: Needed,
    resolution: int,
) -> Effect:
    if not a or not b:
        return plain(None, None)
    means = fmean(a), fmean(b)
    if certain:
        return exact(*means)
    if resolution == 1 and len({*a, *b}) == 1:
        return plain(*means, "it is the same in all repetitions: what it varies by was not seen")
    few = f"{len(a)} and {len(b)} repetitions cannot tell what varies between them"
    effect = plain(*means, few, needed)
    if min(len(a), len(b)) < settings.fewest_repetitions:
        return effect
    between = of_pairs if settings.paired else of_repetitions
    basis: Basis = "paired repetitions" if settings.paired else "repetitions"
    return estimated(effect, between(a, b, resolution), basis, settings)


def _superiority(
    a: Sequence[Side], b: Sequence[Side], settings: Settings, certain: bool
) -> Superiority | None:
    found = over_repetitions(a, b, settings.paired)
    if found is None:
        return None
    mean, contrast = found
    if certain:
        return Superiority(mean, mean, mean)
    if contrast is None or min(len(a), len(b)) < settings.fewest_repetitions:
        return Superiority(mean)
    return with_ends(mean, contrast, settings.confidence)
