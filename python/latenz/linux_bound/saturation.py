"""How much to trust maxima that were observed: whether a longer observation would raise the bound.

Maxima of a sample are no maxima of what is possible. What can be told: how the bound grew, whether
one half of the observation would have bounded the other half's wake-ups, how many blocks had a
longer window at most, and how often sites came that had not been seen before.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from latenz.linux_bound.model import Steps, Terms, bound
from latenz.linux_bound.windows import SegmentTold, TermTold, Windows

LEAST_SEGMENTS = 32
"""Fewer blocks of wake-ups show nothing."""
GROWTH = 0.25
"""A bound that grew by more than this share in the observation's second half was still growing."""
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class HeldOut:
    """One half's bound against the other half's wake-ups.

    Attributes:
        bounding: Which half the bound is of.
        bound_ns: The bound; None if there is none.
        longest_ns: The longest wake-up of the other half.
    """

    bounding: str
    bound_ns: int | None
    longest_ns: int

    @property
    def holds(self) -> bool:
        """Whether no wake-up of the other half is above the bound."""
        return self.bound_ns is not None and self.longest_ns <= self.bound_ns


@dataclass(frozen=True, slots=True)
class Saturation:
    """How much to trust the maxima of a run.

    Attributes:
        saturated: Whether nothing speaks against it.
        reasons: What does.
        growth_ns: The bound of the first quarter, the first half and all.
        held_out: Both ways.
        blocks: How many blocks of wake-ups there were.
        blocks_with_maximum: In how many of them the dominating window reached its maximum.
        share_of_longer: With 95 % confidence at most so many of the blocks have a longer one, if
            they are exchangeable.
        unseen_sites: Good and Turing's estimate of the share of the dominating windows that begin
            and end where none did before.
        recommendation: What to run next.
    """

    saturated: bool
    reasons: tuple[str, ...]
    growth_ns: tuple[int | None, int | None, int | None]
    held_out: tuple[HeldOut, ...]
    blocks: int
    blocks_with_maximum: int
    share_of_longer: float | None
    unseen_sites: float | None
    recommendation: str | None


def bound_of(segments: Sequence[SegmentTold], horizon_ns: int | None = None) -> int | None:
    """Return the bound that some segments of an observation give, with interrupts joint."""
    terms, steps = Terms(), Steps(horizon=horizon_ns)
    for segment in segments:
        terms = terms.joined(segment.terms())
        steps = steps.joined(Steps.of(segment.steps, horizon_ns))
    return bound(terms, steps).bound_ns


def saturation(windows: Windows) -> Saturation:
    """Return how much to trust the maxima of a run."""
    segments = windows.segments
    horizon = windows.interrupts.horizon_ns
    half = len(segments) // 2
    first, second = segments[:half], segments[half:]
    growth = (
        bound_of(segments[: len(segments) // 4], horizon),
        bound_of(first, horizon),
        bound_of(segments, horizon),
    )
    held_out = tuple(
        HeldOut(name, bound_of(own, horizon), _longest(other))
        for name, own, other in (("first half", first, second), ("second half", second, first))
    )
    reasons = [*_reasons(segments, growth, held_out)]
    name, with_maximum = _dominating(windows)
    share = 1 - (1 - _CONFIDENCE) ** (1 / len(segments)) if segments else None
    return Saturation(
        not reasons,
        tuple(reasons),
        growth,
        held_out,
        len(segments),
        with_maximum,
        share,
        _unseen(windows.terms[name]),
        _recommendation(windows, reasons),
    )


def _longest(segments: Sequence[SegmentTold]) -> int:
    return max((each.longest_latency_ns for each in segments), default=0)


def _reasons(
    segments: Sequence[SegmentTold],
    growth: tuple[int | None, int | None, int | None],
    held_out: Sequence[HeldOut],
) -> list[str]:
    if len(segments) < LEAST_SEGMENTS:
        return [f"{len(segments)} blocks of wake-ups are too few, {LEAST_SEGMENTS} are needed"]
    found = []
    _, half, whole = growth
    if half is None or whole is None:
        found.append("interrupts leave no bound")
    elif whole > half * (1 + GROWTH):
        share = round(100 * (whole - half) / half)
        found.append(f"the bound grew by {share} % in the second half of the observation")
    found += [
        f"a wake-up of {each.longest_ns:,} ns exceeds the bound of the {each.bounding}"
        for each in held_out
        if each.bound_ns is not None and not each.holds
    ]
    return found


def _dominating(windows: Windows) -> tuple[str, int]:
    """Return the term that holds arrivals longest, and how many blocks attain its maximum."""
    holding = windows.longest().holding[0]
    name = "idle_in" if holding == "idle" else holding
    blocks = [getattr(each.terms(), name) for each in windows.segments]
    return name, blocks.count(max(blocks, default=0)) if any(blocks) else 0


def _unseen(term: TermTold) -> float | None:
    return term.seen_once / term.n if term.n else None


def _recommendation(windows: Windows, reasons: Sequence[str]) -> str | None:
    if not reasons:
        return None
    seconds = windows.observed_ns / 1e9
    return (
        f"observe the same load for four times as long ({4 * max(seconds, 0.1):.3g} s of the"
        " board's time), or in several boots, and give all runs together"
    )
