"""Deadlines judged by bounds: what no execution exceeds needs no statistics."""

from dataclasses import dataclass
from typing import Any, Literal

from latenz.allowance import parse_allowance
from latenz.analysis.bound import SourceBound
from latenz.durations import format_duration
from latenz.model import Deadline

Outcome = Literal["meets", "violates", "not shown"]


@dataclass(frozen=True, slots=True)
class BoundVerdict:
    """What a source's bounds say of a deadline.

    Attributes:
        deadline: A limit, and how much lateness it allows.
        verdict: `meets` if `wcrt_ns` is within the limit, whatever is allowed. `violates` if no
            lateness is allowed and the latency is proven to grow without end. Otherwise
            `not shown`: a bound above the limit does not show that the limit can be exceeded, and
            no bound tells how often it is.
        enforced: Whether `enforced_ns` is within the limit.
        sentence: The same for a reader.
    """

    deadline: Deadline
    verdict: Outcome
    enforced: bool
    sentence: str

    def to_json(self) -> dict[str, Any]:
        """Return it with the names of measured verdicts; nothing was measured here."""
        meets = self.verdict == "meets"
        return {
            "name": self.deadline.name,
            "limit_ns": self.deadline.limit_ns,
            "verdict": self.verdict,
            "exceeding": 0,
            "exceedance_lower": 0.0,
            "exceedance_upper": 0.0 if meets else 1.0,
            "confidence": 1.0,
            "allowed": self.deadline.allowed,
            "episodes": None,
            "observed_s": None,
            "rate_upper_per_h": 0.0 if meets else None,
            "needed_s": None,
            "enforced": self.enforced,
            "sentence": self.sentence,
        }


def judged(deadline: Deadline, source: SourceBound) -> BoundVerdict:
    """Return what the bounds of a source say of a deadline."""
    limit_ns = deadline.limit_ns
    enforced = source.enforced_ns is not None and source.enforced_ns <= limit_ns
    verdict: Outcome = "not shown"
    if source.wcrt_ns is not None and source.wcrt_ns <= limit_ns:
        verdict = "meets"
    elif source.verdict == "unbounded" and parse_allowance(deadline.allowed).kind == "hard":
        verdict = "violates"
    return BoundVerdict(deadline, verdict, enforced, _sentence(source, limit_ns, enforced))


def _sentence(source: SourceBound, limit_ns: int, enforced: bool) -> str:
    limit = format_duration(limit_ns)
    if source.verdict == "unbounded":
        return f"with arrivals that the models allow latencies grow beyond {limit} without end"
    if source.wcrt_ns is None:
        return f"no bound was found, which does not show that {limit} can be exceeded"
    if source.wcrt_ns > limit_ns:
        return (
            f"the bound is {format_duration(source.wcrt_ns)}, which does not show that {limit} can"
            " be exceeded: latenz check looks for that"
        )
    if enforced:
        return f"never later than {limit}, whatever sources of other partitions do"
    return f"never later than {limit} if all sources keep their arrival models"
