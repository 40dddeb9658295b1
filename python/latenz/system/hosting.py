"""What the hypervisor puts into the partitions of a system: guests, memory, devices.

Analyses and the simulator do without it. Guests see the machine of
core/include/latenz/guest_machine.hpp.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from latenz.errors import shown
from latenz.system.fields import BadField, check_name, check_whole, whole_number

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
OnFault = Literal["stop", "restart", "report"]
"""What becomes of a guest's fault: it is stopped, restarted, or told of the failed access."""
MOST_TIMED_RESTARTS = 16
"""The hypervisor remembers the times of so many."""
_MOST_RESTARTS = 2**32 - 1
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
        _check_health(self)
        for at, device in enumerate(self.devices):
            if not isinstance(device, Device):
                raise BadField(self, ("devices", at), f"{shown(device)} is not a device", "Device")


def _check_health(partition: Partition) -> None:
    """Tell what is wrong with a partition's row of the health table, if anything.

    Raises:
        BadField: A reaction, a count or a time is none, or they contradict each other.
    """
    for name in ("on_fault", "on_watchdog"):
        wanted = getattr(partition, name)
        if wanted not in get_args(OnFault) and not (name == "on_watchdog" and wanted is None):
            what = f"{shown(wanted)} is not a valid on_fault"
            raise BadField(partition, (name,), what, " or ".join(get_args(OnFault)))
    check_whole(partition, "restarts", 0, _MOST_RESTARTS, "")
    check_whole(partition, "restart_window_ns", 0)
    check_whole(partition, "watchdog_ns", 0)
    if partition.restart_window_ns and partition.restarts > MOST_TIMED_RESTARTS:
        what = f"of {partition.restarts} restarts within a time not all are remembered"
        remedy = f"write at most {MOST_TIMED_RESTARTS}, or leave the window out"
        raise BadField(partition, ("restarts",), what, remedy)
    if partition.restart_window_ns and "restart" not in (partition.on_fault, partition.on_watchdog):
        what = "nothing restarts the guest"
        raise BadField(partition, ("restart_window_ns",), what, 'write on_fault = "restart"')
    if partition.on_watchdog and not partition.watchdog_ns:
        what = "there is no watchdog"
        raise BadField(partition, ("on_watchdog",), what, 'give its time, such as watchdog = "1 s"')


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
