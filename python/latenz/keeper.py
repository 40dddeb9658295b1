"""Runs a program so that nothing of it outlives Latenz, however Latenz ends.

`KeptProgram` starts this file as a small process of its own, the keeper, which starts the wanted
program. The keeper holds the reading end of a pipe from Latenz: when that closes, because Latenz
stops the program or because Latenz is gone (SIGKILL included), the keeper interrupts the
program, kills whatever is left of its descendants after a grace time, and removes its scratch
folder. Being the subreaper of its descendants, it also finds those that made themselves daemons.

Only the standard library is imported, so that the keeper starts quickly and stays small; it
sleeps in poll(2) while the program runs.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


class KeptProgram:
    """A running program under its keeper.

    Args:
        arguments: Program and arguments; no shell is involved.
        output: File that takes standard output.
        errors: File that takes standard error.
        grace_s: Seconds the program gets to end by itself once interrupted.
        scratch: Give the program a temporary folder as its working directory and TMPDIR, which
            the keeper removes at the end.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        output: Path,
        errors: Path,
        grace_s: float = 5.0,
        scratch: bool = False,
    ) -> None:
        folder = tempfile.mkdtemp(prefix="latenz-") if scratch else ""
        keeper = [sys.executable, "-I", "-S", __file__, str(grace_s), folder, *arguments]
        with output.open("wb") as out, errors.open("wb") as err:
            self._keeper = subprocess.Popen(
                keeper,
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                start_new_session=True,  # Ctrl-C reaches Latenz alone, which then stops this
            )

    @property
    def alive(self) -> bool:
        """Whether the program (or a descendant of it) still runs."""
        return self._keeper.poll() is None

    def stop(self) -> int:
        """Interrupt the program and wait for its end; harmless if it has ended.

        Returns:
            Its exit status, negative for the signal that ended it.
        """
        if self._keeper.stdin is not None:
            self._keeper.stdin.close()
        status = self._keeper.wait()
        return 128 - status if status > 128 else status


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _descendants(process: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            children = [int(child) for child in (task / "children").read_text().split()]
            found += children
            for child in children:
                found += _descendants(child)
    return found


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _kill_descendants() -> None:
    """Kill until none is left: one that forks meanwhile is found the next time round."""
    while remaining := _descendants(os.getpid()):
        for process in remaining:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.01)
        _reap()


def _keep(arguments: Sequence[str], grace_s: float, folder: str) -> int:
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Not SIG_IGN, which the program would inherit.
        signal.signal(number, lambda *_: None)
    try:
        program = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            # Should someone kill the keeper itself, the program is told to end as well.
            preexec_fn=lambda: _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM),
            cwd=folder or None,
            env={**os.environ, "TMPDIR": folder} if folder else None,
        )
    except OSError as error:
        sys.stderr.write(f"{arguments[0]}: {error.strerror}\n")
        return 127
    waiting = select.poll()
    waiting.register(os.pidfd_open(program.pid), select.POLLIN)
    waiting.register(sys.stdin.fileno(), select.POLLHUP)
    waiting.poll()
    if program.poll() is None:
        program.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(grace_s)
    program.kill()
    status = program.wait()
    _kill_descendants()
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    try:
        sys.exit(_keep(sys.argv[3:], float(sys.argv[1]), sys.argv[2]))
    finally:
        if sys.argv[2]:
            shutil.rmtree(sys.argv[2], ignore_errors=True)
