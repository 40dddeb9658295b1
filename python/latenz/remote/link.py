"""The link with an agent: requests and replies, whatever becomes of the connections under it."""

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from latenz.errors import BadInput
from latenz.remote.connection import PROTOCOL, Connection, Gone, Lost, Reply, new_token
from latenz.remote.url import TargetUrl

LEASE_S = 120
"""How long an agent that hears nothing stays on the target."""
_BEAT_S = 10.0
_ANSWER_S = 20.0
_PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)
_END_S = 15.0

Requests = Sequence[tuple[str, Sequence[str | bytes]]]


class Link:
    """A link that is made anew as often as it is cut.

    Requests are such that asking twice does what asking once does, because a link can be cut
    between a request and its reply.

    Args:
        url: The target.

    Raises:
        BadInput: The target cannot be reached or measured.

    Attributes:
        hello: What the agent said of itself and the target.
        cuts: How often the link was cut.
    """

    def __init__(self, url: TargetUrl) -> None:
        self.url = url
        self.cuts = 0
        self._longest_cut_s = 0.0
        self.given_up: Callable[[], bool] = lambda: False
        self._token = new_token()
        self._process: int | None = None
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self._cut_at: float | None = None
        self._next_try = 0.0
        self._tries = 0
        self._gone = ""
        self._last_s = time.monotonic()
        self._bytes = [0, 0]
        self._connection: Connection | None = None
        try:
            self._connection = Connection(url, self._token, None, lambda: False)
            self.hello = self._greet()
        except Lost as reason:
            self.close()
            raise BadInput(f"cannot be reached: {reason}", url.text, self._remedy()) from None
        self._beating = threading.Thread(target=self._beat, daemon=True, name="latenz-link")
        self._beating.start()

    def _remedy(self) -> str:
        if self.url.scheme == "ssh":
            host = f"{self.url.user}@{self.url.name}" if self.url.user else self.url.name
            port = f"-p {self.url.port} " if self.url.port else ""
            return f"this must work without a question: ssh {port}{host} true"
        if self.url.scheme == "local":
            return ""
        if self.url.scheme == "labgrid":
            return f"this must work: labgrid-client -p {self.url.name} ssh true"
        return f"this must work: {self.url.scheme} exec -i {self.url.name} /bin/sh -c true"

    def _greet(self) -> dict[str, str]:
        told = [field.decode("utf-8", "replace") for field in self.ask("hello", str(PROTOCOL))]
        hello = dict(zip(told[::2], told[1::2], strict=False))
        if not hello.get("process", "").isdigit() or not hello.get("home", "").startswith("/"):
            raise BadInput("what answers is not a latenz-agent", self.url.text)
        self._process = int(hello["process"])
        self.ask("lease", str(LEASE_S))
        return hello

    def ask(self, verb: str, *fields: str | bytes, patience_s: float = LEASE_S) -> list[bytes]:
        """Return the reply to a request.

        Args:
            verb: What is asked for.
            fields: What it needs.
            patience_s: How long to try while the link is cut.

        Raises:
            Lost: The link stayed cut.
            Gone: The agent is no longer there, with the reason.
            OSError: The agent refused, with its reason.
        """
        (reply,) = self.ask_all([(verb, fields)], patience_s)
        return checked(reply)

    def ask_all(self, requests: Requests, patience_s: float = LEASE_S) -> list[Reply]:
        """Return the replies to several requests, which go over the link together."""
        with self._lock:
            deadline = time.monotonic() + patience_s
            while True:
                try:
                    return self._ask_once(requests)
                except Lost:
                    if time.monotonic() >= deadline or self.given_up():
                        raise
                    time.sleep(0.05)

    def _ask_once(self, requests: Requests) -> list[Reply]:
        if self._gone:
            raise Gone(self._gone)
        if self._connection is None:
            self._reconnect()
        connection = self._connection
        if connection is None:
            raise Lost("the link is cut")
        try:
            replies = connection.exchange(requests, _ANSWER_S)
        except Lost:
            self._lose(connection)
            raise
        self._last_s = time.monotonic()
        return replies

    def _lose(self, connection: Connection) -> None:
        self._bytes[0] += connection.received_bytes
        self._bytes[1] += connection.sent_bytes
        connection.drop()
        self._connection = None
        self.cuts += 1
        self._cut_at = self._cut_at or self._last_s
        self._tries, self._next_try = 0, 0.0

    def _reconnect(self) -> None:
        if time.monotonic() < self._next_try:
            raise Lost("the link is cut")
        try:
            self._connection = Connection(self.url, self._token, self._process, self.given_up)
        except Gone:
            self._gone = "the agent on the target was ended: by somebody there, or a reboot"
            raise Gone(self._gone) from None
        except (Lost, BadInput) as reason:
            pause_s = _PAUSES_S[min(self._tries, len(_PAUSES_S) - 1)]
            self._tries += 1
            self._next_try = time.monotonic() + pause_s
            raise Lost(str(reason)) from None
        if self._cut_at is not None:
            self._longest_cut_s = self.longest_cut_s()
            self._cut_at = None

    def _beat(self) -> None:
        """Let the agent hear of us while this side is busy with other things."""
        while not self._closed.wait(_BEAT_S / 2):
            if time.monotonic() - self._last_s < _BEAT_S:
                continue
            try:
                self.ask("beat", patience_s=0)
            except (Lost, Gone, OSError):
                continue

    def longest_cut_s(self) -> float:
        """Return the longest time without a link, be it the one that lasts."""
        now_s = 0.0 if self._cut_at is None else time.monotonic() - self._cut_at
        return max(self._longest_cut_s, now_s)

    @property
    def is_cut(self) -> bool:
        """Whether there is no link right now."""
        return self._connection is None

    def carried_bytes(self) -> tuple[int, int]:
        """Return how many bytes came and went over all connections."""
        now = self._connection
        return (
            self._bytes[0] + (now.received_bytes if now else 0),
            self._bytes[1] + (now.sent_bytes if now else 0),
        )

    @contextmanager
    def abandoned_when(self, given_up: Callable[[], bool]) -> Iterator[None]:
        """Wait for nothing any longer once a function says so, until the end of the block."""
        before, self.given_up = self.given_up, given_up
        try:
            yield
        finally:
            self.given_up = before

    def close(self) -> None:
        """Let the agent end, which leaves nothing on the target, and end the link."""
        self._closed.set()
        with self._lock:
            if self._process is not None and not self._gone:
                with suppress(Lost, Gone, OSError):
                    self.ask("end", patience_s=0 if self.is_cut else 5)
            if self._connection is not None:
                self._connection.wait(_END_S)
                self._connection = None
            self._gone = "the link is closed"


def checked(reply: Reply) -> list[bytes]:
    """Return the fields of a reply.

    Raises:
        OSError: The agent refused.
    """
    if reply.error:
        told = reply.fields[0].decode("utf-8", "replace") if reply.fields else ""
        raise OSError(reply.error, told[:500] or os.strerror(reply.error))
    return reply.fields


def number(field: bytes) -> int:
    """Return a number that the agent tells.

    Raises:
        OSError: It is none.
    """
    if not field.isdigit() or len(field) > 20:
        raise OSError(errno.EPROTO, "the agent's words are damaged")
    return int(field)
