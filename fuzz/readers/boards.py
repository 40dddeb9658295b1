"""What boards, their programs and other processors send or leave in memory."""

import re
import socket
import struct
import zlib
from base64 import b64decode, b64encode
from pathlib import Path

from latenz.boards.console import Collector
from latenz.boards.elf import module_dependencies, needs
from latenz.icc.layout import find_channels
from latenz.icc.look import look, newest
from latenz.icc.region import open_region
from latenz.ip.link import SocketLink
from latenz.path.symbols import elf_symbols, embedded_symbols
from outcomes import require

_FRAME = re.compile(rb"<~([A-Za-z0-9+/]{4,116})>")
_ALIGNED = 64


def console(path: Path) -> None:
    """Take what comes over a serial line: as it is, and with the checksums of frames put right."""
    content = path.read_bytes()
    for sent in (content, _FRAME.sub(_sealed, content)):
        collector = Collector()
        middle = len(sent) // 2
        collector.feed([(0, sent[:middle]), (0, sent[middle:])])
        collector.finish()
        received = collector.received
        for stream in received.streams.values():
            ticks = (stream.latency_ticks, stream.interarrival_ticks)
            require(len(ticks[0]) == len(ticks[1]), "samples come in pairs")
        require(min(received.damaged, received.missing) >= 0, "losses are counted")


def _sealed(match: re.Match[bytes]) -> bytes:
    letters = match[1][: len(match[1]) // 4 * 4]
    body = b64decode(letters)[:-4]
    frame = body + struct.pack("<I", zlib.crc32(body))
    return b"<~" + b64encode(frame).rstrip(b"=") + b">"


def program(path: Path) -> None:
    """Read the symbols of an ELF file."""
    table = elf_symbols(path)
    require(all(each.address <= each.end for each in table), "symbols end behind their begin")


def image(path: Path) -> None:
    """Read the symbols that a raw image holds for its own use."""
    table = embedded_symbols(path)
    require(len(table) > 0, "an accepted table has symbols")


def library(path: Path) -> None:
    """Read what a program needs."""
    needs(path.read_bytes(), "input", "amd64")


def kernel_module(path: Path) -> None:
    """Read what a kernel module needs."""
    module_dependencies(path.read_bytes(), "input")


def board_answers(path: Path) -> None:
    """Ask a board whose every answer is the next part of the input."""
    address = path.parent / "board"
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen(1)
        # A pair of sockets holds what is sent before anybody reads; the input is shorter.
        with _Answering(listening, path.read_bytes()) as link:
            for count in (1, 3, 600):
                words = link.read(0, 0, count)
                require(len(words) == count, "as many words as were asked for")
            link.write(0, 0, 1)
            link.wait(5)


class _Answering:
    """A link to a board that says the same whatever it is asked."""

    def __init__(self, listening: socket.socket, said: bytes) -> None:
        self._listening = listening
        self._said = said

    def __enter__(self) -> SocketLink:
        import threading

        thread = threading.Thread(target=self._say, daemon=True)
        thread.start()
        try:
            self._link = SocketLink("input", self._listening.getsockname())
        finally:
            thread.join()
        return self._link

    def _say(self) -> None:
        self._board, _ = self._listening.accept()
        self._board.sendall(self._said)
        self._board.shutdown(socket.SHUT_WR)

    def __exit__(self, *_: object) -> None:
        self._link.close()
        self._board.close()


def channels(path: Path) -> None:
    """Look at the channels in a region of memory."""
    with open_region(str(path)) as region:
        for channel in find_channels(region).channels:
            require(channel.offset + channel.size <= region.size, "a channel lies in its region")
            look(region, channel)
            newest(region, channel)
