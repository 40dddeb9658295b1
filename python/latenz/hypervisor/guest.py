"""Programs for partitions: those of Latenz, raw binaries, ELF files."""

import io
import struct
from dataclasses import dataclass
from pathlib import Path

from latenz.errors import BadInput
from latenz.installation import built_file
from latenz.system.hosting import GUEST_MEMORY, PROGRAMS, Partition

_LINE = 64
"""What the loader of the hypervisor copies at once."""
_MOST_PIECES = 4
_MOST_BYTES = 1 << 30
_WITH_GICV3 = {"virt-gicv3"}


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes that lie in a guest's memory when it starts.

    Attributes:
        target: Guest physical address, a multiple of 64.
        content: The bytes, a multiple of 64.
    """

    target: int
    content: bytes


@dataclass(frozen=True, slots=True)
class Program:
    """What a guest consists of.

    Attributes:
        entry: Guest physical address of its first instruction.
        pieces: Its memory, where it is not zero.
    """

    entry: int
    pieces: tuple[Piece, ...]


def installed(name: str) -> Path:
    """Return a file of the hypervisor as it was built, by its name in firmware/hypervisor.

    Raises:
        BadInput: It was not built.
    """
    return built_file("firmware", "hypervisor", name)


def hypervisor_for(bench: str) -> Path:
    """Return the hypervisor for the board of a bench: by the interrupt controller that it has.

    Raises:
        BadInput: It was not built.
    """
    return installed("hypervisor-gicv3.elf" if bench in _WITH_GICV3 else "hypervisor.elf")


def program(partition: Partition) -> Program:
    """Read the guest of a partition.

    Raises:
        BadInput: It cannot be read, is not for this processor, or does not fit into the memory;
            told by its path.
    """
    own = partition.guest in PROGRAMS
    path = installed(f"guests/{partition.guest}.bin") if own else Path(partition.guest)
    content = _content(path)
    if content.startswith(b"\x7fELF"):
        found = _elf(content, path)
    else:
        found = Program(GUEST_MEMORY, (_piece(GUEST_MEMORY, content),))
    end = GUEST_MEMORY + partition.memory
    for piece in found.pieces:
        if not GUEST_MEMORY <= piece.target <= end - len(piece.content):
            last = piece.target + len(piece.content) - 1
            raise BadInput(
                f"{piece.target:#x} to {last:#x} is not in the memory of {partition.name!r}",
                str(path),
                f"that is {GUEST_MEMORY:#x} to {end - 1:#x}",
            )
    if not GUEST_MEMORY <= found.entry < end:
        raise BadInput(f"begins at {found.entry:#x}, outside its memory", str(path))
    return found


def _content(path: Path) -> bytes:
    try:
        if not path.is_file():
            what = "is not a file" if path.exists() else "there is no such file"
            raise BadInput(
                what, str(path), f"give {', '.join(PROGRAMS)}, a raw binary or an ELF file"
            )
        if path.stat().st_size > _MOST_BYTES:
            raise BadInput("is larger than a board's memory", str(path))
        content = path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    if not content:
        raise BadInput("is empty", str(path), "give a raw binary or an ELF file")
    return content


def _elf(content: bytes, path: Path) -> Program:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(content))
        if elf.get_machine_arch() != "AArch64" or not elf.little_endian or elf.elfclass != 64:
            what = f"is for {elf.get_machine_arch()}"
            raise BadInput(what, str(path), "build it for 64-bit Arm, little endian")
        if elf.header.e_type != "ET_EXEC":
            remedy = "link it to fixed addresses, or give a raw binary"
            raise BadInput(f"is not a program ({elf.header.e_type})", str(path), remedy)
        pieces = tuple(
            _piece(segment.header.p_paddr, _whole(segment.data(), segment.header.p_filesz))
            for segment in elf.iter_segments("PT_LOAD")
            if segment.header.p_filesz
        )
    except (ELFError, struct.error, ValueError, OverflowError) as error:
        raise BadInput(f"is not a whole ELF file ({error})", str(path)) from None
    if not 0 < len(pieces) <= _MOST_PIECES:
        what = f"has {len(pieces)} segments to load"
        raise BadInput(what, str(path), f"link it into 1 to {_MOST_PIECES}")
    return Program(elf.header.e_entry, pieces)


def _whole(content: bytes, size: int) -> bytes:
    if len(content) != size:
        raise ValueError("a segment ends behind the end of the file")
    return content


def _piece(address: int, content: bytes) -> Piece:
    """Fill up with zeros to multiples of 64; the memory around is zero anyhow."""
    before = address % _LINE
    after = -(before + len(content)) % _LINE
    return Piece(address - before, bytes(before) + content + bytes(after))
