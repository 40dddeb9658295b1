"""Bootable images: ELF files for 64-bit Arm with segments at physical addresses."""

import io
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from latenz.errors import BadInput
from latenz.files import replacing
from latenz.installation import remedy

_HEADER = struct.Struct("<16s2HI3QI6H")
_SEGMENT = struct.Struct("<2I6Q")
_SECTION = struct.Struct("<2I4Q2I2Q")
_EM_AARCH64, _ET_EXEC, _PT_LOAD = 183, 2, 1
_READ_WRITE_EXECUTE = 7
_UNALIGNED = 1
_SHT_PROGBITS, _SHT_STRTAB = 1, 3
_WRITE_ALLOCATE_EXECUTE = 7
_SECTION_NAMES = b"\0.loaded\0.shstrtab\0"
_IMAGE_SIZE, _IMAGE_SIZE_AT = struct.Struct("<Q"), 16  # in the header of an arm64 Image
_PAGE = 1 << 12


@dataclass(frozen=True, slots=True)
class Segment:
    """What is loaded to one place.

    Attributes:
        address: Physical.
        content: The bytes.
        size: Bytes in memory; those behind the content are zero.
    """

    address: int
    content: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Image:
    """What a board starts.

    Attributes:
        entry: Physical address of the first instruction.
        segments: What is loaded.
    """

    entry: int
    segments: tuple[Segment, ...]


def read_image(path: Path) -> Image:
    """Read an ELF file that is loaded to physical addresses.

    Raises:
        BadInput: It is none for 64-bit Arm.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        elf = ELFFile(io.BytesIO(path.read_bytes()))
        if elf.get_machine_arch() != "AArch64":
            raise BadInput(f"is for {elf.get_machine_arch()}", str(path), remedy("boards"))
        segments = tuple(
            Segment(segment.header.p_paddr, segment.data(), segment.header.p_memsz)
            for segment in elf.iter_segments("PT_LOAD")
        )
        return Image(elf.header.e_entry, segments)
    except (ELFError, struct.error) as error:
        raise BadInput(f"is not a whole ELF file ({error})", str(path)) from None
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None


def write_image(image: Image, path: Path) -> None:
    """Write an ELF file; it appears only when it is whole.

    It has a section for each segment, for loaders that look for sections, as U-Boot's `bootelf`.

    Raises:
        BadInput: It cannot be written.
    """
    segments = sorted(image.segments, key=lambda each: each.address)
    with replacing(path) as partial, partial.open("wb") as file:
        file.write(_header(image.entry, len(segments)))
        offset = _pages(_HEADER.size + _SEGMENT.size * len(segments) + _sections_size(segments))
        offsets = []
        for each in segments:
            file.write(_program_header(each, offset))
            offsets.append(offset)
            offset = _pages(offset + len(each.content))
        file.write(_sections(segments, offsets))
        for each in segments:
            file.seek(_pages(file.tell()))
            file.write(each.content)
        file.truncate(_pages(file.tell()))


def write_raw_image(image: Image, path: Path) -> None:
    """Write what lies in memory from the first segment on, as an arm64 Image.

    The first segment must begin with the header of one; its size is set to that of the file, or
    larger if the segments have more memory.

    Raises:
        BadInput: It cannot be written.
    """
    begin = min(each.address for each in image.segments)
    end = max(each.address + each.size for each in image.segments)
    with replacing(path) as partial, partial.open("wb") as file:
        for each in image.segments:
            file.seek(each.address - begin)
            file.write(each.content)
        file.seek(_IMAGE_SIZE_AT)
        file.write(_IMAGE_SIZE.pack(end - begin))


def _header(entry: int, segments: int) -> bytes:
    identity = b"\x7fELF" + bytes([2, 1, 1])  # 64 bits, little endian, version 1
    sizes = (_HEADER.size, _SEGMENT.size, segments, _SECTION.size, segments + 2, segments + 1)
    sections_at = _HEADER.size + _SEGMENT.size * segments
    places = (entry, _HEADER.size, sections_at, 0)
    return _HEADER.pack(identity, _ET_EXEC, _EM_AARCH64, 1, *places, *sizes)


def _sections_size(segments: list[Segment]) -> int:
    return _SECTION.size * (len(segments) + 2) + len(_SECTION_NAMES)


def _sections(segments: list[Segment], offsets: list[int]) -> bytes:
    """Return the headers of sections, and the names behind them."""
    name = _SECTION_NAMES.index(b".loaded")
    kind = (name, _SHT_PROGBITS, _WRITE_ALLOCATE_EXECUTE)
    found = [
        _SECTION.pack(*kind, each.address, offset, len(each.content), 0, 0, 8, 0)
        for each, offset in zip(segments, offsets, strict=True)
    ]
    before = _HEADER.size + _SEGMENT.size * len(segments)
    names_at = before + _SECTION.size * (len(segments) + 2)
    name = _SECTION_NAMES.index(b".shstrtab")
    names = (name, _SHT_STRTAB, 0, 0, names_at, len(_SECTION_NAMES), 0, 0, 1, 0)
    return bytes(_SECTION.size) + b"".join(found) + _SECTION.pack(*names) + _SECTION_NAMES


def _program_header(segment: Segment, offset: int) -> bytes:
    sizes = (len(segment.content), segment.size)
    where = (offset, segment.address, segment.address)
    return _SEGMENT.pack(_PT_LOAD, _READ_WRITE_EXECUTE, *where, *sizes, _UNALIGNED)


def _pages(position: int) -> int:
    return -(-position // _PAGE) * _PAGE


def joined(first: Image, segments: Iterable[Segment]) -> Image:
    """Return an image with further segments."""
    return Image(first.entry, (*first.segments, *segments))
