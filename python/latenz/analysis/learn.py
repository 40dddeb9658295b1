"""Minimum distances learned from recorded activations, as beckert2014 does in its appendix.

Algorithm 1 keeps the least time from the first to the last of 2, 3, ... consecutive activations;
as printed it compares the first ones with time 0, here only activations are compared. Algorithm 2
raises what was observed to what is allowed.

What was observed is a sample of what may come, never a bound on it: a longer trace can only show
shorter distances. How much shorter is what convergence and hold-out tell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from latenz import _core
from latenz.errors import BadInput, shown
from latenz.importers.source import share
from latenz.system.arrivals import LONGEST_VECTOR
from latenz.system.fields import LONGEST_NS

Times = npt.NDArray[np.int64]
Number = Fraction | Decimal | float | str
"""A number that is taken as it is written: 0.3 is three tenths."""

FRACTION = Fraction(1, 10)
PERCENTS = (1, 2, 5, 10, 20, 50, 100)
"""How much of a trace the steps of `LearnedSource.convergence` have seen."""
SAMPLE = (
    "observed distances are a sample of what may come, never a bound: interrupts may come closer "
    "than in this trace"
)
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Step:
    """What the first part of a trace shows.

    Attributes:
        percent: How much of it was seen.
        activations: How many that are.
        observed_ns: delta-minus(2), (3), ... in them, as many as they show.
    """

    percent: int
    activations: int
    observed_ns: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HoldOut:
    """How the activations after the learning part compare with what was learned.

    Attributes:
        activations: How many there are.
        closer_than_observed: How many of them come less than an observed distance after an
            earlier one of them: a learning part that showed everything would leave none.
        denied: How many of them a monitor with the resulting distances denies.
    """

    activations: int
    closer_than_observed: int
    denied: int


@dataclass(frozen=True, slots=True)
class LearnedSource:
    """What was learned of one source.

    Attributes:
        name: The source.
        observed_ns: delta-minus(2), (3), ... in the learning part (Algorithm 1); shorter than
            asked for, or empty, if the part has too few activations.
        distances_ns: The same after bounding (Algorithm 2).
        activations: How many the trace has.
        learned_from: How many of them the learning part has.
        convergence: What ever longer parts of the trace show.
        hold_out: The rest of the trace against what was learned.
    """

    name: str
    observed_ns: tuple[int, ...]
    distances_ns: tuple[int, ...]
    activations: int
    learned_from: int
    convergence: tuple[Step, ...]
    hold_out: HoldOut


@dataclass(frozen=True, slots=True)
class Learned:
    """What was learned from a trace.

    Attributes:
        sources: In the order of the trace.
        warnings: What the vectors do not show; the first says that they are samples.
    """

    sources: tuple[LearnedSource, ...]
    warnings: tuple[str, ...]

    def of(self, source: str) -> LearnedSource:
        """Return what was learned of a source by its name."""
        return next(each for each in self.sources if each.name == source)


def learn(
    times_by_source: Mapping[str, npt.ArrayLike],
    length: int,
    fraction: Number = FRACTION,
    *,
    allow: Number | None = None,
    at_least: Sequence[int] | None = None,
) -> Learned:
    """Learn minimum distances from the first part of a trace, and judge them by the rest.

    Args:
        times_by_source: When each source was activated, ascending nanoseconds.
        length: How many distances to learn, 1 to 64.
        fraction: How much of each source's activations to learn from: the first
            floor(fraction n). Above 0, at most 1.
        allow: Allows this share of the observed load: the distances become observed / allow,
            rounded up. Above 0, at most 1.
        at_least: delta-minus(2), (3), ... that no distance may fall below. If fewer than learned,
            the others must keep what these imply.

    Raises:
        BadInput: An argument is out of range, times are not ascending, or the learning part of
            no source has two activations.
    """
    if not 1 <= length <= LONGEST_VECTOR:
        raise BadInput(f"{length} is not a length", "--length", f"give 1 to {LONGEST_VECTOR}")
    part = _share(fraction, "--fraction")
    raised = _Raised(length, allow, at_least)
    sources, warnings = [], [SAMPLE]
    for name, times in times_by_source.items():
        source = _learned(name, _checked(name, times), length, part, raised)
        sources.append(source)
        warnings += _shortcomings(source, length)
    if not any(source.observed_ns for source in sources):
        raise BadInput(
            "no source has two activations in the learning part",
            f"--fraction {float(part):g}",
            "learn from all of it by --fraction 1, or record more",
        )
    return Learned(tuple(sources), tuple(warnings))


def _learned(
    name: str, times: Times, length: int, part: Fraction, raised: "_Raised"
) -> LearnedSource:
    total = len(times)
    learned_from = int(part * total)
    cuts = [*(total * percent // 100 for percent in PERCENTS), learned_from]
    seen = _observed_after(times, cuts, length)
    observed, later = seen[learned_from], times[learned_from:]
    distances = raised.distances(observed, name)
    return LearnedSource(
        name,
        observed,
        distances,
        total,
        learned_from,
        tuple(Step(p, cut, seen[cut]) for p, cut in zip(PERCENTS, cuts, strict=False)),
        HoldOut(len(later), _closer(later, observed), _denied(later, distances)),
    )


def _observed_after(times: Times, cuts: list[int], length: int) -> dict[int, tuple[int, ...]]:
    """Return what Algorithm 1 has observed after each number of activations."""
    learner = _core.DistanceLearner()
    seen: dict[int, tuple[int, ...]] = {0: ()}
    for begin, end in pairwise([0, *sorted(set(cuts))]):
        learner.observe(times[begin:end])
        seen[end] = tuple(learner.observed_ns[:length])
    return seen


def _closer(times: Times, observed: tuple[int, ...]) -> int:
    """Count activations that come less than an observed distance after an earlier one."""
    closer = np.zeros(len(times), np.bool_)
    for back, distance in enumerate(observed, 1):
        closer[back:] |= times[back:] - times[:-back] < distance
    return int(closer.sum())


def _denied(times: Times, distances: tuple[int, ...]) -> int:
    """Count what a monitor denies that is switched on before the first of these activations."""
    if not distances:
        return 0
    accept = _core.DistanceMonitor(distances).accept
    pieces = (times[at : at + _PIECE].tolist() for at in range(0, len(times), _PIECE))
    return len(times) - sum(sum(map(accept, piece)) for piece in pieces)


class _Raised:
    """What Algorithm 2 raises observed distances to."""

    def __init__(self, length: int, allow: Number | None, at_least: Sequence[int] | None) -> None:
        if allow is not None and at_least is not None:
            what = "--allow and --at-least exclude each other"
            raise BadInput(what, "--at-least", "give one of them")
        self.share = None if allow is None else _share(allow, "--allow")
        self.at_least = () if at_least is None else _at_least(at_least, length)

    def distances(self, observed: tuple[int, ...], name: str) -> tuple[int, ...]:
        if not observed:
            return ()
        if self.share is not None:
            allowed = [
                -(-each * self.share.denominator // self.share.numerator) for each in observed
            ]
            if allowed[-1] > LONGEST_NS:
                what = f"{name}: {observed[-1]} ns / {float(self.share):g} does not fit in 64 bits"
                raise BadInput(what, "--allow", "allow more")
        else:
            allowed = list(self.at_least[: len(observed)]) or [0]
        return tuple(_core.raise_to(observed, allowed))


def _at_least(distances: Sequence[int], length: int) -> tuple[int, ...]:
    """Return allowed distances for the whole length; what those given imply for the others."""
    where = "--at-least"
    if not 1 <= len(distances) <= length:
        what = f"{len(distances)} distances for a vector of {length}"
        raise BadInput(what, where, "give at least 1 and at most --length")
    for before, distance in pairwise([0, *distances]):
        if not before <= distance <= LONGEST_NS:
            what = f"{distance} ns follows {before} ns"
            raise BadInput(what, where, "distances are not negative and do not decrease")
    model = _core.DistanceVector(distances)
    return (*distances, *(model.delta(q) for q in range(len(distances) + 2, length + 2)))


def _share(value: Number, where: str) -> Fraction:
    exact = value if isinstance(value, Fraction) else share(str(value))
    if exact is None or not 0 < exact <= 1:
        remedy = "give a share above 0, such as 0.25 or 25%"
        raise BadInput(f"{shown(value)} is not a share", where, remedy)
    return exact


def _checked(name: str, times: npt.ArrayLike) -> Times:
    """Return times as 64-bit integers; refuse what is none, negative or not ascending."""
    where = f"source {name}"
    given: npt.NDArray[Any] = np.asarray(times)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise BadInput("times are no row of integers", where, "give whole nanoseconds of 64 bits")
    if given.size and (int(given.max()) > LONGEST_NS or int(given.min()) < 0):
        raise BadInput("a time is negative or does not fit in 64 bits", where, "begin at 0")
    values = given.astype(np.int64, copy=False)
    if (backwards := np.flatnonzero(values[1:] < values[:-1])).size:
        at = int(backwards[0]) + 1
        what = f"activation {at}: {values[at]} ns comes after {values[at - 1]} ns"
        raise BadInput(what, where, "sort the times")
    return values


def _shortcomings(source: LearnedSource, length: int) -> list[str]:
    """Return what a source's vector lacks."""
    observed = len(source.observed_ns)
    part = f"{source.learned_from} of {source.activations} activations"
    if not observed:
        return [f"{source.name}: nothing is learned from {part}: a distance needs two"]
    found = []
    if observed < length:
        found.append(
            f"{source.name}: {part} show {observed} of {length} distances; the vector is shorter"
        )
    if source.distances_ns[-1] == 0:
        found.append(
            f"{source.name}: {observed + 1} activations at one time: no monitor can have these "
            "distances; give --at-least, or a greater --length"
        )
    return found
