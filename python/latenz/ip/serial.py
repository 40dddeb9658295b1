"""A board behind a serial line: the registers of its IP, through `hdl/uart_axi_bridge`.

Request: `R`, window, u16 address, count of words; or `W`, window, u16 address, u32 word; then a
check of one byte (x^8 + x^2 + x + 1). Response: for each word read a status and, if that is 0, the
word; for a write its status; then a check. Little endian. See hdl/uart_axi_bridge.
"""

import fcntl
import os
import select
import stat
import struct
import termios
import time
from pathlib import Path

from latenz.errors import BadInput
from latenz.icc.region import Closing
from latenz.ip.link import WORD, Board, NotAnswered, Place
from latenz.ip.registers import LATENCIES_IP_OFFSETS as OFFSETS
from latenz.model import TimeBase

_SPEED = termios.B1000000
_S00, _S01 = 0, 1
_ADDRESSES = 1 << 16
_MOST_WORDS = 64
"""In one request: 5 ms on the line, so that Ctrl-C is noticed."""
_OKAY, _DAMAGED = 0, 0xFE
_STATUS = {2: "SLVERR", 3: "DECERR"}
_TRIES = 3
"""A damaged request has done nothing, and may be sent again."""
_ANSWER_LIMIT_S = 5.0
_SIMULATED_LIMIT_S = 120.0
_SILENCE_S = 0.05
"""After it the bridge has forgotten a request that somebody left half done: 33 ms."""
_PAUSE_S = 0.002
_MAGIC = 0x4C5A
_PSEUDO_TERMINALS = range(136, 144)
"""Their device numbers: what is behind one is not a board's serial port."""


class SerialLink(Closing):
    """A board at the other end of a serial line.

    Args:
        name: What the user called it.
        path: The device.

    Raises:
        BadInput: It is no such device, or no bridge with a Latencies IP answers there.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._file = _opened(name, path)
        self._simulated = os.major(os.fstat(self._file).st_rdev) in _PSEUDO_TERMINALS
        self._limit_s = _SIMULATED_LIMIT_S if self._simulated else _ANSWER_LIMIT_S
        try:
            time.sleep(_SILENCE_S)
            termios.tcflush(self._file, termios.TCIOFLUSH)
            self.board = self._describe()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the board alone."""
        os.close(self._file)

    def read(self, window: int, address: int, count: int = 1) -> list[int]:
        """Return consecutive words from a byte address on."""
        words: list[int] = []
        while len(words) < count:
            here = self._place(window, address + WORD * len(words))
            part = min(count - len(words), _MOST_WORDS)
            request = struct.pack("<cBHB", b"R", window, here, part)
            words += self._asked(request, part, window, here)
        return words

    def write(self, window: int, address: int, word: int) -> None:
        """Write one word."""
        here = self._place(window, address)
        self._asked(struct.pack("<cBHI", b"W", window, here, word), 0, window, here)

    def pause(self) -> None:
        """Sleep a little."""
        time.sleep(_PAUSE_S)

    def wait(self, cycles: int) -> None:
        """Sleep for some clock cycles, at least."""
        time.sleep(cycles / self.board.clock_hz)

    def _describe(self) -> Board:
        magic = self.read(_S01, OFFSETS["identification"])[0] >> 16
        if magic != _MAGIC:
            raise BadInput("there is no Latencies IP that can tell what it is", self.name)
        return Board(
            board=self.name,
            time_base=TimeBase.SIMULATED if self._simulated else TimeBase.SILICON,
            clock_hz=self.read(_S01, OFFSETS["clock_frequency_hz"])[0],
            instances=(
                Place(
                    name="latencies_ip",
                    s00=_S00,
                    s01=_S01,
                    published=False,
                    from_event="stimulus (with SW1: begin) rises",
                    to_event="answer rises",
                ),
            ),
        )

    def _place(self, window: int, address: int) -> int:
        if not 0 <= address < _ADDRESSES:
            raise NotAnswered(f"{self.name}, window {window}", address, "DECERR")
        return address

    def _asked(self, request: bytes, count: int, window: int, address: int) -> list[int]:
        for _ in range(_TRIES):
            self._send(request + bytes([check(request)]))
            words, status = self._answer(count)
            if status == _OKAY:
                return words
            if status != _DAMAGED:
                break
        where = f"{self.name}, window {window}"
        if status in _STATUS:
            raise NotAnswered(where, address + WORD * len(words), _STATUS[status])
        raise BadInput(
            "the bridge does not understand requests" if status == _DAMAGED else f"status {status}",
            where,
            "is the line disturbed, or is something else connected to it?",
        )

    def _send(self, message: bytes) -> None:
        while message:
            _, ready, _ = select.select([], [self._file], [], self._limit_s)
            if not ready:
                raise BadInput("takes no bytes", self.name, "is it still connected?")
            try:
                message = message[os.write(self._file, message) :]
            except OSError as error:
                raise self._gone(error) from None

    def _answer(self, count: int) -> tuple[list[int], int]:
        """The words of an answer, and its last status; count is 0 for a write's."""
        answer, words = b"", list[int]()
        while True:
            answer += self._receive(1)
            status = answer[-1]
            if status == _OKAY and count:
                answer += self._receive(WORD)
                words.append(int.from_bytes(answer[-WORD:], "little"))
            if status != _OKAY or len(words) == count:
                break
        if self._receive(1)[0] != check(answer):
            raise BadInput(
                "an answer came damaged", self.name, "is the cable good, and its speed 1 Mbit/s?"
            )
        return words, status

    def _receive(self, size: int) -> bytes:
        content = b""
        until = time.monotonic() + self._limit_s
        while len(content) < size:
            ready, _, _ = select.select([self._file], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise BadInput(
                    f"no answer for {self._limit_s:g} s",
                    self.name,
                    "is the design loaded? see hdl/ulx3s",
                )
            try:
                part = os.read(self._file, size - len(content))
            except OSError as error:
                raise self._gone(error) from None
            if not part:
                raise self._gone(OSError(0, "the device is gone"))
            content += part
        return content

    def _gone(self, error: OSError) -> BadInput:
        return BadInput(
            f"the board does not answer: {error.strerror}", self.name, "is it still connected?"
        )


def check(message: bytes) -> int:
    """Return the check of a message."""
    rest = 0
    for byte in message:
        rest ^= byte
        for _ in range(8):
            rest = (rest << 1 ^ (0x107 if rest & 0x80 else 0)) & 0xFF
    return rest


def _opened(name: str, path: Path) -> int:
    """Open a serial device for this program alone: 1 Mbit/s, eight bits, nothing interpreted."""
    try:
        file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"cannot be opened: {reason}", name, "see ls /dev/ttyUSB*") from None
    try:
        if not stat.S_ISCHR(os.fstat(file).st_mode) or not os.isatty(file):
            raise BadInput("is not a serial device", name, "write serial:/dev/ttyUSB0")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput("another program uses it", name, "end that first") from None
        kept = termios.tcgetattr(file)[6]
        flags = termios.CS8 | termios.CREAD | termios.CLOCAL
        termios.tcsetattr(file, termios.TCSANOW, [0, 0, flags, 0, _SPEED, _SPEED, kept])
    except BaseException as error:
        os.close(file)
        if isinstance(error, termios.error):
            raise BadInput("cannot run at 1 Mbit/s", name, "use the board's own USB port") from None
        raise
    return file
