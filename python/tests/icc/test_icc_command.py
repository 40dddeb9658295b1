import json
import os
import signal
import subprocess
import sys
import time

import pytest


def latenz(*arguments):
    command = [sys.executable, "-m", "latenz", "icc", *map(str, arguments)]
    environment = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)


def test_once_is_one_document(filled):
    answer = latenz("watch", filled, "--once", "--json", "--interval", "50ms")
    assert (answer.returncode, answer.stderr) == (0, "")
    document = json.loads(answer.stdout)
    assert set(document) == {"region", "bytes", "removed", "window_s", "channels", "unreadable"}
    mailbox = document["channels"][0]
    assert list(mailbox) == [
        "name",
        "kind",
        "offset",
        "bytes",
        "generation",
        "readers",
        "slots",
        "payload_bytes",
        "fingerprints",
        "fields",
        "messages",
        "messages_per_s",
        "last_change_s",
        "sides",
        "newest",
    ]
    assert mailbox["newest"]["fields"]["label"] == "servo"
    assert list(mailbox["sides"][0]) == ["role", "state", "epoch", "silent_s", "beats", "dropped"]


def test_the_table_names_every_channel_and_state(filled):
    answer = latenz("watch", filled, "--once", "--interval", "50ms")
    assert answer.returncode == 0
    for text in ("mailbox", "exchange 4+112 B", "never there", "closed", "silent", "reader 2"):
        assert text in answer.stdout


def test_show_has_fields_and_values(filled):
    answer = latenz("show", filled)
    assert answer.returncode == 0
    for text in ("joints.angle", "float32[3]", "[1.5, 2.5, -3.5]", "servo", "request, 4 bytes"):
        assert text in answer.stdout


def test_values_that_json_has_not_are_text(filled):
    content = bytearray(filled.read_bytes())
    at = content.find((1_700_000_000_000_000_001).to_bytes(8, "little")) + 8
    content[at : at + 8] = b"\0\0\0\0\0\0\xf8\x7f"
    filled.write_bytes(content)
    document = json.loads(latenz("show", filled, "--json").stdout)
    assert document["channels"][0]["newest"]["fields"]["gain"] == "nan"


def test_names_from_memory_cannot_drive_a_terminal(filled):
    content = bytearray(filled.read_bytes())
    content[64:72] = b"\x1b[31m[b]"
    filled.write_bytes(content)
    answer = latenz("watch", filled, "--once", "--interval", "50ms")
    assert "\x1b" not in answer.stdout
    assert "?[31m[b]" in answer.stdout


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("watch", "no-such-file"), "no-such-file: cannot be opened: No such file or directory"),
        (("watch", "shm:x", "--once"), "shm:x: 'x' is not a name of shared memory"),
        (("show", "mem:12"), "mem:12: '12' is not memory"),
        (("watch", "x", "--interval", "1 parsec"), "parsec"),
        (("watch", "x", "--interval", "1 ns"), "it is between 10 ms and 1 h"),
        (("watch", __file__), "no channel is in its"),
    ],
)
def test_mistakes_are_one_line(arguments, complaint):
    answer = latenz(*arguments)
    assert answer.returncode == 2
    assert answer.stdout == ""
    assert answer.stderr.startswith("latenz: ")
    assert answer.stderr.count("\n") == 1
    assert complaint in answer.stderr


def test_what_cannot_be_read_is_told(filled):
    content = bytearray(filled.read_bytes())
    content[4] = 9
    filled.write_bytes(content)
    document = json.loads(latenz("show", filled, "--json").stdout)
    assert document["unreadable"] == [
        {"offset": 0, "reason": "its ABI version is 9; this Latenz reads 3"}
    ]
    assert "ABI version is 9" in latenz("show", filled).stdout


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_interrupting_is_quiet(filled, options):
    command = [sys.executable, "-m", "latenz", "icc", "watch", filled, "--interval", "20ms"]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        first = watching.stdout.readline()
        time.sleep(0.1)
        watching.send_signal(signal.SIGINT)
        rest, complaint = watching.communicate(timeout=600)
    assert watching.returncode == 130
    assert complaint == ""
    if options:
        assert all(json.loads(line)["channels"] for line in (first + rest).splitlines())
