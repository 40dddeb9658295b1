import re
import shutil
import subprocess
import tempfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path):
    """A checkout that only `setup/ensure` needs, owned by nobody, wanting one absent package."""
    shutil.copytree(ROOT / "setup", tmp_path / "latenz/setup")
    packages = tmp_path / "latenz/setup/apt-packages.txt"
    packages.write_text(packages.read_text() + "base no-such-package-xyz   of this test\n")
    subprocess.run(["chown", "-R", "nobody", tmp_path], check=True)
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path(tempfile.gettempdir()):
            break
        folder.chmod(0o755)
    return tmp_path / "latenz"


def test_who_is_not_root_is_told_the_one_command_that_needs_it(checkout):
    answer = subprocess.run(
        ["setpriv", "--reuid=nobody", "--clear-groups", checkout / "setup/ensure", "base"],
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 2
    assert answer.stdout == ""
    [line] = answer.stderr.splitlines()
    assert re.search(r"run: sudo sh -c '.*apt-get install .* no-such-package-xyz'$", line)


def test_set_up_is_silent_the_second_time():
    command = [ROOT / "setup/ensure", "base"]
    subprocess.run(command, check=True)
    answer = subprocess.run(command, capture_output=True, check=True)
    assert answer.stdout + answer.stderr == b""


def test_locks_pin_every_direct_dependency_by_hash_and_name_no_address():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    extras = project["project"]["optional-dependencies"]["test"]
    for group, names in (
        ("base", wanted),
        ("cluster", [*wanted, "distributed"]),
        ("boards", [*wanted, "labgrid", "pyelftools", "qemu.qmp"]),
        ("vm", [*wanted, "pyelftools", "qemu.qmp"]),
        ("fuzz", [*wanted, "atheris", "pyelftools"]),
        ("test", [*wanted, *extras]),
    ):
        lock = (ROOT / f"setup/python-{group}.lock").read_text()
        assert "://" not in lock
        for name in names:
            name = re.split(r"[><=~\[]", name)[0].replace(".", "-")
            pinned = rf"^{re.escape(name)}(\[\w+\])?==\S+ \\\n    --hash=sha256:"
            assert re.search(pinned, lock, re.M | re.I), name


def test_every_debian_package_has_a_group_and_a_reason():
    for line in (ROOT / "setup/apt-packages.txt").read_text().splitlines():
        if not line.startswith("#"):
            group, package, reason = line.split(maxsplit=2)
            assert group in {"base", "boards", "vm", "hdl", "fuzz", "test", "bench", "release"}
            assert re.fullmatch(r"[a-z0-9.+-]+(>=[0-9:.]+|/[a-z0-9-]+)?", package)
            assert len(reason) > 10
