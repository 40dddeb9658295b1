# SPDX-License-Identifier: Apache-2.0
"""The C++ back end: a freestanding header of offsets, masks, shifts and reset values."""

from .model import Field, Map, Register
from .text import comment, origin, sentence

_TYPE = "inline constexpr std::uint32_t"


def header(registers: Map) -> str:
    """The header latenz/ip/registers/<name>.hpp."""
    lines = [
        "// SPDX-License-Identifier: Apache-2.0",
        *comment(
            f"{registers.title}: byte offsets, and where the fields are: value = (word & mask) >> "
            f"shift. Resets are those of an IP with everything. {registers.description}",
            "// ",
        ),
        *comment(origin(registers.source), "// "),
        "#pragma once",
        "",
        "#include <cstdint>",
        "",
        f"namespace latenz::ip::registers::{registers.name} {{",
        "",
    ]
    for register in registers.registers:
        lines += [*_register(register), ""]
    lines.append(f"}}  // namespace latenz::ip::registers::{registers.name}")
    return "\n".join(lines) + "\n"


def _register(register: Register) -> list[str]:
    lines = [
        *comment(sentence(register), "/// "),
        f"{_TYPE} {register.name}_offset = 0x{register.address:02X};",
    ]
    if register.reset_known:
        lines.append(f"{_TYPE} {register.name}_reset = 0x{register.reset:08X};")
    for field in register.fields:
        lines += _field(register, field)
    return lines


def _field(register: Register, field: Field) -> list[str]:
    name = register.element(field)
    return [
        *comment(field.description, "/// "),
        f"{_TYPE} {name}_mask = 0x{field.mask:08X};",
        f"{_TYPE} {name}_shift = {field.low};",
    ]
