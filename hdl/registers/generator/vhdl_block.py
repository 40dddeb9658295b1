# SPDX-License-Identifier: Apache-2.0
"""The VHDL register block: register_block.vhd.in, filled in.

Plain VHDL-2008 that ghdl --synth turns into small netlists: no case statement, only as many address
bits decoded as the present registers need, read data cleared by the flip-flops' own reset.
"""

from pathlib import Path
from string import Template

from .model import WORD_BYTES, Field, Kind, Map, Register
from .text import aligned, assignment, comment, origin, vhdl_condition
from .vhdl import bits, index, to_hardware

_TEMPLATE = Path(__file__).with_name("register_block.vhd.in")


_LOW_BITS = """\
    -- A word with its lowest bits set.
    function low_bits (bits : natural) return word_t is
        variable word : word_t := (others => '0');
    begin
        for i in word'range loop
            if i < bits then
                word(i) := '1';
            end if;
        end loop;
        return word;
    end function low_bits;

"""


def block(registers: Map) -> str:
    """The entity <name>_register_block."""
    stored = [register for register in registers.registers if register.stored]
    delivered = [register.name for register in registers.registers if register.delivered]
    parts = {
        "title": comment(f"{registers.title}: the AXI4-Lite slave.", "-- "),
        "origin": comment(origin(registers.source), "-- "),
        "generics": _generics(registers),
        "present": _flags(list(registers.registers)),
        "writable": _flags([register for register in registers.registers if register.writable]),
        "low_bits": [_LOW_BITS] if any(_is_narrowed(one) for one in stored) else [],
        "driven": _driven(registers),
        "declarations": [line for register in stored for line in _declaration(register)],
        "pending_signals": [f"    signal {name}_pending : std_logic := '0';" for name in delivered],
        "read_okay": _read_okay(registers),
        "next_values": [line for register in stored for line in _next_value(register)],
        "elements": [
            line
            for element in to_hardware(registers)
            for line in assignment(f"to_hardware.{element.name}", element.value, "    ")
        ],
        "keep": [f"            {one.name}_value <= {one.name}_next;" for one in stored],
        "reset": [f"                {one.name}_value <= {one.name}_reset_c;" for one in stored],
        "kept": _kept(registers),
        "pending": [line for name in delivered for line in _pending(name)],
    }
    filled = {name: "\n".join(lines) for name, lines in parts.items()}
    template = Template(_TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(filled, name=registers.name, highest=_highest(registers))


def _highest(registers: Map) -> int:
    """The highest word address of the smallest power of two that holds all registers."""
    words = registers.registers[-1].address // WORD_BYTES + 1
    return (1 << (words - 1).bit_length()) - 1


def _generics(registers: Map) -> list[str]:
    rows = [
        (generic.name, f"boolean := {str(generic.default).lower()}")
        if isinstance(generic.default, bool)
        else (generic.name, f"positive := {generic.default}")
        for generic in registers.generics
    ]
    if not rows:
        return []
    lines = aligned(rows, "        ", ":")
    return ["    generic (", *[f"{line};" for line in lines[:-1]], lines[-1], "    );"]


def _flags(registers: list[Register]) -> list[str]:
    return aligned(
        [(index(register), f"{_present(register)},") for register in registers], "        ", "=>"
    )


def _present(register: Register) -> str:
    if register.present_when is None:
        return "'1'"
    return f"to_bit({vhdl_condition(register.present_when)})"


def _driven(registers: Map) -> list[str]:
    """Assignments of constants, and of what the circuit drives, to what reads return."""
    lines = []
    for register, field in registers.fields():
        part = f"        words({index(register)}){bits(register, field)}"
        if field.kind is Kind.CONSTANT:
            lines.append(f"{part} := {_literal(field)};")
        elif field.kind in (Kind.DRIVEN, Kind.STICKY):
            lines.append(f"{part} := circuit.{register.element(field)};")
    return lines


def _literal(field: Field) -> str:
    quote = "'" if field.width == 1 else '"'
    return f"{quote}{field.reset:0{field.width}b}{quote}"


def _declaration(register: Register) -> list[str]:
    name = register.name
    return [
        f"    constant {name}_bits_c  : word_t := {_implemented(register)};",
        f"    constant {name}_reset_c : word_t := {_reset(register)} and {name}_bits_c;",
        f"    signal   {name}_value   : word_t := {name}_reset_c;",
        f"    signal   {name}_next    : word_t;",
        "",
    ]


def _is_narrowed(register: Register) -> bool:
    """Whether a generic says how many of its bits there are."""
    return register.fields[0].implemented_bits is not None


def _implemented(register: Register) -> str:
    """The bits of a register that have flip-flops, as a VHDL expression."""
    if _is_narrowed(register):
        return f"low_bits({register.fields[0].implemented_bits})"
    mask = sum(field.mask for field in register.fields if field.kind is Kind.STORED)
    return f'x"{mask:08X}"'


def _reset(register: Register) -> str:
    """The word after reset, as a VHDL expression."""
    if register.fields[0].reset_generic is not None:
        return f"std_logic_vector(to_unsigned({register.fields[0].reset_generic}, 32))"
    return f'x"{register.reset:08X}"'


def _read_okay(registers: Map) -> list[str]:
    lines = [
        "    read_okay   <= is_set(present_c, read_index) and",
        "        (nor s_axi_araddr(11 downto decoded_bits_c + 2))",
    ]
    for register in registers.registers:
        if register.read_error:
            lines[-1] += " and"
            lines.append(
                f"        not (from_hardware.{register.name}_error"
                f" and to_bit(read_index = {index(register)}))"
            )
    return [*lines[:-1], f"{lines[-1]};"]


def _next_value(register: Register) -> list[str]:
    name = register.name
    return [
        f"    {name}_next <= {name}_bits_c and",
        f"        merged({name}_value, s_axi_wdata, s_axi_wstrb, writes({index(register)}));",
        "",
    ]


def _kept(registers: Map) -> list[str]:
    """Assignments of what the block keeps to what reads return."""
    lines = []
    for register, field in registers.fields():
        if field.kind is Kind.STORED:
            part = bits(register, field)
            lines.append(
                f"                words({index(register)}){part} := {register.name}_value{part};"
            )
    return lines


def _pending(name: str) -> list[str]:
    """A process: whether the data that wait for rready are this register's."""
    return f"""
    remember_{name} : process (aclk) is
    begin

        if rising_edge(aclk) then
            if read_accept = '1' then
                {name}_pending <= read_okay and to_bit(read_index = {name}_index_c);
            elsif s_axi_rready = '1' then
                {name}_pending <= '0';
            end if;
            if aresetn = '0' then
                {name}_pending <= '0';
            end if;
        end if;

    end process remember_{name};
""".splitlines()
