"""The figures of latencies, of which all or the smallest are known one by one."""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from latenz._core import Moments

QUANTILES = ("0.5", "0.9", "0.99", "0.999", "0.9999", "0.99999")
"""The quantiles of every summary, as exact decimals."""


def no_quantiles() -> dict[str, int | None]:
    """Return `QUANTILES` without values."""
    return dict.fromkeys(QUANTILES)


@dataclass(frozen=True)
class Figures:
    """Figures of latencies; None where they are not known.

    Attributes:
        mean_ns: Arithmetic mean.
        median_ns: The middle value, or the mean of the two middle ones.
        min_ns: Smallest latency.
        jitter_ns: The greater of max - mean and mean - min.
        stdev_ns: Standard deviation of the sample (n - 1); None for a single latency.
        quantiles_ns: For each p of `QUANTILES` the ceil(p n)-th smallest latency; None where n
            latencies cannot carry it (`carries_quantile`).
    """

    mean_ns: float | None = None
    median_ns: float | None = None
    min_ns: int | None = None
    jitter_ns: float | None = None
    stdev_ns: float | None = None
    quantiles_ns: dict[str, int | None] = field(default_factory=no_quantiles)


def figures_of(n: int, order: Callable[[int], int | None], moments: Moments) -> Figures:
    """Return the figures of n latencies.

    Args:
        n: Number of latencies.
        order: Gives the rank-th smallest, counted from 1; None where that is not known.
        moments: Of those that are known: all of them, or all but the latest.
    """
    whole = moments.n == n
    lower, upper = (order(rank) for rank in _middle_ranks(n))
    return Figures(
        mean_ns=moments.mean if whole else None,
        median_ns=_middle(lower, upper),
        min_ns=moments.min,
        jitter_ns=moments.jitter if whole else None,
        stdev_ns=moments.stdev if whole else None,
        quantiles_ns={
            p: order(quantile_rank(p, n)) if carries_quantile(p, n) else None for p in QUANTILES
        },
    )


def figure_ranks(n: int) -> list[int]:
    """Return the ranks of all order statistics that `figures_of` takes."""
    carried = (quantile_rank(p, n) for p in QUANTILES if carries_quantile(p, n))
    return [*_middle_ranks(n), *carried]


def quantile_rank(probability: str, n: int) -> int:
    """Return which smallest of n samples is the quantile: ceil(p n), computed exactly.

    Args:
        probability: A decimal between 0 and 1, as text ("0.999") so that it is exact.
        n: Number of samples, at least 1.
    """
    exact = Fraction(probability) * n
    return max(1, -(-exact.numerator // exact.denominator))


def carries_quantile(probability: str, n: int) -> bool:
    """Tell whether n latencies can carry a quantile: at least one is expected beyond it.

    With fewer, n (1 - p) < 1, the ceil(p n)-th smallest is the largest under another name.

    Args:
        probability: As in `quantile_rank`.
        n: Number of latencies.
    """
    return n * (1 - Fraction(probability)) >= 1


def _middle_ranks(n: int) -> tuple[int, int]:
    return (n + 1) // 2, n // 2 + 1


def _middle(lower: int | None, upper: int | None) -> float | None:
    if lower is None or upper is None:
        return None
    total = lower + upper
    return total / 2 if total % 2 else total // 2
