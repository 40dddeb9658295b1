"""icc is built by itself, inside a project, and found where it is installed, for any processor."""

import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ICC = HERE.parents[1]
BARE_METAL = (
    "-DCMAKE_SYSTEM_NAME=Generic",
    "-DCMAKE_SYSTEM_PROCESSOR=arm",
    "-DCMAKE_CXX_COMPILER=arm-none-eabi-g++",
    "-DCMAKE_CXX_FLAGS=-mcpu=cortex-r5 --specs=nosys.specs",
    "-DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY",
)


def cmake(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(("cmake", *arguments), capture_output=True, text=True)


def build(project: Path, folder: Path, *settings: str) -> None:
    for arguments in (("-S", project, "-B", folder, "-G", "Ninja", *settings), ("--build", folder)):
        done = cmake(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Where icc was installed."""
    folder = tmp_path_factory.mktemp("installed")
    build(ICC, folder / "build")
    done = cmake("--install", folder / "build", "--prefix", folder / "prefix")
    assert done.returncode == 0, done.stderr
    return folder / "prefix"


def test_all_headers_are_installed_and_nothing_else_but_the_package(installed):
    headers = {path.relative_to(ICC) for path in ICC.glob("include/**/*.h*")}
    files = {path.relative_to(installed) for path in installed.rglob("*") if path.is_file()}
    package = {
        Path(f"share/cmake/latenz_icc/latenz_icc-config{end}.cmake") for end in ("", "-version")
    }
    assert files == headers | package


def test_found_where_it_is_installed(installed, tmp_path):
    build(HERE / "installed", tmp_path, f"-DCMAKE_PREFIX_PATH={installed}")
    subprocess.run(tmp_path / "user", check=True)


def test_found_for_a_processor_of_another_word_size(installed, tmp_path):
    settings = (f"-DCMAKE_PREFIX_PATH={installed}", *BARE_METAL)
    build(HERE / "installed", tmp_path, *settings)
    assert (tmp_path / "user").read_bytes().startswith(b"\x7fELF\x01")  # 32 bits


@pytest.mark.parametrize("version", ["0.2", "1.0"])
def test_another_version_is_not_taken_for_this_one(installed, tmp_path, version):
    settings = (f"-DCMAKE_PREFIX_PATH={installed}", f"-DICC_VERSION={version}")
    done = cmake("-S", HERE / "installed", "-B", tmp_path, "-G", "Ninja", *settings)
    assert done.returncode != 0
    assert re.search(r"version:\s+0\.1\.0", done.stderr)


def test_a_project_with_icc_in_a_folder_is_built_and_does_not_install_icc(tmp_path):
    build(HERE / "subdirectory", tmp_path / "build", f"-DICC_SOURCE={ICC}")
    subprocess.run(tmp_path / "build/user", check=True)
    done = cmake("--install", tmp_path / "build", "--prefix", tmp_path / "prefix")
    assert done.returncode == 0
    assert [path.name for path in (tmp_path / "prefix").rglob("*") if path.is_file()] == ["user"]
