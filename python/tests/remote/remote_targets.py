"""What tests of targets share: marked processes, a stand-in for ssh, waiting."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from latenz.remote import Target

EXPERIMENT = """name = "remote"
duration = "{duration}"
[probe.gentle]
engine = "wakeup"
period = "2 ms"
policy = "other"
[[condition]]
name = "idle"
probe = "gentle"
[[condition]]
name = "spin"
probe = "gentle"
stressor = "spin"
[[condition]]
name = "board"
bench = "virt"
stack = "standalone"
probe = "interrupt"
"""

# Takes ssh's options, as ssh does; what the login shell prints comes before the command's output.
FAKE_SSH = """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in -p) shift 2 ;; -*) shift ;; *) break ;; esac
done
echo "$1" >>"$FAKE_SSH_LOG"
shift
[ ! -e "$FAKE_SSH_LOG.cut" ] || { echo "connect to host board: No route to host" >&2; exit 255; }
echo "Welcome to the board!"
echo "a banner" >&2
exec sh -c "$*"
"""


class Marked:
    """Processes that carry a mark in their environment: what Latenz starts inherits it."""

    def __init__(self) -> None:
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.environment = {**os.environ, "LATENZ_TEST_MARK": self.mark}

    def alive(self) -> dict[int, str]:
        """Return the processes that still run, zombies aside, with their command lines."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                marked = self.mark.encode() in (process / "environ").read_bytes()
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if marked and command:
                found[int(process.name)] = command
        return found

    def agents(self) -> list[int]:
        """Return the agent's processes."""
        found = []
        for process, command in self.alive().items():
            name, verb, *_ = (*command.split(" "), "", "")
            if "latenz-agent" in name or (name.endswith("/exe") and verb == "link"):
                found.append(process)
        return found

    def links(self) -> list[int]:
        """Return those that copy between the keeper and what started them."""
        return [
            each for each in self.agents() if "pipe" in str(Path(f"/proc/{each}/fd/1").readlink())
        ]


def eventually(
    holds: Callable[[], object], what: str, told: Callable[[], object] = lambda: "", s: float = 60
) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + s
    while not holds():
        assert time.monotonic() < deadline, f"{what}: {told()}"
        time.sleep(0.05)


def latenz(*arguments: object, marked: Marked | None = None) -> "subprocess.Popen[str]":
    """Start Latenz, in a session of its own as a shell's job is."""
    return subprocess.Popen(
        [sys.executable, "-I", "-m", "latenz", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=marked.environment if marked else None,
        start_new_session=True,
    )


def left_folders() -> set[Path]:
    """Return the agent's folders on this machine."""
    places = ("/run", "/dev/shm", "/tmp", "/var/tmp", os.environ.get("XDG_RUNTIME_DIR", "/run"))
    return {found for place in places for found in Path(place).glob("latenz-agent.*")}


def after_call(machine: Target, count: int, act: Callable[[], object]) -> None:
    """Act right after the n-th system call that the agent makes for us."""
    calls = machine.system_calls()
    real, left = calls._ask, [count]

    def ask(verb: str, *fields: str) -> list[bytes]:
        told = real(verb, *fields)
        left[0] -= verb == "call"
        if left[0] == 0:
            act()
        return told

    calls._ask = ask  # type: ignore[method-assign]
