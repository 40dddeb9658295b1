"""Confidence intervals of quantiles that hold whatever the distribution."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from latenz.model import SampleSet
from latenz.statistics.cells import read_cells
from latenz.statistics.exceedance import check_confidence
from latenz.statistics.scan import scan_samples


@dataclass(frozen=True)
class Interval:
    """A confidence interval; None where so few samples give no bound on that side."""

    lower_ns: int | None
    upper_ns: int | None


def quantile_interval_ranks(
    probability: str, n: int, confidence: float = 0.95
) -> tuple[int | None, int | None]:
    """Return the ranks of the two order statistics between which the quantile lies.

    By the binomial distribution of the number of samples below the quantile (David and Nagaraja,
    Order Statistics, section 7.1); each side errs with probability at most (1 - confidence) / 2.
    Samples must be independent: autocorrelated latencies make the true interval wider.

    Args:
        probability: The quantile as an exact decimal, such as "0.999".
        n: Number of samples.
        confidence: Two-sided confidence level, at least.

    Returns:
        Ranks from 1 to n, None on a side that n samples cannot bound.
    """
    from scipy.stats import binom

    check_confidence(confidence)
    p, error = float(Fraction(probability)), (1 - confidence) / 2
    lower = int(binom.ppf(error, n, p))
    upper = int(binom.isf(error, n, p)) + 1
    return (lower if lower >= 1 else None), (upper if upper <= n else None)


def order_statistics(
    sample_set: SampleSet, ranks: Callable[[int], Iterable[int]]
) -> dict[int, int | None]:
    """Return the rank-th smallest latency for each wanted rank, in nanoseconds.

    None where a set in the form `summary` or a histogram's range does not tell.

    Args:
        sample_set: The latencies.
        ranks: Given the number of samples, the ranks wanted (1 is the smallest).
    """
    if sample_set.form == "samples":
        scan = scan_samples(sample_set, ranks, ())
        return dict(scan.order) if scan else {}
    if sample_set.form == "histogram":
        cells = read_cells(sample_set)
        n = cells.n + sample_set.metadata.beyond_range
        return {rank: cells.order(rank) for rank in ranks(n)}
    reported = sample_set.metadata.reported
    return dict.fromkeys(ranks(reported.n or 0 if reported else 0))


def quantile_intervals(
    sample_set: SampleSet, probabilities: Sequence[str], confidence: float = 0.95
) -> dict[str, Interval]:
    """Return a confidence interval for each quantile, by `quantile_interval_ranks`.

    Args:
        sample_set: The latencies.
        probabilities: Quantiles as exact decimals.
        confidence: Two-sided confidence level of each.
    """
    wanted: dict[str, tuple[int | None, int | None]] = {}

    def ranks(n: int) -> list[int]:
        if n:
            wanted.update({p: quantile_interval_ranks(p, n, confidence) for p in probabilities})
        return [rank for pair in wanted.values() for rank in pair if rank is not None]

    order = order_statistics(sample_set, ranks)
    return {
        p: Interval(*(None if rank is None else order[rank] for rank in pair))
        for p, pair in wanted.items()
    }
