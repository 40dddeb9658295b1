"""Channels between two partitions: memory that only they see, and a doorbell.

The doorbell is a source of the receiver's partition whose interrupts are the sender's calls. For
bounds, the simulator and the hypervisor it is a source like any other.
"""

from dataclasses import dataclass

from latenz.system.fields import BadField, check_name
from latenz.system.hosting import GUEST_END, PAGE, check_multiple


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
