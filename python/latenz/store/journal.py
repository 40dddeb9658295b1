"""The journal that a probe appends to while it measures: whole frames survive any kill.

Layout (little endian). File header, 32 bytes: magic `LATENZJ1`, u32 version = 1, u32 CPU,
i64 period_ns (0: not periodic), i64 reserved. CPU 0xFFFFFFFF: the samples have none of their own.
Then frames: u32 magic "LFRM", u32 record count, u32 CRC-32 of the records, u32 reserved; then that
many records of two i64: `t_ns`, when the activation was due, and `latency_ns`. Due times lie whole
periods apart, so the activations skipped after a late one follow from the next due time.
"""

import mmap
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latenz.errors import BadInput
from latenz.model import Metadata, SampleSet, TimeBase

MAGIC = b"LATENZJ1"
VERSION = 1
_HEADER = struct.Struct("<8sIIqq")
_FRAME = struct.Struct("<IIII")
_NO_CPU = 0xFFFFFFFF
_CPUS = 1 << 31  # the kernel numbers them by an int
_FRAME_MAGIC = 0x4D52464C
RECORD = np.dtype([("t_ns", "<i8"), ("latency_ns", "<i8")])
_BATCH_RECORDS = 1 << 20
COLUMNS = ("latency_ns", "t_ns", "missed")

Records = npt.NDArray[np.void]


class Journal:
    """A journal file, possibly cut short.

    Attributes:
        cpu: The CPU it was recorded on; None: on any.
        period_ns: Distance of the due times; 0 if they are not periodic.
        damaged_bytes: Bytes after the last whole frame, known after a full pass.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged_bytes = 0
        with path.open("rb") as file:
            head = file.read(_HEADER.size)
        if len(head) < _HEADER.size or not head.startswith(MAGIC):
            raise BadInput("is not a Latenz journal", str(path), "its first bytes are LATENZJ1")
        _, version, cpu, self.period_ns, _ = _HEADER.unpack(head)
        self.cpu: int | None = None if cpu == _NO_CPU else cpu
        if version != VERSION:
            raise BadInput(f"has journal version {version}", str(path), f"known is {VERSION}")
        if not 0 <= self.period_ns < 2**62:
            raise BadInput(
                f"has a period of {self.period_ns} ns", str(path), "0 to 2^62 - 1 can be"
            )
        if self.cpu is not None and self.cpu >= _CPUS:
            raise BadInput(f"is of CPU {self.cpu}", str(path), f"0 to {_CPUS - 1} can be")

    def frames(self) -> Iterator[Records]:
        """Give the records of each whole frame; stop at the first that is cut short or damaged."""
        if self.path.stat().st_size <= _HEADER.size:
            return
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            place = _HEADER.size
            while (end := _frame_end(content, place)) is not None:
                yield np.frombuffer(content[place + _FRAME.size : end], dtype=RECORD)
                place = end
            self.damaged_bytes = len(content) - place

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give batches of `COLUMNS`, about a million samples each."""
        held: list[Records] = []
        count = 0
        for frame in self.frames():
            held.append(frame)
            count += len(frame)
            if count > _BATCH_RECORDS:
                whole = np.concatenate(held)
                held, count = [whole[-1:]], 1  # the last needs its successor to know `missed`
                yield self._batch(whole[:-1], int(whole["t_ns"][-1]))
        if held:
            yield self._batch(np.concatenate(held), None)

    def _batch(self, records: Records, next_due_ns: int | None) -> pa.RecordBatch:
        t_ns = np.ascontiguousarray(records["t_ns"])
        following = np.append(t_ns[1:], t_ns[-1:] + self.period_ns)
        if next_due_ns is not None:
            following[-1] = next_due_ns
        missed = (
            np.maximum((following - t_ns) // self.period_ns - 1, 0)
            if self.period_ns
            else np.zeros(len(t_ns), dtype=np.int64)
        )
        latency_ns = np.ascontiguousarray(records["latency_ns"])
        return pa.RecordBatch.from_arrays(
            [pa.array(latency_ns), pa.array(t_ns), pa.array(missed)], names=list(COLUMNS)
        )


def _frame_end(content: mmap.mmap, place: int) -> int | None:
    """Return where the frame at `place` ends, or None if it is not whole."""
    if place + _FRAME.size > len(content):
        return None
    magic, count, checksum, _ = _FRAME.unpack_from(content, place)
    start = place + _FRAME.size
    end = start + int(count) * RECORD.itemsize
    if magic != _FRAME_MAGIC or end > len(content):
        return None
    return end if zlib.crc32(content[start:end]) == checksum else None


def journal_sample_set(path: Path, metadata: Metadata) -> SampleSet:
    """Return a journal's samples under the given metadata."""
    journal = Journal(path)
    columns = COLUMNS if journal.period_ns else COLUMNS[:2]

    def batches(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        chosen = [name for name in wanted if name in columns]
        for batch in journal.batches():
            yield batch.select(chosen)

    return SampleSet(metadata, "samples", batches, columns)


def open_journal(path: Path) -> SampleSet:
    """Return a journal that lies alone: only its header tells what it is."""
    journal = Journal(path)
    return journal_sample_set(
        path,
        Metadata(
            name=path.parent.name or path.stem,
            time_base=TimeBase.SILICON,
            cpu=journal.cpu,
            period_ns=journal.period_ns or None,
            tool="latenz-wakeup",
            source=str(path),
        ),
    )
