"""Where targets are, as people write it."""

import shlex
from pathlib import Path

import pytest
from labgrid.remote.client import get_parser

from latenz.benches.target import TargetBench
from latenz.errors import BadInput
from latenz.remote import connection
from latenz.remote.url import SSH_COMMAND, TargetUrl


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ssh://board", ["board"]),
        ("ssh://root@board", ["root@board"]),
        ("ssh://pi@192.168.0.7:2222/", ["-p", "2222", "pi@192.168.0.7"]),
        ("ssh://root@[fe80::1%eth0]:22", ["-p", "22", "root@fe80::1%eth0"]),
        ("ssh://Robot-3.Lab", ["Robot-3.Lab"]),
    ],
)
def test_ssh_is_asked_as_the_user_would(text, words, monkeypatch):
    monkeypatch.setenv(SSH_COMMAND, "sh -F 'my config'")
    command = TargetUrl.parse(text).command("true; false")
    assert command[:3] == ["sh", "-F", "my config"]
    assert command[-1 - len(words) : -1] == words
    assert command[-1] == "sh -c 'true; false'"


def test_sudo_is_only_used_where_it_is_asked_for(monkeypatch):
    monkeypatch.setenv(SSH_COMMAND, "sh")
    assert TargetUrl.parse("ssh://pi@board?sudo").command("true")[-1] == "sudo -n sh -c true"
    assert "sudo" not in TargetUrl.parse("ssh://pi@board").command("true")[-1]


def test_a_container_is_entered_by_its_own_program(monkeypatch, tmp_path):
    (tmp_path / "podman").write_text("#!/bin/sh\n")
    (tmp_path / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    url = TargetUrl.parse("podman:robot_1")
    assert url.command("true") == ["podman", "exec", "-i", "robot_1", "/bin/sh", "-c", "true"]
    with pytest.raises(BadInput, match="docker is not installed"):
        TargetUrl.parse("docker:robot").command("true")


def test_a_place_is_reached_as_labgrids_own_client_takes_it():
    program, *words = TargetUrl.parse("labgrid:bench-3").command("printf '%s' \"$d\"; true")
    assert Path(program).name == "labgrid-client"
    read, leftover = get_parser().parse_known_args(words)
    assert (read.place, read.command) == ("bench-3", "ssh")
    assert [shlex.split(word) for word in leftover] == [["sh", "-c", "printf '%s' \"$d\"; true"]]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "board",
        "root@board",
        "ssh:board",
        "ssh://",
        "ssh://-oProxyCommand=reboot",
        "ssh://-l@board",
        "ssh://bo ard",
        "ssh://board\n",
        "ssh://board;reboot",
        "ssh://$(reboot)",
        "ssh://board:0",
        "ssh://board:99999",
        "ssh://board:ssh",
        "ssh://[::1",
        "ssh://root:secret@board",
        "ssh://board/etc",
        "ssh://board?rm",
        "ssh://board#1",
        "http://board",
        "SSH://board",
        "local:x",
        "local",
        "podman:",
        "podman:--privileged",
        "docker:a b",
        "labgrid",
        "labgrid:",
        "labgrid:-x",
        "labgrid:a/b",
    ],
)
def test_what_is_no_target_is_refused_in_one_line(text):
    with pytest.raises(BadInput) as refused:
        TargetUrl.parse(text)
    line = str(refused.value)
    assert "--on" in line
    assert "\n" not in line
    assert "secret" not in line


def test_a_wrong_ssh_command_is_named(monkeypatch):
    url = TargetUrl.parse("ssh://board")
    for wrong in ("'", "", "/nowhere/ssh -v"):
        monkeypatch.setenv(SSH_COMMAND, wrong)
        with pytest.raises(BadInput, match=SSH_COMMAND):
            url.command("true")


def test_nothing_is_built_for_a_target_that_does_not_answer(monkeypatch):
    def built(url):
        raise AssertionError(f"minutes of work for {url}")

    monkeypatch.setenv(SSH_COMMAND, "sh -c 'echo no route to host >&2; exit 255' ssh")
    monkeypatch.setattr(connection, "ensure_agents", built)
    bench = TargetBench(TargetUrl.parse("ssh://no-such-board"))
    with pytest.raises(BadInput, match="no route to host"), bench.opened():
        pass
