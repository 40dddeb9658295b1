"""The command line as a stranger's file meets it: with little memory and little time."""

import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

MOST_CPU_S = 30
MOST_KIB = 1 << 20  # resident


@dataclass(frozen=True)
class Answer:
    """What a command said, and what it took."""

    code: int
    output: str
    errors: str
    resident_kib: int

    def is_one_line(self) -> bool:
        return self.code == 2 and self.errors.count("\n") == 1 and self.output == ""


def latenz(*arguments: object, folder: Path | None = None) -> Answer:
    """Run a command; it is killed when it takes more processor time than it may."""
    command = [sys.executable, "-I", "-m", "latenz", *map(str, arguments)]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        running = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            preexec_fn=_limited,
        )
        _, status, used = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
        said = []
        for each in (output, errors):
            each.seek(0)
            said.append(each.read().decode())
    return Answer(running.returncode, *said, used.ru_maxrss)


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_S, MOST_CPU_S + 1))
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
