"""Cycles whose begin and end the user names, held against the program's own stamps."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from latenz.engines.attach import missing_rights
from latenz.store.run import Run

from .conftest import MS, Rhythm

Start = Callable[..., Rhythm]
needs_root = pytest.mark.skipif(missing_rights() is not None, reason="watching needs root")
LIMIT_S = 120
PAUSE_NS = 100_000
"""The loop sleeps that long before its begin and after its end."""
BEGINS, ENDS, PAUSES = 1, 2, 12


def latenz(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latenz", "attach", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def measured(program: Rhythm, run: Path, *options: str) -> dict[str, Any]:
    done = latenz(program.pid, "--duration", "800 ms", "-o", run, "--json", *options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs_root
@pytest.mark.parametrize(
    ("marks", "options"),
    [
        (BEGINS | ENDS | PAUSES, ()),
        (PAUSES, ("--begin", "rhythm:begin_here", "--end", "rhythm:end_here")),
        (PAUSES, ("--begin", "rhythm:rhythm:begins", "--end", "rhythm:rhythm:ends")),
        (PAUSES, ("--begin", "rhythm:begin_here%return", "--end", "rhythm:end_here%return")),
    ],
    ids=["prctl", "uprobe", "static probe", "return"],
)
def test_a_cycle_goes_from_mark_to_mark(
    marks: int, options: tuple[str, ...], start_rhythm: Start, tmp_path: Path
) -> None:
    program = start_rhythm("absolute", work_ns=50_000, RHYTHM_MARKS=str(marks))
    told = measured(program, tmp_path / "run", *options)
    stamps = program.stamps()
    (thread,) = told["threads"]
    assert thread["period_ns"] == MS
    assert "mark" in thread["due_from"]
    (found,) = Run.open(tmp_path / "run").sample_sets
    table = {
        name: np.concatenate([batch.column(name).to_numpy() for batch in found.batches()])
        for name in found.columns
    }
    shares = ("timer_late_ns", "ready_ns", "execution_ns", "blocked_ns")
    assert (table["response_ns"] == sum(table[name] for name in shares)).all()
    assert len(np.unique(table["t_ns"])) == len(table["t_ns"]) > 100
    due, woke, done = stamps.T
    at = np.minimum(np.searchsorted(due, table["t_ns"]), len(due) - 1)
    same = due[at] == table["t_ns"]
    assert same.mean() > 0.95
    began = table["t_ns"] + table["latency_ns"]
    ended = table["t_ns"] + table["response_ns"]
    # The clock is read before the begin and before the end; the pauses lie outside of both.
    assert (began[same] >= woke[at[same]]).all()
    assert (began[same] <= done[at[same]]).all()
    assert (ended[same] >= done[at[same]]).all()
    assert np.median(ended[same] - done[at[same]]) < PAUSE_NS
    assert np.median(table["latency_ns"]) > PAUSE_NS


@needs_root
def test_only_the_end_may_be_named(start_rhythm: Start, tmp_path: Path) -> None:
    program = start_rhythm("absolute", work_ns=50_000, RHYTHM_MARKS="8")
    told = measured(program, tmp_path / "run", "--end", "rhythm:end_here")
    program.stamps()
    (thread,) = told["threads"]
    assert "its own timer" in thread["due_from"]
    assert thread["period_ns"] == MS
    (found,) = Run.open(tmp_path / "run").sample_sets
    response = np.concatenate([each.column("response_ns").to_numpy() for each in found.batches()])
    blocked = np.concatenate([each.column("blocked_ns").to_numpy() for each in found.batches()])
    assert np.median(response) >= 50_000
    assert np.median(blocked) == 0  # the pause comes after the end


@needs_root
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--begin", "rhythm"), "rhythm is not a place in a program; write PROGRAM:FUNCTION"),
        (("--end", ":x"), "--end: :x is not a place in a program"),
        (("--begin", "rhythm:nowhere"), "has no symbol nowhere of a function"),
        (("--begin", "rhythm:rhythm:nowhere"), "has no static probe rhythm:nowhere"),
        (("--begin", "other:main"), "the process has no other mapped"),
        (("--begin", "rhythm:main"), "none of 1 threads came to rhythm:main 12 times"),
        (("--from", "/dev/null", "--end", "a:b"), "is not told by a trace"),
    ],
)
def test_a_place_that_is_none_is_refused_in_one_line(
    options: tuple[str, ...], words: str, start_rhythm: Start, tmp_path: Path
) -> None:
    program = start_rhythm("absolute", cycles=60_000)
    done = latenz(program.pid, "-o", tmp_path / "run", *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


LOOP = """
import time
from latenz import mark
due = time.monotonic()
while True:
    due += 0.002
    time.sleep(max(0, due - time.monotonic()))
    mark.begin()
    sum(range(1000))
    mark.end()
"""


@needs_root
def test_a_python_program_marks_its_cycles(tmp_path: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", LOOP])
    try:
        done = latenz(program.pid, "--duration", "500 ms", "-o", tmp_path / "run", "--json")
    finally:
        program.kill()
        program.wait()
    assert done.returncode == 0, done.stderr
    (thread,) = json.loads(done.stdout)["threads"]
    assert "mark" in thread["due_from"]
    assert abs(thread["period_ns"] - 2 * MS) < MS // 2
