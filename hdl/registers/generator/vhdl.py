# SPDX-License-Identifier: Apache-2.0
"""What the VHDL package and the register block agree on: names and types of record elements."""

from dataclasses import dataclass

from .model import Field, Kind, Map, Register


@dataclass(frozen=True)
class Element:
    """An element of to_hardware_t, and what the block assigns to it."""

    name: str
    type: str
    value: str


def index(register: Register) -> str:
    """The constant with the register's word address."""
    return f"{register.name}_index_c"


def bits(register: Register, field: Field) -> str:
    """The field's bits of a word, as a suffix; nothing if its element is the whole word."""
    if type_of(register, field) == "word_t":
        return ""
    return f"({field.low})" if field.width == 1 else f"({field.high} downto {field.low})"


def type_of(register: Register, field: Field) -> str:
    """The type of a field's element: a bit, a word if it is alone in its register, or a slice."""
    if field.width == 1:
        return "std_logic"
    if len(register.fields) == 1:
        return "word_t"
    return f"std_logic_vector({field.width - 1} downto 0)"


def from_hardware(registers: Map) -> list[tuple[str, str]]:
    """Names and types of the elements that the circuit drives."""
    rows = [
        (register.element(field), type_of(register, field))
        for register, field in registers.fields()
        if field.kind in (Kind.DRIVEN, Kind.STICKY)
    ]
    return rows + [
        (f"{register.name}_error", "std_logic")
        for register in registers.registers
        if register.read_error
    ]


def to_hardware(registers: Map) -> list[Element]:
    """The elements that the block drives."""
    elements = [
        element for register, field in registers.fields() for element in _of_field(register, field)
    ]
    return elements + [
        Element(
            f"{register.name}_delivered", "std_logic", f"{register.name}_pending and s_axi_rready"
        )
        for register in registers.registers
        if register.delivered
    ]


def _of_field(register: Register, field: Field) -> list[Element]:
    name = register.element(field)
    kind = type_of(register, field)
    part = bits(register, field)
    elements = []
    if field.kind is Kind.STORED:
        elements.append(Element(name, kind, f"{register.name}_value{part}"))
    if field.next_value:
        elements.append(Element(f"{name}_next", kind, f"{register.name}_next{part}"))
    if field.kind is Kind.COMMAND:
        elements.append(Element(name, kind, _writes_one(register, field)))
    if field.kind is Kind.STICKY:
        elements.append(Element(f"{name}_clear", kind, _writes_one(register, field)))
    if field.read_pulse:
        reads = f"read_accept and read_okay and to_bit(read_index = {index(register)})"
        elements.append(Element(f"{name}_read", "std_logic", reads))
    if field.written_pulse:
        lanes = f"s_axi_wstrb({field.high // 8} downto {field.low // 8})"
        written = f"writes({index(register)}) and (or {lanes})"
        elements.append(Element(f"{name}_written", "std_logic", written))
    return elements


def _writes_one(register: Register, field: Field) -> str:
    return f"writes({index(register)}) and ones({field.low})"
