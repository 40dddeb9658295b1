# SPDX-License-Identifier: Apache-2.0
"""The VHDL package: word addresses, and the records between block and circuit."""

from .model import WORD_BYTES, Map
from .text import aligned, comment, origin
from .vhdl import from_hardware, index, to_hardware


def package(registers: Map) -> str:
    """The package <name>_registers_pkg."""
    name = f"{registers.name}_registers_pkg"
    indices = [
        (f"constant {index(register)}", f"natural := {register.address // WORD_BYTES};")
        for register in registers.registers
    ]
    lines = [
        "-- SPDX-License-Identifier: Apache-2.0",
        *comment(
            f"{registers.title}: addresses, and what passes between block and circuit.", "-- "
        ),
        "-- Not for software: it has a C++ header and a Python module from the same source.",
        f"-- See ../doc/{registers.name}.md.",
        *comment(origin(registers.source), "-- "),
        "",
        "library ieee;",
        "    use ieee.std_logic_1164.all;",
        "",
        f"package {name} is",
        "",
        "    subtype word_t is std_logic_vector(31 downto 0);",
        "",
        "    -- Word addresses: byte addresses / 4.",
        *aligned(indices, "    ", ":"),
        "",
        *comment(
            "From the circuit to the register block. Words are zero where the circuit has no bits. "
            "_error: a read answers SLVERR.",
            "    -- ",
        ),
        *_record("from_hardware_t", from_hardware(registers)),
        "",
        *comment(
            "From the register block to the circuit. _next: the value after the coming clock edge; "
            "_clear: software writes 1; _read, _written: software does so in this cycle; "
            "_delivered: the data read are handed over in this cycle. "
            "Meaningless while aresetn is low.",
            "    -- ",
        ),
        *_record("to_hardware_t", [(one.name, one.type) for one in to_hardware(registers)]),
        "",
        f"end package {name};",
    ]
    return "\n".join(lines) + "\n"


def _record(name: str, rows: list[tuple[str, str]]) -> list[str]:
    elements = aligned([(left, f"{right};") for left, right in rows], "        ", ":")
    return [f"    type {name} is record", *elements, f"    end record {name};"]
