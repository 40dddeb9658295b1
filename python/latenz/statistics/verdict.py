"""Does a sample set show that a deadline is met? Never just "maximum below limit"."""

from dataclasses import dataclass
from typing import Literal

from latenz.model import Deadline
from latenz.statistics.exceedance import exceedance_upper

Outcome = Literal["meets", "violates", "not shown"]


@dataclass(frozen=True)
class Evidence:
    """What a sample set knows about one limit.

    Attributes:
        exceeding: Activations known to have exceeded it; skipped activations are among them.
        undecided: Activations that may or may not have: values whose resolution or histogram
            cell straddles the limit, or that are only known to lie beyond a histogram's range.
        trials: All activations, skipped ones included; 0 where the source does not say.
    """

    exceeding: int
    undecided: int
    trials: int


@dataclass(frozen=True)
class Verdict:
    """The verdict on one deadline, with the evidence behind it.

    Attributes:
        name: Name of the deadline.
        limit_ns: The limit every latency must stay within.
        verdict: `violates` if any activation is known to have exceeded the limit; `meets` if
            every one is known to have kept it and they bound the probability of exceeding it at
            or below `allowed`; otherwise `not shown`.
        exceeding: Activations known to have exceeded the limit (skipped ones are among them).
        exceedance_upper: Upper confidence bound on the probability of exceeding the limit
            (Clopper-Pearson), counting undecided activations as exceeding.
        confidence: Confidence level of that bound, one-sided.
        trials: Activations judged: samples and skipped activations; 0 where the source does not
            tell how many there were.
        undecided: Activations whose recorded value does not tell on which side they were.
        allowed: Largest probability of exceeding the limit that counts as meeting it.
        max_ns: The largest latency seen, None where the source cannot tell.
    """

    name: str
    limit_ns: int
    verdict: Outcome
    exceeding: int
    exceedance_upper: float
    confidence: float
    trials: int
    undecided: int
    allowed: float
    max_ns: int | None


def judge(
    deadline: Deadline, evidence: Evidence, max_ns: int | None, confidence: float = 0.95
) -> Verdict:
    """Judge one deadline.

    Args:
        deadline: The limit and how rarely it may be exceeded.
        evidence: What the sample set knows about that limit.
        max_ns: The largest latency seen, None where the source cannot tell.
        confidence: One-sided confidence level of the bound.

    Raises:
        BadInput: `confidence` is not between 0 and 1.
    """
    possible = min(evidence.exceeding + evidence.undecided, evidence.trials)
    upper = exceedance_upper(possible, evidence.trials, confidence)
    outcome: Outcome = "not shown"
    if evidence.exceeding:
        outcome = "violates"
    elif not evidence.undecided and upper <= deadline.exceedance:
        outcome = "meets"
    return Verdict(
        name=deadline.name,
        limit_ns=deadline.limit_ns,
        verdict=outcome,
        exceeding=evidence.exceeding,
        exceedance_upper=upper,
        confidence=confidence,
        trials=evidence.trials,
        undecided=evidence.undecided,
        allowed=deadline.exceedance,
        max_ns=max_ns,
    )
