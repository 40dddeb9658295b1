"""Where everything lies in a board's memory."""

from dataclasses import dataclass, field

from latenz.errors import BadInput
from latenz.system.hosting import BLOCK

HYPERVISOR = 0x4020_0000
"""Where the hypervisor's image begins; it has 2 MiB."""
CONFIGURATION = 0x4040_0000
"""Where the configuration begins (`Configuration::address`)."""
MEMORY_BEGIN = 0x4000_0000
MEMORY_END = 0x8000_0000
"""Memory from 1 to 2 GiB: every board has it."""
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Region:
    """A piece of physical memory.

    Attributes:
        name: What it is for.
        begin: Its first address.
        size: Bytes.
    """

    name: str
    begin: int
    size: int

    @property
    def end(self) -> int:
        """The first address behind it."""
        return self.begin + self.size


@dataclass(slots=True)
class MemoryPlan:
    """Gives away memory from the configuration on upwards, in blocks of 2 MiB.

    Blocks are the unit of guests' address spaces: what one guest may see shares none with
    anything else.

    Attributes:
        regions: What was given away, in the order of addresses; the hypervisor's own first.
    """

    regions: list[Region] = field(
        default_factory=lambda: [Region("hypervisor", HYPERVISOR, CONFIGURATION - HYPERVISOR)]
    )

    def place(self, name: str, size: int) -> Region:
        """Give a region of its own, from the next block on.

        Raises:
            BadInput: The board has no more memory.
        """
        begin = -(-self.regions[-1].end // BLOCK) * BLOCK
        if begin + size > MEMORY_END:
            largest = max((*self.regions[1:], Region(name, begin, size)), key=lambda one: one.size)
            raise BadInput(
                f"{name} does not fit into the board's {(MEMORY_END - MEMORY_BEGIN) // _MIB} MiB",
                "memory",
                f"{largest.name} has {-(-largest.size // _MIB)} MiB",
            )
        self.regions.append(Region(name, begin, max(size, 1)))
        return self.regions[-1]
