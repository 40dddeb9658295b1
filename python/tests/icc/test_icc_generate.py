"""Generated headers agree with the compilers, and both languages with each other."""

import random
import re
import socket
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
INCLUDE = f"-I{ROOT / 'icc/include'}"
PAGE = (ROOT / "docs/icc-c.md").read_text()
STRICT = ("-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")
C = ("gcc", "-std=c99", *STRICT)
CPP = ("g++", "-std=c++20", *STRICT)
R5 = ("arm-none-eabi-gcc", "-std=c99", "-mcpu=cortex-r5", "-ffreestanding", "-DLATENZ_ICC_ZYNQMP")
A53 = ("aarch64-linux-gnu-gcc", "-std=c99", "-mcpu=cortex-a53", "-DLATENZ_ICC_ZYNQMP")
LEAVES = ("int8", "uint16", "int32", "uint64", "float32", "float64", "char", "byte")


def compiled(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def generated(run_latenz, folder: Path, text: str, name: str = "robot") -> Path:
    (folder / f"{name}.toml").write_text(text)
    done = run_latenz("icc", "generate", folder / f"{name}.toml", "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


def random_description(seed: int) -> str:
    """Types of leaves, of earlier types, and arrays of both; one mailbox for each type."""
    choose = random.Random(seed)
    types: list[str] = []
    for index in range(8):
        lines = [f"[types.T{index}]"]
        for member in range(choose.randint(1, 4)):
            earlier = [f"T{i}" for i in range(max(0, index - 3), index)]
            base = choose.choice(earlier if earlier and choose.random() < 0.4 else LEAVES)
            if choose.random() < 0.3:
                base = choose.choice((f"vector<{base}, {choose.randint(1, 5)}>", "string<7>"))
            lines.append(f'm{member} = "{base}{choose.choice(("", "", "[3]", "[2][2]"))}"')
        types.append("\n".join(lines))
    channels = [f'[channels.c{i}]\nkind = "mailbox"\npayload = "T{i}"' for i in range(8)]
    return "\n".join([*types, *channels])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_compilers_lay_types_out_as_generated(run_latenz, tmp_path, seed):
    """The header for C++ compares fingerprints, that for C sizes, on three processors."""
    folder = generated(run_latenz, tmp_path, random_description(seed))
    (folder / "one.c").write_text('#include "robot.h"\nint main(void) { return 0; }\n')
    uses = "\n".join(f"static_assert(robot::c{i}<>::bytes == C::c{i}_bytes);" for i in range(8))
    (folder / "one.cpp").write_text(
        f'#include "robot.hpp"\nnamespace C {{\n#include "robot.h"\n}}\n{uses}\nint main() {{}}\n'
    )
    for compiler in (C, R5, A53):
        compiled(*compiler, "-Wno-unused-function", INCLUDE, "-fsyntax-only", folder / "one.c")
    cpp = ("g++", "-std=c++20", INCLUDE, "-include", "latenz/icc.h", "-fsyntax-only")
    compiled(*cpp, folder / "one.cpp")


@pytest.fixture(scope="module")
def robot(run_latenz, tmp_path_factory):
    """The folder with the headers of the example."""
    folder = tmp_path_factory.mktemp("robot")
    example = ROOT / "icc/examples/robot.toml"
    done = run_latenz("icc", "generate", example, "-o", folder)
    assert done.stdout.splitlines() == [str(folder / "robot.h"), str(folder / "robot.hpp")]
    return folder


def test_the_page_s_programs_compile_and_print_what_it_says(run_latenz, tmp_path):
    [description] = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
    folder = generated(run_latenz, tmp_path, description)
    sources = dict(re.findall(r"```c\w*\n// (\S+)\n(.*?)```", PAGE, re.S))
    for name, text in sources.items():
        assert text.count("\n") < 30, name
        (folder / name).write_text(text)
    compiled(*C, INCLUDE, folder / "planner.c", "-o", folder / "planner")
    compiled(*CPP, INCLUDE, folder / "servo.cpp", "-o", folder / "servo")
    board = f"-I{ROOT / 'firmware/icc/try'}"
    compiled(*R5, *STRICT, INCLUDE, board, "-fsyntax-only", folder / "r5.c")
    Path("/dev/shm/robot").unlink(missing_ok=True)
    with subprocess.Popen([folder / "servo"], stdout=subprocess.PIPE, text=True) as servo:
        planner = subprocess.run(
            [folder / "planner"], capture_output=True, text=True, timeout=300, check=False
        )
        said, _ = servo.communicate(timeout=300)
    printed = PAGE.split("prints, in either order,")[1].split("```text\n")[1].split("```")[0]
    assert sorted((planner.stdout + said).splitlines()) == sorted(printed.splitlines())


def test_unlike_types_are_refused_across_languages_and_the_field_is_named(run_latenz, tmp_path):
    [line] = re.findall(r"```text\n(payload differs.*)\n```", PAGE)
    text = '[types.Target]\nangle = "float32"\ncycle = "{}"\n[channels.command]\n'
    text += 'kind = "mailbox"\npayload = "Target"\n'
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder, kind in ((ours, "uint32"), (theirs, "uint64")):
        folder.mkdir()
        generated(run_latenz, folder, text.format(kind))
    (tmp_path / "differ.cpp").write_text("""\
#include <cstdio>
#include "latenz/icc.h"
#include "theirs/robot.hpp"
namespace C {
#include "ours/robot.h"
}
alignas(64) static unsigned char memory[1024];
int main() {
  auto writer = robot::command<>::Writer::create(memory, sizeof memory, "a");
  C::command_reader reader;
  latenz_icc_problem problem;
  char why[200];
  if (!writer || C::command_reader_attach(&reader, memory, sizeof memory, &problem)) return 1;
  latenz_icc_describe(&problem, why, sizeof why);
  std::puts(why);
  if (!C::command_writer_create(nullptr, nullptr, 0, "", &problem)) {
    latenz_icc_describe(&problem, why, sizeof why);
    std::puts(why);
  }
}
""")
    compiled("g++", "-std=c++20", INCLUDE, tmp_path / "differ.cpp", "-o", tmp_path / "differ")
    done = subprocess.run([tmp_path / "differ"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        line,
        "memory must begin at a line of 64 bytes and have 576 bytes, not 0",
    ]


def test_lists_and_text_of_one_language_are_read_by_the_other(run_latenz, tmp_path):
    """Also those whose count is damaged: then nothing is there."""
    text = '[types.Plan]\nname = "string<5>"\nangles = "vector<float32, 3>"\n'
    generated(run_latenz, tmp_path, text + '[channels.c]\nkind="mailbox"\npayload="Plan"\n')
    (tmp_path / "both.cpp").write_text("""\
#include <cstdio>
#include <cstring>
#include "latenz/icc.h"
#include "robot.hpp"
namespace C {
#include "robot.h"
}
int main() {
  C::Plan in_c = {};
  robot::Plan plan;
  std::printf("%d%d ", LATENZ_ICC_SET_TEXT(in_c.name, "reach"),
              LATENZ_ICC_SET_TEXT(in_c.name, "reach!"));
  in_c.angles.count = 2;
  in_c.angles.items[1] = 0.5F;
  std::memcpy(static_cast<void*>(&plan), &in_c, sizeof plan);
  std::printf("%.*s %u %.1f ", int(plan.name.size()), plan.name.items, plan.angles.size(),
              double(plan.angles[1]));
  for (const std::uint32_t count : {3U, 4U, 0xFFFFFFFFU}) {
    in_c.angles.count = in_c.name.count = count;
    std::memcpy(static_cast<void*>(&plan), &in_c, sizeof plan);
    std::printf("%u%u%u ", LATENZ_ICC_SIZE(in_c.angles), LATENZ_ICC_SIZE(in_c.name),
                plan.angles.size());
  }
}
""")
    compiled("g++", "-std=c++20", INCLUDE, tmp_path / "both.cpp", "-o", tmp_path / "both")
    done = subprocess.run([tmp_path / "both"], capture_output=True, text=True, check=True)
    assert done.stdout == "10 reach 2 0.5 333 040 000 "


TORTURE = ROOT / "icc/tests/torture_languages"


def tortured(robot, channel, first, second, messages, *options):
    """Every message arrives between a side in one language and one in another."""
    programs = {}
    for language, compiler in (("c", C), ("cpp", ("g++", "-std=c++20", "-O2"))):
        programs[language] = robot / "-".join(("torture", language, *options))
        if not programs[language].exists():
            source = f"{TORTURE}.{'c' if language == 'c' else 'cpp'}"
            compiled(*compiler, *options, INCLUDE, f"-I{robot}", source, "-o", programs[language])
    name = robot / f"memory-{channel}-{first}-{second}"
    name.write_bytes(bytes(65536))
    ours, theirs = socket.socketpair()  # by which eventfds are sent
    with (
        ours,
        theirs,
        subprocess.Popen(
            [programs[second], channel, "second", name, str(messages)],
            stdin=theirs,
            stdout=subprocess.PIPE,
            text=True,
        ) as other,
    ):
        begun = subprocess.run(
            [programs[first], channel, "first", name, str(messages)],
            stdin=ours,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        said, _ = other.communicate(timeout=300)
    assert (begun.stdout, begun.returncode) == ("0 errors\n", 0)
    assert (said, other.returncode) == ("0 errors\n", 0)


@pytest.mark.parametrize("channel", ["command", "servo", "trace", "state"])
@pytest.mark.parametrize(("first", "second"), [("c", "cpp"), ("cpp", "c"), ("c", "c")])
def test_every_message_arrives_between_every_pair_of_languages(robot, channel, first, second):
    tortured(robot, channel, first, second, 1_000_000)


# Nobody wakes by himself there: one wake-up that is lost, and both stand still.
@pytest.mark.parametrize("channel", ["command", "servo"])
@pytest.mark.parametrize(("first", "second"), [("c", "cpp"), ("cpp", "c"), ("c", "c")])
def test_sides_in_different_languages_wake_each_other(robot, channel, first, second):
    tortured(robot, channel, first, second, 20_000, "-DSLEEPS")


@pytest.mark.parametrize("channel", ["command", "servo", "trace"])
@pytest.mark.parametrize(("first", "second"), [("c", "cpp"), ("cpp", "c"), ("c", "c")])
def test_sides_in_different_languages_wake_each_other_by_descriptors(robot, channel, first, second):
    tortured(robot, channel, first, second, 5_000, "-DSLEEPS_BY_FD")


WRONG = {
    'a = "bool"': "there is no type 'bool'; use uint8",
    'a = "float31"': "there is no type 'float31'; ",
    'a = "uint8["': "'uint8[' is not a type; as in uint32, float64[6]",
    'a = "uint8[70000]"': "'uint8[70000]' has 70000 bytes; at most 65536",
    'a = "Later"': "there is no type 'Later'",
    'class = "uint8"': "'class' is not a name in C and C++",
    'a = "uint64[99][99]"': "has 78408 bytes; at most 65536",
    'a = "string"': "there is no type 'string'; say how long it may be: string<16>",
    'a = "string<0>"': "'string<0>' is not a type; as in uint32",
    'a = "string<char, 4>"': "'string<char, 4>' is not a type",
    'a = "vector<uint8>"': "'vector<uint8>' is not a type",
    'a = "vector<bool, 4>"': "there is no type 'bool'; use uint8",
    'a = "vector<string<4>, 4>"': "'vector<string<4>, 4>' is not a type",
    'a = "vector<uint64, 9000>"': "'vector<uint64, 9000>' has 72008 bytes; at most 65536",
}


@pytest.mark.parametrize("member", WRONG)
def test_what_cannot_be_shared_is_refused_with_its_line(run_latenz, tmp_path, member):
    text = f'[types.T]\n{member}\n[channels.c]\nkind = "mailbox"\npayload = "T"\n'
    (tmp_path / "bad.toml").write_text(text)
    done = run_latenz("icc", "generate", tmp_path / "bad.toml", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert WRONG[member] in done.stderr
    assert "bad.toml:2" in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_member_may_have_the_name_of_a_container_and_a_type_may_not(run_latenz, tmp_path):
    text = '[types.{}]\nvector = "uint8"\n[channels.string]\nkind = "mailbox"\npayload = "{}"\n'
    generated(run_latenz, tmp_path, text.format("T", "T"))
    (tmp_path / "bad.toml").write_text(text.format("vector", "vector"))
    done = run_latenz("icc", "generate", tmp_path / "bad.toml", "-o", tmp_path / "out")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "'vector' is a type already" in done.stderr


CHANNELS = {
    'kind = "mailbox"': "mailbox 'c' has no payload",
    'kind = "exchange"\npayload = "T"': "exchange 'c' has no use for payload",
    'kind = "ring"\npayload = "T"': "a ring needs slots",
    'kind = "ring"\npayload = "T"\nslots = 6': "6 slots; a power of two",
    'kind = "latest"\npayload = "T"\nreaders = 0': "a latest has readers",
    'kind = "mailbox"\npayload = "U"': "there is no type 'U'",
    'kind = "queue"\npayload = "T"': "queue",
}


@pytest.mark.parametrize("channel", CHANNELS)
def test_channels_that_cannot_be_are_refused(run_latenz, tmp_path, channel):
    (tmp_path / "bad.toml").write_text(f'[types.T]\na = "uint8"\n[channels.c]\n{channel}\n')
    done = run_latenz("icc", "generate", tmp_path / "bad.toml", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert CHANNELS[channel] in done.stderr
    assert done.stderr.count("\n") == 1


def test_files_of_others_are_not_replaced(run_latenz, tmp_path):
    (tmp_path / "robot.h").write_text("mine\n")
    example = ROOT / "icc/examples/robot.toml"
    assert run_latenz("icc", "generate", example, "-o", tmp_path).returncode == 2
    assert (tmp_path / "robot.h").read_text() == "mine\n"
    assert not (tmp_path / "robot.hpp").exists()
    assert run_latenz("icc", "generate", example, "-o", tmp_path, "--force").returncode == 0
    assert run_latenz("icc", "generate", example, "-o", tmp_path).returncode == 0
