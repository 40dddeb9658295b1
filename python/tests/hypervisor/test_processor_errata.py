"""No image has a sequence of instructions that an early Cortex-A53 executes wrongly.

835769: a load or store and right behind it a 64-bit multiply-accumulate that does not depend on it.
843419: ADRP as one of a page's last two instructions, a load or store behind it, then one whose
base is what ADRP gave (Arm, Cortex-A53 MPCore Software Developers Errata Notice).
"""

import struct
import subprocess
import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

PROGRAMS = Path(sys.prefix) / "firmware" / "hypervisor"
IMAGES = (
    "hypervisor.elf",
    "hypervisor-gicv3.elf",
    "guests/worker.elf",
    "guests/victim.elf",
    "guests/hostile.elf",
    "guests/programs.elf",
)
ZERO_REGISTER = 31


def accesses_memory(word: int) -> bool:
    return word & 0x0A00_0000 == 0x0800_0000


def is_accumulate(word: int) -> bool:
    """MADD, MSUB, SMADDL, UMADDL and their kin with 64-bit results, not plain multiplications."""
    return word & 0xFF00_0000 == 0x9B00_0000 and word >> 10 & 31 != ZERO_REGISTER


def loaded(word: int) -> set[int]:
    """Return the registers that a load of general registers writes, those sure to be written."""
    pair = word & 0x3A00_0000 == 0x2800_0000 and word >> 26 & 1 == 0
    single = word & 0x3A00_0000 == 0x3800_0000 and word >> 26 & 1 == 0
    if pair and word >> 22 & 1:
        return {word & 31, word >> 10 & 31}
    return {word & 31} if single and word >> 22 & 3 else set()


def used(word: int) -> set[int]:
    return {word >> 5 & 31, word >> 16 & 31, word >> 10 & 31}


def multiplies_behind_access(words: list[int]) -> list[int]:
    return [
        at
        for at in range(1, len(words))
        if is_accumulate(words[at])
        and accesses_memory(words[at - 1])
        and not loaded(words[at - 1]) & used(words[at])
    ]


def is_branch(word: int) -> bool:
    return word & 0x1C00_0000 == 0x1400_0000


def uses_as_base(word: int, register: int) -> bool:
    """Whether it is a load or store with an unsigned offset from the register."""
    return word & 0x3B00_0000 == 0x3900_0000 and word >> 5 & 31 == register


def addresses_at_page_ends(words: list[int], begin: int) -> list[int]:
    found = []
    for at in range(len(words) - 3):
        is_adrp = words[at] & 0x9F00_0000 == 0x9000_0000
        if not is_adrp or (begin + 4 * at) % 4096 < 0xFF8:
            continue
        register, second, third, fourth = words[at] & 31, *words[at + 1 : at + 4]
        if not accesses_memory(second) or register in loaded(second):
            continue
        if uses_as_base(third, register) or (
            not is_branch(third) and uses_as_base(fourth, register)
        ):
            found.append(at)
    return found


def code(path: Path) -> tuple[int, list[int]]:
    with path.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".text")
        content = section.data()
        words = list(struct.unpack(f"<{len(content) // 4}I", content[: len(content) // 4 * 4]))
        return section["sh_addr"], words


@pytest.mark.parametrize("name", IMAGES)
def test_images_have_neither(name):
    begin, words = code(PROGRAMS / name)
    assert len(words) > 500
    assert multiplies_behind_access(words) == []
    assert addresses_at_page_ends(words, begin) == []


def assembled(tmp_path, text: str, *options: str) -> tuple[int, list[int]]:
    source, program = tmp_path / "some.S", tmp_path / "some.elf"
    source.write_text(f"    .text\n    .global _start\n_start:\n{text}\n")
    tool = ["aarch64-linux-gnu-gcc", "-mcpu=cortex-a53", "-nostdlib", "-static"]
    link = ["-Wl,-Ttext=0x40000000", "-Wl,--build-id=none"]
    subprocess.run([*tool, *link, *options, source, "-o", program], check=True)
    return code(program)


def test_the_scan_finds_them(tmp_path):
    begin, words = assembled(
        tmp_path,
        """
        ldr     x0, [x1]
        madd    x2, x3, x4, x5          // found: 1
        ldr     x3, [x1]
        madd    x2, x3, x4, x5          // waits for the load
        str     x0, [x1]
        mul     x2, x3, x4              // no accumulation
        stp     x0, x1, [x2]
        umaddl  x6, w7, w8, x9          // found: 7
        .org    0xff8
        adrp    x0, somewhere           // found: 1022
        ldr     x1, [x2]
        ldr     x3, [x0, #8]
        .org    0x1ffc
        adrp    x0, somewhere           // found: 2047
        str     x1, [x2]
        add     x5, x5, #1
        ldr     w3, [x0, #8]
        .org    0x2ff4
        adrp    x0, somewhere           // too early in its page
        ldr     x1, [x2]
        ldr     x3, [x0, #8]
        .org    0x4000
somewhere:
        .quad   0, 0
        """,
        "-mno-fix-cortex-a53-843419",
    )
    assert multiplies_behind_access(words) == [1, 7]
    assert addresses_at_page_ends(words, begin) == [1022, 2047]
