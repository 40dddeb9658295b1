"""One connection with an agent: started, spoken through, and lost again."""

import contextlib
import gzip
import os
import secrets
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from latenz.errors import BadInput
from latenz.programs import agent_program
from latenz.remote import holder
from latenz.remote.setup import ensure_agents
from latenz.remote.url import TargetUrl
from latenz.terminal import printable

PROTOCOL = 1
_CONNECT_S = 40.0
_SLICE_S = 0.1
_LARGEST_LINE = 4096
_MOST_NOISE = 1 << 18
"""Bytes that a login shell may print before the agent speaks."""
_LARGEST_REPLY = 1 << 26
_PROCESSORS = {
    "x86_64": "x86_64",
    "aarch64": "aarch64",
    "armv7l": "armhf",
    "armv8l": "armhf",
    "riscv64": "riscv64",
}
"""Which program a target needs, by what `uname -m` says there."""

# One line, and without single quotes, for any login shell. It makes a folder where programs can
# be run, says what the target is, takes the program, and becomes it.
_BEGIN = (
    'umask 077; d=; trap "rm -rf \\"\\$d\\"" EXIT; '
    'for p in "$XDG_RUNTIME_DIR" /run /dev/shm /tmp /var/tmp "$HOME"; do '
    '[ -n "$p" ] && [ -d "$p" ] && [ -w "$p" ] || continue; '
    'd=$(mktemp -d "$p/latenz-agent.XXXXXX" 2>/dev/null) || continue; '
    'printf "#!/bin/sh\\nexit 0\\n" >"$d/try" 2>/dev/null && chmod 700 "$d/try" && '
    '"$d/try" 2>/dev/null && break; rm -rf "$d"; d=; done; '
    "g=raw; command -v gzip >/dev/null 2>&1 && g=gzip; "
    '[ -n "$d" ] || g=nowhere; echo; echo "latenz-boot TOKEN $g $(uname -m)"; '
    "read -r n g || exit 1; "
    'if [ "$g" = gzip ]; then head -c "$n" | gzip -dc >"$d/latenz-agent"; '
    'else head -c "$n" >"$d/latenz-agent"; fi || exit 1; '
    'chmod 700 "$d/latenz-agent" && exec "$d/latenz-agent" begin TOKEN "$d"'
)
# The keeper's own program is no longer in any folder; only one that is ours has the token.
_AGAIN = (
    "if grep -q TOKEN /proc/PROCESS/cmdline 2>/dev/null; "
    "then exec /proc/PROCESS/exe link TOKEN; else echo; echo latenz-gone TOKEN; fi"
)


class Lost(Exception):  # noqa: N818 - it may come back
    """The link is cut, with the reason."""


class Gone(Exception):  # noqa: N818 - as the target says
    """The agent is no longer there."""


@dataclass(frozen=True)
class Reply:
    """What the agent says to a request.

    Attributes:
        error: 0, or an error number; then the first field says more.
        fields: As the verb has it.
    """

    error: int
    fields: list[bytes]


def pack(verb: str, number: int, fields: Sequence[str | bytes]) -> bytes:
    """Return a request as it goes over a link."""
    parts = []
    for field in fields:
        data = field.encode() if isinstance(field, str) else field
        parts.append(b"%d\n%s" % (len(data), data))
    payload = b"".join(parts)
    return f"{verb} {number} {len(payload)}\n".encode() + payload


class Connection:
    """A running ssh, or what takes its place, that has an agent at its other end.

    Args:
        url: The target.
        token: Tells this agent from all others.
        process: The agent's, if it is there already.
        given_up: Is asked now and then whether to stop waiting.

    Raises:
        Lost: The target cannot be reached.
        Gone: The agent has ended.
        BadInput: The target cannot be measured.
    """

    def __init__(
        self, url: TargetUrl, token: str, process: int | None, given_up: Callable[[], bool]
    ) -> None:
        self.url = url
        self.given_up = given_up
        self.sent_bytes = self.received_bytes = 0
        self._held = bytearray()
        self._ending = False
        self._deadline = time.monotonic() + _CONNECT_S
        script = _BEGIN if process is None else _AGAIN.replace("PROCESS", str(process))
        command = url.command(script.replace("TOKEN", token))
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the connection
        self._output, writing = os.pipe()
        try:
            self._holder = subprocess.Popen(
                [sys.executable, "-I", "-S", holder.__file__, str(self._output), *command],
                stdin=subprocess.PIPE,
                stdout=writing,
                stderr=self._errors,
                pass_fds=(self._output,),
                start_new_session=True,
            )
        finally:
            os.close(writing)
        try:
            if process is None:
                self._bring_agent(token)
            self._await_line(f"latenz-agent {PROTOCOL} {token}".encode(), token)
        except BaseException:
            self.drop()
            raise

    def _bring_agent(self, token: str) -> None:
        words = self._await_line(f"latenz-boot {token} ".encode(), token).decode().split()
        packing, processor = words[2], words[3] if len(words) > 3 else ""
        if packing == "nowhere":
            what = "has no folder where programs can be run: all are read-only or noexec"
            raise BadInput(what, self.url.text, "as root: mount -o remount,exec /dev/shm")
        if processor not in _PROCESSORS:
            known = ", ".join(_PROCESSORS)
            what = f"has a processor that no agent is for: {processor or 'unknown'}"
            raise BadInput(what, self.url.text, f"there are agents for {known}")
        ensure_agents(self.url)  # now that there is a target for one: the first time takes minutes
        self._deadline = time.monotonic() + _CONNECT_S
        program = agent_program(_PROCESSORS[processor]).read_bytes()
        data = gzip.compress(program, 6, mtime=0) if packing == "gzip" else program
        self.send(f"{len(data)} {packing}\n".encode() + data)

    def _await_line(self, wanted: bytes, token: str) -> bytes:
        """Return the line that begins as wanted, whatever else is printed before it."""
        for _ in range(_MOST_NOISE):
            line = self._line()
            if line.startswith(wanted):
                return line
            if line == f"latenz-gone {token}".encode():
                raise Gone
            if self.received_bytes > _MOST_NOISE:
                break
        raise Lost("something else than a shell answers")

    def send(self, data: bytes) -> None:
        """Send bytes.

        Raises:
            Lost: The link is cut.
        """
        if self._holder.stdin is None:
            raise Lost("the link is closed")
        try:
            self._holder.stdin.write(data)
            self._holder.stdin.flush()
        except OSError:
            raise Lost(self._reason()) from None
        self.sent_bytes += len(data)

    def exchange(
        self, requests: Sequence[tuple[str, Sequence[str | bytes]]], longest_s: float
    ) -> list[Reply]:
        """Send requests, and return the reply to each.

        Raises:
            Lost: The link is cut, or nothing came for too long.
        """
        self._deadline = time.monotonic() + longest_s
        self.send(b"".join(pack(verb, at, fields) for at, (verb, fields) in enumerate(requests)))
        return [self._reply(at) for at in range(len(requests))]

    def _reply(self, number: int) -> Reply:
        words = self._line().split()
        try:
            told, error, length = (int(word) for word in words)
        except ValueError:
            raise Lost("the agent's words are damaged") from None
        if told != number or not 0 <= length <= _LARGEST_REPLY or not 0 <= error < 4096:
            raise Lost("the agent's words are damaged")
        while len(self._held) < length:
            self._receive()
        payload = bytes(self._held[:length])
        del self._held[:length]
        return Reply(error, _fields(payload))

    def _line(self) -> bytes:
        while (end := self._held.find(b"\n")) < 0:
            if len(self._held) > _LARGEST_LINE:
                del self._held[:-1]  # noise before the agent speaks; afterwards no line at all
            self._receive()
        line = bytes(self._held[:end]).strip(b"\r")
        del self._held[: end + 1]
        return line

    def _receive(self) -> None:
        while not select.select([self._output], [], [], _SLICE_S)[0]:
            if self.given_up():
                raise Lost("interrupted")
            if time.monotonic() > self._deadline:
                raise Lost("it does not answer")
        data = os.read(self._output, 1 << 18)
        if not data:
            raise Lost("" if self._ending else self._reason())
        self.received_bytes += len(data)
        self._held += data

    def _reason(self) -> str:
        """Return what ssh said last, as far as it is known."""
        try:
            status = self._holder.wait(2)
        except subprocess.TimeoutExpired:
            status = None
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _LARGEST_LINE))
        lines = [
            line.strip() for line in self._errors.read().decode("utf-8", "replace").split("\n")
        ]
        told = [printable(line)[:300] for line in lines if line]
        if told:
            return told[-1]
        return "the link was cut" if status is None else f"it ended with exit code {status}"

    def wait(self, longest_s: float) -> None:
        """Wait until the other side has closed the link."""
        self._deadline = time.monotonic() + longest_s
        self._ending = True
        try:
            while True:
                self._receive()
        except Lost:
            self.drop()

    def drop(self) -> None:
        """End the link at once; the agent stays where it is."""
        if self._holder.poll() is None:
            self._holder.terminate()
            try:
                self._holder.wait(2)
            except subprocess.TimeoutExpired:
                self._holder.kill()
                self._holder.wait()
        if self._holder.stdin is not None:
            with contextlib.suppress(OSError):
                self._holder.stdin.close()
        if self._output >= 0:
            os.close(self._output)
            self._output = -1
        self._errors.close()


def new_token() -> str:
    """Return what tells an agent from all others."""
    return secrets.token_hex(16)


def _fields(payload: bytes) -> list[bytes]:
    fields, place = [], 0
    while place < len(payload):
        end = payload.find(b"\n", place, place + 24)
        if end < 0 or not payload[place:end].isdigit():
            raise Lost("the agent's words are damaged")
        length = int(payload[place:end])
        if end + 1 + length > len(payload):
            raise Lost("the agent's words are damaged")
        fields.append(payload[end + 1 : end + 1 + length])
        place = end + 1 + length
    return fields
