"""How long one has to measure, and how many samples Eq. (3) of alonso2024 asks for."""

import math

from latenz.allowance import Allowance
from latenz.errors import BadInput
from latenz.statistics.bounds import episodes_upper, share_upper
from latenz.statistics.evidence import shortest_s
from latenz.statistics.exceedance import check_confidence

_MOST = 10**9


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
    or a quantile.

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


def duration_for_allowance(
    allowance: Allowance, burst_ns: int, confidence: float = 0.95, late: int = 0
) -> float | None:
    """Return how long a measurement must last, in seconds, that shows a deadline to be met.

    It is the time that a verdict names as needed, by the same bounds.

    Args:
        allowance: How much lateness is allowed.
        burst_ns: The longest burst of lateness that is tolerated unseen.
        confidence: One-sided confidence level.
        late: Late episodes seen meanwhile; for a share, bursts that late activations fill.

    Returns:
        None where nothing may be late: no measurement shows that nothing ever is.

    Raises:
        BadInput: An argument is out of range.
    """
    check_confidence(confidence)
    if burst_ns <= 0:
        raise BadInput(f"{burst_ns} ns is not a burst", "burst", "it must be above zero")
    if not 0 <= late <= _MOST:
        raise BadInput(f"{late} episodes cannot be late", "late", f"0 to {_MOST:,}")
    shortest = shortest_s(allowance, burst_ns / 1e9, confidence)
    if shortest is None or not late:
        return shortest
    if allowance.kind == "rate":
        return episodes_upper(late, confidence) / allowance.value
    return _shortest_share(late, allowance.value, confidence) * burst_ns / 1e9


def _shortest_share(late: int, allowed: float, confidence: float) -> int:
    """Find from how many blocks on so many late ones bound the share at what is allowed."""
    low, high = late, 2 * late
    while share_upper(late, high, confidence) > allowed:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if share_upper(late, middle, confidence) > allowed:
            low = middle
        else:
            high = middle
    return high
