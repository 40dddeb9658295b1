"""Ending early and in order: a signal sets a mark, and work that lasts looks at it."""

import os
import signal
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP call a function instead of ending the program.

    An exception in the middle of the work could lose what was just done. SIGHUP comes when the
    terminal goes, as with a lost ssh connection; under nohup it stays ignored.
    """

    def handle(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            _leave_lost_terminal()
        stop()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    previous = {each: signal.signal(each, handle) for each in numbers}
    try:
        yield
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


@contextmanager
def noticed_signals() -> Iterator[Callable[[], bool]]:
    """Give a function that tells whether one of these signals has come; none ends the program."""
    came = threading.Event()
    with stopped_by_signals(came.set):
        yield came.is_set


def _leave_lost_terminal() -> None:
    """Write to nothing what would go to a terminal that is gone: each write to it fails (EIO)."""
    for descriptor in (sys.__stdout__, sys.__stderr__):
        with suppress(OSError, ValueError):
            number = descriptor.fileno() if descriptor else -1
            if stat.S_ISCHR(os.fstat(number).st_mode) and not os.isatty(number):
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, number)
                os.close(nothing)
