"""Records the traces of this folder anew: late threads whose cause is made on purpose.

Run as root on a machine with two CPUs or more: python record.py OUTPUT_FOLDER. CPU 1 is not usable
by others for about two seconds. Nothing of the system's settings is changed.
"""

import ctypes
import os
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from latenz.traces.ring import Page, Ring, around, write_trace

CPU = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_SCHED_SETATTR, _SCHED_DEADLINE = 314, 6  # x86-64
_ABSOLUTE = 1


def _busy(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def _fifo(priority: int) -> None:
    os.sched_setaffinity(0, {CPU})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def _deadline(runtime_ns: int, period_ns: int) -> None:
    attributes = struct.pack(
        "<IIQiIQQQ", 48, _SCHED_DEADLINE, 0, 0, 0, runtime_ns, period_ns, period_ns
    )
    if _LIBC.syscall(_SCHED_SETATTR, 0, attributes, 0) != 0:
        raise OSError(ctypes.get_errno(), "sched_setattr")


@contextmanager
def _child(work: Callable[[], None]) -> Iterator[None]:
    """Let a process work meanwhile."""
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _wake_up_at(t_ns: int) -> None:
    class Timespec(ctypes.Structure):
        _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))

    due = Timespec(t_ns // 10**9, t_ns % 10**9)
    _LIBC.clock_nanosleep(time.CLOCK_MONOTONIC, _ABSOLUTE, ctypes.byref(due), None)


def throttled(ring: Ring) -> None:
    """A busy FIFO thread beside an ordinary one: after 0.95 s the scheduler takes 50 ms from it."""

    def ordinary() -> None:
        os.sched_setaffinity(0, {CPU})
        _busy(10)

    def hog() -> None:
        _fifo(50)
        _busy(10)

    with _child(ordinary), _child(hog):
        ring.go_on()
        time.sleep(1.3)
        ring.stop()


def preempted(ring: Ring) -> None:
    """A thread of priority 80 is due while one of priority 90 is busy for 6 ms."""
    start_ns = time.monotonic_ns() + 200_000_000

    def urgent() -> None:
        _fifo(90)
        _wake_up_at(start_ns)
        _busy(0.006)

    def late() -> None:
        _fifo(80)
        _wake_up_at(start_ns + 1_000_000)

    ring.go_on()
    with _child(urgent), _child(late):
        time.sleep(0.25)
        ring.stop()


def deadline_budget(ring: Ring) -> None:
    """A busy deadline thread that may run 4 ms of every 40 ms."""

    def greedy() -> None:
        _deadline(4_000_000, 40_000_000)
        _busy(10)

    with _child(greedy):
        time.sleep(0.1)
        ring.go_on()
        time.sleep(0.09)
        ring.stop()


def timer_storm(ring: Ring) -> None:
    """A thread is due right after 600 timers of others, all at once."""
    count = 600
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, count + 100)), hard))
    start_ns = time.monotonic_ns() + 300_000_000

    def timers() -> None:
        os.sched_setaffinity(0, {CPU})
        for number in range(count):
            timer = _LIBC.timerfd_create(time.CLOCK_MONOTONIC, 0)
            t_ns = start_ns + number
            setting = struct.pack("<qqqq", 0, 0, t_ns // 10**9, t_ns % 10**9)
            _LIBC.timerfd_settime(timer, _ABSOLUTE, setting, None)
        time.sleep(10)

    def late() -> None:
        _fifo(80)
        _wake_up_at(start_ns + count)

    ring.go_on()  # the timers' times are told when they are started
    with _child(timers), _child(late):
        time.sleep(0.32)
        ring.stop()


def main(folder: Path) -> None:
    for plant in (throttled, preempted, deadline_budget, timer_storm):
        ring = Ring("plant", 8192)
        try:
            plant(ring)
            pages = [_tail(each) for each in ring.pages()]
            write_trace(ring, pages, folder / f"{plant.__name__.replace('_', '-')}.dat")
        finally:
            ring.remove()


def _tail(pages: list[Page]) -> list[Page]:
    """The last 0.4 s are enough: what is planted is over by then for less than that."""
    last_ns = pages[-1].t_ns if pages else 0
    return around(pages, [(last_ns, last_ns)], 400_000_000)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
