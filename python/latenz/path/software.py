"""Which program an instruction belongs to, and what it does there.

What the functions of a program do stands in one TOML file for each kind of software in the folder
`software`: categories, each with patterns of symbols and the term of Eq. (1) of Alonso et al.,
Electronics 2024, 13, 1626 that it counts for.
"""

from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import Field

from latenz.path.symbols import Symbol, SymbolTable
from latenz.settings import Settings
from latenz.toml_file import read_toml

Kind = Literal["firmware", "xen", "linux", "hypervisor"]

_ARM_TABLE = 32  # bytes: eight instructions
_AARCH64_SPACING = 0x80


class Term(StrEnum):
    """What an instruction's time counts for: Eq. (1), t = t_irq + t_hyp + t_os + t_user."""

    IRQ = "t_irq"
    """The hardware raises the interrupt and the core takes it: no instruction does that."""
    HYP = "t_hyp"
    """The hypervisor."""
    OS = "t_os"
    """What lies between the vector and the handler: saved registers, dispatching, an OS."""
    USER = "t_user"
    """The handler itself, up to its first action."""
    OTHER_CPU = "other CPU"
    """Another virtual CPU had its turn meanwhile: an effect of the emulator, in no equation."""
    UNKNOWN = "unknown"
    """Code that belongs to no known program."""


class Category(Settings):
    """Functions that do one thing."""

    name: str = Field(min_length=1)
    term: Term | None = None
    symbols: tuple[str, ...] = Field(min_length=1)


class Description(Settings):
    """What the functions of a program do; the first category that fits counts."""

    term: Term
    """Of everything that no category says otherwise about."""
    vectors: tuple[str, ...] = Field(min_length=1)
    """Symbols that hold the exception vectors."""
    helpers: tuple[str, ...] = ()
    """Small functions that everyone calls; they count for the category of their caller."""
    category: tuple[Category, ...] = ()


@cache
def description(kind: Kind) -> Description:
    """Return the description of a kind of software."""
    path = Path(str(files("latenz.path"))) / "software" / f"{kind}.toml"
    return read_toml(path, Description, "a description of software").content


@dataclass(frozen=True)
class Place:
    """What an instruction is part of.

    Attributes:
        program: The program.
        symbol: Its function; an address where there is no symbol.
        term: What it counts for.
        category: What the function does; its own name where no category fits; None for helpers.
    """

    program: str
    symbol: str
    term: Term
    category: str | None


class Program:
    """An image with its symbols.

    Args:
        name: What it is called, such as "Xen".
        kind: Which description fits.
        symbols: Its symbols.
    """

    def __init__(self, name: str, kind: Kind, symbols: SymbolTable) -> None:
        self.name = name
        self.symbols = symbols
        self.description = description(kind)
        self._places: dict[Symbol, Place] = {}

    def place(self, symbol: Symbol) -> Place:
        """Return what a function is part of."""
        if symbol not in self._places:
            self._places[symbol] = self._find(symbol.name)
        return self._places[symbol]

    @cached_property
    def _vectors(self) -> list[Symbol]:
        return [each for each in self.symbols if _fits(each.name, self.description.vectors)]

    def in_vectors(self, address: int) -> bool:
        """Return whether an instruction lies among the exception vectors."""
        return any(each.address <= address < each.end for each in self._vectors)

    def is_vector(self, address: int) -> bool:
        """Return whether an exception may enter at an address."""
        for each in self._vectors:
            if each.address <= address < each.end:
                spacing = 4 if each.end - each.address == _ARM_TABLE else _AARCH64_SPACING
                return (address - each.address) % spacing == 0
        return False

    def _find(self, name: str) -> Place:
        for category in self.description.category:
            if _fits(name, category.symbols):
                term = category.term or self.description.term
                return Place(self.name, name, term, category.name)
        helper = _fits(name, self.description.helpers)
        return Place(self.name, name, self.description.term, None if helper else name)


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


class Software:
    """All programs whose symbols are known.

    Args:
        programs: In the order in which they are asked.
    """

    def __init__(self, *programs: Program) -> None:
        self.programs = programs

    def place(self, address: int) -> Place:
        """Return what an instruction is part of."""
        for program in self.programs:
            if (symbol := program.symbols.at(address)) is not None:
                return program.place(symbol)
        page = f"{address & ~0xFFF:#x}"
        return Place("unknown", page, Term.UNKNOWN, f"code at {page}")

    def is_vector(self, address: int) -> bool:
        """Return whether an exception may enter at an address."""
        return any(program.is_vector(address) for program in self.programs)

    def in_vectors(self, address: int) -> bool:
        """Return whether an instruction lies among exception vectors."""
        return any(program.in_vectors(address) for program in self.programs)
