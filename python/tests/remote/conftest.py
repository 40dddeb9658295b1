"""Targets that need no other machine: what takes the place of ssh runs the command here."""

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from remote_targets import EXPERIMENT, FAKE_SSH, Marked, eventually

from latenz.remote.url import SSH_COMMAND
from latenz.setup import ensure_group


@pytest.fixture(scope="session", autouse=True)
def agents() -> None:
    """Build the agents."""
    assert ensure_group("agent", "targets") is None


@pytest.fixture
def fake_ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let Latenz use a stand-in for ssh; return the file that lists the hosts it was asked for."""
    program = tmp_path / "fake-ssh"
    program.write_text(FAKE_SSH)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv(SSH_COMMAND, str(program))
    log = tmp_path / "hosts"
    monkeypatch.setenv("FAKE_SSH_LOG", str(log))
    return log


@pytest.fixture
def experiment(tmp_path: Path) -> Callable[[str], Path]:
    """Write an experiment of a duration."""

    def write(duration: str) -> Path:
        path = tmp_path / "remote.toml"
        path.write_text(EXPERIMENT.format(duration=duration))
        return path

    return write


@pytest.fixture
def marked() -> Iterator[Marked]:
    """Give a mark; nothing that carries it may be left at the end of the test."""
    mark = Marked()
    yield mark
    eventually(lambda: not mark.alive(), "no process is left", mark.alive)
