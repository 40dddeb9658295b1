"""The core's freestanding headers, compiled for the target processors, need nothing there."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
TOOLS = {
    "firmware-a53": "aarch64-linux-gnu-",
    "firmware-r5": "arm-none-eabi-",
    "firmware-r52": "arm-none-eabi-",
}
# What a compiler expects of every freestanding environment.
MEMORY_FUNCTIONS = {"memcpy", "memmove", "memset", "memcmp"}
MONITOR = ("decide", "learn", "start_monitor", "finish_learning")


def output(*command: str | Path) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module", params=TOOLS)
def built(request, tmp_path_factory):
    """The object of core/tests/freestanding.cpp for one target, and the prefix of its tools."""
    folder = tmp_path_factory.mktemp(request.param)
    output("cmake", "-S", ROOT, "--preset", request.param, "-B", folder)
    output("cmake", "--build", folder, "--target", "latenz_core_freestanding")
    [object_file] = folder.glob("core/**/freestanding.cpp.obj")
    return object_file, TOOLS[request.param]


def test_nothing_is_missing_but_the_memory_functions(built):
    """So there is no heap, no division or other helper of 64-bit numbers, and no 64-bit atomic."""
    object_file, tools = built
    undefined = output(f"{tools}nm", "--undefined-only", "--format=posix", object_file)
    assert {line.split()[0] for line in undefined.splitlines()} <= MEMORY_FUNCTIONS


def test_monitor_and_learner_neither_divide_nor_synchronise_nor_use_floating_point(built):
    object_file, tools = built
    listing = output(f"{tools}objdump", "-d", "--no-show-raw-insn", "-C", object_file)
    functions = dict(
        re.findall(r"^[0-9a-f]+ <(\w+)\(.*?>:\n(.*?)(?:\n\n|\Z)", listing, re.M | re.S)
    )
    assert set(MONITOR) <= set(functions)
    for name in MONITOR:
        mnemonics = set(re.findall(r"^ +[0-9a-f]+:\t(\S+)", functions[name], re.M))
        assert len(mnemonics) > 5
        unwanted = {
            m
            for m in mnemonics
            if re.match(r"[us]div|ldrex|strex|ldaex|stlex|lda?x|stl?x|cas|dmb|f|v", m)
        }
        assert not unwanted, f"{name}: {unwanted}"
