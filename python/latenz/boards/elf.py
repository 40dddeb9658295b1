"""What ELF files of Linux need: shared libraries of programs, modules of kernel modules."""

import io
import struct
from dataclasses import dataclass
from typing import Any

from latenz.boards.packages import Architecture
from latenz.errors import BadInput, shown

_PROCESSORS: dict[Architecture, tuple[str, str]] = {
    "arm64": ("AArch64", "64-bit Arm"),
    "amd64": ("x64", "64-bit x86"),
    "armhf": ("ARM", "32-bit Arm"),
}
"""How pyelftools calls a processor, and how people do."""


@dataclass(frozen=True)
class Needs:
    """What a program or a library needs to start.

    Attributes:
        libraries: Shared libraries by the names in its DT_NEEDED entries.
        interpreter: Path of the program that loads it; None for libraries and static programs.
        folders: Where it wants libraries to be looked for first (DT_RUNPATH, DT_RPATH).
    """

    libraries: tuple[str, ...]
    interpreter: str | None
    folders: tuple[str, ...]


def is_elf(content: bytes) -> bool:
    """Tell whether a file is in the ELF format."""
    return content.startswith(b"\x7fELF")


def damages() -> tuple[type[Exception], ...]:
    """Return what pyelftools raises for a damaged file; it checks by assertions, or not at all."""
    from elftools.common.exceptions import ELFError

    return (
        *(ELFError, AssertionError, AttributeError, LookupError),
        *(OverflowError, TypeError, ValueError, struct.error),
    )


def needs(content: bytes, name: str, architecture: Architecture = "arm64") -> Needs:
    """Read what a program or library needs.

    Args:
        content: The file.
        name: What it is called in errors.
        architecture: Which processor it must be for.

    Raises:
        BadInput: It is damaged, or for another processor.
    """
    from elftools.elf.dynamic import DynamicSegment
    from elftools.elf.elffile import ELFFile
    from elftools.elf.segments import InterpSegment

    machine, spelled = _PROCESSORS[architecture]
    try:
        elf = ELFFile(io.BytesIO(content))
        if elf.get_machine_arch() != machine:
            raise BadInput(f"is for {elf.get_machine_arch()}", name, f"build it for {spelled}")
        libraries: list[str] = []
        folders: list[str] = []
        interpreter = None
        for segment in elf.iter_segments():
            if isinstance(segment, InterpSegment):
                interpreter = segment.get_interp_name()
            if isinstance(segment, DynamicSegment):
                tag: Any  # its attributes depend on its kind
                for tag in segment.iter_tags():
                    if tag.entry.d_tag == "DT_NEEDED":
                        libraries.append(tag.needed)
                    elif tag.entry.d_tag == "DT_RUNPATH":
                        folders.extend(tag.runpath.split(":"))
                    elif tag.entry.d_tag == "DT_RPATH":
                        folders.extend(tag.rpath.split(":"))
    except damages() as error:
        raise BadInput(f"is not a whole ELF file ({shown(str(error))})", name) from None
    return Needs(tuple(libraries), interpreter, tuple(folders))


def module_dependencies(content: bytes, name: str) -> tuple[str, ...]:
    """Return the kernel modules that a kernel module needs, from its `.modinfo` section.

    Written by hand for speed: a kernel package has thousands of modules.

    Raises:
        BadInput: It is damaged.
    """
    try:
        for line in _section(content, b".modinfo").split(b"\0"):
            if line.startswith(b"depends="):
                return tuple(line[8:].decode().split(",")) if line[8:] else ()
    except (struct.error, IndexError, OverflowError, ValueError) as error:
        raise BadInput(f"is not a kernel module ({error})", name) from None
    return ()


def _section(content: bytes, wanted: bytes) -> bytes:
    """Return a section of a little-endian ELF file; nothing if it has none of that name."""
    if content[:6] == b"\x7fELF\x02\x01":
        [start] = struct.unpack_from("<Q", content, 0x28)
        numbers_at, header = 0x3A, "<IIQQQQ"
    elif content[:6] == b"\x7fELF\x01\x01":
        [start] = struct.unpack_from("<I", content, 0x20)
        numbers_at, header = 0x2E, "<IIIIII"
    else:
        raise ValueError("not in the ELF format of Linux")
    size, count, names = struct.unpack_from("<HHH", content, numbers_at)
    headers = [struct.unpack_from(header, content, start + i * size) for i in range(count)]
    names_start = headers[names][4]
    for name, _, _, _, offset, length in headers:
        if content.startswith(wanted + b"\0", names_start + name):
            return content[offset : offset + length]
    return b""
