"""Running `latenz tune prove` on a tree or on this machine."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

EXPERIMENT = """\
name = "short"
duration = "60 ms"
seed = 3

[probe.one]
engine = "wakeup"
cpus = "0"
warm_up = "1 ms"

[[condition]]
name = "idle"
probe = "one"
"""
ONE = "host-stat-interval"


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "latenz", "tune", *map(str, words)]


def latenz(*words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=600)


def words(experiment: Path, tree: Path, output: Path, *more: object) -> list[object]:
    common = (
        "--root",
        tree,
        "--cpus=2-3",
        "--profile=kvm-host",
        "--yes",
        "-o",
        output,
        "--figure=mean",
    )
    return ["prove", experiment, *common, *more]


def begun(words: list[object]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not what():
        assert time.monotonic() < until
        time.sleep(0.01)


def value(tree: Path) -> str:
    with contextlib.suppress(OSError):
        return (tree / "proc/sys/vm/stat_interval").read_text().strip()
    return ""
