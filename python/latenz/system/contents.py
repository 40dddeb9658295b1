"""What a system consists of: slots, sources, what they cost, and how they are treated.

Names follow beckert2014, sections 3 to 5: a *top handler* runs at once in the hypervisor (C_TH), a
*bottom handler* later in its partition (C_BH), in a foreign slot only if a *monitor* of minimum
distances allows it.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from latenz.errors import shown
from latenz.system.arrivals import Arrival, Exponential, Monitor, whole_vector
from latenz.system.channels import Channel
from latenz.system.fields import LONGEST_NS, BadField, check_name, check_whole, fits_as_name
from latenz.system.hosting import (
    FIRST_INTERRUPT,
    LAST_INTERRUPT,
    USUAL_INTERRUPT,
    Learning,
    Partition,
    SharedMemory,
)

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
        sums = whole_vector(self, "top_sums_ns", "sums", "more top handlers cannot take less")
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
class Contents:
    """What a system has: a `System` is one in which nothing contradicts itself.

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
