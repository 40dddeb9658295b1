"""Runs a program so that nothing of it outlives Latenz, however Latenz ends.

`KeptProgram` starts this file as a small process of its own, the keeper, which starts the wanted
program. The keeper holds the reading end of a pipe from Latenz: when that closes, because Latenz
stops the program or because Latenz is gone (SIGKILL included), the keeper interrupts the
program, kills whatever is left of its descendants after a grace time, and removes the scratch
folder where it ran: what programs write where they are must not land where Latenz was started.
Being the subreaper of its descendants, it also finds those that made themselves daemons.

The keeper imports only the standard library, so that it starts quickly and stays small; it
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

    Its working directory, and its TMPDIR, is a temporary folder that the keeper removes at the end:
    paths among the arguments must be absolute.

    Args:
        arguments: Program and arguments; no shell is involved.
        output: File that takes standard output.
        errors: File that takes standard error.
        grace_s: Seconds the program gets to end by itself once interrupted.
        cpus: Where the program may run; none: where this process may.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        output: Path,
        errors: Path,
        grace_s: float = 5.0,
        cpus: frozenset[int] = frozenset(),
    ) -> None:
        from latenz.files import scratch_place

        folder = tempfile.mkdtemp(prefix="latenz-", dir=scratch_place())
        may = ",".join(map(str, cpus))
        keeper = [sys.executable, "-I", "-S", __file__, str(grace_s), folder, may, *arguments]
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

    def processes(self) -> list[int]:
        """Return the numbers of the program and of everything it has started that still runs."""
        return _descendants(self._keeper.pid)

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


def _prepare(cpus: Sequence[int]) -> None:
    # Should someone kill the keeper itself, the program is told to end as well.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if cpus:
        with contextlib.suppress(OSError):  # a filter may forbid it; the program says what follows
            os.sched_setaffinity(0, cpus)


def _keep(arguments: Sequence[str], grace_s: float, folder: str, cpus: Sequence[int]) -> int:
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Not SIG_IGN, which the program would inherit.
        signal.signal(number, lambda *_: None)
    try:
        program = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: _prepare(cpus),
            cwd=folder,
            env={**os.environ, "TMPDIR": folder},
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
        may_run_on = [int(cpu) for cpu in sys.argv[3].split(",") if cpu]
        sys.exit(_keep(sys.argv[4:], float(sys.argv[1]), sys.argv[2], may_run_on))
    finally:
        shutil.rmtree(sys.argv[2], ignore_errors=True)
