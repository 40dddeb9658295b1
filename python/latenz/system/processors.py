"""Which processor a system's slots and sources are of, and the part of each processor.

Each partition has one processor, which it may share with others by slots: so the slots of a
processor are a TDMA cycle of its own, which analyses and the simulator take by itself.
"""

from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from latenz.errors import BadInput
from latenz.system.contents import Contents, Slot

ContentsT = TypeVar("ContentsT", bound=Contents)


@dataclass(frozen=True, slots=True)
class Part(Generic[ContentsT]):
    """What a system has on one processor.

    Attributes:
        processor: Its number.
        slots: Its TDMA cycle.
        sources: Numbers in the system of the sources whose bottom handlers run there.
        system: These slots and sources as a system of one processor; None if it has no source.
    """

    processor: int
    slots: tuple[Slot, ...]
    sources: tuple[int, ...]
    system: ContentsT | None


def processor_of(system: Contents, partition: str) -> int:
    """Return the processor of a partition: 0 unless it is hosted on another one."""
    return next((each.cpu for each in system.hosted if each.name == partition), 0)


def shared_processors(system: Contents) -> tuple[int, ...]:
    """Return the processors that partitions share by slots, ascending."""
    if not any(each.cpu for each in system.hosted):
        return (0,)
    return tuple(sorted({processor_of(system, name) for name in system.partitions}))


def slots_of(system: Contents, processor: int) -> tuple[Slot, ...]:
    """Return the TDMA cycle of a processor; empty if it is not shared by slots."""
    return tuple(x for x in system.slots if processor_of(system, x.partition) == processor)


def parts(system: ContentsT) -> tuple[Part[ContentsT], ...]:
    """Return what a system has on each processor with slots, ascending."""
    processors = shared_processors(system)
    if len(processors) == 1:
        return (Part(processors[0], system.slots, tuple(range(len(system.sources))), system),)
    return tuple(_part(system, processor) for processor in processors)


def check_one_processor(system: Contents, where: str = "system") -> None:
    """Refuse a system that has slots on several processors.

    Args:
        system: Whose slots they are.
        where: Its file, for the message.

    Raises:
        BadInput: It has; what was asked for takes the cycle of one.
    """
    processors = shared_processors(system)
    if len(processors) > 1:
        listed = ", ".join(map(str, processors[:-1])) + f" and {processors[-1]}"
        what = f"processors {listed} have slots of their own"
        raise BadInput(what, where, "this takes a system whose slots are of one processor")


def _part(system: ContentsT, processor: int) -> Part[ContentsT]:
    slots = slots_of(system, processor)
    own = {slot.partition for slot in slots}
    numbers = tuple(at for at, each in enumerate(system.sources) if each.partition in own)
    if not numbers:
        return Part(processor, slots, numbers, None)
    sources = tuple(
        replace(system.sources[at], interrupt=system.interrupt_of(at)) for at in numbers
    )
    hosted = tuple(each for each in system.hosted if each.name in own)
    channels = tuple(each for each in system.channels if each.receiver in own)
    part = replace(
        system, slots=slots, sources=sources, hosted=hosted, shared=(), channels=channels
    )
    return Part(processor, slots, numbers, part)
