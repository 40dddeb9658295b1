# SPDX-License-Identifier: Apache-2.0
"""Two register blocks of one map side by side: ours, and the one PeakRDL generates.

Written from SystemRDL's own elaboration: the generator of our block has no part in it. PeakRDL's
block lives in the folder of the run only.

What PeakRDL cannot express, and the comparison therefore leaves out: a read that hardware refuses
(`read_error`), `_delivered`, and the low two address bits in its responses. `_next` has no
counterpart either: the wrapper asserts that it is what the field is after the edge. A command of
ours is a pulse in the cycle of the write, theirs is one in the cycle after: pulses are counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from peakrdl_regblock_vhdl import RegblockExporter
from peakrdl_regblock_vhdl.cpuif.axi4lite import AXI4Lite_Cpuif_flattened
from peakrdl_regblock_vhdl.identifier_filter import kw_filter
from peakrdl_regblock_vhdl.udps import ALL_UDPS
from systemrdl.compiler import RDLCompiler
from systemrdl.node import AddrmapNode, FieldNode
from systemrdl.rdltypes.builtin_enums import AccessType

HDL = Path(__file__).resolve().parents[2]
COUNT_BITS = 16  # of each counter of pulses


def elaborate(name: str, generics: dict[str, bool | int]) -> AddrmapNode:
    """Return a map as SystemRDL elaborates it: absent registers are not in it."""
    compiler = RDLCompiler()
    for each in ALL_UDPS:
        compiler.register_udp(each)
    compiler.compile_file(str(HDL / f"registers/{name}.rdl"))
    return compiler.elaborate(parameters=dict(generics)).top


@dataclass(frozen=True)
class Part:
    """A field in the wrapper: its name in our records, and in theirs."""

    node: FieldNode

    @property
    def ours(self) -> str:
        """The element of our records."""
        register = self.node.parent
        alone = len(register.fields()) == 1
        return register.inst_name if alone else f"{register.inst_name}_{self.node.inst_name}"

    @property
    def slice(self) -> str:
        """The bits of our element: a register's only field lies in a word."""
        if len(self.node.parent.fields()) > 1 or self.node.width == 1:
            return ""
        return f"({self.node.high} downto {self.node.low})"

    @property
    def unused(self) -> list[int]:
        """Bits of our element that are not the field's."""
        return [
            bit for bit in range(32) if self.slice and not self.node.low <= bit <= self.node.high
        ]

    @property
    def theirs(self) -> str:
        """The field's record of theirs."""
        return f"{kw_filter(self.node.parent.inst_name)}.{kw_filter(self.node.inst_name)}"

    @property
    def driven(self) -> bool:
        """Whether hardware drives what software reads."""
        return (self.node.get_property("sw"), self.node.get_property("hw")) == (
            AccessType.r,
            AccessType.w,
        )

    @property
    def sticky(self) -> bool:
        """Whether hardware sets what software clears."""
        return bool(self.node.get_property("hwset"))

    @property
    def stored(self) -> bool:
        """Whether software writes what hardware reads."""
        return not (self.driven or self.sticky or self.command) and bool(self.node.is_hw_readable)

    @property
    def command(self) -> bool:
        """Whether it is a pulse."""
        return bool(self.node.get_property("singlepulse"))


class Wrapper:
    """The VHDL entity side_by_side, and where each field is in its vectors."""

    def __init__(self, name: str, generics: dict[str, bool | int]) -> None:
        self.name = name
        self.generics = generics
        top = elaborate(name, generics)
        self.parts = [Part(field) for register in top.registers() for field in register.fields()]
        self.refusing = [
            register.inst_name
            for register in elaborate(name, generics).registers()
            if register.get_property("read_error")
        ]

    def inputs(self) -> list[Part]:
        """Fields in `drive`, from bit 0 on."""
        return [part for part in self.parts if part.driven or part.sticky]

    def values(self) -> list[Part]:
        """Fields in `ours_values` and `theirs_values`, from bit 0 on."""
        return [part for part in self.parts if part.stored or part.sticky]

    def pulses(self) -> list[tuple[str, str]]:
        """Our and their pulses, which the wrapper counts."""
        pairs = []
        for part in self.parts:
            if part.command:
                pairs.append((f"to_hardware.{part.ours}", f"hwif_out.{part.theirs}.value"))
            if part.node.get_property("swacc"):
                pairs.append((f"to_hardware.{part.ours}_read", f"hwif_out.{part.theirs}.swacc"))
            if part.node.get_property("swmod"):
                pairs.append((f"to_hardware.{part.ours}_written", f"hwif_out.{part.theirs}.swmod"))
        return pairs

    def write(self, folder: Path) -> list[Path]:
        """Write all sources into a folder; return them in compile order."""
        RegblockExporter().export(
            elaborate(self.name, self.generics),
            str(folder),
            cpuif_cls=AXI4Lite_Cpuif_flattened,
            err_if_bad_addr=True,
            err_if_bad_rw=True,
            copy_utils_pkg=True,
            address_width=12,
            module_name="theirs",
            package_name="theirs_pkg",
        )
        wrapper = folder / "side_by_side.vhd"
        wrapper.write_text(self._text())
        rtl = HDL / self.name / "rtl"
        return [
            rtl / f"{self.name}_registers_pkg.vhd",
            rtl / f"{self.name}_register_block.vhd",
            folder / "reg_utils.vhd",
            folder / "theirs_pkg.vhd",
            folder / "theirs.vhd",
            wrapper,
        ]

    def _text(self) -> str:
        pulses = self.pulses()
        counts = max(1, len(pulses)) * COUNT_BITS
        return _WRAPPER.format(
            name=self.name,
            ports="".join(_ports(side) for side in ("ours", "theirs")),
            drive=_bits(self.inputs()) - 1,
            values=_bits(self.values()) - 1,
            counts=counts - 1,
            sticky=max(0, sum(part.sticky for part in self.parts) - 1),
            generics=self._generics(),
            ours_axi=_association("s_axi", "ours"),
            theirs_axi=_association("s_axil", "theirs"),
            wiring="\n".join(self._wiring()),
            keeping="\n".join(self._keeping()),
            counting="\n".join(
                line for number, pair in enumerate(pulses) for line in _count(number, pair)
            ),
            nexts="\n".join(self._nexts()),
        )

    def _generics(self) -> str:
        if not self.generics:
            return ""
        values = ", ".join(
            f"{name} => {str(value).lower()}" for name, value in self.generics.items()
        )
        return f"generic map ({values})"

    def _wiring(self) -> Iterator[str]:
        sticky = iter(range(len(self.parts)))
        stuck = {part.ours: next(sticky) for part in self.parts if part.sticky}
        for part, bits in _placed(self.inputs()):
            if part.sticky:
                yield f"from_hardware.{part.ours} <= sticky({stuck[part.ours]});"
                yield f"hwif_in.{part.theirs}.hwset <= drive({bits[0]});"
            else:
                yield f"from_hardware.{part.ours}{part.slice} <= drive{_slice(part, bits)};"
                yield f"hwif_in.{part.theirs}.next_q <= drive{_slice(part, bits)};"
                for bit in part.unused:
                    yield f"from_hardware.{part.ours}({bit}) <= '0';"
        for part, bits in _placed(self.values()):
            value = f"sticky({stuck[part.ours]})" if part.sticky else f"to_hardware.{part.ours}"
            yield f"ours_values{_slice(part, bits)} <= {value}{part.slice};"
            yield f"theirs_values{_slice(part, bits)} <= hwif_out.{part.theirs}.value;"
        for name in self.refusing:
            yield f"from_hardware.{name}_error <= '0';"

    def _keeping(self) -> Iterator[str]:
        """What the circuit around our block does with sticky bits: setting wins."""
        number = 0
        for part, bits in _placed(self.inputs()):
            if part.sticky:
                kept = f"sticky({number}) and not to_hardware.{part.ours}_clear"
                yield f"sticky({number}) <= drive({bits[0]}) or ({kept});"
                number += 1

    def _nexts(self) -> Iterator[str]:
        for part in self.parts:
            if part.node.get_property("next_value"):
                expected = f"expected_{part.ours}"
                kind = "std_logic" if part.node.width == 1 else "std_logic_vector(31 downto 0)"
                yield f"""\
    check_{part.ours}_next : process (aclk) is
        variable {expected} : {kind};
        variable known : boolean := false;
    begin
        if rising_edge(aclk) then
            assert not known or to_hardware.{part.ours} = {expected}
                report "{part.ours}_next was not what {part.ours} became"
                severity failure;
            {expected} := to_hardware.{part.ours}_next;
            known := aresetn = '1';
        end if;
    end process;"""


def _bits(parts: list[Part]) -> int:
    return sum(part.node.width for part in parts)


def _placed(parts: list[Part]) -> Iterator[tuple[Part, range]]:
    """Each field with its bits in the vector of such fields."""
    low = 0
    for part in parts:
        yield part, range(low, low + part.node.width)
        low += part.node.width


def _slice(part: Part, bits: range) -> str:
    return f"({bits[0]})" if part.node.width == 1 else f"({bits[-1]} downto {bits[0]})"


def _count(number: int, pair: tuple[str, str]) -> Iterator[str]:
    bits = f"({number * COUNT_BITS + COUNT_BITS - 1} downto {number * COUNT_BITS})"
    for side, pulse in zip(("ours", "theirs"), pair, strict=True):
        counter = f"{side}_counts{bits}"
        yield f"if {pulse} = '1' then"
        yield f"    {counter} <= std_logic_vector(unsigned({counter}) + 1);"
        yield "end if;"


_CHANNELS = {
    "awaddr": ("in", "std_logic_vector(11 downto 0)"),
    "awprot": ("in", "std_logic_vector(2 downto 0)"),
    "awvalid": ("in", "std_logic"),
    "awready": ("out", "std_logic"),
    "wdata": ("in", "std_logic_vector(31 downto 0)"),
    "wstrb": ("in", "std_logic_vector(3 downto 0)"),
    "wvalid": ("in", "std_logic"),
    "wready": ("out", "std_logic"),
    "bresp": ("out", "std_logic_vector(1 downto 0)"),
    "bvalid": ("out", "std_logic"),
    "bready": ("in", "std_logic"),
    "araddr": ("in", "std_logic_vector(11 downto 0)"),
    "arprot": ("in", "std_logic_vector(2 downto 0)"),
    "arvalid": ("in", "std_logic"),
    "arready": ("out", "std_logic"),
    "rdata": ("out", "std_logic_vector(31 downto 0)"),
    "rresp": ("out", "std_logic_vector(1 downto 0)"),
    "rvalid": ("out", "std_logic"),
    "rready": ("in", "std_logic"),
}


def _ports(side: str) -> str:
    return "".join(
        f"        {side}_axi_{name} : {direction} {kind};\n"
        for name, (direction, kind) in _CHANNELS.items()
    )


def _association(prefix: str, side: str) -> str:
    return ", ".join(f"{prefix}_{name} => {side}_axi_{name}" for name in _CHANNELS)


_WRAPPER = """\
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
use work.{name}_registers_pkg.all;

entity side_by_side is
    port (
        aclk, aresetn : in std_logic;
{ports}        drive : in std_logic_vector({drive} downto 0);
        ours_values, theirs_values : out std_logic_vector({values} downto 0);
        ours_counts, theirs_counts : out std_logic_vector({counts} downto 0)
            := (others => '0')
    );
end entity;

architecture test of side_by_side is
    signal from_hardware : from_hardware_t;
    signal to_hardware : to_hardware_t;
    signal hwif_in : work.theirs_pkg.{name}_in_t;
    signal hwif_out : work.theirs_pkg.{name}_out_t;
    signal sticky : std_logic_vector({sticky} downto 0) := (others => '0');
    signal reset : std_logic;
begin
    reset <= not aresetn;
    ours : entity work.{name}_register_block {generics}
        port map (aclk => aclk, aresetn => aresetn, {ours_axi},
                  from_hardware => from_hardware, to_hardware => to_hardware);
    theirs : entity work.theirs
        port map (clk => aclk, rst => reset, {theirs_axi},
                  hwif_in => hwif_in, hwif_out => hwif_out);

{wiring}

    process (aclk) is
    begin
        if rising_edge(aclk) then
{keeping}
            if aresetn = '1' then
{counting}
            else
                sticky <= (others => '0');
            end if;
        end if;
    end process;

{nexts}
end architecture;
"""
