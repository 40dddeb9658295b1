"""A system: partitions that own TDMA slots, and interrupt sources with their handlers.

All times are integers in nanoseconds. Every object is checked when it is built and never changes;
a mistake is a `latenz.errors.BadInput` that names the attribute. Building is part of every
analysis, so valid objects pass one fast comparison each, and only the others are looked at field
by field.

Names follow beckert2014, sections 3 to 5: a *top handler* runs at once in the hypervisor (C_TH), a
*bottom handler* later in its partition (C_BH), in a foreign slot only if a *monitor* of minimum
distances allows it.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from latenz.errors import closest, shown
from latenz.system.channels import Channel, check_channels
from latenz.system.fields import LONGEST_NS as LONGEST_NS
from latenz.system.fields import BadField, check_name, check_whole, fits_as_name, whole_number
from latenz.system.hosting import (
    FIRST_INTERRUPT,
    LAST_INTERRUPT,
    USUAL_INTERRUPT,
    Learning,
    Partition,
    SharedMemory,
    check_hosting,
)
from latenz.system.processors import check_one_processor

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LONGEST_VECTOR = 64
"""The most entries that a vector of minimum distances has."""
_LARGEST_SEED = 2**63 - 1

Mode = Literal["plain", "paper", "carry"]
"""How interrupts that arrive in a slot of another partition are handled.

`plain`: TDMA only; bottom handlers run in their own partition's slots.
`paper`: as published; one that its monitor grants is interposed at once.
`carry`: the monitor sees every interrupt of its source, and an accepted one that is still pending
at the end of its own slot is interposed then.
"""

LatencyFrom = Literal["arrival", "top"]
"""Where a latency begins: at the arrival, or at the start of the top handler. It ends with the
bottom handler."""


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


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of the TDMA cycle.

    Attributes:
        partition: Who owns it; a partition may own several.
        length_ns: At least 1; the slot switch at its start is part of it.
    """

    partition: str
    length_ns: int

    def __post_init__(self) -> None:
        partition, length = self.partition, self.length_ns
        if not (
            length.__class__ is int
            and 0 < length <= LONGEST_NS
            and partition.__class__ is str
            and fits_as_name(partition)
        ):
            self._check()

    def _check(self) -> None:
        check_name(self, "partition")
        check_whole(self, "length_ns", 1)


@dataclass(frozen=True, slots=True)
class Source:
    """A source of interrupts.

    Attributes:
        name: Its own.
        partition: Whose slots its bottom handler runs in.
        top_ns: C_TH, the worst case of the top handler, at least 0.
        bottom_ns: C_BH, the worst case of the bottom handler, at least 1.
        arrival: When its interrupts arrive.
        monitor: Lets them be interposed in foreign slots; None: never.
        interrupt: Its number at the guest's interrupt controller under the hypervisor, 32 to
            1019; None: 64 for the first source, 65 for the second, and so on.
        learning: What the hypervisor learns before it switches the monitor on; None: nothing.
        top_sums_ns: The longest that 1, 2, 3, ... consecutive top handlers take together, 1 to 64
            entries, none below the one before it, the first being `top_ns`. More take no more than
            rows that they are made of; a sum that exceeds that counts as it. None: each top
            handler may take `top_ns`.
    """

    name: str
    partition: str
    top_ns: int
    bottom_ns: int
    arrival: Arrival
    monitor: Monitor | None = None
    interrupt: int | None = None
    learning: Learning | None = None
    top_sums_ns: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        name, partition, top, bottom = self.name, self.partition, self.top_ns, self.bottom_ns
        if not (
            top.__class__ is bottom.__class__ is int
            and 0 <= top <= LONGEST_NS
            and 0 < bottom <= LONGEST_NS
            and name.__class__ is partition.__class__ is str
            and fits_as_name(name)
            and fits_as_name(partition)
            and self.arrival.__class__ in _ARRIVALS
            and self.interrupt is None
            and self.learning is None
            and self.top_sums_ns is None
        ):
            self._check()

    @property
    def is_unlimited(self) -> bool:
        """Whether its interrupts may arrive at any rate."""
        return isinstance(self.arrival, Exponential) and self.arrival.min_distance_ns == 0

    def _check(self) -> None:
        check_name(self, "name")
        check_name(self, "partition")
        check_whole(self, "top_ns", 0)
        check_whole(self, "bottom_ns", 1)
        if not isinstance(self.arrival, Arrival):
            kinds = ", ".join(kind.__name__ for kind in _ARRIVALS)
            raise BadField(self, ("arrival",), f"{shown(self.arrival)} is not an arrival", kinds)
        if self.interrupt is not None:
            check_whole(self, "interrupt", FIRST_INTERRUPT, LAST_INTERRUPT, "")
        self._check_learning()
        if self.top_sums_ns is not None:
            self._check_sums()

    def _check_sums(self) -> None:
        sums = _whole_vector(self, "top_sums_ns", "sums", "more top handlers cannot take less")
        if sums[0] != self.top_ns:
            what = f"begins with {sums[0]} ns, but one top handler takes {self.top_ns} ns"
            remedy = "the sums are those of 1, 2, 3, ... top handlers: begin with top"
            raise BadField(self, ("top_sums_ns", 0), what, remedy)

    def _check_learning(self) -> None:
        if self.learning is None:
            return
        if not isinstance(self.learning, Learning):
            what = f"{shown(self.learning)} is not a learning phase"
            raise BadField(self, ("learning",), what, "Learning")
        if self.monitor is None:
            remedy = "give a monitor; its distances are those that are allowed, whatever is learned"
            raise BadField(self, ("learning",), "there is no monitor that could learn", remedy)
        if self.learning.length < len(self.monitor.distances_ns):
            remedy = f"learn at least {len(self.monitor.distances_ns)}, as many as it has"
            what = "is less than the monitor has distances"
            raise BadField(self, ("learning", "length"), what, remedy)


_ARRIVALS: tuple[type, ...] = get_args(Arrival)


@dataclass(frozen=True, slots=True)
class Platform:
    """What the hypervisor itself costs, each at least 0.

    Attributes:
        slot_switch_ns: Paid at the start of every slot.
        monitor_ns: C_Mon, added to the top handler of a monitored source.
        schedule_ns: C_sched, paid once by each interposed bottom handler.
        context_switch_ns: C_ctx, paid twice by each interposed bottom handler.
        limit_ns: C_lim, paid whenever a source that exceeds its event model is masked.
    """

    slot_switch_ns: int = 0
    monitor_ns: int = 0
    schedule_ns: int = 0
    context_switch_ns: int = 0
    limit_ns: int = 0

    def __post_init__(self) -> None:
        switch, monitor = self.slot_switch_ns, self.monitor_ns
        schedule, context = self.schedule_ns, self.context_switch_ns
        limit = self.limit_ns
        if not (
            switch.__class__ is monitor.__class__ is schedule.__class__ is context.__class__
            and context.__class__ is limit.__class__ is int
            and 0 <= switch <= LONGEST_NS
            and 0 <= monitor <= LONGEST_NS
            and 0 <= schedule <= LONGEST_NS
            and 0 <= context <= LONGEST_NS
            and 0 <= limit <= LONGEST_NS
        ):
            self._check()

    def _check(self) -> None:
        for name in self.__dataclass_fields__:
            check_whole(self, name, 0)


@dataclass(frozen=True, slots=True)
class System:
    """Slots and sources on one processor, or on several that each have a cycle of their own.

    Attributes:
        platform: What the hypervisor costs.
        slots: One TDMA cycle in order, from time 0; each longer than the slot switch. Those of
            partitions that are hosted on another processor make its cycle (`processors.parts`).
        sources: At least one, no two of one name, each of a partition that has a slot. In this
            order arrivals at equal times are served.
        mode: How interrupts in foreign slots are handled.
        latency_from: Where latencies begin.
        hosted: What the hypervisor puts into partitions; those that are not listed are hosted as
            `Partition` does by default, on processor 0. A listed one without a slot has its
            processor for itself.
        shared: Memory that the hypervisor shows to several partitions.
        channels: From one partition to another, each with a doorbell among the sources.
    """

    platform: Platform
    slots: tuple[Slot, ...]
    sources: tuple[Source, ...]
    mode: Mode = "plain"
    latency_from: LatencyFrom = "arrival"
    hosted: tuple[Partition, ...] = ()
    shared: tuple[SharedMemory, ...] = ()
    channels: tuple[Channel, ...] = ()

    def __post_init__(self) -> None:
        if self.slots.__class__ is not tuple:
            object.__setattr__(self, "slots", tuple(self.slots))
        if self.sources.__class__ is not tuple:
            object.__setattr__(self, "sources", tuple(self.sources))
        object.__setattr__(self, "hosted", tuple(self.hosted))
        object.__setattr__(self, "shared", tuple(self.shared))
        object.__setattr__(self, "channels", tuple(self.channels))
        self._check_slots()
        self._check_sources()
        if self.mode not in _MODES:
            raise BadField(self, ("mode",), f"{shown(self.mode)} is not a mode", ", ".join(_MODES))
        if self.latency_from not in _LATENCIES_FROM:
            what = f"{shown(self.latency_from)} is no place where latencies begin"
            raise BadField(self, ("latency_from",), what, ", ".join(_LATENCIES_FROM))
        check_channels(self)
        check_hosting(self)

    @property
    def cycle_ns(self) -> int:
        """The length of one TDMA cycle.

        Raises:
            BadInput: Several processors have slots, each a cycle of its own.
        """
        if self.hosted:
            check_one_processor(self)
        return sum(slot.length_ns for slot in self.slots)

    @property
    def partitions(self) -> tuple[str, ...]:
        """The names of all partitions, in the order of their first slots."""
        return tuple(dict.fromkeys(slot.partition for slot in self.slots))

    def interrupt_of(self, source: int) -> int:
        """Return the number of a source's interrupt at its guest's interrupt controller."""
        interrupt = self.sources[source].interrupt
        return USUAL_INTERRUPT + source if interrupt is None else interrupt

    def is_device(self, source: int) -> bool:
        """Whether a source's interrupts come from a device that its partition has for itself."""
        own = self.sources[source]
        return any(
            own.interrupt in device.interrupts
            for partition in self.hosted
            if partition.name == own.partition
            for device in partition.devices
        )

    def is_raised_by_guest(self, source: int) -> bool:
        """Whether a guest decides when a source interrupts: by its device, or by a channel."""
        name = self.sources[source].name
        return self.is_device(source) or any(each.doorbell == name for each in self.channels)

    def _check_slots(self) -> None:
        switch_ns = self.platform.slot_switch_ns
        if not self.slots:
            raise BadField(self, ("slots",), "there is no slot", "give at least one")
        cycle_ns = 0
        for slot in self.slots:
            cycle_ns += slot.length_ns
            if slot.length_ns <= switch_ns:
                raise BadField(
                    self,
                    ("slots", self.slots.index(slot), "length_ns"),
                    f"{slot.length_ns} ns is used up by the slot switch, {switch_ns} ns",
                    "a slot must be longer than that",
                )
        if cycle_ns > LONGEST_NS:
            what = "the TDMA cycle does not fit in 64 bits"
            raise BadField(self, ("slots",), what, "the longest is 292 years")

    def _check_sources(self) -> None:
        if not self.sources:
            raise BadField(self, ("sources",), "there is no source", "give at least one")
        platform = self.platform
        partitions = {slot.partition for slot in self.slots}
        longest_ns = LONGEST_NS - platform.monitor_ns - platform.schedule_ns
        longest_ns -= 2 * platform.context_switch_ns
        names = set()
        for source in self.sources:
            names.add(source.name)
            if source.partition not in partitions:
                raise BadField(
                    self,
                    ("sources", self.sources.index(source), "partition"),
                    f"{source.partition!r} has no slot for the bottom handler of {source.name!r}",
                    closest(source.partition, self.partitions),
                )
            if source.top_ns + source.bottom_ns > longest_ns:
                raise BadField(
                    self,
                    ("sources", self.sources.index(source), "bottom_ns"),
                    "top and bottom handler with the platform's costs do not fit in 64 bits",
                    "the longest is 292 years",
                )
        if len(names) < len(self.sources):
            raise self._twice()

    def _twice(self) -> BadField:
        names = [source.name for source in self.sources]
        at = next(at for at, name in enumerate(names) if name in names[:at])
        what = f"a second source is named {names[at]!r}"
        return BadField(self, ("sources", at, "name"), what, "give each its own name")


_MODES: tuple[str, ...] = get_args(Mode)
_LATENCIES_FROM: tuple[str, ...] = get_args(LatencyFrom)


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
    if _whole_vector(owner, "distances_ns", "distances", remedy)[-1] == 0:
        what = "every distance is 0, which limits nothing"
        raise BadField(owner, ("distances_ns",), what, "the last must be above 0")


def _whole_vector(
    owner: Distances | Monitor | Source, name: str, entries: str, if_less: str
) -> tuple[int, ...]:
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
