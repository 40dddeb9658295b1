"""What a board is given to start: images, their places in memory, and what is switched on."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from latenz.boards.logic import Logic


@dataclass(frozen=True)
class Load:
    """A file that lies in memory when the first core starts.

    Attributes:
        path: The file.
        address: Where it begins; None for an ELF file, which says so itself.
        cpu: The core whose program counter is set to its entry; None for none.
    """

    path: Path
    address: int | None = None
    cpu: int | None = None


@dataclass(frozen=True)
class Payload:
    """All that a board starts from.

    Attributes:
        kernel: What the first core starts: an ELF file, or an arm64 Image.
        cpus: How many cores there are.
        memory_mib: Size of the memory.
        device_tree: The tree that the kernel gets; None for the board's own.
        initrd: Initial file system of a Linux that is started directly.
        command_line: Command line of a Linux that is started directly.
        loads: Further files.
        hypervisor: Whether the first core starts at EL2.
        real_time_cores: Whether the real-time cores are switched on as well.
        uarts: How many serial lines are read.
        memory_file: Holds an emulated board's memory, of its whole size, so that others can read
            what happens there; None for memory that only the emulator has.
        logic: What an emulated board has in its programmable logic; a real one's is loaded before.
        tick_us: Longest time, in virtual microseconds, that an emulated core runs while others
            wait for their turn; None for no limit. It costs wall time and nothing in the guest.
        boot_limit_s: Wall time until the first frame must have arrived, less what others took
            of the processors of this machine.
        limit_s: The same, until the last frame must have arrived.
    """

    kernel: Path
    cpus: int
    memory_mib: int
    device_tree: Path | None = None
    initrd: Path | None = None
    command_line: str | None = None
    loads: tuple[Load, ...] = ()
    hypervisor: bool = False
    real_time_cores: bool = False
    uarts: int = 1
    memory_file: Path | None = None
    logic: "Logic | None" = None
    tick_us: int | None = None
    boot_limit_s: int = 120
    limit_s: int = 600

    def files(self) -> list[Path]:
        """Return every file that takes part."""
        optional = (self.device_tree, self.initrd)
        return [self.kernel, *(each for each in optional if each), *(x.path for x in self.loads)]
