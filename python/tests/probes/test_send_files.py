"""latenz-send numbers its frames on in a file that it shares with nobody."""

import os
import subprocess
from pathlib import Path

import pytest

from latenz import _core

ROOT = Path(__file__).parents[3]
SENDER = "213"


@pytest.fixture(scope="module")
def send(tmp_path_factory):
    """The program; it is installed for boards only."""
    program = tmp_path_factory.mktemp("send") / "latenz-send"
    sources = [ROOT / f"probes/src/{name}.cpp" for name in ("send", "file")]
    subprocess.run(
        ["g++", "-std=c++20", "-I", ROOT / "core/include", *sources, "-o", program], check=True
    )
    return program


@pytest.fixture
def numbers():
    """The file with the number of the next frame, of a sender that is used here only."""
    folder = "/run" if os.access("/run", os.W_OK) else "/tmp"
    path = Path(folder) / f"latenz-send.{SENDER}"
    path.unlink(missing_ok=True)
    yield path
    path.unlink(missing_ok=True)


def say(send):
    environment = {**os.environ, "LATENZ_SENDER": SENDER}
    command = [send, "note", "hello"]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600, env=environment
    )


def test_its_own_file_is_taken_up(send, numbers):
    reader = _core.FrameReader()
    found = [each for _ in range(3) for each in reader.feed(say(send).stdout.encode())]
    assert [each.text for each in found] == ["hello"] * 3
    assert (reader.missing, reader.duplicates) == (0, 0)
    assert numbers.stat().st_mode & 0o777 == 0o600


def of_all(path):
    path.write_text("7")
    path.chmod(0o666)


def linked_twice(path):
    path.write_text("7")
    path.chmod(0o600)
    second = path.with_name(f"{path.name}.second")
    second.unlink(missing_ok=True)
    second.hardlink_to(path)


def of_another(path):
    path.write_text("7")
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize("plant", [of_all, linked_twice, of_another, os.mkfifo])
def test_what_somebody_else_put_there_is_left_alone(send, numbers, plant):
    plant(numbers)
    done = say(send)
    numbers.with_name(f"{numbers.name}.second").unlink(missing_ok=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (f"latenz-send: {numbers}: is not a file of this user alone; remove it\n")
    assert numbers.is_fifo() or numbers.read_text() == "7"
