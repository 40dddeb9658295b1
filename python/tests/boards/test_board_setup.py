import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from latenz.boards import apt_sources
from latenz.boards.setup import ensure_boards

pytestmark = pytest.mark.boots

ROOT = Path(__file__).parents[3]


@pytest.fixture
def checkout(tmp_path):
    """A checkout that only sets up, wanting a version that nobody has."""
    shutil.copytree(ROOT / "setup", tmp_path / "latenz/setup")
    shutil.copytree(ROOT / "python/latenz", tmp_path / "latenz/python/latenz")
    wanted = tmp_path / "latenz/setup/apt-packages.txt"
    wanted.write_text(wanted.read_text() + "boards bash>=99:1   of this test\n")
    return tmp_path / "latenz"


def as_nobody(checkout, *command):
    # In a namespace of users, whoever runs the tests is nobody and still may read this checkout.
    return subprocess.run(
        ["unshare", "--user", "--map-user=65534", "--map-group=65534", *command],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(checkout), "PYTHONPATH": str(checkout / "python")},
    )


def test_who_is_not_root_is_told_the_one_command_for_a_newer_version(checkout):
    answer = as_nobody(checkout, checkout / "setup/ensure", "boards")
    assert answer.returncode == 2
    assert answer.stdout == ""
    [line] = answer.stderr.splitlines()
    fix = f"sudo {checkout}/setup/ensure boards --packages"
    assert line == f"latenz set-up: packages are missing (bash>=99:1); run: {fix}"


def test_latenz_itself_reports_what_is_missing_and_the_command(checkout):
    program = (
        "import sys\n"
        "sys.meta_path = [f for f in sys.meta_path if 'Redirecting' not in type(f).__name__]\n"
        "from latenz.boards.setup import ensure_boards\n"
        "print(repr(ensure_boards()))"
    )
    answer = as_nobody(checkout, sys.executable, "-c", program)
    fix = f"sudo {checkout}/setup/ensure boards --packages"
    assert answer.stdout == (f"Obstacle(reason='packages are missing (bash>=99:1)', fix='{fix}')\n")
    assert answer.stderr.startswith("latenz set-up: packages are missing")


def test_what_is_set_up_is_not_set_up_again(capfd):
    ensure_boards()
    ensure_boards.cache_clear()
    capfd.readouterr()
    assert ensure_boards() is None
    assert capfd.readouterr() == ("", "")


def test_unknown_groups_and_options_are_named():
    for arguments, line in (
        (
            ["bords"],
            "there is no group bords; choose one of: base agent cluster boards vm hdl mdf test"
            " bench fuzz release",
        ),
        (["base", "--all"], "--all is not known; the only option is --packages"),
    ):
        answer = subprocess.run([ROOT / "setup/ensure", *arguments], capture_output=True, text=True)
        assert answer.returncode == 2
        assert answer.stderr == f"latenz set-up: {line}\n"


def test_sources_are_those_of_this_machine_and_backports_of_its_release():
    known = apt_sources.repositories()
    addresses = subprocess.run(
        ["apt-cache", "policy"], capture_output=True, text=True, check=True
    ).stdout
    assert {repository.suite for repository in known} >= {apt_sources.release()}
    for repository in known:
        assert f"{repository.uri.rstrip('/')} {repository.suite}/main " in addresses
    backports = apt_sources.backports()
    assert backports.suite == f"{apt_sources.release()}-backports"
    assert backports.uri in {repository.uri for repository in known}
