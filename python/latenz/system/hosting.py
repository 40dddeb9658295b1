"""What the hypervisor puts into the partitions of a system: guests, memory, devices.

Analyses and the simulator do without it. Guests see the machine of
core/include/latenz/guest_machine.hpp.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from latenz.errors import closest, shown
from latenz.system.fields import BadField, check_name, check_whole, whole_number
from latenz.system.health import OnFault, check_health, check_watchdog
from latenz.system.processors import shared_processors

if TYPE_CHECKING:
    from latenz.system.model import System

PAGE = 1 << 12
"""Devices and shared memory come in pages."""
BLOCK = 1 << 21
"""Memory of partitions comes in blocks of 2 MiB."""
GUEST_MEMORY = 0x4000_0000
"""Where a guest's memory begins for it."""
GUEST_END = 0x8_0000_0000
"""First address that no guest's memory or device reaches."""
FIRST_INTERRUPT, LAST_INTERRUPT = 32, 1019
"""Numbers of interrupts at the guest that are not its processor's own."""
USUAL_INTERRUPT = 64
"""Number of the first source's interrupt at its guest."""
CONSOLE_INTERRUPT = 33
"""What a guest's console raises."""
LAST_PROCESSOR = 3
"""Boards have four processors."""
_MOST_EVENTS = 2**32 - 1
_LONGEST_VECTOR = 64
_LONGEST_PATH = 4096
_MOST_MEMORY = GUEST_END - GUEST_MEMORY

PROGRAMS = ("worker", "victim")
"""Guests that come with Latenz: `worker` executes the bottom handlers of its partition's sources
for as long as the system says and sleeps in between; `victim` counts in between instead."""

MACHINE = (
    ("the interrupt controller", 0x0800_0000, 0x0802_0000),
    ("the console", 0x0900_0000, 0x0900_1000),
    ("the hypervisor's pages", 0x0B00_0000, 0x0B01_0000),
)
"""What every guest finds at fixed addresses: name, first address, first address behind it."""


@dataclass(frozen=True, slots=True)
class Learning:
    """A learning phase as in the appendix of beckert2014, at the hypervisor.

    Attributes:
        events: The source's first interrupts, which are learned from; at least 2. Until they have
            come nothing is interposed.
        length: How many minimum distances to learn, 1 to 64. What was learned is raised to the
            monitor's own distances (Algorithm 2).
    """

    events: int
    length: int

    def __post_init__(self) -> None:
        check_whole(self, "events", 2, _MOST_EVENTS, "")
        check_whole(self, "length", 1, _LONGEST_VECTOR, "")


@dataclass(frozen=True, slots=True)
class Device:
    """Registers of a device that a guest has for itself, at their physical address.

    Attributes:
        physical: Address of the first page.
        size: Bytes, a multiple of 4096.
        interrupts: Numbers of its interrupts, at the board's interrupt controller and the guest's.
        edge: Whether each interrupt is a rising edge of its line; else it lasts as long as the
            line's level is high.
    """

    physical: int
    size: int
    interrupts: tuple[int, ...] = ()
    edge: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "interrupts", tuple(self.interrupts))
        check_multiple(self, "physical", 0, GUEST_END - PAGE, PAGE)
        check_multiple(self, "size", PAGE, GUEST_END - self.physical, PAGE)
        if not isinstance(self.edge, bool):
            raise BadField(self, ("edge",), f"{shown(self.edge)} is not true or false", "true")
        for at, interrupt in enumerate(self.interrupts):
            place = ("interrupts", at)
            whole_number(self, place, interrupt, FIRST_INTERRUPT, LAST_INTERRUPT, "")
            if interrupt == CONSOLE_INTERRUPT:
                what = f"{interrupt} is the interrupt of every guest's console"
                raise BadField(self, place, what, "leave it out")


@dataclass(frozen=True, slots=True)
class Partition:
    """What the hypervisor puts into a partition.

    Attributes:
        name: Of the partition: one that owns slots, or one that has a processor for itself.
        guest: One of `PROGRAMS`, or the path of a raw binary or an ELF file. In a system file it
            is relative to the file.
        memory: Bytes, a multiple of 2 MiB.
        cpu: The processor. Partitions with slots share theirs by them; one without slots has it
            for itself, and it is not 0.
        on_fault: What becomes of a guest that does what it may not do.
        devices: Devices that it has for itself.
        restarts: After so many restarts by faults it is stopped, though they restart it.
        restart_window_ns: `restarts` are those of any such time; 0: those of the whole run.
        watchdog_ns: How long its progress may stay the same; 0: as long as it likes.
        on_watchdog: What becomes of it then; None: as of a fault.
    """

    name: str
    guest: str = "worker"
    memory: int = 4 * BLOCK
    cpu: int = 0
    on_fault: OnFault = "stop"
    devices: tuple[Device, ...] = ()
    restarts: int = 10
    restart_window_ns: int = 0
    watchdog_ns: int = 0
    on_watchdog: OnFault | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "devices", tuple(self.devices))
        check_name(self, "name")
        guest = self.guest
        if not (isinstance(guest, str) and guest.isprintable() and 0 < len(guest) < _LONGEST_PATH):
            what = f"{shown(guest)} is not a guest"
            raise BadField(self, ("guest",), what, 'write "worker", "victim" or a path')
        check_multiple(self, "memory", BLOCK, _MOST_MEMORY, BLOCK)
        check_whole(self, "cpu", 0, LAST_PROCESSOR, "")
        check_health(self)
        for at, device in enumerate(self.devices):
            if not isinstance(device, Device):
                raise BadField(self, ("devices", at), f"{shown(device)} is not a device", "Device")


@dataclass(frozen=True, slots=True)
class SharedMemory:
    """Memory that several partitions may read and write.

    Attributes:
        name: Its own.
        size: Bytes, a multiple of 4096.
        partitions: Names of those that see it, at least two.
        address: Where they all see it.
    """

    name: str
    size: int
    partitions: tuple[str, ...]
    address: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "partitions", tuple(self.partitions))
        check_name(self, "name")
        check_multiple(self, "address", 0, GUEST_END - PAGE, PAGE)
        check_multiple(self, "size", PAGE, GUEST_END - self.address, PAGE)
        if len(set(self.partitions)) < 2:
            what = f"{len(set(self.partitions))} partition cannot share"
            raise BadField(self, ("partitions",), what, "name two or more")
        for at, name in enumerate(self.partitions):
            if name in self.partitions[:at]:
                what = f"{name!r} is named twice"
                raise BadField(self, ("partitions", at), what, "name each once")


def check_multiple(owner: object, attribute: str, least: int, most: int, step: int) -> None:
    """Make an attribute a plain integer, a multiple of the step in the range, or tell why not."""
    given = getattr(owner, attribute)
    value = whole_number(owner, (attribute,), given, least, most, " bytes")
    if value % step:
        unit = "2 MiB" if step == BLOCK else "4 KiB"
        what = f"{value:#x} is not a multiple of {unit}"
        raise BadField(owner, (attribute,), what, f"write for example {value // step * step:#x}")
    object.__setattr__(owner, attribute, value)


class _Range(NamedTuple):
    """Guest physical addresses, and where they stand in the system."""

    what: str
    begin: int
    end: int
    place: tuple[str | int, ...]


def check_hosting(system: "System") -> None:
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
        check_watchdog(system, at)
    for name in (*system.partitions, *(each.name for each in system.hosted)):
        _check_ranges(system, name)
    _check_interrupts(system)


def _check_names(system: "System") -> None:
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


def _check_processors(system: "System") -> None:
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


def _check_ranges(system: "System", name: str) -> None:
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


def _ranges(system: "System", name: str) -> Iterator[_Range]:
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


def _check_interrupts(system: "System") -> None:
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


def _check_source_interrupts(system: "System", owners: dict[int, str]) -> None:
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


def _check_device_of_source(system: "System", at: int) -> None:
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
