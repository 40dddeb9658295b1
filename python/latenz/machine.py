"""The machine that is measured: this one, or a target at the other end of a link.

What reads a machine's files, asks what it allows, or starts programs to measure it, asks
`measured_machine`. That is this machine, unless the caller works within `measuring`.
"""

import errno
import os
import platform
import shutil
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from glob import glob
from pathlib import Path
from typing import Protocol

from latenz.system_calls import OwnSystemCalls, SystemCalls

_MOST_CPUS = 8192  # that Linux supports


class Tree(Protocol):
    """Where files come from. Paths are absolute and hold no `..`; no method follows links."""

    def mode(self, path: str) -> int:
        """Return type and permissions as `st_mode` does."""

    def target(self, path: str) -> str:
        """Return what a symbolic link says."""

    def names(self, path: str) -> list[str]:
        """Return the names in a folder, in any order."""

    def content(self, path: str) -> bytes:
        """Return the bytes of a regular file."""


class Running(Protocol):
    """A program that was started on a machine."""

    @property
    def alive(self) -> bool:
        """Whether the program, or a descendant of it, still runs."""

    def stop(self) -> int:
        """Interrupt it and wait for its end; return its exit status, negative for a signal."""


class Machine(ABC):
    """A Linux machine that can be measured."""

    is_here: bool
    """Whether Latenz itself runs on it."""

    @property
    @abstractmethod
    def release(self) -> str:
        """The kernel's release, as `uname -r` prints it."""

    @property
    @abstractmethod
    def kernel(self) -> str:
        """The kernel's version, as `uname -v` prints it."""

    @property
    @abstractmethod
    def architecture(self) -> str:
        """The kind of processor, as `uname -m` prints it."""

    @property
    @abstractmethod
    def ticks_a_second(self) -> int:
        """The unit of times in /proc."""

    @property
    @abstractmethod
    def clock_resolution_ns(self) -> int:
        """The resolution of CLOCK_MONOTONIC."""

    @abstractmethod
    def content(self, path: str) -> bytes | None:
        """Return the bytes of a small file, None if it cannot be read."""

    @abstractmethod
    def link_text(self, path: str) -> str | None:
        """Return what a symbolic link says, None if it cannot be read."""

    @abstractmethod
    def matching(self, pattern: str) -> list[str]:
        """Return the sorted paths that match a shell pattern."""

    @abstractmethod
    def may(self, path: str, mode: int) -> bool:
        """Return whether `os.access` allows a mode."""

    @abstractmethod
    def inherited_cpus(self) -> frozenset[int]:
        """Return the CPUs that programs are started on."""

    @abstractmethod
    def enterable_cpus(self) -> frozenset[int]:
        """Return the CPUs that programs can enter, whatever they are started on."""

    @abstractmethod
    def priority_error(self, policy: int, priority: int) -> int:
        """Return the error number of taking a real-time priority, 0 if it is allowed."""

    @abstractmethod
    def is_root(self) -> bool:
        """Return whether programs are started as root."""

    @abstractmethod
    def find_program(self, name: str) -> str | None:
        """Return the path of an installed program, None if there is none."""

    @abstractmethod
    def output_of(self, command: Sequence[str], timeout_s: float = 30) -> str | None:
        """Return what a program prints, errors included; None if it does not run or end."""

    @abstractmethod
    def system_calls(self) -> SystemCalls:
        """Return what its files and threads are changed by."""

    @abstractmethod
    def clocks(self) -> tuple[int, int, int]:
        """Return CLOCK_MONOTONIC, CLOCK_BOOTTIME and CLOCK_REALTIME of one moment, in ns."""

    @abstractmethod
    def fetching(self, patterns: Iterable[str]) -> AbstractContextManager[None]:
        """Say which files are about to be read: over a link they come all at once."""

    @abstractmethod
    def at_once(self) -> AbstractContextManager[None]:
        """Leave the block if the machine cannot be asked right now, because its link is cut."""


class TargetMachine(Machine):
    """A machine at the other end of a link, where Latenz' programs are the agent's."""

    is_here = False

    @property
    @abstractmethod
    def name(self) -> str:
        """What messages call it."""

    @abstractmethod
    def answered_or(self, given_up: Callable[[], bool]) -> AbstractContextManager[None]:
        """Wait for its answers only until a function says so, while the link is cut."""

    @abstractmethod
    def tree(self) -> Tree:
        """Return its files, each as it is when it is first asked for."""

    @abstractmethod
    def own_program(self, name: str) -> list[str]:
        """Return how a native program of ours is called there, such as `latenz-wakeup`.

        Raises:
            BadInput: It is not there.
        """

    @abstractmethod
    def place(self, folder: Path) -> Path:
        """Return what programs there call a folder of a run."""

    @abstractmethod
    def start(
        self,
        command: Sequence[str],
        folder: Path,
        output: str,
        errors: str,
        grace_s: float,
        cpus: frozenset[int],
    ) -> Running:
        """Start a program that ends with Latenz at the latest.

        Args:
            command: Program and arguments; no shell is involved.
            folder: Of the run; takes what the program writes into its `place`.
            output: Name of the file in it that takes standard output.
            errors: Name of the file that takes standard error.
            grace_s: Seconds the program gets to end by itself once interrupted.
            cpus: Where the program may run; none: where programs are started.
        """

    @abstractmethod
    def kept_off(self, cpus: frozenset[int]) -> AbstractContextManager[None]:
        """Keep whatever of Latenz runs there off some CPUs, if there are others."""


class Here(Machine):
    """The machine that Latenz runs on."""

    is_here = True

    @property
    def release(self) -> str:
        """The kernel's release."""
        return platform.release()

    @property
    def kernel(self) -> str:
        """The kernel's version."""
        return platform.version()

    @property
    def architecture(self) -> str:
        """The kind of processor."""
        return platform.machine()

    @property
    def ticks_a_second(self) -> int:
        """The unit of times in /proc."""
        return os.sysconf("SC_CLK_TCK")

    @property
    def clock_resolution_ns(self) -> int:
        """The resolution of CLOCK_MONOTONIC."""
        return round(time.clock_getres(time.CLOCK_MONOTONIC) * 1e9)

    def content(self, path: str) -> bytes | None:
        """Return the bytes of a file, None if it cannot be read."""
        try:
            return Path(path).read_bytes()
        except OSError:
            return None

    def link_text(self, path: str) -> str | None:
        """Return what a symbolic link says, None if it cannot be read."""
        try:
            return os.fspath(Path(path).readlink())
        except OSError:
            return None

    def matching(self, pattern: str) -> list[str]:
        """Return the sorted paths that match a shell pattern."""
        return sorted(glob(pattern))  # noqa: PTH207 - patterns are texts, here and on targets

    def may(self, path: str, mode: int) -> bool:
        """Return whether `os.access` allows a mode."""
        return os.access(path, mode)

    def inherited_cpus(self) -> frozenset[int]:
        """Return the CPUs that this process was put on."""
        return frozenset(os.sched_getaffinity(0))

    def enterable_cpus(self) -> frozenset[int]:
        """Return the CPUs that this process can enter: found by trying.

        Nothing forbids one but a cpuset, and that it is offline.
        """
        found = [self.inherited_cpus()]

        def try_all() -> None:
            with suppress(OSError):  # a container's filter may forbid the call
                os.sched_setaffinity(0, range(_MOST_CPUS))
                found.append(self.inherited_cpus())

        # A thread of its own has a mask of its own, so that nothing need be put back.
        trying = threading.Thread(target=try_all)
        trying.start()
        trying.join()
        return found[-1]

    def priority_error(self, policy: int, priority: int) -> int:
        """Return the error number of taking a priority, tried in a child process.

        Many things can forbid it: capabilities, resource limits, cgroups without real-time
        bandwidth, container filters.
        """
        child = os.fork()
        if child == 0:
            try:
                os.sched_setscheduler(0, policy, os.sched_param(priority))
                os._exit(0)
            except OSError as error:
                os._exit(error.errno or errno.EPERM)
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)

    def is_root(self) -> bool:
        """Return whether this process is root's."""
        return os.geteuid() == 0

    def find_program(self, name: str) -> str | None:
        """Return the path of an installed program, None if there is none."""
        return shutil.which(name)

    def output_of(self, command: Sequence[str], timeout_s: float = 30) -> str | None:
        """Return what a program prints, errors included; None if it does not run or end."""
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout + done.stderr

    def system_calls(self) -> SystemCalls:
        """Return those of this machine."""
        return OwnSystemCalls()

    def clocks(self) -> tuple[int, int, int]:
        """Return the three clocks, read one after the other."""
        return (
            time.monotonic_ns(),
            time.clock_gettime_ns(time.CLOCK_BOOTTIME),
            time.clock_gettime_ns(time.CLOCK_REALTIME),
        )

    def fetching(self, patterns: Iterable[str]) -> AbstractContextManager[None]:  # noqa: ARG002
        """Do nothing: files here are read when they are needed."""
        return nullcontext()

    def at_once(self) -> AbstractContextManager[None]:
        """Do nothing: this machine can always be asked."""
        return nullcontext()


_HERE = Here()
_MEASURED: ContextVar[Machine] = ContextVar("measured_machine", default=_HERE)


def measured_target() -> TargetMachine | None:
    """Return the target that is measured by the running code; None: it is this machine."""
    machine = measured_machine()
    return machine if isinstance(machine, TargetMachine) else None


def measured_machine() -> Machine:
    """Return the machine that is measured by the running code."""
    return _MEASURED.get()


@contextmanager
def measuring(machine: Machine) -> Iterator[None]:
    """Measure another machine than this one until the end of the block, in this thread."""
    token = _MEASURED.set(machine)
    try:
        yield
    finally:
        _MEASURED.reset(token)
