"""Names for addresses: the symbols of an ELF file, of a Xen image, or of a Linux image.

Debian ships its hypervisor and its kernels without ELF symbols, but each carries a compressed table
of its own symbols, from which it names the functions of a stack trace. `embedded_symbols` finds
that table in the raw image, where nothing points to it, by its shape:

- *token index*: 256 16-bit numbers, ascending from 0, the offsets of the tokens;
- *token table*: right before it, the 256 tokens, each ended by a zero;
- *markers*: before that, 32-bit numbers ascending from 0, the offset of every 256th name;
- *names*: each a length and so many numbers of tokens, the first character being the symbol's type;
- the *number* of symbols, and before it their *addresses*: 64 bits each, or 32 bits relative to a
  base of 64 bits that stands between.

It is accepted only if the parts fit each other: the names must end where each marker says, the
number must agree with the markers, and the addresses must ascend. Where that leaves a choice, which
it does where the base stands only in a relocation, symbols decide whose addresses the architecture
and the linker align.
"""

import ctypes
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from latenz.errors import BadInput

if TYPE_CHECKING:
    from elftools.elf.sections import Section, SymbolTableSection

_TOKENS = 256
_NAMES_A_MARKER = 256
_LONGEST_NAME = 512
_FARTHEST_MARKERS = 4 << 20
"""Newer tables have others between markers and tokens."""
_PADDING = 256
"""The parts are aligned to so many bytes."""
_LARGEST_IMAGE = 256 << 20
_ALIGNMENTS = (4, 8, 16, 256)
_RELATIVE = 0x403
"""R_AARCH64_RELATIVE, between a relocation's place and its value."""
_LINKED_TO = 2 << 20
_LOWEST_LINUX = 0xFFFF_0000_0000_0000
_ALIGNED = {b"vectors": 2 << 10, b"_stext": 64 << 10, b"_etext": 64 << 10}
"""Of these functions and marks of Linux the addresses are multiples of so many bytes: VBAR_EL1
takes no others, and sections with permissions of their own begin with a page, whatever its size."""


@dataclass(frozen=True, order=True)
class Symbol:
    """A named range of addresses.

    Attributes:
        address: Its first byte.
        end: One past its last byte.
        name: Its name.
    """

    address: int
    end: int
    name: str


class SymbolTable:
    """The symbols of one image, by address.

    Where several symbols begin at one address, the first of the given ones is kept.

    Args:
        symbols: Address, size and name of each; size 0 means up to the next one.
        end: Where the image's code ends, for a last symbol without a size.
    """

    def __init__(self, symbols: Iterable[tuple[int, int, str]], end: int) -> None:
        known: dict[int, tuple[int, str]] = {}
        for address, size, name in symbols:
            known.setdefault(address, (size, name))
        self._addresses = sorted(known)
        following = [*self._addresses[1:], max([end, *self._addresses[-1:]])]
        self._symbols = [
            Symbol(address, address + size if size else after, name)
            for address, after in zip(self._addresses, following, strict=True)
            for size, name in [known[address]]
        ]
        self._by_name = {symbol.name: symbol for symbol in reversed(self._symbols)}

    def __iter__(self) -> Iterator[Symbol]:
        return iter(self._symbols)

    def __len__(self) -> int:
        return len(self._symbols)

    def at(self, address: int) -> Symbol | None:
        """Return the symbol that holds an address."""
        found = bisect_right(self._addresses, address) - 1
        if found < 0 or address >= self._symbols[found].end:
            return None
        return self._symbols[found]

    def find(self, name: str) -> Symbol | None:
        """Return the symbol of that name, the one at the lowest address if there are several."""
        return self._by_name.get(name)


def elf_symbols(path: Path, load_address: int = 0) -> SymbolTable:
    """Return the functions and code labels of an ELF file.

    A function's own symbol is preferred to other labels at its address. Names of C++ are given as
    in the source.

    Args:
        path: The file.
        load_address: What is added to all addresses; for position-independent programs.

    Raises:
        BadInput: The file cannot be read, is not an ELF file, or holds no symbols.
    """
    from elftools.elf.elffile import ELFFile

    from latenz.boards.elf import damages

    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            code = {
                number: (section["sh_addr"], section["sh_addr"] + section["sh_size"])
                for number, section in enumerate(elf.iter_sections())
                if section["sh_flags"] & 0x4  # SHF_EXECINSTR
            }
            table = elf.get_section_by_name(".symtab")
            found = sorted(_code_symbols(table, set(code))) if table else []
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    except damages():
        raise BadInput(
            "is not a whole ELF file", str(path), "give a program with symbols"
        ) from None
    if not found:
        raise BadInput("holds no symbols of code", str(path), "build it without stripping it")
    return SymbolTable(
        ((load_address + address, size, demangled(name)) for address, _, size, name in found),
        load_address + max(end for _, end in code.values()),
    )


def _code_symbols(table: "Section", code: set[int]) -> Iterator[tuple[int, bool, int, str]]:
    for symbol in cast("SymbolTableSection", table).iter_symbols():
        kind = symbol["st_info"]["type"]
        name = str(symbol.name)
        if symbol["st_shndx"] in code and kind in ("STT_FUNC", "STT_NOTYPE") and name[:1] != "$":
            is_function = kind == "STT_FUNC"
            address = symbol["st_value"] & ~1 if is_function else symbol["st_value"]  # Thumb bit
            yield address, not is_function, symbol["st_size"], name


def demangled(name: str) -> str:
    """Return a name of C++ as in the source, as the C++ library on this machine writes it."""
    library = _cxx_library() if name.startswith("_Z") else None
    if library is None:
        return name
    status = ctypes.c_int(-1)
    text = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if status.value != 0 or not text:
        return name
    try:
        return ctypes.string_at(text).decode("utf-8", "replace")
    finally:
        ctypes.CDLL(None).free(ctypes.c_void_p(text))


@cache
def _cxx_library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return None
    library.__cxa_demangle.restype = ctypes.c_void_p
    return library


def embedded_symbols(path: Path) -> SymbolTable:
    """Return the symbols that a raw Xen or Linux image holds for its own use.

    Args:
        path: A raw image for arm64: Xen 4.11 or newer, or Linux up to 6.1.

    Raises:
        BadInput: The file cannot be read, or holds no such table.
    """
    try:
        with path.open("rb") as file:
            image = file.read(_LARGEST_IMAGE)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    for index in _token_indexes(image):
        if table := _Embedded(image, index).table():
            return table
    raise BadInput(
        "holds no symbol table of its own", str(path), "give a raw Xen or Linux image for arm64"
    )


def _token_indexes(image: bytes) -> list[int]:
    """Return where 256 ascending 16-bit numbers begin with 0, at even offsets."""
    words = np.frombuffer(image[: len(image) & ~1], dtype="<u2")
    if len(words) < _TOKENS:
        return []
    falls = np.flatnonzero(words[1:] <= words[:-1])
    starts = np.flatnonzero(words == 0)
    following = np.searchsorted(falls, starts)
    bounded = np.append(falls, len(words) - 1)
    reach = bounded[following] - starts
    whole = starts[reach >= _TOKENS - 1]
    return [2 * int(start) for start in whole if words[start + _TOKENS - 1] >= 2 * _TOKENS]


class _Embedded:
    """One place in an image that may be the token index of a symbol table."""

    def __init__(self, image: bytes, index: int) -> None:
        self._image = image
        self._index = index
        self._offsets = [int(word) for word in np.frombuffer(image, "<u2", _TOKENS, index)]

    def table(self) -> SymbolTable | None:
        """Return the symbols, if everything fits."""
        for tokens_at in self._token_tables():
            tokens = [self._string(tokens_at + offset) for offset in self._offsets]
            for markers_at, markers in self._markers(tokens_at):
                for names_at, count in self._name_tables(markers_at, markers):
                    lengths = self._lengths(names_at, count, markers)
                    names = [
                        b"".join(tokens[code] for code in self._image[at : at + length])
                        for at, length in lengths
                    ]
                    for addresses in self._addresses(names_at, count) if names else ():
                        if _fits_linux(addresses, names):
                            return _table(addresses, names)
        return None

    def _string(self, at: int) -> bytes:
        return self._image[at : self._image.index(0, at)]

    def _token_tables(self) -> Iterator[int]:
        """Yield where the tokens may begin: every offset must follow the end of a token."""
        last = self._offsets[-1]
        nearest = self._index - last - 1
        for at in range(nearest & ~3, max(0, nearest - _LONGEST_NAME - _PADDING), -4):
            ends = [self._image[at + offset - 1] for offset in self._offsets[1:]]
            end = self._image.find(0, at + last, self._index)
            if (
                end >= 0
                and not any(ends)
                and self._image.count(0, at, at + last) == _TOKENS - 1
                and self._index - end <= _PADDING
                and not any(self._image[end : self._index])
            ):
                yield at

    def _before(self, at: int) -> int:
        """Return the end of the last 32-bit word before `at` that is not merely padding."""
        for end in range(at, max(3, at - _PADDING), -4):
            if any(self._image[end - 4 : end]):
                return end
        return at

    def _word(self, at: int) -> int:
        return int.from_bytes(self._image[at : at + 4], "little")

    def _markers(self, tokens_at: int) -> Iterator[tuple[int, list[int]]]:
        """Yield numbers before the tokens that ascend from 0 as offsets of every 256th name do."""
        begin = max(0, tokens_at - _FARTHEST_MARKERS) & ~3
        words = np.frombuffer(self._image, "<u4", (tokens_at - begin) // 4, begin)
        steps = np.diff(words.astype(np.int64))
        fits = (steps >= 2 * _NAMES_A_MARKER) & (steps <= _LONGEST_NAME * _NAMES_A_MARKER)
        ends = np.append(np.flatnonzero(~fits), len(steps))
        for start in np.flatnonzero((words[:-1] == 0) & fits)[::-1]:
            end = ends[np.searchsorted(ends, start)] + 1
            yield begin + 4 * int(start), [int(word) for word in words[start:end]]

    def _name_tables(self, markers_at: int, markers: list[int]) -> Iterator[tuple[int, int]]:
        """Yield where the names may begin and how many there are: the number is before them."""
        most = len(markers) * _NAMES_A_MARKER
        latest = markers_at - markers[-1]
        begin = max(0, latest - _NAMES_A_MARKER * _LONGEST_NAME) & ~3
        words = np.frombuffer(self._image, "<u4", max(0, latest - begin) // 4, begin)
        fits = (words > most - _NAMES_A_MARKER) & (words <= most)
        for number in np.flatnonzero(fits)[::-1]:
            end = begin + 4 * int(number) + 4
            for names_at in sorted({-(-end // aligned) * aligned for aligned in _ALIGNMENTS}):
                if names_at <= latest and not any(self._image[end:names_at]):
                    yield names_at, int(words[number])

    def _lengths(self, names_at: int, count: int, markers: list[int]) -> list[tuple[int, int]]:
        """Return where each compressed name lies; nothing if a marker disagrees."""
        found = []
        at = names_at
        for number in range(count):
            if (
                number % _NAMES_A_MARKER == 0
                and at - names_at != markers[number // _NAMES_A_MARKER]
            ):
                return []
            length = self._image[at]
            at += 1
            if length & 0x80:  # two bytes since Linux 6.1
                length = (length & 0x7F) | self._image[at] << 7
                at += 1
            if not 0 < length < _LONGEST_NAME:
                return []
            found.append((at, length))
            at += length
        return found

    def _addresses(self, names_at: int, count: int) -> Iterator[npt.NDArray[np.uint64]]:
        """Yield what may be the addresses before the number of symbols, in either width."""
        number_at = self._before(names_at) - 4
        at = (self._before(number_at) - 8 * count + 7) & -8  # the last one may end in zeroes
        if at >= 0:
            found = np.frombuffer(self._image, "<u8", count, at)
            if found[0] < found[-1] and bool(np.all(found[1:] >= found[:-1])):
                yield found
        nearest_first = sorted({number_at // each * each - 8 for each in _ALIGNMENTS}, reverse=True)
        for base_at in nearest_first:
            if base_at < 0 or any(self._image[base_at + 8 : number_at]):
                continue
            for base, offsets in product(self._bases(base_at), self._relative(base_at, count)):
                yield offsets.astype(np.uint64) + np.uint64(base)

    def _relative(self, end: int, count: int) -> Iterator[npt.NDArray[np.uint32]]:
        """Yield ascending offsets, of which the first is 0, that end before some padding."""
        for at in range(end - 4 * count, max(0, end - 4 * count - _PADDING), -4):
            found = np.frombuffer(self._image, "<u4", count, at).copy()
            found[-1] = max(found[-2:])  # Linux 6.1 has 0 for the end of its last section
            if found[0] == 0 and bool(np.all(found[1:] >= found[:-1])):
                yield found

    def _bases(self, at: int) -> list[int]:
        """Return the base that stands at a place, or those that Linux may put there as it starts.

        The start-up code is told by relocations what to put where, as addresses of an image that is
        linked to a multiple of 2 MiB. Within that, several of them may mean this place.
        """
        there = int.from_bytes(self._image[at : at + 8], "little")
        if there >= _LOWEST_LINUX:
            return [there]
        words = np.frombuffer(self._image, "<u8", len(self._image) // 8)
        kinds = np.flatnonzero(words[1:-1] == _RELATIVE) + 1
        image_begins = words[kinds - 1] - np.uint64(at)
        linked = (image_begins >= _LOWEST_LINUX) & (image_begins % _LINKED_TO == 0)
        return [int(base) for base in words[kinds[linked] + 1]]


def _fits_linux(addresses: npt.NDArray[np.uint64], names: list[bytes]) -> bool:
    """Return whether symbols that Linux for arm64 must have somewhere are there; others may be."""
    if int(addresses[0]) < _LOWEST_LINUX:
        return True
    known = {name[1:]: int(address) for address, name in zip(addresses, names, strict=True)}
    if any(known.get(name, 0) % alignment for name, alignment in _ALIGNED.items()):
        return False
    # Read-only data lie between the kernel's code and the code that only starts it.
    return b"_sinittext" not in known or known.get(b"_etext", 0) < known[b"_sinittext"]


def _table(addresses: npt.NDArray[np.uint64], names: list[bytes]) -> SymbolTable:
    """Make the table: without the type in front of each name, global names before local ones."""
    symbols = [
        (int(address), name[:1].islower(), name[1:].decode("ascii", "replace"))
        for address, name in zip(addresses, names, strict=True)
    ]
    symbols.sort(key=lambda symbol: symbol[:2])
    end = int(addresses[-1]) + 4
    return SymbolTable(((address, 0, name) for address, _, name in symbols), end)
