"""When interrupts arrive, and what a monitor lets through: streams of minimum distances.

Building is part of every analysis, so valid objects pass one fast comparison each, and only the
others are looked at field by field.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from latenz.errors import shown
from latenz.system.fields import LONGEST_NS, BadField, check_whole, whole_number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LONGEST_VECTOR = 64
"""The most entries that a vector of minimum distances has."""
_LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Periodic:
    """Arrivals once a period, each late by up to the jitter, never closer than the distance.

    delta-minus(q) = max((q - 1) period - jitter, (q - 1) min_distance, 0).

    Attributes:
        period_ns: At least 1.
        jitter_ns: At least 0.
        min_distance_ns: 0 up to the period.
    """

    period_ns: int
    jitter_ns: int = 0
    min_distance_ns: int = 0

    def __post_init__(self) -> None:
        period, jitter, distance = self.period_ns, self.jitter_ns, self.min_distance_ns
        if not (
            period.__class__ is jitter.__class__ is distance.__class__ is int
            and 0 < period <= LONGEST_NS
            and 0 <= jitter <= LONGEST_NS
            and 0 <= distance <= period
        ):
            self._check()

    def _check(self) -> None:
        check_whole(self, "period_ns", 1)
        check_whole(self, "jitter_ns", 0)
        check_whole(self, "min_distance_ns", 0)
        if self.min_distance_ns > self.period_ns:
            raise BadField(
                self,
                ("min_distance_ns",),
                f"{self.min_distance_ns} ns is longer than the period, {self.period_ns} ns",
                "a stream that keeps this distance cannot keep the period; give at most the period",
            )


@dataclass(frozen=True, slots=True)
class Distances:
    """Arrivals that keep minimum distances, whatever else they do.

    Attributes:
        distances_ns: delta-minus(2), delta-minus(3), ...: the least time from the first to the
            last of 2, 3, ... consecutive arrivals. 1 to 64 entries, none negative or below the
            one before it, the last above 0.
    """

    distances_ns: tuple[int, ...]

    def __post_init__(self) -> None:
        if not _is_vector(self.distances_ns):
            _check_vector(self)


@dataclass(frozen=True, slots=True, eq=False)
class RecordedTrace:
    """Arrivals as somebody recorded them: replayed by simulation, bounded by what was observed.

    A recorded trace is a sample. What it shows is no guarantee, and neither is a bound from it.

    Attributes:
        times_ns: When each arrived, sorted, none negative. Kept as a copy that is read only.
        length: How many minimum distances to observe in it, 1 to 64. The trace must hold more
            arrivals than that, and never length + 1 of them at the same time.
    """

    times_ns: "npt.NDArray[np.int64]"
    length: int

    def __post_init__(self) -> None:
        import numpy as np

        times: npt.NDArray[Any]
        try:
            times = np.asarray(self.times_ns)
        except (ValueError, TypeError):
            times = np.empty((0, 0))
        if times.ndim != 1 or (times.size and times.dtype.kind not in "iu"):
            raise BadField(
                self, ("times_ns",), "is not a row of integers", "give whole nanoseconds of 64 bits"
            )
        if times.size and int(times.max()) > LONGEST_NS:
            raise BadField(
                self, ("times_ns",), "a time does not fit in 64 bits", "the longest is 292 years"
            )
        times = times.astype(np.int64)
        times.flags.writeable = False
        object.__setattr__(self, "times_ns", times)
        if times.size and int(times[0]) < 0:
            raise BadField(self, ("times_ns", 0), f"{times[0]} is negative", "begin at 0 or later")
        steps_back = np.flatnonzero(times[1:] < times[:-1])
        if steps_back.size:
            at = int(steps_back[0]) + 1
            raise BadField(
                self,
                ("times_ns", at),
                f"{times[at]} comes after {times[at - 1]}",
                "times must be sorted",
            )
        self._check_length(times)

    def _check_length(self, times: "npt.NDArray[np.int64]") -> None:
        check_whole(self, "length", 1, LONGEST_VECTOR, "")
        if len(times) <= self.length:
            raise BadField(
                self,
                ("length",),
                f"{len(times)} arrivals do not show {self.length} distances",
                f"give at most {len(times) - 1}" if len(times) > 1 else "record more arrivals",
            )
        if int((times[self.length :] - times[: -self.length]).min()) == 0:
            raise BadField(
                self,
                ("length",),
                f"{self.length + 1} arrivals have the same time, so that {self.length} distances "
                "would allow any number at once",
                "give a greater length",
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RecordedTrace):
            return NotImplemented
        import numpy as np

        return self.length == other.length and np.array_equal(self.times_ns, other.times_ns)

    def __hash__(self) -> int:
        return hash((self.length, tuple(self.times_ns[:8]), len(self.times_ns)))


@dataclass(frozen=True, slots=True)
class Exponential:
    """Random arrivals for simulation: the gaps are max(min_distance, exponential).

    They have no worst case but the minimum distance.

    Attributes:
        mean_ns: Mean of the exponential distribution, at least 1.
        min_distance_ns: At least 0.
        seed: Of the random numbers, at least 0.
    """

    mean_ns: int
    min_distance_ns: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        mean, distance, seed = self.mean_ns, self.min_distance_ns, self.seed
        if not (
            mean.__class__ is distance.__class__ is seed.__class__ is int
            and 0 < mean <= LONGEST_NS
            and 0 <= distance <= LONGEST_NS
            and 0 <= seed <= _LARGEST_SEED
        ):
            self._check()

    def _check(self) -> None:
        check_whole(self, "mean_ns", 1)
        check_whole(self, "min_distance_ns", 0)
        check_whole(self, "seed", 0, _LARGEST_SEED, "")


Arrival: TypeAlias = Periodic | Distances | RecordedTrace | Exponential
"""When interrupts of a source arrive."""


@dataclass(frozen=True, slots=True)
class Monitor:
    """What must lie between interrupts of a source for them to be interposed in foreign slots.

    Attributes:
        distances_ns: delta-minus(2), delta-minus(3), ...; 1 to 64 entries, none negative or below
            the one before it, the last above 0.
    """

    distances_ns: tuple[int, ...]

    def __post_init__(self) -> None:
        if not _is_vector(self.distances_ns):
            _check_vector(self)


def _is_vector(distances: tuple[int, ...]) -> bool:
    """Tell whether these are minimum distances: integers that do not decrease, not all 0."""
    if distances.__class__ is not tuple or not 0 < len(distances) <= LONGEST_VECTOR:
        return False
    previous = 0
    for distance in distances:
        if distance.__class__ is not int or distance < previous:
            return False
        previous = distance
    return 0 < previous <= LONGEST_NS


def _check_vector(owner: Distances | Monitor) -> None:
    """Make the distances a tuple of plain integers, or tell why they are no such vector."""
    remedy = "more arrivals cannot span less time; sort them"
    if whole_vector(owner, "distances_ns", "distances", remedy)[-1] == 0:
        what = "every distance is 0, which limits nothing"
        raise BadField(owner, ("distances_ns",), what, "the last must be above 0")


def whole_vector(owner: object, name: str, entries: str, if_less: str) -> tuple[int, ...]:
    """Make an attribute a tuple of plain integers that do not decrease, or tell why it is none."""
    given: Any = getattr(owner, name)
    if isinstance(given, str | bytes) or not hasattr(given, "__iter__"):
        what = f"{shown(given)} is not a vector"
        raise BadField(owner, (name,), what, "give a tuple of whole nanoseconds")
    values = tuple(given)
    if not 0 < len(values) <= LONGEST_VECTOR:
        what = f"has {len(values)} {entries}"
        raise BadField(owner, (name,), what, f"give 1 to {LONGEST_VECTOR}")
    found: list[int] = []
    for at, value in enumerate(values):
        whole = whole_number(owner, (name, at), value, 0, LONGEST_NS, " ns")
        if found and whole < found[-1]:
            what = f"{whole} ns comes after {found[-1]} ns"
            raise BadField(owner, (name, at), what, if_less)
        found.append(whole)
    object.__setattr__(owner, name, tuple(found))
    return tuple(found)
