"""Order statistics, and confidence intervals of quantiles whatever the distribution."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from latenz.model import SampleSet, TimeBase
from latenz.statistics.cells import read_cells
from latenz.statistics.due import Activations
from latenz.statistics.exceedance import check_confidence
from latenz.statistics.figures import quantile_rank
from latenz.statistics.scan import column, scan_activations, scan_samples
from latenz.statistics.stretches import CELLS, FEWEST_EVENTS, cut

SHORTEST_S = 60
"""Shortest run of a machine that tells by itself how sure its figures are: twelve times phases of
5 s. A run as long as the phases of what it measures may lie in a single one, and would seem steady.
"""


@dataclass(frozen=True)
class Interval:
    """A confidence interval; None where the samples give no bound on that side."""

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


def measured_s(sample_set: SampleSet, activations: int | None) -> float | None:
    """Return how long a set was measured; None where nothing tells.

    Args:
        sample_set: The set.
        activations: How many it has, skipped ones included; None if not known.
    """
    period_ns = sample_set.metadata.period_ns
    if period_ns and activations:
        return activations * period_ns / 1e9
    if "t_ns" not in sample_set.columns:
        return None
    ends = [(int(part[0]), int(part[-1])) for part in column(sample_set, "t_ns") if len(part)]
    return (ends[-1][1] - ends[0][0]) / 1e9 if ends else None


def why_not_alone(sample_set: SampleSet, n: int, duration_s: float | None) -> str | None:
    """Say why one run cannot tell how sure its figures are, whatever its latencies are.

    Args:
        sample_set: The run.
        n: Its activations.
        duration_s: How long it was measured; None where nothing tells.

    Returns:
        The reason; None if the latencies decide.
    """
    if sample_set.form == "summary":
        return "only printed figures are known"
    if sample_set.form == "histogram":
        return "a histogram keeps no order, so the dependence of its values is not known"
    if sample_set.metadata.beyond_range:
        return "of some samples it is only known that they lie beyond the range"
    if n < CELLS:
        return f"a run of {n} activations cannot be cut into {CELLS} stretches"
    silicon = sample_set.metadata.time_base is TimeBase.SILICON
    if silicon and duration_s is not None and duration_s < SHORTEST_S:
        return (
            f"one run of {duration_s:.5g} s may lie in a single phase of the machine: "
            f"{SHORTEST_S} s are the least"
        )
    return None


def quantile_intervals(
    sample_set: SampleSet, probabilities: Sequence[str], confidence: float = 0.95
) -> dict[str, Interval]:
    """Return a confidence interval for each quantile of all activations as they were due.

    It covers what varies within the run, however its latencies follow each other
    (`latenz.statistics.stretches`). Neither end is known where the run is too short for how long
    its latencies resemble each other, or where their order is not known.

    Args:
        sample_set: The latencies.
        probabilities: Quantiles as exact decimals.
        confidence: Two-sided confidence level of each.
    """
    check_confidence(confidence)
    found = dict.fromkeys(probabilities, Interval(None, None))
    sizes: list[int] = []

    def middle(known: int, unknown: int) -> list[int]:
        sizes.append(known + unknown)
        return [quantile_rank(p, known + unknown) for p in probabilities] if not unknown else []

    scan = scan_activations(sample_set, middle, ()) if sample_set.form == "samples" else None
    n = sizes[-1] if sizes else 0
    if scan is None or scan.unknown or why_not_alone(sample_set, n, measured_s(sample_set, n)):
        return found
    values = {p: scan.due.order[quantile_rank(p, n)] for p in probabilities}
    edges = [value - step for value in values.values() for step in (0, 1)]
    stretches = cut(Activations(sample_set).latencies(), n, edges)
    if stretches is None:
        return found
    ranks = {}
    for p, value in values.items():
        share, spread = stretches.weigh(float(p), value, value - 1)
        if spread.settled and share.events >= FEWEST_EVENTS:
            low, high = share.interval(confidence)
            ranks[p] = floor(low * n), ceil(high * n) + 1
    inside = {p: each for p, each in ranks.items() if each[0] >= 1 and each[1] <= n}
    wanted = [rank for each in inside.values() for rank in each]

    def known_ones(known: int, _unknown: int) -> list[int]:
        return [rank for rank in wanted if rank <= known]  # asked for the samples alone, too

    ends = scan_activations(sample_set, known_ones, ())
    if ends:
        found |= {p: Interval(*(ends.due.order[rank] for rank in inside[p])) for p in inside}
    return found
