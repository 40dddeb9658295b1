"""Nothing that was started outlives the one who started it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from latenz.keeper import KeptProgram


def processes_marked(mark):
    """Return the processes that have a certain word on their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in words:
            found.append(int(folder.name))
    return found


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def files(tmp_path):
    return tmp_path / "out", tmp_path / "err"


def test_status_and_output_are_those_of_the_program(files):
    program = KeptProgram(["sh", "-c", "echo heard; echo seen >&2; exit 7"], *files)
    assert wait_until(lambda: not program.alive)
    assert program.stop() == 7
    assert [path.read_text() for path in files] == ["heard\n", "seen\n"]


def test_stop_interrupts_and_lets_the_program_finish(files):
    program = KeptProgram(
        ["sh", "-c", "trap 'echo end; exit 3' INT; echo on; while :; do sleep 0.05; done"],
        *files,
        grace_s=60,
    )
    assert wait_until(lambda: files[0].read_text() == "on\n")
    assert program.alive
    assert program.stop() == 3
    assert files[0].read_text() == "on\nend\n"
    assert program.stop() == 3


def test_a_program_that_does_not_end_is_killed(files):
    program = KeptProgram(
        ["sh", "-c", "trap '' INT TERM; echo on; sleep 1000"], *files, grace_s=0.2
    )
    assert wait_until(lambda: files[0].read_text() == "on\n")
    assert program.stop() == -signal.SIGKILL


def test_a_missing_program_is_told(files):
    program = KeptProgram(["/nonexistent/program"], *files)
    assert program.stop() == 127
    assert "/nonexistent/program" in files[1].read_text()


def test_daemons_end_with_the_program(files):
    mark = f"daemon-of-{os.getpid()}"
    daemon = f"(setsid sh -c 'sleep 1000; :' {mark} &) ; sleep 1000"
    program = KeptProgram(["sh", "-c", daemon], *files, grace_s=0.2)
    assert wait_until(lambda: processes_marked(mark))
    program.stop()
    assert not processes_marked(mark)


def test_scratch_folder_is_removed(files):
    program = KeptProgram(["sh", "-c", "pwd; touch x; mktemp; exec sleep 1000"], *files)
    assert wait_until(lambda: files[0].exists() and files[0].read_text().count("\n") == 2)
    folder, temporary = files[0].read_text().split()
    assert Path(temporary).parent == Path(folder)
    assert Path(folder, "x").exists()
    program.stop()
    assert not Path(folder).exists()


def test_sigkill_of_the_owner_ends_everything(tmp_path):
    mark = f"orphan-of-{os.getpid()}"
    owner = f"""
import time
from pathlib import Path
from latenz.keeper import KeptProgram
program = "pwd; (setsid sh -c 'sleep 1000; :' {mark} &); exec sleep 1000"
folder = Path({str(tmp_path)!r})
kept = KeptProgram(["sh", "-c", program, "{mark}"], folder / "out", folder / "err")
time.sleep(1000)
"""
    process = subprocess.Popen([sys.executable, "-c", owner])
    assert wait_until(lambda: len(processes_marked(mark)) >= 2)  # keeper, daemon
    assert wait_until(lambda: "\n" in (tmp_path / "out").read_text())
    scratch = Path((tmp_path / "out").read_text().strip())
    assert scratch.exists()
    process.kill()
    process.wait()
    assert wait_until(lambda: not processes_marked(mark))
    assert wait_until(lambda: not scratch.exists())
