"""`setup/tidy` skips a source only while nothing changed that its findings depend on."""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLAWED = "inline int* none() { return 0; }\n"
CLEAN = "inline int* none() { return nullptr; }\n"
SETTINGS = "Checks: -*,modernize-use-nullptr\nWarningsAsErrors: '*'\nHeaderFilterRegex: '.*'\n"


class Clone:
    """A clone with one source, one header that it includes, and one that it does not."""

    def __init__(self, place: Path) -> None:
        self.place = place
        for name in ("setup", "build", "include"):
            (place / name).mkdir(parents=True)
        shutil.copy(ROOT / "setup/tidy", place / "setup")
        self.write(".clang-tidy", SETTINGS)
        self.write(".gitignore", "/build/\n")
        self.write("a.cpp", '#include "deep/a.hpp"\nint main() { return none() != nullptr; }\n')
        self.write("include/deep/a.hpp", '#include "../b.hpp"\n')
        self.write("include/b.hpp", CLEAN)
        self.write("include/other.hpp", CLEAN)
        self.flags("")
        subprocess.run(["git", "init", "-q", place], check=True)

    def write(self, name: str, text: str) -> None:
        path = self.place / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    def flags(self, more: str) -> None:
        command = f"g++ -I{self.place}/include {more} -c {self.place}/a.cpp"
        entry = {"directory": str(self.place), "file": f"{self.place}/a.cpp", "command": command}
        self.write("build/compile_commands.json", json.dumps([entry]))

    def checked(self) -> tuple[int, int]:
        """Run; return the exit code and how many sources clang-tidy read."""
        done = subprocess.run(
            [sys.executable, self.place / "setup/tidy", "a.cpp"],
            cwd=self.place,
            capture_output=True,
            text=True,
        )
        told = re.search(r"^clang-tidy: (\d) of 1 sources", done.stdout, re.MULTILINE)
        assert told, done.stdout + done.stderr
        assert ("use nullptr" in done.stdout) == (done.returncode != 0)
        return done.returncode, int(told[1])


@pytest.fixture
def clone(tmp_path, monkeypatch) -> Clone:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Clone(tmp_path / "clone")


def test_what_was_clean_is_skipped_until_something_changes_that_it_reads(clone, tmp_path):
    assert clone.checked() == (0, 1)
    assert clone.checked() == (0, 0)
    clone.write("include/other.hpp", FLAWED)
    assert clone.checked() == (0, 0)
    assert Clone(tmp_path / "again").checked() == (0, 0)

    clone.write("include/b.hpp", FLAWED)
    assert clone.checked() == (1, 1)
    clone.write("include/b.hpp", CLEAN)
    assert clone.checked() == (0, 0)
    clone.flags("-O2")
    assert clone.checked() == (0, 1)
    clone.write(
        ".clang-tidy", SETTINGS + "CheckOptions:\n  modernize-use-nullptr.NullMacros: NIL\n"
    )
    assert clone.checked() == (0, 1)


def test_what_was_found_is_found_again(clone):
    clone.write("a.cpp", "int* none() { return 0; }\n")
    assert clone.checked() == (1, 1)
    assert clone.checked() == (1, 1)


@pytest.mark.parametrize(
    "source",
    [
        "core/tests/bound_test.cpp",
        "icc/tests/channel_test.cpp",
        "probes/src/wakeup.cpp",
        "hypervisor/tests/rules_test.cpp",
    ],
)
def test_no_header_that_the_compiler_reads_is_missed(source):
    loader = SourceFileLoader("tidy", str(ROOT / "setup/tidy"))
    tidy = module_from_spec(spec_from_loader("tidy", loader))
    loader.exec_module(tidy)
    folders = ["core/include", "icc/include", "probes/src"]
    folders += sorted({str(path.parent) for path in (ROOT / "hypervisor/src").rglob("*.hpp")})
    options = [f"-I{ROOT / each}" for each in folders]
    told = subprocess.run(
        ["g++", "-std=c++20", "-MM", "-MG", *options, source],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr
    told_paths = {Path(os.path.normpath(ROOT / each)) for each in told.stdout.split()[1:]}
    read = {path for path in told_paths if path.is_file()}  # others are made by a build
    assert len(read) > 2
    assert read <= set(tidy.read_by(ROOT / source, " ".join(options)))
