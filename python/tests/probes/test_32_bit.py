"""The wake-up probe, and what is beside it, compile for 32-bit machines without a warning.

The compiler of this machine checks for 32-bit x86, whose types have the sizes of 32-bit Arm's.
The C library's headers serve both; they only lack the list of functions that are mere stubs.
"""

import platform
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BUILD = (ROOT / "probes/CMakeLists.txt").read_text()
LIBRARY = re.findall(
    r"src/\w+\.cpp", re.search(r"add_library\(latenz_probe STATIC(.*?)\)", BUILD, re.DOTALL)[1]
)
PROGRAMS = ["src/wakeup.cpp", "src/memory_load_main.cpp", "src/send.cpp"]
WARNINGS = re.search(r"add_compile_options\((.*?)\)", (ROOT / "CMakeLists.txt").read_text())[1]
DEFINED = re.search(r"SIZEOF_VOID_P EQUAL 4\).*?PUBLIC (.*?)\)", BUILD, re.DOTALL)[1]

pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the headers of 32-bit x86 are those of 64-bit x86"
)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    stubs = tmp_path_factory.mktemp("headers")
    (stubs / "gnu").mkdir()
    (stubs / "gnu/stubs-32.h").touch()
    version = subprocess.run(["g++", "-dumpversion"], capture_output=True, text=True, check=True)
    multiarch = Path("/usr/include/x86_64-linux-gnu")
    system = (stubs, multiarch / "c++" / version.stdout.strip(), multiarch)
    return [
        *("g++", "-m32", "-std=c++20", "-fsyntax-only", "-Werror", *WARNINGS.split()),
        *(f"-D{each}" for each in (*DEFINED.split(), 'LATENZ_VERSION="0"')),
        *(f"-I{ROOT / each}" for each in ("probes/src", "core/include")),
        *(option for each in system for option in ("-isystem", str(each))),
    ]


@pytest.mark.parametrize("source", [*LIBRARY, *PROGRAMS])
def test_it_compiles_for_32_bits_without_a_warning(command: list[str], source: str) -> None:
    done = subprocess.run(
        [*command, str(ROOT / "probes" / source)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_times_and_offsets_have_64_bits(command: list[str], tmp_path: Path) -> None:
    source = tmp_path / "sizes.cpp"
    source.write_text(
        "#include <sys/types.h>\n#include <ctime>\n"
        "static_assert(sizeof(void*) == 4 && sizeof(off_t) == 8 && sizeof(std::time_t) == 8);\n"
    )
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
