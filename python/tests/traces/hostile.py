"""Files of trace-cmd that were made to do harm: small, and cheap to make.

The layout is that of trace-cmd.dat.v7(5); everything that a kernel would have written is left out.
"""

import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

import pyarrow

OPTIONS, BUFFER, HEADERS, FORMATS, EVENTS, FUNCTIONS, NAMES = 0, 3, 16, 17, 18, 19, 21
TEXT_BUFFER = 22
PAGE = 4096
CHUNK = 1 << 26
HEADER_PAGE = (
    b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    b"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    b"\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"
)


def number(value: int, size: int = 4) -> bytes:
    return value.to_bytes(size, "little")


def option(kind: int, content: bytes) -> bytes:
    return number(kind, 2) + number(len(content)) + content


def buffer(cpus: Iterable[tuple[int, int, int]], section: int, page_size: int = PAGE) -> bytes:
    """The option of a buffer: for each CPU its number, and offset and size of its data."""
    listed = list(cpus)
    content = number(section, 8) + b"\0mono\0" + number(page_size) + number(len(listed))
    return option(BUFFER, content + b"".join(struct.pack("<IQQ", *each) for each in listed))


def fields(*names_and_sizes: tuple[str, int]) -> str:
    """Fields of an event behind the common ones, which come first."""
    text = "field:unsigned short common_type; offset:0; size:2; signed:0;\n"
    text += "field:int common_pid; offset:4; size:4; signed:1;\n"
    offset = 8
    for name, size in names_and_sizes:
        text += f"field:{name}; offset:{offset}; size:{size}; signed:0;\n"
        offset += size
    return text


def event_format(name: str, number_of_it: int, text: str) -> bytes:
    return f"name: {name}\nID: {number_of_it}\nformat:\n{text}".encode()


def record(content: bytes) -> bytes:
    """An event of the ring buffer, at the time of the one before it."""
    assert len(content) % 4 == 0
    if len(content) <= 4 * 28:
        return number(len(content) // 4) + content
    return number(0) + number(len(content) + 4) + content


def page(records: bytes, t_ns: int = 1, missed: bool = False) -> bytes:
    assert len(records) <= PAGE - 16
    commit = len(records) | (1 << 31 if missed else 0)
    return (struct.pack("<QQ", t_ns, commit) + records).ljust(PAGE, b"\0")


def pages(records: Iterable[bytes], missed: bool = False) -> bytes:
    """As many pages as it takes."""
    made, here = [], b""
    for each in records:
        if len(here) + len(each) > PAGE - 16:
            made.append(page(here, missed=missed))
            here = b""
        here += each
    return b"".join([*made, page(here, missed=missed)])


class Hostile:
    """A trace.dat of version 7 as it grows."""

    def __init__(self, compression: str = "zstd") -> None:
        self.compression = compression
        self.content = bytearray(b"\x17\x08\x44tracing7\0\0\x08" + number(PAGE))
        self.content += compression.encode() + b"\x001\0"
        self._options_at = len(self.content)
        self.content += number(0, 8)
        self.options = b""
        header = b"header_page\0" + number(len(HEADER_PAGE), 8) + HEADER_PAGE
        self.part(HEADERS, header + b"header_event\0" + number(0, 8))

    def compress(self, content: bytes) -> bytes:
        if self.compression == "zlib":
            return zlib.compress(content, 9)
        return pyarrow.compress(content, codec="zstd", asbytes=True)

    def section(self, kind: int, content: bytes) -> int:
        """Add a compressed section; return where it is."""
        packed = self.compress(content)
        at = len(self.content)
        size = len(packed) + 8
        self.content += struct.pack("<HHIQII", kind, 1, 0, size, len(packed), len(content))
        self.content += packed
        return at

    def part(self, kind: int, content: bytes, times: int = 1) -> None:
        """Add a section, and the option that names it, or several of them."""
        self.options += times * option(kind, number(self.section(kind, content), 8))

    def formats(self, *texts: bytes) -> None:
        listed = number(1) + b"made\0" + number(len(texts))
        self.part(EVENTS, listed + b"".join(number(len(text), 8) + text for text in texts))

    def chunks(self, packed: bytes, size: int, times: int = 1) -> tuple[int, int]:
        """Add the data of one CPU, in a section of its own; return offset and size."""
        content = number(times) + times * (number(len(packed)) + number(size) + packed)
        self.content += struct.pack("<HHIQ", BUFFER, 1, 0, len(content))
        self.content += content
        return len(self.content) - len(content), len(content)

    def cpus(self, places: Iterable[tuple[int, int]], page_size: int = PAGE) -> None:
        """Add the buffer of CPUs whose data are there already."""
        at = len(self.content)
        self.content += struct.pack("<HHIQ", BUFFER, 1, 0, 0)
        self.options += buffer(((i, *place) for i, place in enumerate(places)), at, page_size)

    def data(self, *contents: bytes) -> None:
        """Add a buffer: for each CPU pages, in one chunk."""
        self.cpus([self.chunks(self.compress(content), len(content)) for content in contents])

    def write(self, path: Path) -> Path:
        struct.pack_into("<Q", self.content, self._options_at, self.section(OPTIONS, self.options))
        path.write_bytes(self.content)
        return path
