# SPDX-License-Identifier: Apache-2.0
"""A register map as the back ends need it, read from SystemRDL.

Errors: a map that says something the back ends cannot express raises `MapError` with one line.
"""

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from systemrdl.compiler import RDLCompiler
from systemrdl.node import AddrmapNode, FieldNode, RegNode
from systemrdl.rdltypes.builtin_enums import AccessType, OnWriteType

WORD_BITS = 32
WORD_BYTES = 4


class MapError(Exception):
    """A register map that cannot be generated: what is wrong and where, in one line."""


class Kind(enum.Enum):
    """Who owns a field's value, and what a write does."""

    CONSTANT = "constant"  # nobody changes it
    DRIVEN = "driven"  # hardware drives it, software reads
    STORED = "stored"  # software writes it, the block keeps it, hardware reads
    STICKY = "sticky"  # hardware sets and keeps it, writing 1 asks hardware to clear it
    COMMAND = "command"  # 1 for the cycle of the write, reads 0


@dataclass(frozen=True)
class Generic:
    """A VHDL generic of the block: the map's parameter of the same name."""

    name: str
    default: bool | int


@dataclass(frozen=True)
class Field:
    """Bits high..low of a register.

    `implemented_bits`: VHDL expression, or None for all; `reset_generic`: or None for `reset`.
    """

    name: str
    description: str
    high: int
    low: int
    kind: Kind
    reset: int
    implemented_bits: str | None
    reset_generic: str | None
    next_value: bool
    read_pulse: bool
    written_pulse: bool

    @property
    def width(self) -> int:
        """Number of bits."""
        return self.high - self.low + 1

    @property
    def mask(self) -> int:
        """The field's bits within the word."""
        return ((1 << self.width) - 1) << self.low

    @property
    def writable(self) -> bool:
        """Whether a write has any effect."""
        return self.kind in (Kind.STORED, Kind.STICKY, Kind.COMMAND)


@dataclass(frozen=True)
class Register:
    """A 32-bit register at a byte address. `present_when`: SystemRDL condition, or None."""

    name: str
    title: str
    address: int
    present_when: str | None
    read_error: bool
    delivered: bool
    fields: tuple[Field, ...]

    @property
    def writable(self) -> bool:
        """Whether software may write it."""
        return any(field.writable for field in self.fields)

    @property
    def stored(self) -> bool:
        """Whether the block keeps some of it."""
        return any(field.kind is Kind.STORED for field in self.fields)

    @property
    def reset_known(self) -> bool:
        """Whether it reads the same after every reset, whatever the circuit is."""
        return all(
            field.kind is not Kind.DRIVEN and field.reset_generic is None for field in self.fields
        )

    @property
    def reset(self) -> int:
        """The word after reset, with every generic at its largest."""
        return sum(field.reset << field.low for field in self.fields)

    def element(self, field: Field) -> str:
        """Name of a field in the records: the register's alone if it has one field only."""
        return self.name if len(self.fields) == 1 else f"{self.name}_{field.name}"


@dataclass(frozen=True)
class Map:
    """A whole register map, every register present."""

    name: str
    title: str
    description: str
    source: str
    generics: tuple[Generic, ...]
    registers: tuple[Register, ...]

    def fields(self) -> Iterator[tuple[Register, Field]]:
        """Every field with its register, in the order of addresses."""
        for register in self.registers:
            for field in register.fields:
                yield register, field


def compile_map(source: Path, generics: dict[str, bool | int] | None = None) -> AddrmapNode:
    """Elaborate a map with some generics given, the others at their defaults."""
    compiler = RDLCompiler()
    compiler.compile_file(str(source))
    return compiler.elaborate(parameters=dict(generics or {})).top


def generics_of(source: Path) -> tuple[Generic, ...]:
    """The generics of a map with their defaults."""
    parameters = compile_map(source).inst.parameters
    return tuple(Generic(parameter.name, parameter.get_value()) for parameter in parameters)


def everything(source: Path) -> dict[str, bool | int]:
    """Generics with which every register and bit exists: booleans true, the greatest widths."""
    widest = {"latency_width_g": 48, "address_width_g": 64}
    return {
        generic.name: isinstance(generic.default, bool) or widest.get(generic.name, generic.default)
        for generic in generics_of(source)
    }


def read(source: Path) -> Map:
    """Read a map with all its registers."""
    top = compile_map(source, everything(source))
    registers = tuple(_register(node) for node in top.registers())
    if not registers:
        raise MapError(f"{source}: no registers")
    return Map(
        name=top.inst_name,
        title=top.get_property("name"),
        description=top.get_property("desc") or "",
        source=source.name,
        generics=generics_of(source),
        registers=registers,
    )


def _register(node: RegNode) -> Register:
    if node.get_property("regwidth") != WORD_BITS or node.is_array:
        raise MapError(f"{node.get_path()}: only single registers of 32 bits")
    fields = tuple(_field(field) for field in node.fields())
    for field in fields:
        generic = field.implemented_bits is not None or field.reset_generic is not None
        if generic and (len(fields) > 1 or field.low != 0 or field.kind is not Kind.STORED):
            raise MapError(
                f"{node.get_path()}.{field.name}: implemented_bits and reset_generic are for a "
                "field that software writes and hardware reads, alone in its register, from bit 0"
            )
    return Register(
        name=node.inst_name,
        title=node.get_property("name"),
        address=node.absolute_address,
        present_when=node.get_property("present_when"),
        read_error=bool(node.get_property("read_error")),
        delivered=bool(node.get_property("delivered")),
        fields=fields,
    )


def _field(node: FieldNode) -> Field:
    kind = _kind(node)
    reset = node.get_property("reset")
    if kind in (Kind.CONSTANT, Kind.STORED) and not isinstance(reset, int):
        raise MapError(f"{node.get_path()}: give it a value, as in field[7:0] = 0")
    if kind is Kind.STICKY and node.width > 1:
        raise MapError(f"{node.get_path()}: a bit that hardware sets is a field of one bit")
    return Field(
        name=node.inst_name,
        description=node.get_property("desc") or "",
        high=node.high,
        low=node.low,
        kind=kind,
        reset=reset if isinstance(reset, int) else 0,
        implemented_bits=node.get_property("implemented_bits"),
        reset_generic=node.get_property("reset_generic"),
        next_value=bool(node.get_property("next_value")),
        read_pulse=bool(node.get_property("swacc")),
        written_pulse=bool(node.get_property("swmod")),
    )


def _kind(node: FieldNode) -> Kind:
    software = node.get_property("sw")
    hardware = node.get_property("hw")
    if node.get_property("singlepulse"):
        return Kind.COMMAND
    if node.get_property("onwrite") is OnWriteType.woclr and node.get_property("hwset"):
        return Kind.STICKY
    if (software, hardware) == (AccessType.r, AccessType.na):
        return Kind.CONSTANT
    if (software, hardware) == (AccessType.r, AccessType.w):
        return Kind.DRIVEN
    if (software, hardware) == (AccessType.rw, AccessType.r):
        return Kind.STORED
    raise MapError(
        f"{node.get_path()}: sw = {software.name}, hw = {hardware.name} is none of: "
        "r/na constant, r/w driven, rw/r stored, woclr with hwset, singlepulse"
    )
