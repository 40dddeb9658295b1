"""How often a limit may be exceeded, given how often it was: one-sided Clopper-Pearson bounds.

Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
binomial", Biometrika 26 (1934). The bound holds for independent trials with one exceedance
probability; it is exact in the sense that it never covers less often than the confidence says.
"""

import math

from latenz.errors import BadInput


def check_confidence(confidence: float, where: str = "confidence") -> None:
    """Refuse a confidence that is not a probability strictly between 0 and 1.

    Raises:
        BadInput: It is not between 0 and 1.
    """
    if not 0 < confidence < 1:
        raise BadInput(f"{confidence} is not between 0 and 1", where, "write 0.95 for 95 %")


def exceedance_upper(exceeding: int, trials: int, confidence: float = 0.95) -> float:
    """Return the upper confidence bound on the probability that one activation exceeds the limit.

    With nothing exceeded it is 1 - (1 - confidence)^(1 / trials), of which the rule of three,
    3 / trials at 95 %, is the approximation. Without trials nothing is known: 1.

    Args:
        exceeding: Activations that exceeded the limit.
        trials: All activations.
        confidence: One-sided confidence level, between 0 and 1.

    Raises:
        BadInput: The counts do not fit together, or `confidence` is not between 0 and 1.
    """
    check_confidence(confidence)
    if not 0 <= exceeding <= trials:
        raise BadInput(
            f"{exceeding} of {trials} activations cannot exceed a limit",
            "exceeding",
            "it lies between 0 and the number of trials",
        )
    if exceeding == trials:
        return 1.0
    if exceeding == 0:
        return -math.expm1(math.log1p(-confidence) / trials)
    from scipy.special import betaincinv

    return float(betaincinv(exceeding + 1, trials - exceeding, confidence))
