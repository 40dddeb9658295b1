"""The hypervisor is quiet as it is, and each piece of maintenance that it does is needed."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from latenz.coherence import Machine, check
from latenz.hypervisor.build import build
from latenz.hypervisor.guest import installed
from latenz.hypervisor.image import Image, read_image, write_image
from latenz.hypervisor.run import ensure_built
from latenz.path.symbols import elf_symbols

SYSTEM = """
[platform]
slot_switch = "20 us"
monitor = "1 us"
schedule = "2 us"
context_switch = "5 us"
[policy]
mode = "carry"
[[slot]]
partition = "witness"
length = "300 us"
[[slot]]
partition = "victim"
length = "200 us"
[[source]]
name = "watched"
partition = "witness"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "400 us" }}
monitor = {{ distances = ["300 us"] }}
[[partition]]
name = "witness"
guest = "{witness}"
memory = "2 MiB"
[[partition]]
name = "victim"
guest = "victim"
memory = "2 MiB"
watchdog = "1 s"
"""
NOP = 0xD503201F
BY_ADDRESS = {0xD50B7A20, 0xD50B7E20, 0xD5087620}
"""DC CVAC, CIVAC and IVAC of register 0."""
OTHERS = {"guest_loader", "latenz::hypervisor::Partition::tell_first_slot(unsigned long)"}
"""Executed by a guest, on its own memory, which the guests here never read through caches; and for
guests that read when the first slot began past the caches, which none here does."""


@pytest.fixture(scope="module")
def system(tmp_path_factory) -> Path:
    ensure_built()
    folder = tmp_path_factory.mktemp("system")
    path = folder / "system.toml"
    path.write_text(SYSTEM.format(witness=installed("guests/witness.bin")))
    built = build(path, irqs=20, seed=1)
    for bench in ("virt", "virt-gicv3", "zcu102"):
        built.write(folder / f"{bench}.elf", bench)
    return folder


def maintenance() -> list[tuple[int, str]]:
    """Return address and function of each piece of maintenance by address that EL2 does."""
    hypervisor = installed("hypervisor.elf")
    symbols = elf_symbols(hypervisor)
    code = read_image(hypervisor).segments[0]
    found = []
    for at, (word,) in enumerate(struct.iter_unpack("<I", code.content[: len(code.content) & ~3])):
        symbol = symbols.at(code.address + 4 * at)
        if word & ~0x1F in BY_ADDRESS and symbol is not None and symbol.name not in OTHERS:
            found.append((code.address + 4 * at, symbol.name))
    return found


def without(image: Image, address: int) -> Image:
    """Return an image that does nothing instead of one instruction."""
    code, *rest = image.segments
    at = address - code.address
    content = code.content[:at] + NOP.to_bytes(4, "little") + code.content[at + 4 :]
    return Image(image.entry, (replace(code, content=content), *rest))


@pytest.mark.parametrize("bench", ["virt", "virt-gicv3", "zcu102"])
def test_the_hypervisor_is_quiet(system, bench):
    found = check(Machine(system / f"{bench}.elf", bench, limit_s=120))
    assert found.places == ()
    assert found.accesses is not None
    assert found.accesses > 100_000, "it ran"
    assert found.notes == ("the program switched the board off",)


def test_each_piece_of_maintenance_is_needed(system, tmp_path):
    names = ((installed("hypervisor.elf"), 2),)
    kinds = set()
    removed = maintenance()
    assert len(removed) >= 3
    for address, function in removed:
        path = tmp_path / f"{address:x}.elf"
        write_image(without(read_image(system / "virt.elf"), address), path)
        found = check(Machine(path, limit_s=120), names).places
        assert found, f"without the maintenance in {function} nothing was found"
        kinds |= {(each.cause, each.reading, level(each.written_by)) for each in found}
    assert ("stale", "walk", 2) in kinds, "tables that were written with the MMU off"
    assert ("dirty", "load", 2) in kinds, "the page from which a guest learns of its machine"
    assert ("stale", "load", 1) in kinds, "the page in which a guest reports its progress"


def level(party: str) -> int:
    """Return the exception level of who wrote."""
    return int(party.partition("(EL")[2][0])
