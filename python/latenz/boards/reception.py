"""Listening to a board until it has said all."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from latenz.boards.console import Collector, Received
from latenz.boards.payload import Payload
from latenz.boards.protocol import PayloadProtocol
from latenz.errors import BadInput

_POLL_S = 0.2
_LAST_WORDS_S = 1


@dataclass(frozen=True)
class Listener:
    """Reads what a board says.

    Attributes:
        done: Tells whether all has come.
        stopped: Tells whether to give up.
        tell: Called now and then.
    """

    done: Callable[[Received], bool]
    stopped: Callable[[], bool]
    tell: Callable[[Received], None]

    def receive(
        self, driver: PayloadProtocol, collector: Collector, payload: Payload
    ) -> str | None:
        """Read until the last frame; return why that did not come, None if it did or was stopped.

        Args:
            driver: The board, switched on.
            collector: Takes what it says.
            payload: Says how long to wait.
        """
        received = collector.received
        began, starved_s = time.monotonic(), driver.starved_s()
        while not self.stopped():
            if (disaster := received.disaster) is not None:
                _read_on(driver, collector)  # what it says next explains it
                return disaster
            if self.done(received):
                return None
            # A busy machine is not a fault of the board: what others take does not count.
            spent_s = time.monotonic() - began - (driver.starved_s() - starved_s)
            if not received.frames and spent_s > payload.boot_limit_s:
                return f"nothing measured was received in {payload.boot_limit_s} s; last line: " + (
                    received.last_words
                )
            if spent_s > payload.limit_s:
                return f"not done after {payload.limit_s} s; last line: {received.last_words}"
            try:
                collector.feed(driver.read_all(_POLL_S))
            except BadInput as mistake:
                return f"{mistake.what}; last line: {received.last_words}"
            self.tell(received)
        return None


def _read_on(driver: PayloadProtocol, collector: Collector) -> None:
    until = time.monotonic() + _LAST_WORDS_S
    while time.monotonic() < until:
        try:
            collector.feed(driver.read_all(_POLL_S))
        except BadInput:
            return
