"""The verdict on a deadline: never just "maximum below limit"."""

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["meets", "violates", "not shown"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on one deadline, with the evidence behind it.

    Attributes:
        name: Name of the deadline.
        limit_ns: The limit every latency must stay within.
        verdict: `meets` if what bounds lateness from above is within what is allowed; `violates`
            if what bounds it from below is not (where nothing is allowed: if anything was late);
            otherwise `not shown`.
        exceeding: Activations known to have exceeded the limit (skipped ones are among them).
        exceedance_lower: Lower confidence bound on the share of activations that exceed it.
        exceedance_upper: Upper confidence bound on it, undecided activations counted as late.
        confidence: Confidence level of each bound, one-sided.
        trials: Activations judged: samples and skipped activations; 0 where the source does not
            tell how many there were.
        undecided: Activations whose recorded value does not tell on which side they were.
        allowed: How much lateness is allowed, as it was written.
        episodes: Episodes of lateness seen; None where only the number of late ones is known.
        observed_s: How long was measured; None where the source does not tell.
        rate_upper_per_h: Upper confidence bound on the episodes in an hour; None likewise.
        block_ns: What counts as one independent piece of evidence for a share: the deadline's
            burst, or as long as the data depend on each other if that is longer.
        needed_s: How long one has to measure in all for a verdict, if lateness goes on as it
            did; None if the verdict is there, or if no measurement can show it.
        needed_for: Which verdict that would be.
        max_ns: The largest latency seen, None where the source cannot tell.
        error: The probability of as little lateness as was seen, if it were as much as is
            allowed: 1 - confidence or less where the verdict is `meets`.
        sentence: What was seen, what it shows and what it assumes.
        emulated: The latencies are an emulator's or a simulator's: `meets` holds in that time
            base only, and shows nothing of silicon.
    """

    name: str
    limit_ns: int
    verdict: Outcome
    exceeding: int
    exceedance_lower: float
    exceedance_upper: float
    confidence: float
    trials: int
    undecided: int
    allowed: str
    episodes: int | None
    observed_s: float | None
    rate_upper_per_h: float | None
    block_ns: int
    needed_s: float | None
    needed_for: Outcome | None
    max_ns: int | None
    error: float
    sentence: str
    emulated: bool = False
