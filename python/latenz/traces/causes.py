"""What is told of a late moment: its causes, each with its share of the time and the evidence."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

from latenz.traces.evidence import Confidence, Part
from latenz.traces.wakeups import Window


@dataclass(frozen=True)
class Share:
    """What one cause contributed to a wait.

    Attributes:
        cause: Stable name, such as `throttled` or `exit:HLT`.
        share_ns: Its net time.
        count: How often it came.
        by: What it consists of, the largest first.
        confidence: How sure it is that this is the cause.
        evidence: One sentence with figures.
        tunings: Ids of the tuning catalogue that remove or shorten it.
        advice: What helps besides.
        alternatives: What else it could be; nothing if it is certain.
        record: Events that would decide, as SYSTEM:EVENT.
        side: Where it was, if a guest was explained with its host: `guest`, `host`, or empty
            for what neither tells.
    """

    cause: str
    share_ns: int
    count: int
    by: tuple[Part, ...]
    confidence: Confidence
    evidence: str
    tunings: tuple[str, ...]
    advice: str
    alternatives: tuple[str, ...] = ()
    record: tuple[str, ...] = ()
    side: Literal["", "guest", "host"] = ""


@dataclass(frozen=True)
class Cause:
    """Why one wait was so long.

    Attributes:
        rank: 1 is the longest wait.
        t_ns: When it began, in the trace's clock.
        latency_ns: How long it was; the shares sum to it.
        what: Who waited for what.
        cpu: Where.
        window: What was explained.
        shares: All causes, the largest first.
        guest: Of which guest's trace, if guests were explained with their host; else empty.
    """

    rank: int
    t_ns: int
    latency_ns: int
    what: str
    cpu: int
    window: Window
    shares: tuple[Share, ...]
    guest: str = ""

    @property
    def first(self) -> Share:
        """The cause that took most of the time."""
        return self.shares[0]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        first = self.first
        return {
            "rank": self.rank,
            "t_ns": self.t_ns,
            "latency_ns": self.latency_ns,
            "what": self.what,
            "cpu": self.cpu,
            "cause": first.cause,
            "share_ns": first.share_ns,
            "evidence": first.evidence,
            "confidence": first.confidence,
            "tunings": list(first.tunings),
            "advice": first.advice,
            "alternatives": list(first.alternatives),
            "record": list(first.record),
            "shares": [asdict(share) for share in self.shares],
            "side": first.side,
            "guest": self.guest,
        }
