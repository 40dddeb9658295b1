"""Whether what a system consists of fits together: channels, memory, interrupts, processors."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from latenz.errors import closest
from latenz.system.channels import Channel
from latenz.system.contents import Contents
from latenz.system.fields import BadField
from latenz.system.hosting import (
    CONSOLE_INTERRUPT,
    GUEST_MEMORY,
    LAST_PROCESSOR,
    MACHINE,
    PROGRAMS,
    Partition,
)
from latenz.system.processors import processor_of, shared_processors, slots_of


def check_channels(system: Contents) -> None:
    """Tell what contradicts itself in a system's channels, if anything.

    Raises:
        BadField: A name is taken or unknown, or a doorbell cannot be one.
    """
    names: list[str] = []
    for at, channel in enumerate(system.channels):
        if channel.name in names:
            what = f"a second one is named {channel.name!r}"
            raise BadField(system, ("channels", at, "name"), what, "give each its own name")
        names.append(channel.name)
        for attribute in ("sender", "receiver"):
            _check_end(system, at, attribute, getattr(channel, attribute))
        _check_processor(system, at, channel)
        _check_doorbell(system, at, channel)


def _check_processor(system: Contents, at: int, channel: Channel) -> None:
    """Check that the two share a processor: a doorbell is rung where it interrupts."""
    sender, receiver = (processor_of(system, x) for x in (channel.sender, channel.receiver))
    if sender != receiver:
        what = f"{channel.sender!r} has processor {sender}, {channel.receiver!r} {receiver}"
        remedy = "both ends of a channel share one; others take [[shared]] memory"
        raise BadField(system, ("channels", at, "sender"), what, remedy)


def _check_end(system: Contents, at: int, attribute: str, name: str) -> None:
    if name in system.partitions:
        return
    place = ("channels", at, attribute)
    if any(each.name == name for each in system.hosted):
        what = f"{name!r} has no slot"
        raise BadField(system, place, what, "both ends need one; others take [[shared]] memory")
    raise BadField(system, place, f"{name!r} is not a partition", closest(name, system.partitions))


def _check_doorbell(system: Contents, at: int, channel: Channel) -> None:
    place = ("channels", at, "doorbell")
    own = channel.doorbell
    number = _number(own, (each.name for each in system.sources))
    if number is None:
        remedy = closest(own, [each.name for each in system.sources])
        raise BadField(system, place, f"{own!r} is not a source", remedy)
    source = system.sources[number]
    if source.partition != channel.receiver:
        what = f"{own!r} is a source of {source.partition!r}"
        raise BadField(system, place, what, f"take one of {channel.receiver!r}")
    if _number(own, (each.doorbell for each in system.channels[:at])) is not None:
        what = f"{own!r} is another channel's"
        raise BadField(system, place, what, "give each its own source")
    if system.is_device(number):
        raise BadField(system, place, f"{own!r} is a device's", "take another source")
    if source.is_unlimited:
        what = f"{own!r} may ring at any rate"
        raise BadField(system, place, what, "give its arrival a min_distance, or another kind")


def _number(name: str, names: Iterable[str]) -> int | None:
    return next((at for at, each in enumerate(names) if each == name), None)


class _Range(NamedTuple):
    """Guest physical addresses, and where they stand in the system."""

    what: str
    begin: int
    end: int
    place: tuple[str | int, ...]


def check_hosting(system: Contents) -> None:
    """Tell what the hypervisor could not host of a system, if anything.

    Raises:
        BadField: Names, processors, addresses or interrupts contradict each other.
    """
    named = any(each.interrupt for each in system.sources)
    if not (system.hosted or system.shared or system.channels or named):
        return
    _check_names(system)
    _check_processors(system)
    for at in range(len(system.hosted)):
        _check_watchdog(system, at)
    for name in (*system.partitions, *(each.name for each in system.hosted)):
        _check_ranges(system, name)
    _check_interrupts(system)


def _check_names(system: Contents) -> None:
    groups: dict[str, Sequence[Any]] = {"hosted": system.hosted, "shared": system.shared}
    for attribute, group in groups.items():
        names = [each.name for each in group]
        for at, name in enumerate(names):
            if name in names[:at]:
                what = f"a second one is named {name!r}"
                raise BadField(system, (attribute, at, "name"), what, "give each its own name")
    known = dict.fromkeys([*system.partitions, *(each.name for each in system.hosted)])
    for at, memory in enumerate(system.shared):
        for position, name in enumerate(memory.partitions):
            if name not in known:
                place = ("shared", at, "partitions", position)
                raise BadField(system, place, f"{name!r} is not a partition", closest(name, known))


def _check_processors(system: Contents) -> None:
    """Check that partitions share processors by slots only; unlisted ones have processor 0."""
    shared = set(shared_processors(system))
    taken: dict[int, str] = {}
    for at, partition in enumerate(system.hosted):
        if partition.name in system.partitions:
            continue
        place = ("hosted", at, "cpu")
        if not partition.cpu:
            what = f"{partition.name!r} has neither a slot nor a processor of its own"
            raise BadField(system, place, what, f"give it a slot or cpu = 1 to {LAST_PROCESSOR}")
        if partition.cpu in shared:
            what = f"{partition.name!r} has no slot on processor {partition.cpu}, which has slots"
            raise BadField(system, place, what, "give it a slot, or a processor without any")
        if partition.cpu in taken:
            what = f"{taken[partition.cpu]!r} has processor {partition.cpu} for itself"
            raise BadField(system, place, what, "give each its own, or slots")
        taken[partition.cpu] = partition.name


def _check_ranges(system: Contents, name: str) -> None:
    """Check that nothing lies over something else in what a guest sees."""
    found = sorted(_ranges(system, name), key=lambda each: each.begin)
    for below, above in pairwise(found):
        if above.begin < below.end:
            later, earlier = (above, below) if above.place else (below, above)
            what = (
                f"{later.begin:#x} to {later.end - 1:#x} lies over {earlier.what} of {name!r}, "
                f"{earlier.begin:#x} to {earlier.end - 1:#x}"
            )
            raise BadField(system, later.place, what, "choose other addresses")


def _ranges(system: Contents, name: str) -> Iterator[_Range]:
    for what, begin, end in MACHINE:
        yield _Range(what, begin, end, ())
    partition = next((each for each in system.hosted if each.name == name), Partition(name))
    yield _Range("the memory", GUEST_MEMORY, GUEST_MEMORY + partition.memory, ())
    for at, hosted in enumerate(system.hosted):
        for number, device in enumerate(hosted.devices if hosted.name == name else ()):
            place = ("hosted", at, "devices", number, "physical")
            yield _Range("a device", device.physical, device.physical + device.size, place)
    for at, memory in enumerate(system.shared):
        if name in memory.partitions:
            end = memory.address + memory.size
            yield _Range("shared memory", memory.address, end, ("shared", at, "address"))
    for at, channel in enumerate(system.channels):
        if name in (channel.sender, channel.receiver):
            end = channel.address + channel.size
            yield _Range("a channel", channel.address, end, ("channels", at, "address"))


def _check_interrupts(system: Contents) -> None:
    """Check that each interrupt has one owner: devices on the board, sources at their guest."""
    owners: dict[int, str] = {}
    pages: list[tuple[int, int, str]] = []
    for at, partition in enumerate(system.hosted):
        for number, device in enumerate(partition.devices):
            place = ("hosted", at, "devices", number)
            for position, interrupt in enumerate(device.interrupts):
                if interrupt in owners:
                    what = f"{interrupt} belongs to {owners[interrupt]!r} already"
                    remedy = "an interrupt has one owner"
                    raise BadField(system, (*place, "interrupts", position), what, remedy)
                owners[interrupt] = partition.name
            end = device.physical + device.size
            for begin, behind, owner in pages:
                if device.physical < behind and begin < end:
                    what = f"{device.physical:#x} belongs to {owner!r} already"
                    raise BadField(system, (*place, "physical"), what, "a device has one owner")
            pages.append((device.physical, end, partition.name))
    _check_source_interrupts(system, owners)


def _check_source_interrupts(system: Contents, owners: dict[int, str]) -> None:
    taken: dict[tuple[str, int], str] = {}
    for at, source in enumerate(system.sources):
        interrupt = system.interrupt_of(at)
        place = ("sources", at, "interrupt")
        key = (source.partition, interrupt)
        if interrupt == CONSOLE_INTERRUPT:
            what = f"{interrupt} is the interrupt of every guest's console"
            raise BadField(system, place, what, "take another number")
        if key in taken:
            what = f"{interrupt} is the interrupt of {taken[key]!r} of {source.partition!r} already"
            raise BadField(system, place, what, "take another number")
        if owners.get(interrupt) == source.partition:
            _check_device_of_source(system, at)
        taken[key] = source.name


def _check_device_of_source(system: Contents, at: int) -> None:
    """Check that a device is meant to raise a source's interrupts, and that its guest knows it."""
    source = system.sources[at]
    place = ("sources", at, "interrupt")
    if source.interrupt is None:
        number = system.interrupt_of(at)
        what = f"{number}, its usual number, is the interrupt of a device of {source.partition!r}"
        raise BadField(system, place, what, "take another one, or write it if it is the device's")
    guest = next(each.guest for each in system.hosted if each.name == source.partition)
    if guest in PROGRAMS:
        what = f"{source.interrupt} is the interrupt of a device, which {guest!r} does not know"
        remedy = "give the partition a guest that drives it, or take another number"
        raise BadField(system, place, what, remedy)


def _check_watchdog(system: Contents, at: int) -> None:
    """Tell why the hypervisor could not look at a partition's watchdog in time, if it could not.

    Args:
        system: Whose partition it is.
        at: Its place among those that are hosted.

    Raises:
        BadField: The partition has no slot, or its slots begin further apart than the watchdog.
    """
    partition = system.hosted[at]
    if not partition.watchdog_ns:
        return
    place = ("hosted", at, "watchdog_ns")
    starts_ns, begin_ns = [], 0
    for slot in slots_of(system, partition.cpu):
        if slot.partition == partition.name:
            starts_ns.append(begin_ns)
        begin_ns += slot.length_ns
    if not starts_ns:
        what = f"a watchdog is looked at when slots begin, and {partition.name!r} has none"
        raise BadField(system, place, what, "leave it out")
    behind_ns = [*starts_ns[1:], starts_ns[0] + begin_ns]
    apart_ns = max(after - before for before, after in zip(starts_ns, behind_ns, strict=True))
    if partition.watchdog_ns < apart_ns:
        what = f"{partition.watchdog_ns} ns is shorter than from one of its slots to the next"
        raise BadField(system, place, what, f"write at least {apart_ns} ns")
