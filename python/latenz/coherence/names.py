"""Names for what was found: functions and objects of ELF files, each for an exception level or all.

A guest may have its code at the addresses where a hypervisor has its own; the level tells them
apart.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from latenz.coherence.recording import Party
from latenz.errors import BadInput
from latenz.path.symbols import SymbolTable, elf_symbols, embedded_symbols

if TYPE_CHECKING:
    from elftools.elf.sections import SymbolTableSection

_ALLOCATED = 0x2


@dataclass(frozen=True)
class Named:
    """The symbols of one file.

    Attributes:
        code: Its functions.
        objects: Begin, end and name of each variable and of each section, by address.
        level: The exception level that its code runs at; None for any.
    """

    code: SymbolTable
    objects: tuple[tuple[int, int, str], ...]
    level: int | None


class Names:
    """Names instructions and memory.

    Args:
        files: The symbols, in the order in which they are asked.
    """

    def __init__(self, files: tuple[Named, ...]) -> None:
        self._files = files

    def function(self, party: Party | None) -> str:
        """Return the function of an instruction, with its level and core."""
        if party is None:
            return "before the program"
        where = f"EL{party.level}, CPU {party.cpu}"
        for each in self._files:
            symbol = each.code.at(party.address)
            if symbol is not None and each.level in (None, party.level):
                return f"{symbol.name} ({where})"
        return f"{party.address:#x} ({where})"

    def object(self, address: int) -> str | None:
        """Return the variable, function or section that holds an address."""
        for each in self._files:
            if symbol := each.code.at(address):
                return symbol.name
            at = bisect_right(each.objects, address, key=lambda found: found[0])
            for begin, end, name in reversed(each.objects[:at]):
                if begin <= address < end:
                    return name
        return None


def named(path: Path, level: int | None = None) -> Named:
    """Read the symbols of an ELF file.

    Raises:
        BadInput: It cannot be read, or has no symbols.
    """
    return Named(elf_symbols(path), tuple(sorted(_objects(path), key=_outer_first)), level)


def _outer_first(found: tuple[int, int, str]) -> tuple[int, int]:
    begin, end, _ = found
    return begin, -end


def _objects(path: Path) -> Iterator[tuple[int, int, str]]:
    from elftools.elf.elffile import ELFFile

    from latenz.boards.elf import damages
    from latenz.path.symbols import demangled

    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            for section in elf.iter_sections():
                if section["sh_flags"] & _ALLOCATED:
                    begin, size = section["sh_addr"], section["sh_size"]
                    yield begin, begin + size, str(section.name)
            table = cast("SymbolTableSection", elf.get_section_by_name(".symtab"))
            for symbol in table.iter_symbols():
                if symbol["st_info"]["type"] == "STT_OBJECT" and symbol["st_size"]:
                    begin = symbol["st_value"]
                    yield begin, begin + symbol["st_size"], demangled(str(symbol.name))
    except damages():
        raise BadInput(
            "is not a whole ELF file", str(path), "give a program with symbols"
        ) from None


def names_of(image: Path, given: tuple[tuple[Path, int | None], ...]) -> Names:
    """Return the names of given files, or those of the image.

    An image that `latenz hypervisor build` wrote has none: it gets those of the hypervisor in it.
    A Linux has them in a table of its own.

    Args:
        image: What is checked.
        given: Files with symbols, and the exception level of each.

    Raises:
        BadInput: A given file cannot be read, or has no symbols.
    """
    files = [named(path, level) for path, level in given]
    if not given:
        files += next(filter(None, (find(image) for find in (_own, _hypervisor_in, _linux))), [])
    return Names(tuple(files))


def _own(image: Path) -> list[Named]:
    try:
        return [named(image)]
    except BadInput:
        return []


def _linux(image: Path) -> list[Named]:
    try:
        return [Named(embedded_symbols(image), (), None)]
    except BadInput:
        return []


def _hypervisor_in(image: Path) -> list[Named]:
    from latenz.hypervisor.guest import hypervisor_for
    from latenz.hypervisor.image import read_image

    try:
        here = read_image(image).segments
        known = map(hypervisor_for, ("virt", "virt-gicv3"))
        return [named(each, 2) for each in known if read_image(each).segments[0] in here]
    except (BadInput, IndexError):
        return []
