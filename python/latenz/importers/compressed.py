"""Files that were compressed after they had been written: unpacked beside, and read from there."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from latenz.errors import BadInput, call
from latenz.files import scratch_place
from latenz.unpacking import Damaged, Reader

_LARGEST = 4 << 30  # bytes, unpacked
_PIECE = 1 << 20
_ZSTD = b"\x28\xb5\x2f\xfd"
_MAGIC = (b"\x1f\x8b", b"\xfd7zXZ\0", b"BZh", _ZSTD)
_ENDINGS = frozenset((".gz", ".xz", ".bz2", ".zst"))


def is_compressed(head: bytes) -> bool:
    """Tell whether a file that begins like this is compressed by gzip, xz, bzip2 or zstd."""
    return head.startswith(_MAGIC)


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Give a file's content as a file that lives as long as the block; messages name the first.

    Raises:
        BadInput: It is damaged, or unpacks to more than 4 GiB.
    """
    with tempfile.TemporaryDirectory(prefix="latenz-unpacked-", dir=scratch_place()) as folder:
        plain = Path(folder) / (path.stem if path.suffix in _ENDINGS else path.name)
        call(str(plain), str(path))
        with path.open("rb") as packed, plain.open("wb") as file:
            try:
                for piece in _pieces(packed):
                    file.write(piece)
            except Damaged as error:
                raise BadInput(error.what, str(path)) from None
        yield plain


def _pieces(packed: IO[bytes]) -> Iterator[bytes]:
    begin = packed.read(len(_ZSTD))
    packed.seek(0)
    reader = _Zstd(packed) if begin == _ZSTD else Reader(packed, _LARGEST)
    while piece := reader.read(_PIECE):
        yield piece


class _Zstd:
    """As `Reader`, for zstd, which Python's own library does not have.

    Args:
        packed: The file.
    """

    def __init__(self, packed: IO[bytes]) -> None:
        import pyarrow as pa

        self._stream = pa.CompressedInputStream(pa.PythonFile(packed, mode="r"), "zstd")
        self._left = _LARGEST

    def read(self, size: int) -> bytes:
        """Return the next bytes, none at the end."""
        try:
            piece = self._stream.read(size)
        except OSError as error:
            raise Damaged(f"is damaged ({error})") from None
        self._left -= len(piece)
        if self._left < 0:
            raise Damaged("unpacks to more than 4096 MiB")
        return bytes(piece)
