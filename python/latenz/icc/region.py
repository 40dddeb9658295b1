"""Memory that is looked at or worked with: shared memory, files, UIO devices, /dev/mem."""

import mmap
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from latenz.errors import BadInput, shown

FORMS = "shm:/NAME, a file, uio:/dev/uioN[:MAP] or mem:ADDRESS+SIZE, as in mem:0xFFFD0000+60K"
_WORD = 4
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_NUMBER = r"(0[xX][0-9a-fA-F]{1,16}|\d{1,20})"
_MEMORY = re.compile(rf"{_NUMBER}\+{_NUMBER}([KMG]?)")
_UIO = re.compile(r"/dev/uio(\d{1,5})(?::(\d{1,2}))?")
_LARGEST = 1 << 62


class Closing:
    """What `with` does for all that has a `close`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back what is held."""
        raise NotImplementedError


class Region(Closing):
    """A piece of memory, read only. Close it, or use it in a `with`.

    Attributes:
        name: What the user called it.
        size: In bytes.
    """

    def __init__(self, name: str, descriptor: int, size: int) -> None:
        self.name = name
        self.size = size
        self._descriptor = descriptor

    def close(self) -> None:
        """Give the memory back."""
        os.close(self._descriptor)

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes; both numbers are multiples of 4.

        Raises:
            BadInput: They are not there (any more): a file can shrink while it is looked at.
        """
        content = os.pread(self._descriptor, size, offset)
        if len(content) != size:
            raise BadInput(
                f"{size} bytes at {offset} are not there", self.name, "has it been made smaller?"
            )
        return content

    def is_removed(self) -> bool:
        """Return whether the name is gone, so that whoever opens it now gets other memory."""
        return os.fstat(self._descriptor).st_nlink == 0


class DeviceRegion(Region):
    """Memory of a device, which takes reads and writes of whole words only."""

    def __init__(
        self, name: str, descriptor: int, begin: int, size: int, writable: bool = False
    ) -> None:
        super().__init__(name, descriptor, size)
        skip = begin % mmap.PAGESIZE
        access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        self._mapped = mmap.mmap(
            descriptor, skip + size, mmap.MAP_SHARED, access, offset=begin - skip
        )
        self._words = memoryview(self._mapped).cast("I")
        self._first = skip // _WORD

    def close(self) -> None:
        """Give the memory back."""
        self._words.release()
        self._mapped.close()
        super().close()

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes; both numbers are multiples of 4."""
        if offset < 0 or offset + size > self.size:
            raise BadInput(f"{size} bytes at {offset} are not there", self.name)
        begin = self._first + offset // _WORD
        words = self._words[begin : begin + size // _WORD].tolist()
        return b"".join(word.to_bytes(_WORD, "little") for word in words)

    def write(self, offset: int, word: int) -> None:
        """Write one word, in one access; the offset is a multiple of 4."""
        if offset < 0 or offset + _WORD > self.size:
            raise BadInput(f"{_WORD} bytes at {offset} are not there", self.name)
        self._words[self._first + offset // _WORD] = word

    def is_removed(self) -> bool:
        """Return False: a device keeps its memory."""
        return False


def open_device(text: str, system: Path = Path("/")) -> DeviceRegion:
    """Return the memory of a device that a text names, to be read and written.

    Args:
        text: `uio:/dev/uioN[:MAP]` or `mem:ADDRESS+SIZE`.
        system: Where `/dev` and `/sys` are.

    Raises:
        BadInput: There is no such memory, it cannot be opened, or the text names none.
    """
    scheme, _, rest = text.partition(":")
    return (_uio if scheme == "uio" else _physical)(text, rest, system, writable=True)


def open_region(text: str, system: Path = Path("/")) -> Region:
    """Return the memory that a text names, to be read.

    Args:
        text: One of the forms `FORMS`.
        system: Where `/dev` and `/sys` are.

    Raises:
        BadInput: There is no such memory, it cannot be opened, or the text names none.
    """
    scheme, _, rest = text.partition(":")
    if scheme == "shm":
        return _shared_memory(text, rest, system)
    if scheme == "uio":
        return _uio(text, rest, system)
    if scheme == "mem":
        return _physical(text, rest, system)
    return _file(text, Path(text))


def _shared_memory(text: str, name: str, system: Path) -> Region:
    if not re.fullmatch(r"/[^/\0]{1,254}", name) or name in ("/.", "/.."):
        raise BadInput(f"{shown(name)} is not a name of shared memory", text, "shm:/control is one")
    return _file(text, system / "dev/shm" / name[1:])


def _file(text: str, path: Path) -> Region:
    descriptor = _opened(text, path, os.O_NONBLOCK)  # a pipe must not make us wait
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise BadInput("is not a file", text, f"a region is {FORMS}")
        if found.st_size < _WORD:
            raise BadInput("is empty", text, "has its creator set its size?")
    except BaseException:
        os.close(descriptor)
        raise
    return Region(text, descriptor, found.st_size // _WORD * _WORD)


def _uio(text: str, name: str, system: Path, writable: bool = False) -> DeviceRegion:
    match = _UIO.fullmatch(name)
    if match is None:
        raise BadInput(
            f"{shown(name)} is not a UIO device", text, "uio:/dev/uio0 or uio:/dev/uio0:1"
        )
    device, number = match[1], int(match[2] or 0)
    folder = system / f"sys/class/uio/uio{device}/maps/map{number}"
    size, offset = _sysfs_number(folder / "size"), _sysfs_number(folder / "offset")
    if offset >= mmap.PAGESIZE or offset % _WORD:
        raise BadInput(f"an offset of {offset} bytes is not within a page", str(folder / "offset"))
    begin = number * mmap.PAGESIZE + offset
    return _device(text, system / f"dev/uio{device}", begin, size, writable=writable)


def _sysfs_number(path: Path) -> int:
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise BadInput(
            f"cannot be read: {error.strerror}", str(path), "is there such a device and map?"
        ) from error
    if not re.fullmatch(r"0x[0-9a-f]{1,16}\n?", text):
        raise BadInput(f"{shown(text)} is not a number", str(path), "the kernel writes 0x1000")
    return int(text, 16)


def _physical(text: str, place: str, system: Path, writable: bool = False) -> DeviceRegion:
    match = _MEMORY.fullmatch(place)
    if match is None:
        raise BadInput(f"{shown(place)} is not memory", text, "mem:0xFFFD0000+60K is some")
    address, size = int(match[1], 0), int(match[2], 0) * _UNITS[match[3]]
    if address % _WORD:
        raise BadInput("the address is not a multiple of 4", text)
    return _device(text, system / "dev/mem", address, size, os.O_SYNC, writable)


def _device(
    text: str, path: Path, begin: int, size: int, flags: int = 0, writable: bool = False
) -> DeviceRegion:
    size = size // _WORD * _WORD
    if not 0 < size <= _LARGEST or begin + size > _LARGEST:
        raise BadInput(f"there are no {size} bytes at {begin:#x}", text)
    descriptor = _opened(text, path, flags | (os.O_RDWR if writable else 0))
    try:
        return DeviceRegion(text, descriptor, begin, size, writable)
    except (OSError, ValueError, OverflowError) as error:
        os.close(descriptor)
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(
            f"{size} bytes at {begin:#x} cannot be mapped: {reason}",
            text,
            "the kernel refuses memory that it uses itself",
        ) from error


def _opened(text: str, path: Path, flags: int) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "no such file"
        remedy = f"a region is {FORMS}"
        with suppress(OSError):
            if os.path.lexists(path):
                remedy = "this needs root" if os.geteuid() else "see whether it may be read"
        raise BadInput(f"cannot be opened: {reason}", text, remedy) from error
