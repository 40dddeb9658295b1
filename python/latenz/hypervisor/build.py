"""Images made of system files: checks, memory, arrivals, configuration, programs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from latenz.analysis import bound
from latenz.errors import BadInput
from latenz.hypervisor.arrivals import Arrivals, arrivals
from latenz.hypervisor.configuration import (
    TRACE_RECORD_BYTES,
    Kept,
    Placement,
    Where,
    check_limits,
    configuration,
    for_board,
    hosted_partitions,
)
from latenz.hypervisor.guest import Program, hypervisor_for, program
from latenz.hypervisor.image import Segment, joined, read_image, write_image, write_raw_image
from latenz.hypervisor.memory import CONFIGURATION, MemoryPlan, Region
from latenz.hypervisor.stamps import as_stamped
from latenz.hypervisor.work import in_the_long_run
from latenz.system import Mode, System
from latenz.system.hosting import PROGRAMS
from latenz.system.processors import parts
from latenz.system.schema import read_system_file

_RECORDS_OF_IRQ = 6
_RECORDS_OF_SLOT = 2
_SPARE_RECORDS = 4096
_SPARE_CYCLES = 64
_RESERVED = (
    ("the interrupt controller", 0x0800_0000, 0x0900_0000),
    ("the hypervisor's console", 0x0900_0000, 0x0900_1000),
    ("the interrupt controller", 0xF900_0000, 0xF908_0000),
    ("the hypervisor's console", 0xFF00_0000, 0xFF00_1000),
    ("the interrupt controller", 0xFF84_0000, 0xFF84_8000),
    ("the hypervisor's console", 0xFE20_1000, 0xFE20_2000),
    ("memory", 0x4000_0000, 0x8000_0000),
)
"""What no guest gets, on any board: name, first address, first address behind it."""


@dataclass(frozen=True, slots=True)
class Built:
    """A system that can be booted.

    Attributes:
        system: As it was given, so that building it again makes the same image.
        stamped: As the hypervisor sees it: `latenz.hypervisor.stamps.as_stamped`.
        mode: How interrupts in foreign slots are handled.
        arrivals: The interrupts that will be raised; those of guests come besides.
        segments: What lies behind the hypervisor: configuration, arrivals, programs.
        regions: What lies where in memory.
        processors: How many the board must have.
        kept: What each processor with slots keeps of its run.
    """

    system: System
    stamped: System
    mode: Mode
    arrivals: Arrivals
    segments: tuple[Segment, ...]
    regions: tuple[Region, ...]
    processors: int
    kept: Mapping[int, Kept]

    def write(self, path: Path, bench: str = "virt") -> None:
        """Write the image for the board of a bench, one of `configuration.BOARDS`.

        A file whose name ends in `.img` is an arm64 Image, as U-Boot's `booti` takes it; any other
        is an ELF file.

        Raises:
            BadInput: It cannot be written.
        """
        segments = (
            replace(each, content=for_board(each.content, bench))
            if each.address == CONFIGURATION
            else each
            for each in self.segments
        )
        write = write_raw_image if path.suffix == ".img" else write_image
        write(joined(read_image(hypervisor_for(bench)), segments), path)


def build(
    path: Path,
    mode: Mode | None = None,
    *,
    listed: Path | None = None,
    irqs: int | None = None,
    seed: int = 0,
    records: int | None = None,
) -> Built:
    """Make an image of a system file.

    Args:
        path: The system file.
        mode: Instead of the file's.
        listed: A file of arrivals, instead of drawn ones.
        irqs: How many interrupts to draw.
        seed: Of what is drawn.
        records: Of each processor's trace only the last so many are kept; None: all of them.

    Raises:
        BadInput: The file has a mistake, the analysis finds no bound for a source, or the
            hypervisor has no room for all of it.
    """
    system, text = read_system_file(path)
    chosen: Mode = mode or system.mode
    raised = arrivals(system, chosen, listed, irqs, seed)
    return build_system(system, chosen, raised, text.where, records=records)


def build_system(
    system: System,
    chosen: Mode,
    raised: Arrivals,
    where: Where = lambda _place: "system",
    *,
    records: int | None = None,
    least_cycles: int = 1,
) -> Built:
    """Make an image of a system.

    Args:
        system: What the partitions are and do.
        chosen: How interrupts in foreign slots are handled.
        raised: The interrupts; the hypervisor raises those that no guest does.
        where: Tells where something of the system was written down, for messages.
        records: Of each processor's trace only the last so many are kept; None: all of them.
        least_cycles: TDMA cycles before the run ends, even if all is done earlier. If there are
            sources that guests raise, or several processors with slots, each runs at least as long
            as the simulator takes.

    Raises:
        BadInput: As `build`.
    """
    check_limits(system, where)
    _check_devices(system, where)
    _check_senders(system, where)
    seen = as_stamped(system, chosen, where)
    _check_schedulable(seen, chosen, where)
    programs = _programs(system, where)
    plan = MemoryPlan()
    plan.place("configuration", 1)
    kept = _kept(system, raised, records, least_cycles)
    raised = raised.listed(system)
    placement = _placed(plan, system, programs, raised, kept)
    block = configuration(seen, chosen, programs, placement, len(raised), kept)
    segments = _segments(block, placement, programs, raised)
    processors = 1 + max(each.cpu for each in hosted_partitions(system))
    return Built(system, seen, chosen, raised, segments, tuple(plan.regions), processors, kept)


def _check_schedulable(system: System, mode: Mode, where: Where) -> None:
    """Refuse a system that the analysis has no bound for, with its reason.

    Random arrivals have no worst case, but their image holds a list of them: they are judged by
    their mean. Monitors are taken to have learned: what gathers while they learn is served then.
    """
    judged = replace(system, sources=tuple(map(in_the_long_run, system.sources)))
    for at, source in enumerate(bound(judged, mode).sources):
        if source.verdict != "bounded":
            raise BadInput(
                f"{source.name!r} is {source.verdict} in mode {mode}: {source.reason}",
                where(("source", at)),
                "latenz bound tells more",
            )


def _check_devices(system: System, where: Where) -> None:
    """Refuse registers and memory that the hypervisor itself needs."""
    for at, partition in enumerate(system.hosted):
        for number, device in enumerate(partition.devices):
            for name, begin, end in _RESERVED:
                if device.physical < end and begin < device.physical + device.size:
                    place = where(("partition", at, "devices", number, "physical"))
                    what = f"{device.physical:#x} lies over {name}, {begin:#x} to {end - 1:#x}"
                    raise BadInput(what, place, "a guest cannot have it")


def _check_senders(system: System, where: Where) -> None:
    """Refuse a doorbell that nobody rings."""
    guests = {each.name: each.guest for each in hosted_partitions(system)}
    for at, channel in enumerate(system.channels):
        if (guest := guests[channel.sender]) in PROGRAMS:
            what = f"{guest!r}, the guest of {channel.sender!r}, rings no doorbell"
            remedy = "give the partition a guest that does; bound and simulate do without"
            raise BadInput(what, where(("channel", at, "from")), remedy)


def _programs(system: System, where: Where) -> tuple[Program, ...]:
    places = {each.name: where(("partition", at, "guest")) for at, each in enumerate(system.hosted)}
    found = []
    for partition in hosted_partitions(system):
        try:
            found.append(program(partition))
        except BadInput as mistake:
            place = places.get(partition.name, "")
            remedy = mistake.remedy
            raise BadInput(f"{mistake.where} {mistake.what}", place, remedy) from None
    return tuple(found)


def _placed(
    plan: MemoryPlan,
    system: System,
    programs: tuple[Program, ...],
    raised: Arrivals,
    kept: Mapping[int, Kept],
) -> Placement:
    entry_bytes = _arrival_entries(raised).nbytes
    return Placement(
        arrivals=plan.place("the list of arrivals", entry_bytes),
        trace=plan.place(
            "the trace", sum(each.records for each in kept.values()) * TRACE_RECORD_BYTES
        ),
        memory=tuple(
            plan.place(f"the memory of {each.name}", each.memory)
            for each in hosted_partitions(system)
        ),
        images=tuple(
            tuple(plan.place(f"the guest of {each.name}", len(x.content)) for x in found.pieces)
            for each, found in zip(hosted_partitions(system), programs, strict=True)
        ),
        shared=tuple(
            plan.place(f"the shared memory {each.name}", each.size) for each in system.shared
        ),
        channels=tuple(
            plan.place(f"the channel {each.name}", each.size) for each in system.channels
        ),
    )


def _kept(
    system: System, raised: Arrivals, records: int | None, least_cycles: int
) -> dict[int, Kept]:
    """Return what each processor keeps of its run: nothing may be lost if all of it is wanted."""
    together = parts(system)
    by_guests = any(map(system.is_raised_by_guest, range(len(system.sources))))
    end_ns = max(raised.end_ns, int(raised.time_ns[-1]) if len(raised) else 0)
    kept = {}
    for part in together:
        cycle_ns = sum(slot.length_ns for slot in part.slots)
        least = least_cycles
        if by_guests or len(together) > 1:
            least = max(least, -(-raised.end_ns // cycle_ns))
        irqs = int(np.isin(raised.source, part.sources).sum())
        slots = (max(end_ns // cycle_ns, least) + _SPARE_CYCLES) * len(part.slots)
        most = irqs * _RECORDS_OF_IRQ + slots * _RECORDS_OF_SLOT + _SPARE_RECORDS
        kept[part.processor] = Kept(most if records is None else records, least)
    return kept


def _arrival_entries(raised: Arrivals) -> "np.ndarray":
    kind = np.dtype([("time_ns", "<u8"), ("source", "<u4"), ("reserved", "<u4")])
    entries = np.zeros(len(raised), kind)
    order = np.argsort(raised.source, kind="stable")  # a source's masking leaves out its own alone
    entries["time_ns"], entries["source"] = raised.time_ns[order], raised.source[order]
    return entries


def _segments(
    block: bytes, placement: Placement, programs: tuple[Program, ...], raised: Arrivals
) -> tuple[Segment, ...]:
    content = _arrival_entries(raised).tobytes()
    found = [
        Segment(CONFIGURATION, block, len(block)),
        Segment(placement.arrivals.begin, content, len(content)),
    ]
    for regions, each in zip(placement.images, programs, strict=True):
        for region, piece in zip(regions, each.pieces, strict=True):
            found.append(Segment(region.begin, piece.content, len(piece.content)))
    return tuple(segment for segment in found if segment.size)
