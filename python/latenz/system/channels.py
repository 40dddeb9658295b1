"""Channels between two partitions: memory that only they see, and a doorbell.

The doorbell is a source of the receiver's partition whose interrupts are the sender's calls. For
bounds, the simulator and the hypervisor it is a source like any other.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from latenz.errors import closest
from latenz.system.fields import BadField, check_name
from latenz.system.hosting import GUEST_END, PAGE, check_multiple
from latenz.system.processors import processor_of

if TYPE_CHECKING:
    from latenz.system.model import System


@dataclass(frozen=True, slots=True)
class Channel:
    """A way from one partition to another.

    Attributes:
        name: Its own.
        sender: The partition that rings; it may write the memory.
        receiver: The partition whose source the doorbell is; it may write the memory, too, as the
            reader of an icc channel tells in it how far it has read.
        size: Bytes of the memory, a multiple of 4096.
        address: Where both see it.
        doorbell: Name of the source that the sender's calls raise.
    """

    name: str
    sender: str
    receiver: str
    size: int
    address: int
    doorbell: str

    def __post_init__(self) -> None:
        check_name(self, "name")
        check_multiple(self, "address", 0, GUEST_END - PAGE, PAGE)
        check_multiple(self, "size", PAGE, GUEST_END - self.address, PAGE)
        if self.sender == self.receiver:
            what = f"{self.receiver!r} is the sender, too"
            raise BadField(self, ("receiver",), what, "name another partition")


def check_channels(system: "System") -> None:
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


def _check_processor(system: "System", at: int, channel: Channel) -> None:
    """Check that the two share a processor: a doorbell is rung where it interrupts."""
    sender, receiver = (processor_of(system, x) for x in (channel.sender, channel.receiver))
    if sender != receiver:
        what = f"{channel.sender!r} has processor {sender}, {channel.receiver!r} {receiver}"
        remedy = "both ends of a channel share one; others take [[shared]] memory"
        raise BadField(system, ("channels", at, "sender"), what, remedy)


def _check_end(system: "System", at: int, attribute: str, name: str) -> None:
    if name in system.partitions:
        return
    place = ("channels", at, attribute)
    if any(each.name == name for each in system.hosted):
        what = f"{name!r} has no slot"
        raise BadField(system, place, what, "both ends need one; others take [[shared]] memory")
    raise BadField(system, place, f"{name!r} is not a partition", closest(name, system.partitions))


def _check_doorbell(system: "System", at: int, channel: Channel) -> None:
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
