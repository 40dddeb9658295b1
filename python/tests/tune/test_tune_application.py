"""The layer `application` of `latenz tune check`: a running program that does not help itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from latenz.errors import BadInput
from latenz.tune.application import application
from latenz.tune.context import Context
from latenz.tune.root import Root

OURS = """
import ctypes, os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK
print("there", flush=True)
sys.stdin.read()
"""


def test_what_a_program_did_to_itself_is_told() -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", OURS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "there\n"
    context = Context(Root(Path("/")), frozenset(), frozenset(os.sched_getaffinity(0)), "host")
    checks = {each.id: each for each in application(context, program.pid)}
    program.communicate("")
    assert {each.layer for each in checks.values()} == {"application"}
    assert checks["app-timer-slack"].state == "ok"
    assert checks["app-cpu-mask"].state == "ok"
    assert checks["app-memory-locked"].state == "wrong"
    assert checks["app-memory-locked"].found is not None
    assert checks["app-memory-locked"].found.startswith("0 of ")
    assert checks["app-real-time-policy"].found == "SCHED_OTHER"
    assert "pthread_setschedparam" in checks["app-real-time-policy"].reason
    with pytest.raises(BadInput, match="there is no process"):
        application(context, program.pid)


def test_tune_check_tells_it_beside_the_catalogue() -> None:
    command = [sys.executable, "-m", "latenz", "tune", "check", "--only", "host-mlock-app"]
    done = subprocess.run(
        [*command, "--pid", str(os.getpid()), "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    layers = {each["id"]: each["layer"] for each in json.loads(done.stdout)["checks"]}
    assert done.returncode in (0, 1)
    assert layers["host-mlock-app"] == "host"
    assert layers["app-memory-locked"] == "application"
