"""What so much evidence bounds: a share of activations, and a rate of episodes.

**Shares.** Time is thought of as blocks so long that one burst of lateness fills at most one of
them, and that blocks are independent. The share of late activations in a block lies between 0 and
1, and for sums of such shares Bentkus ("On Hoeffding's inequalities", Annals of Probability 32
(2004) 1650-1673, Theorem 1.2) gives P(S >= x) <= e P(B >= x), where B is binomial with the same
mean and P(B >= x) is interpolated between whole x so that its logarithm is linear. With nothing
late at all P(S = 0) <= (1 - p)^m is exact without the factor e, because a block's mean share is
at most the probability that anything in it is late.

**Rates.** Episodes that begin independently of each other are Poisson; the bounds are Garwood's
("Fiducial limits for the Poisson distribution", Biometrika 28 (1936)). Where counts vary more
than Poisson's, both are scaled by that dispersion.
"""

import math
from collections.abc import Callable
from typing import SupportsFloat

from latenz.statistics.exceedance import check_confidence

_LEAST = 1e-30


def share_upper(late_blocks: float, blocks: float, confidence: float = 0.95) -> float:
    """Return the upper confidence bound on the share of late activations.

    With nothing late it is 1 - (1 - confidence)^(1 / blocks), of which 3 / blocks is the
    approximation at 95 %. Without a whole block nothing is known: 1.

    Args:
        late_blocks: Late activations, in blocks: their number over that of a block.
        blocks: How many blocks were seen.
        confidence: One-sided confidence level.

    Raises:
        BadInput: `confidence` is not between 0 and 1.
    """
    check_confidence(confidence)
    whole = math.floor(blocks)
    if whole < 1 or late_blocks >= whole:
        return 1.0
    if late_blocks <= 0:
        return -math.expm1(math.log1p(-confidence) / blocks)
    error = math.log1p(-confidence) - 1
    return _solved(
        lambda share: error - _log_at_most(late_blocks, whole, share), late_blocks / whole
    )


def share_lower(late_blocks: float, blocks: float, confidence: float = 0.95) -> float:
    """Return the lower confidence bound on the share of late activations.

    Args:
        late_blocks: Late activations, in blocks.
        blocks: How many blocks were seen.
        confidence: One-sided confidence level.

    Raises:
        BadInput: `confidence` is not between 0 and 1.
    """
    check_confidence(confidence)
    whole = math.ceil(blocks)
    if whole < 1 or late_blocks <= 0:
        return 0.0
    late_blocks = min(late_blocks, float(whole))
    error = math.log1p(-confidence) - 1
    most = late_blocks / whole
    return _solved(lambda share: _log_at_least(late_blocks, whole, share) - error, 0.0, most)


def share_error(late_blocks: float, blocks: float, allowed: float) -> float:
    """Return how probable so little lateness is at most, if the share were what is allowed.

    It is one minus the confidence at which `share_upper` would give `allowed`.
    """
    whole = math.floor(blocks)
    if whole < 1 or late_blocks >= whole * allowed:
        return 1.0
    if late_blocks <= 0:
        return math.exp(blocks * math.log1p(-allowed))
    return min(1.0, math.exp(1 + _log_at_most(late_blocks, whole, allowed)))


def share_excess_error(late_blocks: float, blocks: float, allowed: float) -> float:
    """Return how probable so much lateness is at most, if the share were what is allowed."""
    whole = math.ceil(blocks)
    if whole < 1 or late_blocks <= whole * allowed:
        return 1.0
    late_blocks = min(late_blocks, float(whole))
    return min(1.0, math.exp(1 + _log_at_least(late_blocks, whole, allowed)))


def episodes_excess_error(episodes: float, allowed: float, dispersion: float = 1.0) -> float:
    """Return how probable so many episodes are at most, if their mean were what is allowed."""
    from scipy.special import gammainc

    return float(gammainc(episodes / dispersion, allowed / dispersion)) if episodes > 0 else 1.0


def episodes_error(episodes: float, allowed: float, dispersion: float = 1.0) -> float:
    """Return how probable so few episodes are at most, if their mean were what is allowed."""
    from scipy.special import gammaincc

    return float(gammaincc(episodes / dispersion + 1, allowed / dispersion))


def episodes_upper(episodes: float, confidence: float = 0.95, dispersion: float = 1.0) -> float:
    """Return the upper confidence bound on the mean number of episodes, given those seen.

    Args:
        episodes: Episodes seen.
        confidence: One-sided confidence level.
        dispersion: Variance over mean of such counts; 1 for Poisson's.

    Raises:
        BadInput: `confidence` is not between 0 and 1.
    """
    from scipy.special import gammaincinv

    check_confidence(confidence)
    return dispersion * float(gammaincinv(episodes / dispersion + 1, confidence))


def episodes_lower(episodes: float, confidence: float = 0.95, dispersion: float = 1.0) -> float:
    """Return the lower confidence bound on the mean number of episodes; see `episodes_upper`."""
    from scipy.special import gammaincinv

    check_confidence(confidence)
    if episodes <= 0:
        return 0.0
    return dispersion * float(gammaincinv(episodes / dispersion, 1 - confidence))


def _log_at_most(late_blocks: float, blocks: int, share: float) -> float:
    """Logarithm of P(B <= late_blocks) for a binomial B, linear between whole numbers."""
    from scipy.special import betaincc

    below = math.floor(late_blocks)
    part = late_blocks - below
    at_below, at_next = (
        _log(betaincc(k + 1, blocks - k, share)) if k < blocks else 0.0 for k in (below, below + 1)
    )
    return (1 - part) * at_below + part * at_next


def _log_at_least(late_blocks: float, blocks: int, share: float) -> float:
    """Logarithm of P(B >= late_blocks) for a binomial B, linear between whole numbers."""
    from scipy.special import betainc

    above = math.ceil(late_blocks)
    part = above - late_blocks
    at_above, at_previous = (
        _log(betainc(k, blocks - k + 1, share)) if k > 0 else 0.0 for k in (above, above - 1)
    )
    return (1 - part) * at_above + part * at_previous


def _log(probability: SupportsFloat) -> float:
    return math.log(max(float(probability), 1e-300))


def _solved(rising: Callable[[float], float], low: float, high: float = 1.0) -> float:
    """Return where a rising function of a share is zero, or the end beyond which it would be."""
    from scipy.optimize import brentq

    low, high = max(low, _LEAST), min(high, 1 - 1e-15)
    if rising(low) >= 0:
        return 0.0 if low == _LEAST else low
    if rising(high) <= 0:
        return 1.0 if high == 1 - 1e-15 else high
    found = brentq(lambda log: rising(math.exp(log)), math.log(low), math.log(high), rtol=1e-10)
    return math.exp(float(found))
