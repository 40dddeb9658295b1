# SPDX-License-Identifier: Apache-2.0
"""The Python back end: a module of offsets and fields of all maps."""

from .model import Map

_HEAD = '''\
# SPDX-License-Identifier: Apache-2.0
# Generated from hdl/registers/*.rdl by hdl/registers/generate: edit those, not this.
"""Registers of the IPs: byte offsets, and the fields within their words."""

from typing import NamedTuple


class Field(NamedTuple):
    """Bits low to low + width - 1 of the register at a byte offset."""

    offset: int
    low: int
    width: int

    def of(self, word: int) -> int:
        """Return the field's value in the register's word."""
        return (word >> self.low) & ((1 << self.width) - 1)

    def at(self, value: int) -> int:
        """Return the word whose only contents is this field's value.

        Raises:
            ValueError: the value does not fit.
        """
        if not 0 <= value < 1 << self.width:
            raise ValueError(f"{value} does not fit in {self.width} bits")
        return value << self.low
'''


def module(maps: list[Map]) -> str:
    """The module latenz.ip.registers."""
    return _HEAD + "\n" + "".join(_tables(registers) for registers in maps)


def _tables(registers: Map) -> str:
    name = registers.name.upper()
    offsets = [
        f'    "{register.name}": 0x{register.address:02X},' for register in registers.registers
    ]
    fields = [
        f'    "{register.element(field)}": '
        f"Field(0x{register.address:02X}, {field.low}, {field.width}),"
        for register, field in registers.fields()
    ]
    return "\n".join(
        [
            "",
            f"{name}_OFFSETS = {{",
            *offsets,
            "}",
            "",
            f"{name}_FIELDS = {{",
            *fields,
            "}",
            "",
        ]
    )
