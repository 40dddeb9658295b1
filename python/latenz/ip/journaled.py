"""Samples with times, in a run's journal as soon as they are read: a kill loses none of them."""

import os
import struct
import time
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import IO

from latenz.errors import BadInput
from latenz.model import Metadata, SampleSet
from latenz.store.journal import MAGIC, VERSION, journal_sample_set

COLUMNS = ("t_ns", "latency_ns")
_FLUSH_S = 0.1
_HEADER = struct.Struct("<8sIIqq")
_FRAME = struct.Struct("<IIII")
_FRAME_MAGIC = 0x4D52464C
_MOST_RECORDS = 1 << 16


class Journaled:
    """Takes the place of a `Spool`; the format is that of `latenz.store.journal`.

    Args:
        begin: Gives the folder for the journal; called when the first samples are there.

    Attributes:
        rows: Samples so far.
    """

    def __init__(self, begin: Callable[[], Path]) -> None:
        self.rows = 0
        self._begin = begin
        self._recent = array("q")
        self._file: IO[bytes] | None = None
        self._path = Path()
        self._flushed = time.monotonic()

    def append(self, *row: int) -> None:
        """Add one row: time and latency in nanoseconds."""
        self._recent.extend(row)
        self.rows += 1
        if len(self._recent) >= _MOST_RECORDS * len(COLUMNS):
            self._flush()

    def settle(self) -> None:
        """Write what is new, if that was not done just before."""
        if self._recent and time.monotonic() - self._flushed >= _FLUSH_S:
            self._flush()

    def sample_set(self, metadata: Metadata) -> SampleSet:
        """Return what was added as a sample set."""
        if self._recent:
            self._flush()
        return journal_sample_set(self._path, metadata)

    def _flush(self) -> None:
        """Write a frame; on a full disk the samples of that frame are lost, no others."""
        records, self._recent = self._recent.tobytes(), array("q")
        count = len(records) // (8 * len(COLUMNS))
        frame = _FRAME.pack(_FRAME_MAGIC, count, zlib.crc32(records), 0) + records
        if self._file is None:
            self._path = self._begin() / "samples.journal"
            self._file = self._path.open("xb", buffering=0)
            frame = _HEADER.pack(MAGIC, VERSION, 0, 0, 0) + frame
        place = self._file.tell()
        try:
            if self._file.write(frame) != len(frame):  # a short write means that the disk is full
                raise OSError(0, "no space left")
        except OSError as error:
            self.rows -= count
            os.ftruncate(self._file.fileno(), place)
            raise BadInput(f"cannot be written ({error.strerror})", str(self._path)) from None
        self._flushed = time.monotonic()
