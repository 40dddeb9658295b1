"""How many samples a claim needs."""

import math

from latenz.errors import BadInput
from latenz.statistics.exceedance import check_confidence, exceedance_upper

_MOST = 10**15  # a year at 1 GHz is 3e16 cycles: no measurement takes longer


def _check_probability(value: float, where: str) -> None:
    if not 0 < value < 1:
        raise BadInput(f"{value} is not between 0 and 1", where, "write a probability such as 0.99")


def sample_size_for_proportion(
    confidence: float = 0.95, error: float = 0.05, proportion: float = 0.5
) -> int:
    """Return the n of Eq. (3) of Alonso et al., Electronics 2024, 13, 1626: z^2 p (1 - p) / e^2.

    It is the number of samples after which the *share* of samples with some property is known to
    within `error`, by the normal approximation and for independent samples: 385 for 95 % and 5 %.
    The publication takes it as the number for reliable latencies. It says nothing about a maximum
    or a quantile; for these use `sample_size_for_quantile`.

    Args:
        confidence: Two-sided confidence level.
        error: Half width of the interval around the share.
        proportion: The expected share; 0.5 is the worst case.

    Raises:
        BadInput: An argument is not between 0 and 1.
    """
    from statistics import NormalDist

    check_confidence(confidence)
    _check_probability(error, "error")
    _check_probability(proportion, "proportion")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    return math.ceil(z * z * proportion * (1 - proportion) / (error * error))


def sample_size_for_quantile(quantile: float, confidence: float = 0.95, exceeding: int = 0) -> int:
    """Return how many samples show that a limit holds with probability `quantile`.

    With nothing exceeded, the largest of n samples is an upper bound of the quantile whatever the
    distribution: n is the smallest with quantile^n <= 1 - confidence (Wilks, Annals of
    Mathematical Statistics 12, 1941), 59 for 95 % at 95 %. With r samples allowed above the limit
    it is the smallest n whose Clopper-Pearson bound is at most 1 - quantile; 93 for r = 1. Samples
    must be independent.

    Args:
        quantile: Share of activations that must stay within the limit.
        confidence: One-sided confidence level.
        exceeding: Samples that may exceed the limit all the same.

    Raises:
        BadInput: An argument is out of range, or no measurement could last that long.
    """
    _check_probability(quantile, "quantile")
    check_confidence(confidence)
    if exceeding < 0:
        raise BadInput(f"{exceeding} samples cannot exceed a limit", "exceeding", "0 or more")
    n = _whole(math.log1p(-confidence) / math.log(quantile))
    if exceeding:
        n = _smallest(exceeding, 1 - quantile, confidence, n)
    if n > _MOST:
        raise BadInput(f"that takes {n:.1e} samples", "quantile", "ask for a smaller one")
    return n


def _whole(exact: float) -> int:
    """Round up, unless only a rounding error lies above a whole number (0.5 and 75 %: 2)."""
    nearest = round(exact)
    return max(1, nearest if math.isclose(exact, nearest, rel_tol=1e-12) else math.ceil(exact))


def _smallest(exceeding: int, allowed: float, confidence: float, shown: int) -> int:
    """Find the n from which the bound on `exceeding` of n stays at or below `allowed`."""
    low, high = exceeding, max(shown, exceeding + 1)
    while exceedance_upper(exceeding, high, confidence) > allowed:
        if high > _MOST:
            return high
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if exceedance_upper(exceeding, middle, confidence) > allowed:
            low = middle
        else:
            high = middle
    return high
