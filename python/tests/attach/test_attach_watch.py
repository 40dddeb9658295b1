"""What `latenz attach --watch` shows while it measures."""

import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from latenz.attach.account import Account
from latenz.attach.causes import Surroundings
from latenz.commands.attach_watch import _lines, _table, last_late
from latenz.console import Console
from latenz.engines.attach import missing_rights

from .conftest import Rhythm
from .test_attach_trace import made_up

LIMIT_S = 120
COLUMNS = 40
COMMAND = [sys.executable, "-m", "latenz", "attach"]


def test_a_pipe_gets_a_line_a_step_and_a_narrow_terminal_nothing_wider(tmp_path: Path) -> None:
    made = made_up(3, 300)
    trace = tmp_path / "trace.txt"
    trace.write_text(made.text(), encoding="utf-8")
    run = tmp_path / "run"
    command = [*COMMAND, "loop", "--from", str(trace), "--watch", "--json", "-o", str(run)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    *steps, last = map(json.loads, done.stdout.splitlines())
    assert last["run"] == str(run)
    worst_ns = max(each.first_run - each.due for each in made.cycles)
    (shown,) = steps[-1]["threads"]
    assert (shown["comm"], shown["period_ns"], shown["largest_ns"]) == ("loop", 1_000_000, worst_ns)
    assert shown["last_late"].startswith("cycle ")

    (thread,) = Account.of(run / "loop").recorded
    story = last_late(thread)
    assert story is not None
    assert story.response_ns * 10 >= max(each.response_ns for each in thread.worst)
    (line,) = _lines([thread], Surroundings())
    assert "\n" not in line
    drawn = io.StringIO()
    console = Console(file=drawn, width=COLUMNS, force_terminal=True)
    console.print(_table(3, [thread], Surroundings()))
    told = re.sub(r"\x1b\[[0-9;]*m", "", drawn.getvalue())
    assert max(map(len, told.splitlines())) <= COLUMNS
    assert "recent" in told


@pytest.mark.skipif(missing_rights() is not None, reason="watching needs root")
def test_a_terminal_is_left_as_it_was_and_samples_are_kept(
    start_rhythm: Callable[..., Rhythm], tmp_path: Path
) -> None:
    program = start_rhythm("absolute")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (12, COLUMNS))
    command = [*COMMAND, str(program.pid), "--watch", "-o", str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    journal = tmp_path / "run/rhythm/rhythm/samples.journal"
    seen = b""
    until = time.monotonic() + LIMIT_S
    while time.monotonic() < until and not (b"recent" in seen and journal.exists()):
        seen += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    while True:
        try:
            seen += os.read(ours, 65536)
        except OSError:  # nobody has it open any more
            break
    assert process.wait(LIMIT_S) == 130
    os.close(ours)
    assert seen.count(b"\x1b[?25l") == seen.count(b"\x1b[?25h") >= 1  # the cursor is back
    assert b"run folder" in seen
