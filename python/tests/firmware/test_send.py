import os
import subprocess
from pathlib import Path

import pytest
from frame_lines import Speaker

from latenz._core import EndFrame, FileFrame, FrameReader, TextFrame

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program of this machine, built from the same source as the one for boards."""
    built = tmp_path_factory.mktemp("send")
    sources = [ROOT / "probes/src/send.cpp", ROOT / "probes/src/file.cpp"]
    command = ["g++", "-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror"]
    include = ["-I", ROOT / "core/include", "-I", ROOT / "probes/src"]
    subprocess.run([*command, *include, *sources, "-o", built / "latenz-send"], check=True)
    return built / "latenz-send"


@pytest.fixture
def send(program):
    """Calls of one sender, whose numbering starts anew."""
    number = 190 + os.getpid() % 60

    def call(*arguments, data=b"", stdout=subprocess.PIPE, **more):
        environment = {**os.environ, "LATENZ_SENDER": str(number), **more}
        return subprocess.run(
            [program, *arguments],
            input=data,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=environment,
        )

    def forget():
        for folder in ("/run", "/tmp", ""):
            Path(f"{folder}/latenz-send.{number}").unlink(missing_ok=True)

    forget()
    yield call
    forget()


def test_what_is_sent_arrives(send):
    data = os.urandom(10_000)
    console = b"".join(
        send(*arguments, data=data).stdout
        for arguments in (("note", "ready"), ("file", "histogram.txt"), ("note", ""), ("end",))
    )
    reader = FrameReader()
    found = [*reader.feed(console), *reader.finish()]
    assert (reader.damaged, reader.missing, reader.duplicates) == (0, 0, 0)
    assert [one.text for one in found if isinstance(one, TextFrame)] == ["ready", ""]
    pieces = [one for one in found if isinstance(one, FileFrame)]
    assert {one.name for one in pieces} == {"histogram.txt"}
    assert b"".join(one.data for one in pieces) == data
    assert [one.last for one in pieces].count(True) == 1
    assert pieces[-1].last
    assert isinstance(found[-1], EndFrame)
    assert found[-1].complete


def test_a_lost_call_is_missed(send):
    kept = send("note", "first").stdout
    send("note", "lost on the way")
    reader = FrameReader()
    reader.feed(kept + send("end").stdout)
    assert reader.missing == 1


def test_notes_are_frames_as_documented(send):
    line = send("note", "hi").stdout
    sender = FrameReader().feed(line)[0].sender
    assert line == Speaker(sender).message("note", b"hi")[0] + b"\n"


@pytest.mark.parametrize("size", [0, 1, *range(64, 90), 4096, 4097, 4096 + 80, 10_000])
def test_files_of_any_size_end_once(send, size):
    """Around the borders of a frame, where the last piece may be empty."""
    data = os.urandom(size)
    console = send("file", "a", data=data).stdout
    pieces = [one for one in FrameReader().feed(console) if isinstance(one, FileFrame)]
    assert b"".join(one.data for one in pieces) == data
    assert [one.last for one in pieces] == [False] * (len(pieces) - 1) + [True]


@pytest.mark.parametrize(
    ("arguments", "environment", "line"),
    [
        ([], {}, "usage: "),
        (["file"], {}, "usage: "),
        (["end", "now"], {}, "usage: "),
        (["file", "../etc/passwd"], {}, "file name '../etc/passwd': take 1 to 60 letters"),
        (["file", ""], {}, "file name ''"),
        (["note", "a"], {"LATENZ_SENDER": "256"}, "LATENZ_SENDER holds '256'"),
        (["note", "a"], {"LATENZ_SENDER": "x"}, "LATENZ_SENDER holds 'x'"),
    ],
)
def test_bad_input_gets_one_line(send, arguments, environment, line):
    done = send(*arguments, **environment)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.decode().startswith(f"latenz-send: {line}")
    assert done.stderr.count(b"\n") == 1


def test_a_full_disk_is_said(send):
    with Path("/dev/full").open("wb") as full:
        done = send("note", "a", stdout=full)
    assert done.returncode == 2
    assert b"standard output cannot be written" in done.stderr
