"""Does a measurement show that a deadline is met?

A deadline allows no lateness at all, a share of late activations, or a rate of late episodes. The
evidence is counted in what is independent: in time and episodes, not in samples. A run of three
seconds says nothing of what happens once a minute, however many samples it has.
"""

from collections.abc import Callable
from dataclasses import replace

from latenz.allowance import Allowance, parse_allowance
from latenz.model import Deadline
from latenz.statistics.evidence import Evidence, Weighed, block_ns, weigh
from latenz.statistics.exceedance import check_confidence
from latenz.statistics.sentence import sentence
from latenz.statistics.verdict import Outcome, Verdict

_LONGEST_S = 1e12  # thirty thousand years: nobody measures longer


def judge(
    deadline: Deadline, evidence: Evidence, max_ns: int | None, confidence: float = 0.95
) -> Verdict:
    """Judge one deadline.

    Args:
        deadline: The limit, and how much lateness it allows.
        evidence: What the sample set knows about that limit.
        max_ns: The largest latency seen, None where the source cannot tell.
        confidence: One-sided confidence level of the bounds.

    Raises:
        BadInput: `confidence` is not between 0 and 1.
    """
    check_confidence(confidence)
    allowance = parse_allowance(deadline.allowed)
    weighed = weigh(deadline, evidence, confidence)
    lower, upper = weighed.share_bounds() if weighed else (0.0, 1.0)
    outcome = _outcome(allowance, evidence, weighed)
    needed_s = _needed_s(allowance, weighed) if outcome == "not shown" else None
    verdict = Verdict(
        name=deadline.name,
        limit_ns=deadline.limit_ns,
        verdict=outcome,
        exceeding=evidence.exceeding,
        exceedance_lower=lower,
        exceedance_upper=upper,
        confidence=confidence,
        trials=evidence.trials,
        undecided=evidence.undecided,
        allowed=deadline.allowed,
        episodes=evidence.lateness.episodes if evidence.lateness else None,
        observed_s=weighed.time_s if weighed else None,
        rate_upper_per_h=3600 * weighed.rate_upper() if weighed else None,
        block_ns=block_ns(deadline, evidence),
        needed_s=needed_s,
        needed_for=(
            weighed.as_long_as(1.01 * needed_s).outcome(allowance) if weighed and needed_s else None
        ),
        max_ns=max_ns,
        error=weighed.error(allowance) if weighed and allowance.value else 1.0,
        sentence="",
    )
    return replace(verdict, sentence=sentence(verdict, allowance))


def _outcome(allowance: Allowance, evidence: Evidence, weighed: Weighed | None) -> Outcome:
    if allowance.kind == "hard":
        return "violates" if evidence.exceeding else "not shown"
    if weighed is None:
        return "not shown"
    return weighed.outcome(allowance)


def _needed_s(allowance: Allowance, weighed: Weighed | None) -> float | None:
    """The shortest measurement that decides, if lateness goes on as it did."""
    if weighed is None or allowance.kind == "hard":
        return None
    if not weighed.possible_episodes:
        return weighed.shortest_s(allowance)

    def decides(time_s: float) -> bool:
        return weighed.as_long_as(time_s).outcome(allowance) != "not shown"

    return _first(decides, weighed.time_s)


def _first(decides: Callable[[float], bool], known_s: float) -> float | None:
    """Find where a condition begins to hold, beyond a time at which it does not."""
    low, high = known_s, 2 * known_s
    while not decides(high):
        low, high = high, 2 * high
        if high > _LONGEST_S:
            return None
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if decides(middle) else (middle, high)
    return high
