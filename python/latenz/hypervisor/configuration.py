"""The configuration block: hypervisor/src/core/configuration.hpp, byte by byte."""

import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from latenz import _core
from latenz.analysis.native import limit_of
from latenz.errors import BadInput
from latenz.hypervisor.guest import Program
from latenz.hypervisor.memory import CONFIGURATION, MEMORY_END, Region
from latenz.system import Mode, Partition, Source, System
from latenz.system.hosting import GUEST_MEMORY, PROGRAMS, Device, OnFault
from latenz.toml_file import Place

MAGIC = 0x5648_5A4E_4554_414C
VERSION = 8
MOST_PARTITIONS, MOST_SLOTS, MOST_SOURCES = 8, 64, 32
MOST_MAPPINGS, MOST_INTERRUPTS, MOST_DISTANCES = 32, 32, 1024
MOST_IMAGES = 4
MOST_CHANNELS = 16
_MOST_CPUS = 8
BOARDS = {"virt": 1, "zcu102": 2, "virt-gicv3": 3, "raspi4b": 4}
"""Numbers of boards by their benches, `BoardNumber`."""
MODES: tuple[Mode, ...] = ("plain", "paper", "carry")
ARRIVAL = struct.Struct("<Q2I")
TRACE_RECORD_BYTES = 24

_FRONT = struct.Struct("<Q3I")  # up to the checksum
_COUNTS = struct.Struct("<7I4Q2I")
_BOARD_AT = 80
_PARTITION = struct.Struct("<32s2I5Q" + "3Q" * MOST_IMAGES + "I2BH2Q")
_SLOT = struct.Struct("<2IQ")
_SOURCE = struct.Struct("<32s6I2Q2I2Q")
_MAPPING = struct.Struct("<2I3Q")
_INTERRUPT = struct.Struct("<I2H")
_DISTANCE = struct.Struct("<q")
_CHANNEL = struct.Struct("<32s2I2Q")
_CPU = struct.Struct("<2Q")
_TABLES = (
    (_PARTITION, MOST_PARTITIONS),
    (_SLOT, MOST_SLOTS),
    (_SOURCE, MOST_SOURCES),
    (_MAPPING, MOST_MAPPINGS),
    (_INTERRUPT, MOST_INTERRUPTS),
    (_DISTANCE, MOST_DISTANCES),
    (_CHANNEL, MOST_CHANNELS),
    (_CPU, _MOST_CPUS),
)
SIZE = _FRONT.size + _COUNTS.size + sum(entry.size * most for entry, most in _TABLES)

_SAYS_READY, _HAS_CONSOLE = 2, 4
_REACTIONS: tuple[OnFault, ...] = ("stop", "restart", "report")
_MONITORED, _IS_DEVICE, _BY_EDGE = 1, 2, 4
_WRITABLE, _DEVICE = 1, 2
_TRACE_ON = 1
_NAME_BYTES = 31  # and a zero

Where = Callable[[Place], str]
"""Tells file, line and key of a part of a system file."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What a processor with slots keeps of its run.

    Attributes:
        records: Of its trace the last so many are kept.
        least_cycles: TDMA cycles before its end, even if all is done earlier.
    """

    records: int
    least_cycles: int


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the parts of a system lie in physical memory.

    Attributes:
        arrivals: The list of interrupts.
        trace: What the hypervisor did: on each processor with slots, one after the other.
        memory: Of each partition.
        images: Of each partition: where its program's pieces wait to be copied.
        shared: Of each shared memory.
        channels: Of each channel.
    """

    arrivals: Region
    trace: Region
    memory: tuple[Region, ...]
    images: tuple[tuple[Region, ...], ...]
    shared: tuple[Region, ...]
    channels: tuple[Region, ...]


def hosted_partitions(system: System) -> tuple[Partition, ...]:
    """Return every partition as it is hosted: those with slots first, numbered as in `System`."""
    listed = {each.name: each for each in system.hosted}
    owners = [listed.pop(name, Partition(name)) for name in system.partitions]
    return (*owners, *listed.values())


def check_limits(system: System, where: Where) -> None:
    """Refuse what the configuration has no room for.

    Raises:
        BadInput: There is more of something than the hypervisor takes.
    """
    devices = [device for each in system.hosted for device in each.devices]
    distances = [len(each.monitor.distances_ns) for each in system.sources if each.monitor]
    distances += [len(limit_of(each.arrival).distances_ns) for each in system.sources]
    shared = sum(len(each.partitions) for each in system.shared) + 2 * len(system.channels)
    for key, what, count, most in (
        ("partition", "partitions", len(hosted_partitions(system)), MOST_PARTITIONS),
        ("slot", "slots", len(system.slots), MOST_SLOTS),
        ("source", "sources", len(system.sources), MOST_SOURCES),
        ("source", "distances of monitors and limits", sum(distances), MOST_DISTANCES),
        ("partition", "devices and views of memory", len(devices) + shared, MOST_MAPPINGS),
        ("channel", "channels", len(system.channels), MOST_CHANNELS),
        ("partition", "interrupts", sum(len(x.interrupts) for x in devices), MOST_INTERRUPTS),
    ):
        if count > most:
            place = where((key,))
            raise BadInput(f"{count} {what} are too many", place, f"the hypervisor takes {most}")


def configuration(
    system: System,
    mode: Mode,
    programs: tuple[Program, ...],
    placement: Placement,
    arrivals: int,
    kept: Mapping[int, Kept],
) -> bytes:
    """Return the block that the hypervisor reads.

    Args:
        system: Within the limits (`check_limits`).
        mode: How interrupts in foreign slots are handled.
        programs: Of each partition, in the order of `hosted_partitions`.
        placement: Where everything lies.
        arrivals: How many there are in the list.
        kept: Of each processor with slots.
    """
    hosted = hosted_partitions(system)
    numbers = {each.name: number for number, each in enumerate(hosted)}
    sources, distances = _sources(system, numbers)
    mappings = _mappings(system, numbers, placement)
    tables = (
        [
            _partition(system, each, program, placement.memory[number], placement.images[number])
            for number, (each, program) in enumerate(zip(hosted, programs, strict=True))
        ],
        [_SLOT.pack(numbers[slot.partition], 0, slot.length_ns) for slot in system.slots],
        sources,
        mappings,
        _interrupts(system, numbers),
        distances,
        _channels(system, numbers),
        _cpus(kept),
    )
    return _block(
        tables,
        MODES.index(mode),
        _TRACE_ON,
        (
            placement.arrivals.begin,
            arrivals,
            placement.trace.begin,
        ),
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """A partition that has a processor for itself, where there are no slots.

    Attributes:
        name: Its own.
        cpu: The processor.
        program: What it starts.
        argument: What its first instruction finds in x0.
        memory: Where its memory is.
        images: Where its program's pieces wait to be copied.
        has_console: Whether it has the emulated console; a device of its own may be there instead.
        devices: Devices that it has for itself.
    """

    name: str
    cpu: int
    program: Program
    argument: int
    memory: Region
    images: tuple[Region, ...]
    has_console: bool
    devices: tuple[Device, ...] = ()


def static_configuration(cells: Sequence[Cell]) -> bytes:
    """Return the block for partitions that have a processor each: no slots, no sources."""
    partitions = []
    for cell in cells:
        flags = _HAS_CONSOLE if cell.has_console else 0
        own = (cell.memory.begin, GUEST_MEMORY, cell.memory.size, cell.program.entry, cell.argument)
        stored = _stored(cell.program, cell.images)
        partitions.append(
            _PARTITION.pack(_name(cell.name), cell.cpu, flags, *own, *stored, 0, 0, 0, 0, 0, 0)
        )
    devices = [(number, device) for number, cell in enumerate(cells) for device in cell.devices]
    mappings = [_device(number, device) for number, device in devices]
    interrupts = [
        _INTERRUPT.pack(number, interrupt, device.edge)
        for number, device in devices
        for interrupt in device.interrupts
    ]
    tables: tuple[list[bytes], ...] = (partitions, [], [], mappings, interrupts, [], [], [])
    return _block(tables, 0, 0, (CONFIGURATION, 0, CONFIGURATION))


def _block(tables: tuple[list[bytes], ...], mode: int, flags: int, lists: tuple[int, ...]) -> bytes:
    *counts, _distances, channels, _cpus = map(len, tables)
    body = _COUNTS.pack(mode, flags, *counts, MEMORY_END, *lists, BOARDS["virt"], channels)
    body += b"".join(
        b"".join(table).ljust(entry.size * most, b"\0")
        for table, (entry, most) in zip(tables, _TABLES, strict=True)
    )
    return _sealed(body)


def _sealed(body: bytes) -> bytes:
    return _FRONT.pack(MAGIC, VERSION, SIZE, zlib.crc32(body)) + body


def for_board(block: bytes, bench: str) -> bytes:
    """Return a block for the board of a bench, one of `BOARDS`; blocks are made for `virt`."""
    number = BOARDS[bench].to_bytes(4, "little")
    if block[_BOARD_AT : _BOARD_AT + 4] == number:
        return block
    return _sealed(block[_FRONT.size : _BOARD_AT] + number + block[_BOARD_AT + 4 :])


def _partition(
    system: System, partition: Partition, program: Program, memory: Region, images: Iterable[Region]
) -> bytes:
    flags = _HAS_CONSOLE
    has_sources = any(source.partition == partition.name for source in system.sources)
    if has_sources or partition.guest in PROGRAMS:
        flags |= _SAYS_READY
    own = (memory.begin, GUEST_MEMORY, partition.memory, program.entry, 0)
    stored = _stored(program, images)
    reactions = (partition.on_fault, partition.on_watchdog or partition.on_fault)
    times = (partition.restart_window_ns, partition.watchdog_ns)
    last = (partition.restarts, *map(_REACTIONS.index, reactions), 0, *times)
    return _PARTITION.pack(_name(partition.name), partition.cpu, flags, *own, *stored, *last)


def _stored(program: Program, images: Iterable[Region]) -> list[int]:
    """Return where the pieces of a program wait, where they belong, and their sizes."""
    stored = [
        number
        for region, piece in zip(images, program.pieces, strict=True)
        for number in (region.begin, piece.target, len(piece.content))
    ]
    return stored + [0] * (3 * MOST_IMAGES - len(stored))


def _sources(system: System, numbers: dict[str, int]) -> tuple[list[bytes], list[bytes]]:
    """Return the entries of sources, and of the distances that they refer to."""
    sources: list[bytes] = []
    distances: list[int] = []
    edges = {
        at for x in system.hosted for device in x.devices if device.edge for at in device.interrupts
    }
    for number, source in enumerate(system.sources):
        own = _distances(source)
        limit = limit_of(source.arrival)
        learning = source.learning
        sources.append(
            _SOURCE.pack(
                _name(source.name),
                numbers[source.partition],
                (_MONITORED if source.monitor else 0)
                | (_IS_DEVICE if system.is_device(number) else 0)
                | (_BY_EDGE if system.is_device(number) and source.interrupt in edges else 0),
                system.interrupt_of(number),
                len(own),
                len(distances),
                learning.length if learning else 0,
                learning.events if learning else 0,
                source.bottom_ns,
                len(limit.distances_ns),
                len(distances) + len(own),
                limit.period_ns,
                limit.jitter_ns,
            )
        )
        distances += [*own, *limit.distances_ns]
    return sources, [_DISTANCE.pack(each) for each in distances]


def _distances(source: Source) -> list[int]:
    monitor = source.monitor
    return _core.DistanceVector(monitor.distances_ns).closed() if monitor else []


def _mappings(system: System, numbers: dict[str, int], placement: Placement) -> list[bytes]:
    devices = [
        _device(numbers[each.name], device) for each in system.hosted for device in each.devices
    ]
    shared = [
        _MAPPING.pack(numbers[name], _WRITABLE, memory.address, region.begin, memory.size)
        for memory, region in zip(system.shared, placement.shared, strict=True)
        for name in memory.partitions
    ]
    channels = [
        _MAPPING.pack(numbers[name], _WRITABLE, channel.address, region.begin, channel.size)
        for channel, region in zip(system.channels, placement.channels, strict=True)
        for name in (channel.sender, channel.receiver)
    ]
    return devices + shared + channels


def _channels(system: System, numbers: dict[str, int]) -> list[bytes]:
    sources = {source.name: number for number, source in enumerate(system.sources)}
    return [
        _CHANNEL.pack(
            _name(each.name),
            numbers[each.sender],
            sources[each.doorbell],
            each.address,
            each.size,
        )
        for each in system.channels
    ]


def _cpus(kept: Mapping[int, Kept]) -> list[bytes]:
    unused = Kept(0, 0)
    each = (kept.get(cpu, unused) for cpu in range(_MOST_CPUS))
    return [_CPU.pack(own.records, own.least_cycles) for own in each]


def _interrupts(system: System, numbers: dict[str, int]) -> list[bytes]:
    """Return the entries of devices' interrupts that are not a source's."""
    sources = {
        each.interrupt for number, each in enumerate(system.sources) if system.is_device(number)
    }
    return [
        _INTERRUPT.pack(numbers[each.name], interrupt, device.edge)
        for each in system.hosted
        for device in each.devices
        for interrupt in device.interrupts
        if interrupt not in sources
    ]


def _device(partition: int, device: Device) -> bytes:
    place = (device.physical, device.physical, device.size)
    return _MAPPING.pack(partition, _WRITABLE | _DEVICE, *place)


def _name(name: str) -> bytes:
    """Cut a name to its field, between characters."""
    return name.encode()[:_NAME_BYTES].decode(errors="ignore").encode()
