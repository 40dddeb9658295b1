"""`latenz icc try`: a user's two programs on the emulated Cortex-A53 and Cortex-R5."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAIR = ROOT / "icc/examples/pair"
pytestmark = pytest.mark.boots


def tried(folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "latenz", "icc", "try", folder]
    return subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)


def changed(folder: Path, file: str, old: str, new: str) -> Path:
    shutil.copytree(PAIR, folder)
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    return folder


def test_the_example_says_what_the_readme_prints():
    done = tried(PAIR)
    assert done.returncode == 0, done.stderr
    readme = (ROOT / "icc/README.md").read_text()
    printed = readme.split("./latenz icc try icc/examples/pair\n```\n\n```text\n")[1].split("```")[
        0
    ]
    assert sorted(done.stdout.splitlines()) == sorted(printed.splitlines())


def test_types_of_ones_own_and_a_folder_with_spaces(tmp_path):
    folder = changed(tmp_path / "my öwn päir", "messages.hpp", "float angle;", "double angle[3];")
    for file in ("a53.cpp", "r5.cpp"):
        text = (folder / file).read_text()
        for old, new in (
            (".angle = 0.5F", ".angle = {0.5, 0.25, -1.0}"),
            ("reached.angle ", "reached.angle[0] "),
            (
                "angle += 0.1F * (target.angle - angle)",
                "angle += 0.1F * (float(target.angle[0]) - angle)",
            ),
            (".angle = angle,", ".angle = {angle, 0, 0},"),
        ):
            text = text.replace(old, new)
        (folder / file).write_text(text)
    done = tried(folder)
    assert done.returncode == 0, done.stderr
    assert "Cortex-A53: cycle 1000, angle 500 mrad" in done.stdout


def test_a_type_that_differs_is_named_and_ends_with_1(tmp_path):
    folder = changed(
        tmp_path / "pair",
        "r5.cpp",
        "using namespace latenz;",
        "using namespace latenz;\n"
        "struct Wanted { double angle; std::uint32_t cycle; std::uint32_t pad; };\n"
        "using Mine = icc::Exchange<Wanted, Reached, board::Platform>;",
    )
    source = folder / "r5.cpp"
    source.write_text(
        source.read_text()
        .replace("Servo::Server", "Mine::Server")
        .replace("const Target&", "const Wanted&")
        .replace("target.angle - angle", "float(target.angle) - angle")
    )
    done = tried(folder)
    assert done.returncode == 1, done.stderr
    assert "here float64 'angle' at 0, in memory float32 'angle' at 0" in done.stdout
    assert done.stderr == "latenz: Cortex-R5: main returned 1\n"


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("r5.cpp", "float angle = 0;", "float angle = 0", "r5.cpp: does not compile"),
        ("a53.cpp", "int main() {", "int mein() {", "a53.cpp: does not compile, as said above"),
    ],
)
def test_what_does_not_compile_is_named_last(tmp_path, file, old, new, told):
    done = tried(changed(tmp_path / "pair", file, old, new))
    assert done.returncode == 2
    assert told in done.stderr.splitlines()[-1]
    assert done.stdout == ""


def test_a_program_that_faults_is_told_with_its_place(tmp_path):
    undefined = 'asm volatile(".inst 0" ::: "memory");'
    done = tried(
        changed(
            tmp_path / "pair", "a53.cpp", "Reached reached{};", f"Reached reached{{}};\n{undefined}"
        )
    )
    assert done.returncode == 1
    assert done.stderr.startswith("latenz: Cortex-A53: undefined instruction: ESR")
    assert done.stderr.count("\n") == 1


def test_folders_without_programs_are_refused_in_one_line(tmp_path):
    for folder, told in (
        (tmp_path / "none", "is not a folder; name one with a53.cpp and r5.cpp"),
        (PAIR / "a53.cpp", "is not a folder"),
        (tmp_path, "a53.cpp: is not there; see icc/examples/pair"),
    ):
        done = tried(folder)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert told in done.stderr


def test_who_has_not_returned_is_named(tmp_path, monkeypatch):
    """As `latenz icc try` does, with less patience."""
    from latenz.icc import trial

    monkeypatch.setattr(trial, "_LIMIT_S", 8)
    folder = changed(tmp_path / "pair", "r5.cpp", "int main() {", "int main() {\n  for (;;) {}")
    told = trial.attempt(folder, tmp_path)
    assert told.trouble == "Cortex-A53 and Cortex-R5: main have not returned after 8 s"


def both_languages(run_latenz, folder: Path, messages: int, r5: str) -> Path:
    """A folder with the torture of icc/tests: C++ on the Cortex-A53, and C or C++ on the R5."""
    folder.mkdir()
    robot = ROOT / "icc/examples/robot.toml"
    assert run_latenz("icc", "generate", robot, "-o", folder).returncode == 0
    for side, language in (("a53", "cpp"), ("r5", r5)):
        source = ROOT / f"icc/tests/torture_languages.{language}"
        defines = f"#define TORTURE_ON_BOARD\n#define TORTURE_MESSAGES {messages}U\n"
        (folder / f"{side}.{language}").write_text(defines + source.read_text())
    return folder


def test_every_message_arrives_between_c_on_the_r5_and_cpp_on_the_a53(run_latenz, tmp_path):
    done = tried(both_languages(run_latenz, tmp_path / "pair", 500, "c"))
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [
        *(f"Cortex-A53: 0 wrong way {way}" for way in (0, 1)),
        *(f"Cortex-R5: 0 wrong way {way}" for way in (0, 1)),
    ]


@pytest.mark.long
def test_each_of_a_million_messages_arrives_on_the_board(run_latenz, tmp_path, monkeypatch):
    from latenz.icc import trial

    monkeypatch.setattr(trial, "_LIMIT_S", 3600)
    folder = both_languages(run_latenz, tmp_path / "pair", 1_000_000, "c")
    told = trial.attempt(folder, tmp_path)
    assert told.trouble is None
    assert sum(" 0 wrong way " in line for line in told.lines) == 4


def test_a_program_in_both_languages_is_refused(tmp_path):
    folder = changed(tmp_path / "pair", "r5.cpp", "int main() {", "int main() {")
    (folder / "r5.c").write_text("int main(void) { return 0; }\n")
    done = tried(folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is there twice, in C and in C++; remove one of them" in done.stderr
