"""The README's programs compile as printed, also with the single header, and print what it says."""

import re
import subprocess
from pathlib import Path

import pytest

ICC = Path(__file__).parents[2]
README = (ICC / "README.md").read_text()
FLAGS = (
    "-std=c++20",
    "-O2",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wshadow",
    "-Werror",
)
BARE = ("-ffreestanding", "-fno-exceptions", "-fno-rtti")
R5 = ("arm-none-eabi-g++", "-mcpu=cortex-r5")
A53 = ("aarch64-linux-gnu-g++", "-mcpu=cortex-a53")


def compile_or_fail(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def printed_after(words: str) -> str:
    """The text block that follows these words."""
    return README.split(words)[1].split("```text\n")[1].split("```")[0]


def run_robot(folder: Path) -> list[str]:
    """Both programs side by side; what they print, sorted."""
    (Path("/dev/shm/robot")).unlink(missing_ok=True)
    servo = subprocess.Popen(folder / "servo", stdout=subprocess.PIPE, text=True)
    planner = subprocess.run(folder / "planner", capture_output=True, text=True, timeout=600)
    said, _ = servo.communicate(timeout=600)
    return sorted((planner.stdout + said).splitlines())


@pytest.fixture(params=("include", "one header"))
def programs(request, tmp_path):
    """The folder with all programs, and the options with which they are compiled."""
    for name, text in re.findall(r"```cpp\n// (\S+)\n(.*?)```", README, re.S):
        if request.param == "one header":
            text = re.sub(r'#include "latenz/.*"', '#include "latenz_icc.hpp"', text)
        (tmp_path / name).write_text(text)
    if request.param == "include":
        return tmp_path, f"-I{ICC / 'include'}"
    compile_or_fail(ICC / "amalgamate", tmp_path / "latenz_icc.hpp")
    return tmp_path, f"-I{tmp_path}"


def test_first_program_has_less_than_25_lines_a_side_and_prints_what_is_printed(programs):
    folder, include = programs
    for name in ("planner", "servo"):
        source = folder / f"{name}.cpp"
        assert source.read_text().count("\n") < 25
        compile_or_fail("g++", *FLAGS, include, source, "-o", folder / name)
    assert run_robot(folder) == sorted(printed_after("prints, in either order").splitlines())
    assert run_robot(folder) == sorted(printed_after("prints, in either order").splitlines())


@pytest.mark.parametrize(
    ("name", "heading"),
    [
        ("plan", "## Planning a region"),
        ("plan_path", "### Lists and text"),
        ("scans", "### Messages of any length"),
    ],
)
def test_program_prints_what_is_printed(programs, name, heading):
    folder, include = programs
    compile_or_fail("g++", *FLAGS, include, folder / f"{name}.cpp", "-o", folder / name)
    done = subprocess.run(folder / name, capture_output=True, text=True, check=True)
    assert done.stdout == printed_after(heading)
    assert (folder / f"{name}.cpp").read_text().count("\n") < 30


@pytest.mark.parametrize("compiler", [A53, R5], ids=("a53", "r5"))
def test_real_time_core_program_compiles_freestanding(programs, compiler):
    folder, include = programs
    compile_or_fail(*compiler, *FLAGS, *BARE, include, "-c", folder / "r5.cpp", "-o", folder / "o")


@pytest.mark.parametrize("compiler", [A53, R5], ids=("a53", "r5"))
def test_single_header_compiles_with_an_operating_systems_library(tmp_path, compiler):
    compile_or_fail(ICC / "amalgamate", tmp_path / "latenz_icc.hpp")
    (tmp_path / "one.cpp").write_text('#include "latenz_icc.hpp"\n')
    compile_or_fail(*compiler, *FLAGS, "-c", tmp_path / "one.cpp", "-o", tmp_path / "one.o")


def test_refusal_reads_as_printed(tmp_path):
    line = printed_after("whose `describe` writes one line").strip()
    source = tmp_path / "differ.cpp"
    source.write_text("""\
#include "latenz/icc.hpp"
#include <cstdio>
struct Ours { float angle; };
struct Theirs { double angle; };
using namespace latenz::icc;
alignas(line_bytes) static std::byte memory[1024];
int main() {
  Mailbox<Theirs>::Writer::create(memory, sizeof memory, "a");
  char why[200];
  Mailbox<Ours>::Reader::attach(memory, sizeof memory).problem().describe(why, sizeof why);
  std::puts(why);
}
""")
    program = tmp_path / "differ"
    compile_or_fail("g++", "-std=c++20", f"-I{ICC / 'include'}", source, "-o", program)
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == line


def test_commands_name_what_exists():
    for name in re.findall(r"icc/(layout|amalgamate)", README):
        assert (ICC / name).stat().st_mode & 0o111
    for target in re.findall(r"\]\(([\w./-]+)\)", README):
        assert (ICC / target).exists(), target
