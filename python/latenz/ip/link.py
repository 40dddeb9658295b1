"""Ways to the registers of a board: a socket (simulated boards, a board's bridge), or its memory.

The protocol of the socket, little endian. Request: u8 operation (1 read, 2 write, 3 wait,
4 describe, 5 challenge, 6 prove), u8 window, u16 count, u32 argument (byte address, or cycles to
wait), and for a write or proof count words. Response: u8 status (0 okay, 2 SLVERR, 3 DECERR, from
251 on see docs/ip.md), u8 0, u16 count, u32 index of the first failing word, or version of the
protocol; then count words, or for a description count bytes of JSON, padded to 4.
"""

import json
import socket
import struct
import time
from collections.abc import Sequence
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from latenz.errors import BadInput
from latenz.icc.region import Closing, DeviceRegion
from latenz.ip.secret import NONCE_BYTES, Handshake
from latenz.model import TimeBase

WORD = 4
_READ, _WRITE, _WAIT, _DESCRIBE, _CHALLENGE, _PROVE = 1, 2, 3, 4, 5, 6
_VERSION = 1
"""Of the protocol, the newest that is known here; 0: before it had one."""
_REQUEST = struct.Struct("<BBHI")
_RESPONSE = struct.Struct("<BBHI")
_MOST_WORDS = 512
"""In one request: a simulated board takes about 0.1 s for them, so that Ctrl-C is noticed."""
_MOST_CYCLES = 20_000
_ANSWER_LIMIT_S = 120.0
_GREETING_LIMIT_S = 30.0
"""For the first answer, which takes no time unless the board serves somebody else."""
_STATUS = {2: "SLVERR", 3: "DECERR"}
_REFUSALS = {
    251: ("the board serves as many programs as it can", "end one of them"),
    252: (
        "another program changes something on the board",
        "wait for its end; meanwhile registers can be read",
    ),
    253: ("the board lets in only who knows its secret", "give --secret FILE; see docs/ip.md"),
    254: ("the board has another secret", "give it the same file as its bridge has"),
    255: ("the board refuses the request", ""),
}
_PAUSE_CYCLES = 2_000
_PAUSE_S = 0.002


class Ring(BaseModel):
    """Where the ring in memory is into which a `stream_ring_writer` puts an IP's samples."""

    model_config = ConfigDict(frozen=True)
    registers: int = Field(ge=0, le=255)
    """Window of the writer."""
    memory: int = Field(ge=0, le=255)
    """Window of the ring."""
    base: int = Field(ge=0, lt=1 << 64, multiple_of=16)
    """Address of the ring on the writer's bus."""
    size_log2: int = Field(ge=0, le=28)
    """It has 2 to this power records of 16 bytes."""


class Place(BaseModel):
    """Where one Latencies IP is on a board, and what it measures."""

    model_config = ConfigDict(frozen=True)
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$")
    s00: int = Field(ge=0, le=255)
    s01: int = Field(ge=0, le=255)
    published: bool
    """It has none of the additions, so nothing but the seven published registers."""
    from_event: str = Field(default="irq_in", max_length=200)
    to_event: str = Field(default="ack_in", max_length=200)
    ring: Ring | None = None


class Board(BaseModel):
    """What a board says about itself."""

    model_config = ConfigDict(frozen=True)
    board: str = Field(max_length=200)
    time_base: Literal[TimeBase.SIMULATED, TimeBase.SILICON]
    clock_hz: int = Field(gt=0)
    instances: tuple[Place, ...] = Field(min_length=1, max_length=64)
    generator: int | None = None


class NotAnswered(BadInput):
    """A word that is not there: its bus answered with an error.

    Attributes:
        address: Its byte address in the window.
    """

    def __init__(self, where: str, address: int, error: str) -> None:
        self.address = address
        super().__init__(
            f"answers {error} at {address:#x}", where, "is this the IP that its description says?"
        )


class Link(Protocol):
    """Reads and writes words of 32 bits in the windows of a board."""

    name: str
    board: Board

    def read(self, window: int, address: int, count: int = 1) -> list[int]:
        """Return consecutive words from a byte address on.

        Raises:
            NotAnswered: One is not there.
            BadInput: The board is gone.
        """

    def write(self, window: int, address: int, word: int) -> None:
        """Write one word."""

    def pause(self) -> None:
        """Let a little time pass on the board: before it is asked again."""

    def wait(self, cycles: int) -> None:
        """Let some clock cycles pass on the board, at least."""

    def close(self) -> None:
        """Leave the board alone."""


class Window:
    """A window of a board as a piece of memory.

    Args:
        link: The board.
        number: Of the window.
        size: In bytes.
    """

    def __init__(self, link: Link, number: int, size: int) -> None:
        self.name = f"{link.name}, window {number}"
        self.size = size
        self._link = link
        self._number = number

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes; both numbers are multiples of 4."""
        words = self._link.read(self._number, offset, size // WORD)
        return struct.pack(f"<{len(words)}I", *words)

    def write(self, offset: int, word: int) -> None:
        """Write one word."""
        self._link.write(self._number, offset, word)


class SocketLink(Closing):
    """A board behind a socket.

    Args:
        name: What the user called it.
        address: A Unix socket's path, or host and port.
        secret: What the board must know, and wants to be known; None: nothing.

    Raises:
        BadInput: Nobody answers there, not in the protocol, or without knowing the secret.
    """

    def __init__(
        self, name: str, address: str | tuple[str, int], secret: bytes | None = None
    ) -> None:
        self.name = name
        self._socket = _connected(name, address)
        try:
            if secret is not None:
                self._shake_hands(secret)
            self.board = self._describe()
            self._socket.settimeout(_ANSWER_LIMIT_S)
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        """Leave the board alone."""
        self._socket.close()

    def read(self, window: int, address: int, count: int = 1) -> list[int]:
        """Return consecutive words from a byte address on."""
        words: list[int] = []
        while len(words) < count:
            here = address + WORD * len(words)
            part = min(count - len(words), _MOST_WORDS)
            got = self._ask(_READ, window, part, here)
            if got != part:
                raise self._strange(f"{got} words for {part}")
            words += struct.unpack(f"<{part}I", self._receive(part * WORD))
        return words

    def write(self, window: int, address: int, word: int) -> None:
        """Write one word."""
        self._ask(_WRITE, window, 1, address, struct.pack("<I", word))

    def pause(self) -> None:
        """Let a little time pass on the board."""
        if self.board.time_base == TimeBase.SIMULATED:
            self.wait(_PAUSE_CYCLES)
        else:
            time.sleep(_PAUSE_S)

    def wait(self, cycles: int) -> None:
        """Let some clock cycles pass on the board."""
        while cycles > 0:
            part = min(cycles, _MOST_CYCLES)
            self._ask(_WAIT, 0, 0, part)
            cycles -= part

    def _shake_hands(self, secret: bytes) -> None:
        status, size, version = self._exchange(_CHALLENGE, 0, 0, 0)
        if status == 255:
            raise BadInput("the board asks for no secret", self.name, "omit --secret")
        self._check(status, "", 0)
        self._check_version(version)
        challenge = self._receive_exactly(size * WORD, NONCE_BYTES)
        handshake = Handshake(secret, challenge)
        answer = handshake.answer()
        size = self._ask(_PROVE, 0, len(answer) // WORD, 0, answer)
        if not handshake.accepts(self._receive_exactly(size * WORD, NONCE_BYTES)):
            raise BadInput("the board does not know the secret", self.name, "is it the right one?")

    def _receive_exactly(self, size: int, wanted: int) -> bytes:
        if size != wanted:
            raise self._strange(f"{size} bytes for {wanted}")
        return self._receive(size)

    def _check_version(self, version: int) -> None:
        if version > _VERSION:
            raise BadInput(
                f"speaks version {version} of the protocol, which is newer than {_VERSION}",
                self.name,
                "update Latenz",
            )

    def _describe(self) -> Board:
        status, size, version = self._exchange(_DESCRIBE, 0, 0, 0)
        self._check(status, "", 0)
        self._check_version(version)
        text = self._receive(-(-size // WORD) * WORD)[:size]
        try:
            return Board.model_validate(json.loads(text))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise self._strange(f"a description wrong at {place}: {first['msg']}") from None
        except (ValueError, RecursionError):
            raise self._strange("a description that is not JSON") from None

    def _ask(
        self, operation: int, window: int, count: int, argument: int, words: bytes = b""
    ) -> int:
        """Send a request and return the count of the response; its words are still to come."""
        status, got, index = self._exchange(operation, window, count, argument, words)
        if status and operation == _READ:
            self._receive(got * WORD)  # the words before the one that failed
        self._check(status, f", window {window}", argument + WORD * index)
        return got

    def _exchange(
        self, operation: int, window: int, count: int, argument: int, words: bytes = b""
    ) -> tuple[int, int, int]:
        """Send a request; return status, count and index of the response."""
        try:
            self._socket.sendall(_REQUEST.pack(operation, window, count, argument) + words)
        except OSError as error:
            raise self._gone(error) from None
        status, zero, got, index = _RESPONSE.unpack(self._receive(_RESPONSE.size))
        if zero:
            raise self._strange(f"status {status}")
        return status, got, index

    def _check(self, status: int, window: str, address: int) -> None:
        if status in _STATUS:
            raise NotAnswered(self.name + window, address, _STATUS[status])
        if status in _REFUSALS:
            what, remedy = _REFUSALS[status]
            raise BadInput(what, self.name + window, remedy)
        if status:
            raise self._strange(f"status {status}")

    def _receive(self, size: int) -> bytes:
        content = bytearray()
        while len(content) < size:
            try:
                part = self._socket.recv(size - len(content))
            except OSError as error:
                raise self._gone(error) from None
            if not part:
                raise BadInput("the board has closed the connection", self.name, "is it still on?")
            content += part
        return bytes(content)

    def _gone(self, error: OSError) -> BadInput:
        if isinstance(error, TimeoutError):
            return BadInput(
                f"no answer for {self._socket.gettimeout():g} s",
                self.name,
                "is it still on? if it is simulated, it serves one at a time",
            )
        return BadInput(
            f"the board does not answer: {error.strerror}", self.name, "is it still on?"
        )

    def _strange(self, what: str) -> BadInput:
        return BadInput(f"answers {what}", self.name, "is it a board of Latenz? see docs/ip.md")


def _connected(name: str, address: str | tuple[str, int]) -> socket.socket:
    try:
        if isinstance(address, str):
            opened = socket.socket(socket.AF_UNIX)
            opened.settimeout(_GREETING_LIMIT_S)
            opened.connect(address)
        else:
            opened = socket.create_connection(address, timeout=_GREETING_LIMIT_S)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except (OSError, ValueError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(
            f"no board answers: {reason}", name, "start its bridge first; see docs/ip.md"
        ) from None
    return opened


class MemoryLink(Closing):
    """The board that this program runs on: its IP's windows, mapped.

    A bus error ends the program (SIGBUS): what a word answers that is not there cannot be caught.
    So whoever uses this must know what is there.

    Args:
        name: What the user called it.
        board: What is there; a window's number is its index in `windows`.
        windows: The memory.
    """

    def __init__(self, name: str, board: Board, windows: Sequence[DeviceRegion]) -> None:
        self.name = name
        self.board = board
        self._windows = windows

    def close(self) -> None:
        """Give the memory back."""
        for window in self._windows:
            window.close()

    def read(self, window: int, address: int, count: int = 1) -> list[int]:
        """Return consecutive words from a byte address on."""
        content = self._windows[window].read(address, count * WORD)
        return list(struct.unpack(f"<{count}I", content))

    def write(self, window: int, address: int, word: int) -> None:
        """Write one word."""
        self._windows[window].write(address, word)

    def pause(self) -> None:
        """Sleep a little."""
        time.sleep(_PAUSE_S)

    def wait(self, cycles: int) -> None:
        """Sleep for some clock cycles, at least."""
        time.sleep(cycles / self.board.clock_hz)
