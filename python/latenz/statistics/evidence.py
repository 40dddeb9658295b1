"""What is known of a limit, and what that bounds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from latenz.allowance import Allowance
from latenz.model import Deadline, SampleSet
from latenz.statistics.bounds import (
    episodes_error,
    episodes_excess_error,
    episodes_upper,
    share_error,
    share_excess_error,
    share_lower,
    share_upper,
)
from latenz.statistics.lateness import (
    Lateness,
    among_peaks,
    observe_peaks,
    observe_samples,
    unplaced,
)
from latenz.statistics.verdict import Outcome


@dataclass(frozen=True)
class Evidence:
    """What a sample set knows about one limit.

    Attributes:
        exceeding: Activations known to have exceeded it; skipped activations are among them.
        undecided: Activations that may or may not have: values whose resolution or histogram
            cell straddles the limit, or that are only known to lie beyond a histogram's range.
        trials: All activations, skipped ones included; 0 where the source does not say.
        time_ns: How long was measured; None where the source tells neither times nor a period.
        lateness: When the late ones came; None where only their number is known.
    """

    exceeding: int
    undecided: int
    trials: int
    time_ns: int | None = None
    lateness: Lateness | None = None

    @property
    def possible(self) -> int:
        """Activations that may have exceeded it."""
        return min(self.exceeding + self.undecided, self.trials)


@dataclass(frozen=True)
class Weighed:
    """Evidence in the units that bounds are made of.

    Attributes:
        time_s: How long was measured.
        blocks: How many blocks that is: as many as activations fill if each block held as many
            as the fullest.
        late_blocks: How many of them late activations would fill; `possible_blocks`: possible ones.
        episodes: Episodes for the lower bound.
        possible_episodes: Episodes for the upper bound.
        dispersion: Variance over mean of their counts.
        confidence: One-sided confidence level of the bounds.
    """

    time_s: float
    blocks: float
    late_blocks: float
    possible_blocks: float
    episodes: float
    possible_episodes: float
    dispersion: float
    confidence: float

    def share_bounds(self) -> tuple[float, float]:
        """Return the lower and the upper bound on the share of late activations."""
        return (
            share_lower(self.late_blocks, self.blocks, self.confidence),
            share_upper(self.possible_blocks, self.blocks, self.confidence),
        )

    def rate_upper(self) -> float:
        """Return the upper bound on the episodes in a second."""
        mean = episodes_upper(self.possible_episodes, self.confidence, self.dispersion)
        return mean / self.time_s

    def error(self, allowance: Allowance) -> float:
        """Return how probable so little lateness is, if there were as much as is allowed."""
        if allowance.kind == "rate":
            allowed = allowance.value * self.time_s
            return episodes_error(self.possible_episodes, allowed, self.dispersion)
        return share_error(self.possible_blocks, self.blocks, allowance.value)

    def excess_error(self, allowance: Allowance) -> float:
        """Return how probable so much lateness is, if there were no more than is allowed."""
        if allowance.kind == "rate":
            allowed = allowance.value * self.time_s
            return episodes_excess_error(self.episodes, allowed, self.dispersion)
        return share_excess_error(self.late_blocks, self.blocks, allowance.value)

    def outcome(self, allowance: Allowance) -> Outcome:
        """Return what the evidence shows of an allowance that is not `hard`."""
        if self.error(allowance) <= 1 - self.confidence:
            return "meets"
        violates = self.excess_error(allowance) <= 1 - self.confidence
        return "violates" if violates else "not shown"

    def as_long_as(self, time_s: float) -> "Weighed":
        """Return what as long a measurement would have given, lateness going on as it did."""
        more = time_s / self.time_s
        return replace(
            self,
            time_s=time_s,
            blocks=self.blocks * more,
            late_blocks=self.late_blocks * more,
            possible_blocks=self.possible_blocks * more,
            episodes=self.episodes * more,
            possible_episodes=self.possible_episodes * more,
        )

    def shortest_s(self, allowance: Allowance) -> float | None:
        """Return how long a measurement of this kind must last that shows a deadline to be met."""
        return shortest_s(
            allowance, self.time_s / self.blocks, self.confidence, dispersion=self.dispersion
        )


def shortest_s(
    allowance: Allowance, block_s: float, confidence: float, dispersion: float = 1.0
) -> float | None:
    """Return how long a measurement must last that shows a deadline if nothing is late in it.

    None where nothing may be late: no measurement shows that nothing ever is.
    """
    if allowance.kind == "hard":
        return None
    if allowance.kind == "rate":
        return episodes_upper(0, confidence, dispersion) / allowance.value
    return block_s * math.log1p(-confidence) / math.log1p(-allowance.value)


def block_ns(deadline: Deadline, evidence: Evidence) -> int:
    """Return what is one independent piece of evidence: a burst, or as far as lateness reaches.

    It is no shorter than the mean distance of activations.
    """
    distance_ns = (evidence.time_ns or 0) // max(evidence.trials, 1)
    reach_ns = evidence.lateness.dependence_ns if evidence.lateness else 0
    return max(deadline.burst_ns, reach_ns, distance_ns)


def weigh(deadline: Deadline, evidence: Evidence, confidence: float) -> Weighed | None:
    """Put evidence into the units of bounds; None where no time or no activation is known."""
    if not evidence.time_ns or not evidence.trials:
        return None
    possible = evidence.possible
    lateness = evidence.lateness or unplaced(evidence.exceeding, possible)
    even = evidence.trials * block_ns(deadline, evidence) / evidence.time_ns
    in_a_block = max(1.0, even, lateness.in_a_block or 0)
    return Weighed(
        time_s=evidence.time_ns / 1e9,
        blocks=evidence.trials / in_a_block,
        late_blocks=evidence.exceeding / in_a_block,
        possible_blocks=possible / in_a_block,
        episodes=lateness.episodes,
        possible_episodes=lateness.possible_episodes,
        dispersion=lateness.dispersion,
        confidence=confidence,
    )


def observe(
    sample_set: SampleSet, deadlines: Sequence[Deadline], counted: "dict[int, Evidence]"
) -> list[Evidence]:
    """Add to what was counted for each limit how long was measured and when it was exceeded.

    Args:
        sample_set: The latencies, in any form.
        deadlines: What is asked of them.
        counted: Evidence for each limit, without times.

    Returns:
        Evidence for each deadline, in their order.
    """
    if not deadlines:
        return []
    evidence = [counted[each.limit_ns] for each in deadlines]
    if sample_set.form == "samples":
        seen = observe_samples(sample_set, deadlines)
        return [
            replace(each, time_ns=seen.time_ns, lateness=lateness)
            for each, lateness in zip(evidence, seen.lateness, strict=True)
        ]
    period_ns = sample_set.metadata.period_ns
    told_ns = sample_set.metadata.observed_ns
    timed = [
        replace(each, time_ns=each.trials * period_ns if period_ns else told_ns)
        for each in evidence
    ]
    if sample_set.peaks is None:
        return timed
    seen = observe_peaks(sample_set.peaks, deadlines)
    return [
        replace(each, lateness=among_peaks(lateness, each.exceeding, each.possible))
        for each, lateness in zip(timed, seen.lateness, strict=True)
    ]
