"""The machine that a program is checked on: one of the emulated boards."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from latenz.boards.payload import Load, Payload
from latenz.boards.places import ENVIRONMENTS
from latenz.errors import BadInput, closest

_MEMORY_MIB = {"virt": 1024, "virt-gicv3": 1024, "zcu102": 2048}
_FIRST_R5 = 4
_TICK_US = 10

Caches = Literal["stale", "empty"]
_AARCH64, _ARM = 183, 40
"""Machines of ELF files."""
_IMAGE_MAGIC = slice(0x38, 0x3C)


def _check_program(path: Path, machine: int, wanted: str) -> None:
    """Refuse what the emulator would load and execute as if it were a program.

    Raises:
        BadInput: It is none for this processor, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    is_elf = head[:4] == b"\x7fELF" and int.from_bytes(head[18:20], "little") == machine
    if not is_elf and not (machine == _AARCH64 and head[_IMAGE_MAGIC] == b"ARM\x64"):
        raise BadInput("is not a program for this processor", str(path), f"give {wanted}")


@dataclass(frozen=True)
class Machine:
    """What is started, and how.

    Attributes:
        image: An ELF file, or an arm64 Image.
        bench: `virt`, `virt-gicv3` or `zcu102`.
        cpus: How many Cortex-A53 there are.
        el: The exception level at which the image is entered: 2, as by a board's boot loader, or 1.
        caches: What they hold at entry: `stale`, copies that a boot loader left of any line, as the
            boot protocol of arm64 permits; `empty`, nothing, as after power-on.
        initrd: Initial file system of a Linux.
        command_line: Command line of a Linux.
        real_time: A program for the first Cortex-R5 of `zcu102`.
        limit_s: Wall time after which the machine is switched off.
    """

    image: Path
    bench: str = "virt"
    cpus: int = 1
    el: int = 2
    caches: Caches = "stale"
    initrd: Path | None = None
    command_line: str | None = None
    real_time: Path | None = None
    limit_s: int = 60

    def environment(self) -> Path:
        """Return the file that describes the board.

        Raises:
            BadInput: There is no such bench.
        """
        if self.bench not in _MEMORY_MIB:
            what = f"{self.bench!r} is not a bench for the check of coherence"
            raise BadInput(what, "--bench", closest(self.bench, _MEMORY_MIB))
        return ENVIRONMENTS / f"{self.bench}.yaml"

    def payload(self) -> Payload:
        """Return what the board starts.

        Raises:
            BadInput: A file is missing, or the bench has no such core.
        """
        for path in (self.image, self.initrd, self.real_time):
            if path is not None and not path.is_file():
                raise BadInput("there is no such file", str(path))
        _check_program(self.image, _AARCH64, "an ELF file for aarch64 or an arm64 Image")
        if self.real_time is not None and self.bench != "zcu102":
            raise BadInput("has no Cortex-R5", f"--bench {self.bench}", "take --bench zcu102")
        if self.real_time is not None:
            _check_program(self.real_time, _ARM, "an ELF file for 32-bit Arm")
        cpus = 4 if self.real_time is not None else self.cpus
        return Payload(
            kernel=self.image.absolute(),
            cpus=cpus,
            memory_mib=_MEMORY_MIB[self.bench],
            initrd=self.initrd and self.initrd.absolute(),
            command_line=self.command_line,
            loads=(Load(self.real_time.absolute(), cpu=_FIRST_R5),) if self.real_time else (),
            hypervisor=self.el == 2,
            real_time_cores=self.real_time is not None,
            uarts=2 if self.bench == "zcu102" else 1,
            tick_us=_TICK_US if cpus > 1 else None,
        )
