"""A stack of EL2 that has no room left ends in a message that names it, wherever it happens."""

import re
import struct

import pytest
from debugger import symbols
from elftools.elf.elffile import ELFFile
from small_guests import built_small

from latenz.errors import BadInput
from latenz.hypervisor.run import boot

RECURSION = (0xA9B07BFD, 0x97FFFFFF)
"""stp x29, x30, [sp, #-256]!; bl to that: what a function does that calls itself without end."""


def planted(image, symbol):
    """Put a function that calls itself without end where another one begins."""
    (address,) = (at for name, at in symbols().items() if name.startswith(symbol))
    content = bytearray(image.read_bytes())
    for each in ELFFile(image.open("rb")).iter_segments():
        if each["p_type"] == "PT_LOAD" and 0 <= address - each["p_paddr"] < each["p_filesz"]:
            struct.pack_into(
                "<2I", content, each["p_offset"] + address - each["p_paddr"], *RECURSION
            )
    image.write_bytes(content)
    return address


@pytest.mark.parametrize(
    ("where", "more", "cpu"),
    [
        ("on_guest_trap", "", 0),
        ("on_interrupt", "", 0),
        ("_ZN6latenz10hypervisor14OwnTranslation3addE", "", 0),  # before the CPU knows its stack
        (
            "_ZN6latenz10hypervisor10Hypervisor15begin_secondaryEj",
            '[[partition]]\nname = "alone"\ncpu = 2',
            2,
        ),
    ],
)
def test_an_overflow_is_told_by_its_name(tmp_path, monkeypatch, where, more, cpu):
    built = built_small(tmp_path, "    report x0", more)
    write = type(built).write
    found = []

    def write_and_plant(self, path, bench="virt"):
        write(self, path, bench)
        found.append(planted(path, where))

    monkeypatch.setattr(type(built), "write", write_and_plant)
    with pytest.raises(BadInput, match=rf"stack of CPU {cpu} overflows at 0x") as caught:
        boot(built, "virt")
    told = re.search(r"overflows at (0x[0-9a-fA-F]+)", str(caught.value))
    assert int(told[1], 16) == found[0], "the instruction that found no room"
