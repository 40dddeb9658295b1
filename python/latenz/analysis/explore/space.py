"""What `explore` may change in a system, and every system that comes of it.

A candidate is a tuple of whole numbers, its *choice*: one for each thing that may change. What is
held fixed: the platform's costs, handlers, arrivals, which source belongs to which partition, and
each partition's share of the cycle, to the nanosecond, unless it says how much is enough for it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, factorial, gcd, prod
from random import Random
from typing import Literal, TypeAlias

from latenz import _core
from latenz.analysis.native import event_model, observed_distances
from latenz.system import (
    Distances,
    Monitor,
    Periodic,
    RecordedTrace,
    Slot,
    Source,
    System,
)
from latenz.system.fields import LONGEST_NS
from latenz.system.processors import check_one_processor

Choice: TypeAlias = tuple[int, ...]

SPLITS = (1, 2, 3, 4)
"""Into how many equal slots a partition's time is split."""
_PARTS = ("1/8", "1/6", "1/5", "1/4", "1/3", "2/5", "1/2", "3/5", "2/3", "3/4", "4/5", "1")
SCALES = tuple(Fraction(part) for part in _PARTS)
"""Lengths of the cycle as parts of the given one: what runs in the slots may rely on no longer."""
STRICTER = tuple(Fraction(factor) for factor in ("1", "5/4", "3/2", *"23468", "12", "16"))
"""Factors of minimum distances; 4, 8 and 16 allow 25, 12.5, 6.25 % as in beckert2014's appendix."""
LOOSER = (Fraction(1, 4), Fraction(1, 2))
"""Further factors where arrivals have no minimum distance to start from."""
TRADES = (Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1))
"""How much of the time that partitions can spare goes to another one."""
_MOST_OF_PERIODIC = 8  # distances that describe the bursts of periodic arrivals with jitter


@dataclass(frozen=True, slots=True)
class Dimension:
    """One thing that may change.

    Attributes:
        size: How many values it has.
        kind: Which of them are near each other: `ordered` ones side by side, `any` all, `order`
            permutations that differ by one swap.
    """

    size: int
    kind: Literal["ordered", "any", "order"]


class Space:
    """All candidates of a system.

    Args:
        system: The one to start from; its mode counts.
        shares: The least share of the cycle, slot switches included, that partitions need; those
            not named keep what they have.

    Raises:
        BadInput: Its slots are of several processors.
    """

    def __init__(self, system: System, shares: Mapping[str, Fraction] | None = None) -> None:
        check_one_processor(system)
        self.given = analysed(system)
        self._partitions = system.partitions
        self._totals = [
            sum(slot.length_ns for slot in system.slots if slot.partition == name)
            for name in self._partitions
        ]
        wanted = shares or {}
        self._spare = [
            max(0, total - ceil(wanted[name] * system.cycle_ns)) if name in wanted else 0
            for name, total in zip(self._partitions, self._totals, strict=True)
        ]
        self._receivers = [
            number for number, name in enumerate(self._partitions) if name not in wanted
        ] or list(range(len(self._partitions)))
        self._sources = [
            tuple(replace(source, monitor=monitor) for monitor in monitors_of(source, system.mode))
            for source in self.given.sources
        ]
        trades = 1 + len(TRADES) * len(self._receivers) if any(self._spare) else 1
        self.dimensions = (
            Dimension(factorial(len(self._partitions) - 1), "order"),
            Dimension(len(SCALES), "ordered"),
            Dimension(trades, "any"),
            *(Dimension(len(SPLITS), "ordered") for _ in self._partitions),
            *(Dimension(len(options), "ordered") for options in self._sources),
        )

    @property
    def count(self) -> int:
        """How many candidates there are."""
        return prod(dimension.size for dimension in self.dimensions)

    def choice(self, number: int) -> Choice:
        """Return the candidate of a number from 0 to count - 1; the last dimension runs fastest."""
        values = []
        for dimension in reversed(self.dimensions):
            number, value = divmod(number, dimension.size)
            values.append(value)
        return tuple(reversed(values))

    def sample(self, random: Random) -> Choice:
        """Draw a candidate.

        Every second one has only the loosest monitors, or none, where the best ones often are: a
        source is to be interposed whenever it may arrive, or its deadline does not need it.
        """
        choice = [random.randrange(dimension.size) for dimension in self.dimensions]
        if random.randrange(2):
            for at in range(len(choice) - len(self._sources), len(choice)):
                choice[at] = random.choice((0, self.dimensions[at].size - 1))
        return tuple(choice)

    def near(self, choice: Choice) -> Iterator[Choice]:
        """Give every candidate that differs by one step in one dimension, in a fixed order."""
        for at, (dimension, value) in enumerate(zip(self.dimensions, choice, strict=True)):
            for other in self._near(dimension, value):
                yield (*choice[:at], other, *choice[at + 1 :])

    def _near(self, dimension: Dimension, value: int) -> Iterator[int]:
        if dimension.kind == "order":
            order = permutation(value, len(self._partitions) - 1)
            for first in range(len(order)):
                for second in range(first + 1, len(order)):
                    swapped = list(order)
                    swapped[first], swapped[second] = order[second], order[first]
                    yield permutation_number(swapped)
        elif dimension.kind == "any":
            yield from (other for other in range(dimension.size) if other != value)
        else:
            yield from (other for other in (value - 1, value + 1) if 0 <= other < dimension.size)

    def parts(self, choice: Choice | None) -> tuple[tuple[Slot, ...], tuple[Source, ...]]:
        """Return the slots and the sources of a candidate; None is the system as it was given.

        They make a system if every slot is longer than the slot switch.
        """
        if choice is None:
            return self.given.slots, self.given.sources
        count = len(self._partitions)
        order, scale, trade = choice[:3]
        splits, monitors = choice[3 : 3 + count], choice[3 + count :]
        sources = tuple(
            options[value] for options, value in zip(self._sources, monitors, strict=True)
        )
        return self._slots(order, SCALES[scale], trade, [SPLITS[each] for each in splits]), sources

    def _slots(
        self, order: int, scale: Fraction, trade: int, splits: list[int]
    ) -> tuple[Slot, ...]:
        common = gcd(*splits)  # a cycle of equal parts is such a part
        parts_of = tuple(each // common for each in splits)
        lengths = [
            _split(max(1, round(total * scale / common)), parts)
            for total, parts in zip(self._traded(trade), parts_of, strict=True)
        ]
        ranked = (0, *(1 + each for each in permutation(order, len(self._partitions) - 1)))
        return tuple(
            Slot(self._partitions[number], next(lengths[number]))
            for number in spread(ranked, parts_of)
        )

    def _traded(self, trade: int) -> list[int]:
        """Return the time of each partition in a cycle after some of it changed hands."""
        if trade == 0:
            return self._totals
        receiver, level = divmod(trade - 1, len(TRADES))
        to = self._receivers[receiver]
        given = [
            0 if number == to else int(spare * TRADES[level])
            for number, spare in enumerate(self._spare)
        ]
        traded = [total - less for total, less in zip(self._totals, given, strict=True)]
        traded[to] += sum(given)
        return traded


def analysed(system: System) -> System:
    """Return a system with the same bounds in which observed distances stand for traces."""
    sources = tuple(
        replace(source, arrival=Distances(observed_distances(source.arrival)))
        if isinstance(source.arrival, RecordedTrace)
        else source
        for source in system.sources
    )
    return replace(system, sources=sources)


@lru_cache(maxsize=4096)
def spread(ranked: tuple[int, ...], splits: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of slots in a cycle, each partition's own as far apart as can be.

    The cycle is as many rounds as the partition with the most slots has. Each partition takes part
    in evenly spaced rounds, beginning where that leaves the rounds most alike. In each round those
    with more slots come first, then those that come first in the order.

    Args:
        ranked: The partitions in their order.
        splits: How many slots each has, by partition.
    """
    rounds: list[list[int]] = [[] for _ in range(max(splits))]
    for number in sorted(ranked, key=lambda each: -splits[each]):
        places = [part * len(rounds) // splits[number] for part in range(splits[number])]
        start = min(
            range(len(rounds)),
            key=lambda start: sorted(
                (len(rounds[(start + place) % len(rounds)]) for place in places), reverse=True
            ),
        )
        for place in places:
            rounds[(start + place) % len(rounds)].append(number)
    return tuple(number for each in rounds for number in each)


def _split(total_ns: int, parts: int) -> Iterator[int]:
    """Give equal parts; what does not divide makes the first ones longer by 1 ns."""
    each, rest = divmod(total_ns, parts)
    return iter([each + (part < rest) for part in range(parts)])


def permutation(number: int, size: int) -> list[int]:
    """Return a permutation of 0 .. size - 1 by its number; 0 is the ascending one."""
    left = list(range(size))
    found = []
    for remaining in range(size - 1, -1, -1):
        at, number = divmod(number, factorial(remaining))
        found.append(left.pop(at))
    return found


def permutation_number(order: list[int]) -> int:
    """Return the number of a permutation."""
    number = 0
    for at, value in enumerate(order):
        smaller = sum(later < value for later in order[at + 1 :])
        number += smaller * factorial(len(order) - 1 - at)
    return number


def monitors_of(source: Source, mode: str) -> tuple[Monitor | None, ...]:
    """Return the monitors that a source may have, the loosest first; no interposing comes last.

    Of the given vector, of the arrivals' own minimum distances, and for both of the one distance
    that allows the same rate without bursts: the multiples of `STRICTER`. Vectors looser than the
    arrivals would grant nothing more. A source without a monitor gets none, and in mode plain
    monitors do nothing.
    """
    if source.monitor is None or mode == "plain":
        return (source.monitor,)
    given = source.monitor.distances_ns
    arrivals = _arrival_distances(source)
    bases = [(given, STRICTER)]
    if arrivals and arrivals[0] > 0:
        bases.append((arrivals, STRICTER))
    else:
        bases.append((given, LOOSER))
    bases += [((ceil(Fraction(base[-1], len(base))),), STRICTER) for base, _ in bases]
    vectors = {
        tuple(ceil(distance * factor) for distance in base)
        for base, factors in bases
        for factor in factors
    }
    fitting = [vector for vector in vectors if vector[-1] <= LONGEST_NS]
    return (*map(Monitor, sorted(fitting, key=_strictness)), None)


def _strictness(vector: tuple[int, ...]) -> tuple[Fraction, tuple[int, ...]]:
    """Order vectors by the rate that they allow in the long run, then by their bursts."""
    return max(Fraction(each, at + 1) for at, each in enumerate(vector)), vector


def _arrival_distances(source: Source) -> tuple[int, ...] | None:
    """Return the minimum distances that a source's arrivals keep, if any."""
    arrival = source.arrival
    if isinstance(arrival, Periodic):
        length = min(_MOST_OF_PERIODIC, 1 + 2 * (arrival.jitter_ns // arrival.period_ns))
    elif isinstance(arrival, Distances):
        length = len(arrival.distances_ns)
    else:
        length = arrival.length if isinstance(arrival, RecordedTrace) else 1
    model = event_model(arrival)
    if isinstance(model, _core.Unlimited):
        return None
    return tuple(model.delta(events + 2) for events in range(length))
