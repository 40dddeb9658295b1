"""What the channels ask of a processor without operating system: nearly nothing."""

import re
import subprocess
from pathlib import Path

import pytest

ICC = Path(__file__).parents[2]
TARGETS = {
    "a53": ("aarch64-linux-gnu-", "-mcpu=cortex-a53"),
    "r5": ("arm-none-eabi-", "-mcpu=cortex-r5"),
}
# What a compiler expects of every freestanding environment.
MEMORY_FUNCTIONS = {"memcpy", "memmove", "memset", "memcmp"}
READ_MODIFY_WRITE = r"ld[a-z]*x[rpbhd]?\w*|st[a-z]*x[rpbhd]?\w*|cas\w*|swp\w*|ld(add|set|clr)\w*"
FLAGS = ("-std=c++20", "-O2", "-ffreestanding", "-fno-exceptions", "-fno-rtti", "-c")


@pytest.fixture(scope="module", params=TARGETS)
def built(request, tmp_path_factory):
    """The object of tests/freestanding.cpp for one target, and the prefix of its tools."""
    tools, processor = TARGETS[request.param]
    compiled = tmp_path_factory.mktemp(request.param) / "freestanding.o"
    source = (f"-I{ICC / 'include'}", ICC / "tests/freestanding.cpp", "-o", compiled)
    subprocess.run((f"{tools}g++", processor, *FLAGS, *source), check=True)
    return compiled, tools


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def functions(built):
    """The mnemonics and first operand of each function, by its name."""
    compiled, tools = built
    listing = output(f"{tools}objdump", "-d", "--no-show-raw-insn", "-C", compiled)
    bodies = re.findall(r"^[0-9a-f]+ <([^\n]*)>:\n(.*?)(?:\n\n|\Z)", listing, re.M | re.S)
    found = {name: re.findall(r"^ +[0-9a-f]+:\t(\S+)\s*(\w*)", body, re.M) for name, body in bodies}
    assert sum("Channels" in name for name in found) >= 27, "all channels on three platforms"
    return found


def test_nothing_is_missing_but_the_memory_functions(built):
    compiled, tools = built
    undefined = output(f"{tools}nm", "--undefined-only", "--format=posix", compiled)
    assert {line.split()[0] for line in undefined.splitlines()} <= MEMORY_FUNCTIONS


def test_no_instruction_reads_modifies_and_writes(functions):
    found = {mnemonic for body in functions.values() for mnemonic, _ in body}
    assert len(found) > 30
    unwanted = {mnemonic for mnemonic in found if re.fullmatch(READ_MODIFY_WRITE, mnemonic)}
    assert not unwanted


def test_barriers_between_unlike_processors_reach_the_whole_system(functions):
    seen = set()
    for name, body in functions.items():
        if "ArmSystemOrder" in name:
            seen |= {operand for mnemonic, operand in body if mnemonic == "dmb"}
    assert "sy" in seen
    assert seen <= {"sy", "ld"}
