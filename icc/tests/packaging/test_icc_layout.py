"""Every compiler lays a legal type out alike, as its own debug information says."""

import random
import re
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

ICC = Path(__file__).parents[2]
COMPILERS = {
    "x86-64": ("g++",),
    "aarch64": ("aarch64-linux-gnu-g++", "-mcpu=cortex-a53"),
    "armv7-r": ("arm-none-eabi-g++", "-mcpu=cortex-r5"),
}
LEAVES = (
    *(f"std::{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "float",
    "double",
    "char",
    "std::byte",
    "Small",
    "Wide",
)


class Element(NamedTuple):
    """One number in memory."""

    offset: int
    size: int
    kind: int
    name: str


def random_types(count: int, seed: int) -> str:
    """Structs of leaves, of earlier structs, and of arrays of both."""
    choose = random.Random(seed)
    types = []
    for index in range(count):
        members = []
        for _ in range(choose.randint(1, 5)):
            known = [f"T{i}" for i in range(max(0, index - 4), index)]
            part = (
                choose.choice(known) if known and choose.random() < 0.3 else choose.choice(LEAVES)
            )
            name = f"m{choose.randrange(10**6):06}"
            form = choose.choice(("{0} {1};",) * 5 + ("{0} {1}[3];", "std::array<{0}, 2> {1};"))
            if part in LEAVES and choose.random() < 0.2:
                form = choose.choice(("{0} {1}[5];", "{0} {1}[2][3];"))
            members.append(form.format(part, name))
        types.append(f"struct T{index} {{ {' '.join(members)} }};")
    return "\n".join(types)


def elements_of_table(data: bytes) -> list[Element]:
    found = []
    for offset, size, kind, count, stride, name in struct.iter_unpack("<IHBxII16s", data):
        dotted = re.sub(r"\[\d*(\]|$)", "", name.rstrip(b"\0").decode())
        found += [Element(offset + i * stride, size, kind, dotted) for i in range(count)]
    return sorted(found)


def type_of(die: DIE) -> DIE:
    die = die.get_DIE_from_attribute("DW_AT_type")
    return type_of(die) if die.tag == "DW_TAG_typedef" else die


def elements_of_debug_information(die: DIE, offset: int, name: str) -> list[Element]:
    if die.tag == "DW_TAG_array_type":
        part = type_of(die)
        total = 1
        for dimension in die.iter_children():
            total *= dimension.attributes["DW_AT_upper_bound"].value + 1
        one = elements_of_debug_information(part, 0, name)
        size = size_of(part)
        return [e._replace(offset=offset + i * size + e.offset) for i in range(total) for e in one]
    if die.tag in ("DW_TAG_structure_type", "DW_TAG_class_type"):
        found = []
        for member in die.iter_children():
            if member.tag == "DW_TAG_member":
                at = offset + member.attributes["DW_AT_data_member_location"].value
                own = member.attributes["DW_AT_name"].value.decode()
                inner = name if own == "_M_elems" else f"{name}.{own}"
                found += elements_of_debug_information(type_of(member), at, inner)
        return found
    size = die.attributes["DW_AT_byte_size"].value
    spelled = die.attributes["DW_AT_name"].value.decode()
    if spelled in ("char", "byte"):
        return [Element(offset, size, 4, name)]
    number = type_of(die) if die.tag == "DW_TAG_enumeration_type" else die
    signed = "unsigned" not in number.attributes["DW_AT_name"].value.decode()
    floating = spelled in ("float", "double")
    return [Element(offset, size, 3 if floating else 2 if signed else 1, name)]


def size_of(die: DIE) -> int:
    if "DW_AT_byte_size" in die.attributes:
        return int(die.attributes["DW_AT_byte_size"].value)
    return sum(e.size for e in elements_of_debug_information(die, 0, ""))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Objects by target, each with the tables and the debug information of the same types."""
    folder = tmp_path_factory.mktemp("layout")
    count = 25
    tables = "\n".join(
        f'[[gnu::section(".fields.{i}")]] extern constexpr auto fields_{i} ='
        f" latenz::icc::fields<T{i}>();\n"
        f'[[gnu::section(".whole.{i}")]] extern constexpr std::uint64_t whole_{i}[] ='
        f" {{latenz::icc::fingerprint<T{i}>(), sizeof(T{i}), alignof(T{i})}};\n"
        f"T{i} object_{i};"
        for i in range(count)
    )
    source = folder / "types.cpp"
    source.write_text(
        '#include "latenz/icc/wire_type.hpp"\n'
        "enum class Small : std::int8_t { a };\nenum Wide : std::uint32_t { b };\n"
        f"{random_types(count, seed=1)}\n{tables}\n"
    )
    objects = {}
    for target, command in COMPILERS.items():
        objects[target] = folder / f"{target}.o"
        flags = ("-std=c++20", "-ffreestanding", "-g", "-c", f"-I{ICC / 'include'}")
        subprocess.run((*command, *flags, source, "-o", objects[target]), check=True)
    return count, objects


def test_tables_and_fingerprints_are_the_same_bytes_for_all_targets(compiled):
    count, objects = compiled
    contents = []
    for path in objects.values():
        with path.open("rb") as file:
            elf = ELFFile(file)
            names = [f".{kind}.{i}" for kind in ("fields", "whole") for i in range(count)]
            contents.append([elf.get_section_by_name(name).data() for name in names])
    assert len(contents) == 3
    assert contents[0] == contents[1] == contents[2]
    fingerprints = {data[:8] for data in contents[0][count:]}
    assert len(fingerprints) == count


@pytest.mark.parametrize("target", COMPILERS)
def test_tables_say_what_the_debug_information_says(compiled, target):
    count, objects = compiled
    with objects[target].open("rb") as file:
        elf = ELFFile(file)
        dies = [die for unit in elf.get_dwarf_info().iter_CUs() for die in unit.iter_DIEs()]
        structs = {
            die.attributes["DW_AT_name"].value.decode(): die
            for die in dies
            if die.tag == "DW_TAG_structure_type" and "DW_AT_name" in die.attributes
        }
        for i in range(count):
            expected = sorted(elements_of_debug_information(structs[f"T{i}"], 0, ""))
            table = elements_of_table(elf.get_section_by_name(f".fields.{i}").data())
            assert [e[:3] for e in table] == [e[:3] for e in expected], f"T{i}"
            for ours, theirs in zip(table, expected, strict=True):
                assert theirs.name[1:].startswith(ours.name)
                assert len(ours.name) >= min(len(theirs.name) - 1, 7)


def layout(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run((ICC / "layout", *arguments), capture_output=True, text=True)


@pytest.fixture
def header(tmp_path):
    path = tmp_path / "robot.hpp"
    path.write_text(
        "#include <cstdint>\nnamespace robot {\n"
        "struct State { std::uint32_t cycle; double angle[6]; };\n"
        "struct Moved { long position; };\nstruct Counted { int count; };\n"
        "struct Open { const char* text; };\n}\n"
    )
    return path


def test_layout_shows_one_table_when_all_compilers_agree(header):
    shown = layout(header, "robot::State")
    assert shown.returncode == 0, shown.stderr
    assert "ARMv7-R" in shown.stdout
    assert "AArch64" in shown.stdout
    assert len(re.findall(r"^ +8  float64 +6 +8  angle$", shown.stdout, re.M)) == 1


def test_layout_fails_when_a_type_has_another_size_elsewhere(header):
    shown = layout(header, "robot::Moved")
    assert shown.returncode == 1
    assert re.search(r"int64 .* position\n", shown.stdout)
    assert re.search(r"int32 .* position\n", shown.stdout)
    assert "do not agree" in shown.stdout


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Open", "no pointer in a wire type"),
        ("Counted", "an integer of a wire type is spelled std::int8_t"),  # on ARMv7-R
    ],
)
def test_layout_fails_when_a_type_is_refused(header, name, reason):
    shown = layout(header, f"robot::{name}")
    assert shown.returncode == 1
    assert f"refused: {reason}" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("missing.hpp", "A"), "missing.hpp: no such header"),
        (("{header}", "A;int b"), "'A;int b' is not a name of a type"),
        (("{header}", "robot::Nobody"), "Nobody"),
    ],
)
def test_layout_says_in_one_line_what_is_wrong(header, arguments, complaint):
    shown = layout(*(argument.format(header=header) for argument in arguments))
    assert shown.returncode == 2
    assert complaint in shown.stderr
    assert shown.stderr.count("\n") == 1
