"""Ending early and in order: a signal sets a mark, and work that lasts looks at it."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let SIGINT and SIGTERM call a function instead of ending the program.

    An exception in the middle of the work could lose what was just done.
    """

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop()

    previous = {each: signal.signal(each, handle) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)


@contextmanager
def noticed_signals() -> Iterator[Callable[[], bool]]:
    """Give a function that tells whether SIGINT or SIGTERM has come; neither ends the program."""
    came = threading.Event()
    with stopped_by_signals(came.set):
        yield came.is_set
