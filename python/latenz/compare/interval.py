"""Intervals from replicates: the percentile method."""

from dataclasses import replace

import numpy as np

from latenz.compare.blocks import Floats
from latenz.compare.result import Effect


def with_interval(
    effect: Effect,
    figures: tuple[float, float],
    replicates: tuple[Floats, Floats],
    confidence: float,
) -> Effect:
    """Add percentile intervals to an effect.

    Args:
        effect: The effect.
        figures: The statistic of what was resampled, on each side; the intervals are moved from
            there to the figures of the effect, which may rest on more values.
        replicates: The statistic of each replicate, on each side.
        confidence: Share of the replicates within the interval.
    """
    (a, b), (drawn_a, drawn_b) = figures, replicates
    if effect.difference is None:
        return effect
    low, high = percentiles(drawn_b - drawn_a + effect.difference - (b - a), confidence)
    effect = replace(effect, low=low, high=high)
    if effect.ratio is None or min(drawn_a.min(), drawn_b.min(), a, b) <= 0:
        return effect
    ratio_low, ratio_high = percentiles(drawn_b / drawn_a * (effect.ratio * a / b), confidence)
    return replace(effect, ratio_low=ratio_low, ratio_high=ratio_high)


def percentiles(replicates: Floats, confidence: float) -> tuple[float, float]:
    """Return the ends of the middle part of the replicates that holds this share of them."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return float(low), float(high)
