"""Compressed data and tars that others made, unpacked within a budget.

What unpacks to more than its reader asked for is refused before it takes memory, and so are tars
whose headers alone are a burden: Python's own reader of tars keeps every header, reads names of
any length into memory, and takes quadratic time for some of them. Nothing here writes a file.
"""

import bz2
import io
import lzma
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal, Protocol

from latenz.errors import BadInput, shown

Kind = Literal["file", "folder", "link", "hard link", "other"]
_BLOCK = 512
_PIECE = 1 << 16
_MAGIC = 6  # bytes that tell how a stream is packed
_MOST_MEMBERS = 500_000
_LONGEST_NAME = 4096  # as Linux
_LARGEST_EXTENSION = 1 << 16  # bytes of one pax header
_MOST_RECORDS = 1_500_000  # of all pax headers
_XZ_MEMORY = 1 << 28  # `xz -9` needs 65 MiB; a header may ask for 4 GiB
_KINDS: dict[bytes, Kind] = {
    **dict.fromkeys((b"0", b"\0", b"7"), "file"),
    b"1": "hard link",
    b"2": "link",
    b"5": "folder",
}
_WITHOUT_CONTENT = frozenset(b"123456")  # whatever size their headers tell


class Damaged(BadInput):
    """What cannot be unpacked: `what` says why, and who unpacks adds where it came from."""


class _Decompressor(Protocol):
    """What bz2 and lzma offer, and `_Gzip` here."""

    @property
    def eof(self) -> bool:
        """Whether the end of a stream was reached."""

    @property
    def needs_input(self) -> bool:
        """Whether nothing more can be had without more input."""

    @property
    def unused_data(self) -> bytes:
        """What follows the stream's end."""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return at most so many bytes more."""


class _Gzip:
    """A decompressor of one gzip member that keeps what it did not look at yet, as bz2's does."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return not self._stream.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._stream.decompress(self._stream.unconsumed_tail + data, max_length)


def _decompressor(head: bytes) -> _Decompressor | None:
    """Return what unpacks a stream that begins like this, None for what is not compressed."""
    if head.startswith(b"\x1f\x8b"):
        return _Gzip()
    if head.startswith(b"BZh"):
        return bz2.BZ2Decompressor()
    if head.startswith(b"\xfd7zXZ\0"):
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
    return None


class Reader:
    """Data as it is, or unpacked if it is gzip, bzip2 or xz; refused once it exceeds its limit.

    Args:
        file: Where it stands, from its current position.
        limit: How many unpacked bytes there may be.

    Attributes:
        read_so_far: Unpacked bytes.

    Raises:
        Damaged: Here and when reading: it cannot be unpacked, or exceeds the limit.
    """

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self._file = file
        self.read_so_far = 0
        self._limit = limit
        self._head = file.read(_MAGIC)
        self._stream = _decompressor(self._head)

    def read(self, size: int) -> bytes:
        """Return the next bytes: as many as asked for, unless the end comes first."""
        found = bytearray()
        while len(found) < size and (piece := self._piece(min(size - len(found), _PIECE))):
            found += piece
        self.read_so_far += len(found)
        if self.read_so_far > self._limit:
            raise Damaged(f"unpacks to more than {_size(self._limit)}")
        return bytes(found)

    def skip(self, size: int) -> None:
        """Leave out bytes.

        Raises:
            Damaged: Also if the end comes first.
        """
        while size:
            piece = self.read(min(size, _PIECE))
            if not piece:
                raise Damaged("its end is cut off")
            size -= len(piece)

    def rest(self) -> bytes:
        """Return all that is left."""
        found = bytearray()
        while piece := self.read(_PIECE):
            found += piece
        return bytes(found)

    def _piece(self, most: int) -> bytes:
        """Return some bytes, none at the end."""
        if self._stream is None:
            piece, self._head = self._head[:most], self._head[most:]
            return piece or self._file.read(most)
        try:
            return self._unpacked(self._stream, most)
        except MemoryError:
            raise Damaged("asks for more memory than any compressor sets") from None
        except (zlib.error, lzma.LZMAError, OSError, EOFError) as error:
            raise Damaged(f"is damaged ({error})") from None

    def _unpacked(self, stream: _Decompressor, most: int) -> bytes:
        while True:
            if stream.eof:
                self._head = stream.unused_data
                if len(self._head) < _MAGIC:
                    self._head += self._file.read(_PIECE)
                following = _decompressor(self._head)
                if type(following) is not type(stream) or following is None:
                    return b""  # zeros that fill a tape, or anything else
                self._stream = stream = following
            given = b""
            if stream.needs_input:
                given = self._head or self._file.read(_PIECE)
                self._head = b""
            piece = stream.decompress(given, most)
            if piece:
                return piece
            if not given and stream.needs_input and not stream.eof:
                raise Damaged("its end is cut off")


def unpack(content: bytes, limit: int, where: str = "") -> bytes:
    """Return what a gzip, bzip2 or xz file holds, and anything else as it is.

    Args:
        content: Of the file.
        limit: How many bytes it may unpack to.
        where: Where it came from, for the error message.

    Raises:
        Damaged: It cannot be unpacked, or exceeds the limit.
    """
    try:
        return Reader(io.BytesIO(content), limit).rest()
    except Damaged as error:
        raise Damaged(error.what, where) from None


@dataclass(frozen=True)
class Member:
    """What a tar holds under one name.

    Attributes:
        name: As it stands there.
        kind: What it is. "other": a device, a pipe, a sparse file, or what only some tars know.
        target: Of a link, as it stands there.
        size: Bytes of a file.
        reader: Stands at a file's content until the next member is asked for.
    """

    name: str
    kind: Kind
    target: str
    size: int
    reader: Reader = field(repr=False)

    def content(self, most: int) -> bytes:
        """Return a file's bytes; to be called once, and before the next member is asked for.

        Raises:
            Damaged: There are more than `most`, or the tar ends before.
        """
        if self.size > most:
            raise Damaged(f"{shown(self.name)} has more than {_size(most)}")
        content = self.reader.read(self.size)
        if len(content) < self.size:
            raise Damaged("its end is cut off")
        return content

    def write(self, path: Path) -> None:
        """Write a file's bytes to a path, piece by piece; otherwise as `content`."""
        left = self.size
        with path.open("wb") as file:
            while left:
                piece = self.reader.read(min(left, _PIECE))
                if not piece:
                    raise Damaged("its end is cut off")
                file.write(piece)
                left -= len(piece)


def members(file: IO[bytes], limit: int) -> Iterator[Member]:
    """Give the members of a tar, plain or compressed, in its order.

    Args:
        file: The tar; it is read once, from here on.
        limit: How many bytes it may unpack to, headers included.

    Raises:
        Damaged: It is not a tar, is damaged or cut off, or exceeds what any tar has a reason for.
    """
    reader = Reader(file, limit)
    extension = _Extension()
    for count in range(_MOST_MEMBERS):
        block = reader.read(_BLOCK)
        if len(block) < _BLOCK:
            raise Damaged("its end is cut off" if count else "it does not begin as a tar")
        if not any(block):
            return
        if not _is_header(block):
            raise Damaged("a header in it is damaged" if count else "it does not begin as a tar")
        kind, size = block[156:157], _number(block[124:136])
        if kind in b"xgLK":
            extension.take(kind, _extension_content(reader, size))
        else:
            yield from _member(reader, block, extension)
            extension.forget()
    raise Damaged(f"holds more than {_MOST_MEMBERS} members")


def _member(reader: Reader, block: bytes, extension: "_Extension") -> Iterator[Member]:
    """Give one member, and leave the reader at the next header, however much of it was read."""
    kind = _KINDS.get(block[156:157], "other")
    prefix = _text(block[345:500]) if block[257:263] == b"ustar\0" else ""
    name = _text(block[:100])
    name = extension.path or (f"{prefix}/{name}" if prefix else name)
    target = extension.target or _text(block[157:257])
    if max(len(name), len(target)) > _LONGEST_NAME:
        raise Damaged("a name in it is longer than any path")
    size = _number(block[124:136]) if extension.size is None else extension.size
    if kind == "file" and name.endswith("/"):
        kind = "folder"  # of the oldest tars, which have no kinds
    if block[156] in _WITHOUT_CONTENT:
        size = 0
    if block[156:157] == b"S":
        _skip_sparse_map(reader, block)
    if extension.sparse:
        kind = "other"
    begin = reader.read_so_far
    yield Member(name, kind, target, size, reader)
    reader.skip(size + -size % _BLOCK - (reader.read_so_far - begin))


class _Extension:
    """What headers of their own tell of the next member, where its own header is too small."""

    def __init__(self) -> None:
        self._count = 0
        self.forget()

    def forget(self) -> None:
        """Tell of nothing any more."""
        self.path = self.target = ""
        self.size: int | None = None
        self.sparse = False

    def take(self, kind: bytes, content: bytes) -> None:
        """Take what a header of GNU's long names or a pax header says."""
        if kind == b"L":
            self.path = _text(content)
        elif kind == b"K":
            self.target = _text(content)
        elif kind == b"x":  # "g" would tell of all members what differs between them
            for key, value in _records(content):
                self._take_record(key, value)

    def _take_record(self, key: bytes, value: bytes) -> None:
        self._count += 1
        if self._count > _MOST_RECORDS:
            raise Damaged("its headers hold more than any tar's")
        if key == b"path":
            self.path = _text(value)
        elif key == b"linkpath":
            self.target = _text(value)
        elif key == b"size":
            self.size = _decimal(value)
        elif key.startswith(b"GNU.sparse."):
            self.sparse = True


def _extension_content(reader: Reader, size: int) -> bytes:
    if size > _LARGEST_EXTENSION:
        raise Damaged("a header in it is larger than any tar's")
    content = reader.read(size + -size % _BLOCK)
    if len(content) < size:
        raise Damaged("its end is cut off")
    return content[:size]


def _skip_sparse_map(reader: Reader, block: bytes) -> None:
    """Leave out the blocks that say where the pieces of GNU's old sparse files lie."""
    more = block[482]
    while more:
        further = reader.read(_BLOCK)
        if len(further) < _BLOCK:
            raise Damaged("its end is cut off")
        more = further[504]


def _records(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Give what a pax header tells: records of length, space, key, "=", value, line end."""
    at = 0
    while at < len(content):
        end = content.find(b" ", at, at + 8)
        length = _decimal(content[at:end]) if end > 0 else 0
        key, equals, value = content[end + 1 : at + length].partition(b"=")
        if not equals or not value.endswith(b"\n"):
            raise Damaged("a header in it is damaged")
        yield key, value[:-1]
        at += length


def _is_header(block: bytes) -> bool:
    """Return whether the checksum fits, which counts its own bytes as spaces."""
    told = block[148:156].strip(b" \0")
    expected = sum(block) - sum(block[148:156]) + 8 * 0x20
    return told.isdigit() and len(told) <= 7 and _octal(told) == expected


def _number(field: bytes) -> int:
    """Return a number of a header: octal digits, or with the first bit set, a binary one."""
    if field[0] & 0x80:
        value = int.from_bytes(field, "big", signed=False) & ~(1 << (8 * len(field) - 1))
        if field[0] & 0x40:
            raise Damaged("a size in it is negative")
        return value
    return _octal(field.strip(b" \0") or b"0")


def _octal(digits: bytes) -> int:
    try:
        value = int(digits, 8)
    except ValueError:
        value = -1
    if value < 0:
        raise Damaged("a header in it is damaged")
    return value


def _decimal(digits: bytes) -> int:
    if not (digits.isdigit() and len(digits) <= 20):
        raise Damaged("a header in it is damaged")
    return int(digits)


def _text(content: bytes) -> str:
    return content.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _size(limit: int) -> str:
    return f"{limit >> 20} MiB" if limit >> 20 else f"{limit} bytes"
