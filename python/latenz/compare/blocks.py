"""What one run of each side tells: intervals by its stretches, or why there are none.

An interval within a run covers what varies within that run. It says nothing of what another boot,
day or machine would bring; for that the condition must be repeated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from latenz.compare.estimate import Contrast, Estimate, Mean, Quantile, Ratio, rank_ladder
from latenz.compare.result import (
    BlockMaxima,
    Effect,
    Needed,
    Pair,
    Settings,
    Superiority,
    estimated,
    plain,
)
from latenz.compare.series import block_maxima, split
from latenz.compare.side import QUANTILES, Side
from latenz.compare.superiority import (
    MOST_SORTED,
    class_edges,
    placements,
    probability_later,
    probability_of,
    with_ends,
)
from latenz.statistics import quantile_rank
from latenz.statistics.intervals import why_not_alone
from latenz.statistics.scan import column
from latenz.statistics.stretches import (
    CELLS,
    DEGREES,
    FEWEST_EVENTS,
    LONG,
    Integers,
    Spread,
    Stretches,
    cut,
)

_BULK = ("mean", "median", "p90")
"""Statistics that must have settled for any to have an interval: the rare latencies of a run may
seem steady by chance where its usual ones show phases."""
_EXTREME = "one run has but one smallest and one largest latency; see block_max"
_NOT_SETTLED = "it resembles itself over too much of the run for one run to tell"
_FEW = f"fewer than {FEWEST_EVENTS} independent latencies lie beyond it in one of the runs"


def block_length(n: int) -> float:
    """Return the activations in one of the stretches that the intervals of a run rest on."""
    return n / LONG


def _why_alone(side: Side) -> str | None:
    """Say why a run cannot have intervals of its own, whatever its latencies; None if it may."""
    if side.unknown:
        return f"of {side.unknown:,} skipped activations it is not known how late they were"
    return why_not_alone(side.sample_set, side.n, side.duration_s)


def within_runs(pair: Pair, a: Side, b: Side, settings: Settings) -> Pair:
    """Fill in a pair from one run of each side."""
    durations = [side.duration_s for side in (a, b)]
    known = [each for each in durations if each is not None]
    needed = Needed(settings.fewest_repetitions, max(known) if len(known) == 2 else None)
    why = _why_alone(a) or _why_alone(b)
    statistics = {
        name: plain(value, b.figures[name], why, needed) for name, value in a.figures.items()
    }
    for name in ("min", "max"):
        statistics[name] = plain(a.figures[name], b.figures[name], _EXTREME)
    pair = replace(
        pair,
        statistics={**statistics, "block_max": plain(None, None, why, needed)},
        block_length_a=block_length(a.n),
        block_length_b=block_length(b.n),
    )
    classes = class_edges((a, b))
    if why is None:
        runs = _Run.of(a, b, classes), _Run.of(b, a, classes)
        return _with_intervals(pair, *runs, settings, needed)
    probability = probability_of(a, b, classes)
    return replace(
        pair,
        superiority=None if probability is None else Superiority(probability),
        notes=(f"no intervals: {why}; {needed}",),
    )


@dataclass(frozen=True)
class _Run:
    """A side with its stretches, counted above all values that matter for either side."""

    side: Side
    stretches: Stretches
    classes: Integers

    @classmethod
    def of(cls, side: Side, other: Side, classes: Sequence[int]) -> "_Run":
        limits = [] if side.limit_ns is None else [side.limit_ns]
        quantiles = [
            value - step
            for one in (side, other)
            for value in one.exact_quantiles.values()
            for step in (0, 1)
        ]
        centre = int(side.figures["median"] or 0)
        edges = [*limits, *quantiles, *classes]
        stretches = cut(side.latencies(), side.n, edges, centre)
        if stretches is None:
            raise AssertionError("too few activations to cut: seen before")
        return cls(side, stretches, np.array(classes, np.int64))

    @property
    def means(self) -> Spread:
        here = self.stretches
        return Spread.of(here.sums / here.sizes)

    @property
    def squares(self) -> Spread:
        """Spread of the mean square of what differs from the mean."""
        here = self.stretches
        off = float(here.sums.sum() / here.n)
        return Spread.of((here.squares - 2 * off * here.sums) / here.sizes + off * off)

    @property
    def by_class(self) -> Integers:
        """Activations in each class, shape (stretches, classes)."""
        here = self.stretches
        above = here.above[:, np.searchsorted(here.edges, self.classes)]
        ends = np.column_stack([here.sizes, above, np.zeros(CELLS, np.int64)])
        counts: Integers = -np.diff(ends, axis=1)
        return counts

    def placed(self, other: "_Run") -> Spread:
        """Spread of the mean placement of its latencies among the other side's."""
        mine, its = self.by_class, other.by_class
        numbers = np.arange(mine.shape[1])
        among = placements(numbers, (numbers, its.sum(axis=0)))
        return Spread.of(mine @ among / self.stretches.sizes)


_Estimated = tuple[Estimate, Spread]


def _with_intervals(pair: Pair, a: _Run, b: _Run, settings: Settings, needed: Needed) -> Pair:
    first, second = (_estimates(run, settings.confidence) for run in (a, b))
    statistics = {
        name: _effect(effect, first[name], second[name], settings) if name in first else effect
        for name, effect in pair.statistics.items()
    }
    statistics["miss_rate"] = _miss_rate(statistics["miss_rate"], a, b, settings)
    statistics["block_max"], maxima = _block_max(a.side, b.side, settings, needed)
    pair = replace(
        pair,
        statistics=statistics,
        block_maxima=maxima,
        superiority=_superiority(a, b, settings),
        notes=(
            "intervals from one run of each side cover what varies within these runs, in phases"
            f" of seconds; not what differs between runs or boots: {needed}",
        ),
    )
    bulk = [(first[name], second[name]) for name in _BULK]
    steady = all(x is None or y is None or (x[1] + y[1]).settled for x, y in bulk)
    return pair if steady else _unsettled(pair)


def _unsettled(pair: Pair) -> Pair:
    """Take the intervals of runs whose most usual latencies differ from phase to phase."""
    statistics = {
        name: plain(effect.a, effect.b, _NOT_SETTLED, effect.needed) if effect.basis else effect
        for name, effect in pair.statistics.items()
    }
    later = pair.superiority and Superiority(pair.superiority.probability)
    return replace(pair, statistics=statistics, superiority=later, block_maxima=None)


def _effect(
    effect: Effect, a: _Estimated | None, b: _Estimated | None, settings: Settings
) -> Effect:
    """Add an interval, unless runs are too short for it."""
    if effect.difference is None:
        return effect
    if a is None or b is None:
        return replace(effect, why_no_interval=_FEW)
    if not (a[1] + b[1]).settled:
        return replace(effect, why_no_interval=_NOT_SETTLED)
    effect = replace(effect, why_no_interval=_FEW)
    return estimated(effect, Contrast(a[0], b[0]), "one run of each side", settings)


def _estimates(run: _Run, confidence: float) -> dict[str, _Estimated | None]:
    """Return what a run tells of each statistic; None where too few latencies tell it."""
    return {"mean": _mean(run), "stdev": _deviation(run), **_all_quantiles(run, confidence)}


def _mean(run: _Run) -> _Estimated:
    spread = run.means
    value = run.side.figures["mean"] or 0.0
    return Mean(value, math.sqrt(spread.variance), DEGREES), spread


def _deviation(run: _Run) -> _Estimated | None:
    value = run.side.figures["stdev"]
    if not value:
        return None
    spread = run.squares.scaled(1 / (2 * value))
    return Mean(value, math.sqrt(spread.variance), DEGREES), spread


def _all_quantiles(run: _Run, confidence: float) -> dict[str, _Estimated | None]:
    found: dict[str, _Estimated | None] = dict.fromkeys(QUANTILES)
    weighed = {
        name: run.stretches.weigh(float(QUANTILES[name]), value, value - 1)
        for name, value in run.side.exact_quantiles.items()
    }
    enough = {name: each for name, each in weighed.items() if each[0].events >= FEWEST_EVENTS}
    n = run.side.n
    ladders = {name: rank_ladder(share, n, confidence) for name, (share, _) in enough.items()}
    order = run.side.order(lambda _n: chain.from_iterable(ladders.values()))
    resolution = run.side.sample_set.metadata.resolution_ns
    for name, (share, spread) in enough.items():
        heights = np.array([order[rank] for rank in ladders[name]], np.float64)
        ranks = np.array(ladders[name], np.int64)
        value = run.side.figures[name]
        if value is not None:
            found[name] = Quantile(value, share, n, ranks, heights, resolution), spread
    return found


def _miss_rate(effect: Effect, a: _Run, b: _Run, settings: Settings) -> Effect:
    """Add an interval to the share of late activations; one side may have none of them."""
    if effect.a is None or effect.b is None:
        return effect
    if a.side.limit_ns is None:
        return _effect(effect, _skipped_share(a.side), _skipped_share(b.side), settings)
    first, second = (
        run.stretches.weigh(share, a.side.limit_ns) for run, share in ((a, effect.a), (b, effect.b))
    )
    if effect.a == effect.b == 0:
        return plain(0, 0, "nothing was late on either side, which is no proof that nothing is")
    if max(first[0].events, second[0].events) < FEWEST_EVENTS:
        return replace(effect, why_no_interval=_FEW)
    # A side without late ones does not tell how they come together: the other one does.
    alike = min(first[0].effective / a.side.n, second[0].effective / b.side.n)
    sides = [
        Ratio(replace(share, effective=alike * run.side.n))
        for run, share in ((a, first[0]), (b, second[0]))
    ]
    return _effect(effect, (sides[0], first[1]), (sides[1], second[1]), settings)


def _skipped_share(side: Side) -> _Estimated | None:
    """Return the share of skipped activations, each of which belongs to the sample before it."""
    skipped, samples = side.summary.missed_periods, side.summary.n
    if not skipped or not samples or "missed" not in side.sample_set.columns:
        return None
    stretches = cut(split(column(side.sample_set, "missed")), samples, ())
    if stretches is None:
        return None
    share = skipped / (samples + skipped)
    off = (1 - share) * stretches.sums / stretches.sizes - share
    spread = Spread.of(off).scaled(1 - share)
    return Mean(share, math.sqrt(spread.variance), DEGREES), spread


def _block_max(
    a: Side, b: Side, settings: Settings, needed: Needed
) -> tuple[Effect, BlockMaxima | None]:
    """Compare the median of the largest latencies of blocks of equally many activations."""
    activations = min(a.n, b.n) // CELLS
    maxima = [block_maxima(side.latencies(), activations) for side in (a, b)]
    first, second = (_middle_of(each) for each in maxima)
    effect = plain(first[0].value, second[0].value, _FEW, needed)
    if min(each[0].share.events for each in (first, second)) >= FEWEST_EVENTS:
        effect = _effect(effect, first, second, settings)
    if effect.contrast is None:
        return effect, None
    p_value = effect.contrast.p_value()
    return effect, BlockMaxima(activations, len(maxima[0]), len(maxima[1]), p_value)


def _middle_of(maxima: Integers) -> tuple[Quantile, Spread]:
    n = len(maxima)
    ordered = np.sort(maxima)
    value = int(ordered[quantile_rank("0.5", n) - 1])
    stretches = cut([maxima], n, (value, value - 1))
    if stretches is None:
        raise AssertionError("there are as many blocks as stretches at least")
    share, spread = stretches.weigh(0.5, value, value - 1)
    heights = ordered.astype(np.float64)
    return Quantile(float(np.median(heights)), share, n, np.arange(1, n + 1), heights), spread


def _superiority(a: _Run, b: _Run, settings: Settings) -> Superiority | None:
    if max(a.side.n, b.side.n) > MOST_SORTED:
        classes = np.arange(len(a.classes) + 1)
        sides = ((classes, run.by_class.sum(axis=0)) for run in (a, b))
        probability = probability_later(*sides)
    else:
        probability = probability_later(a.side.weighted(), b.side.weighted())
    spreads = a.placed(b), b.placed(a)
    if not (spreads[0] + spreads[1]).settled:
        return Superiority(probability)
    first, second = (Mean(0, math.sqrt(each.variance), DEGREES) for each in spreads)
    return with_ends(probability, Contrast(first, second), settings.confidence)
