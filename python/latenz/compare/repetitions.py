"""Comparing a condition that was repeated on both sides: the repetition is what is resampled."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from latenz.compare.blocks import Floats, Integers
from latenz.compare.interval import percentiles, with_interval
from latenz.compare.result import (
    EXACT_NOTE,
    Effect,
    Pair,
    Settings,
    Superiority,
    exact,
    plain,
)
from latenz.compare.side import Side
from latenz.compare.superiority import probability_of

_TOGETHER = "of all repetitions together; see block_max for the mean of their maxima"


@dataclass(frozen=True)
class _Choice:
    """Which repetitions are in each replicate.

    Attributes:
        rows: Replicates x repetitions, indices of pairs.
        level: Share of the replicates within an interval.
        why_none: Why there can be no interval; None if there can.
    """

    rows: Integers
    level: float
    why_none: str | None

    def means(self, values: Sequence[float]) -> Floats:
        """Return the mean of each replicate."""
        drawn: Floats = np.array(values, np.float64)[self.rows].mean(axis=1)
        return drawn


def repeated(
    pair: Pair,
    a: Sequence[Side],
    b: Sequence[Side],
    settings: Settings,
    random: np.random.Generator,
    certain: bool,
) -> Pair:
    """Fill in a pair from the repetitions of its condition, the i-th of A with the i-th of B.

    Each statistic is the mean over the repetitions, but `min` and `max`, which are the extremes
    of all; `block_max` is the mean of the repetitions' maxima. What is `certain` has points for
    intervals.
    """
    choice = _choose(len(a), settings, random)
    columns = {
        name: ([one.figures[name] for one in a], [one.figures[name] for one in b])
        for name in a[0].figures
    }
    statistics = {
        name: _mean_effect(_known(first), _known(second), choice, certain)
        for name, (first, second) in columns.items()
    }
    statistics["block_max"] = statistics["max"]
    for name, extreme in (("min", min), ("max", max)):
        first, second = (_known(side) for side in columns[name])
        if first and second:
            a_end, b_end = extreme(first), extreme(second)
            statistics[name] = exact(a_end, b_end) if certain else plain(a_end, b_end, _TOGETHER)
    notes = [f"{len(a)} repetitions on each side: means over them, min and max of all together"]
    if certain and not pair.identical:
        notes.append(EXACT_NOTE)
    return replace(
        pair,
        statistics=statistics,
        repetitions=len(a),
        superiority=_superiority(a, b, choice, certain),
        notes=tuple(notes),
    )


def _choose(n: int, settings: Settings, random: np.random.Generator) -> _Choice:
    """Choose the repetitions of each replicate, and the level that so few of them need.

    Plain percentiles are too narrow for few values: they lack the factor n/(n-1) and the heavier
    tails of Student's t (Hesterberg, The American Statistician 69, 2015, section 5.3).
    """
    from scipy.stats import norm, t

    tail = (1 - settings.confidence) / 2
    expanded = norm.cdf(np.sqrt(n / (n - 1)) * t.ppf(tail, n - 1))
    why_none = (
        f"{n} repetitions cannot give an interval of {settings.confidence:.4g} confidence,"
        f" {settings.fewest_repetitions} can"
        if n < settings.fewest_repetitions
        else None
    )
    return _Choice(random.integers(0, n, (settings.draws, n)), float(1 - 2 * expanded), why_none)


def _known(values: Sequence[float | None]) -> list[float]:
    """Return the values, or none of them if one is not known."""
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []


def _mean_effect(a: Sequence[float], b: Sequence[float], choice: _Choice, certain: bool) -> Effect:
    if not a or not b:
        return plain(None, None)
    means = fmean(a), fmean(b)
    if certain:
        return exact(*means)
    effect = plain(*means, why_no_interval=choice.why_none)
    if choice.why_none:
        return effect
    return with_interval(effect, means, (choice.means(a), choice.means(b)), choice.level)


def _superiority(
    a: Sequence[Side], b: Sequence[Side], choice: _Choice, certain: bool
) -> Superiority | None:
    each = _known([probability_of(one, other) for one, other in zip(a, b, strict=True)])
    if not each:
        return None
    mean = fmean(each)
    if certain:
        return Superiority(mean, mean, mean)
    if choice.why_none:
        return Superiority(mean)
    return Superiority(mean, *percentiles(choice.means(each), choice.level))
