"""The journal that a probe appends to while it measures: whole frames survive any kill.

Layout (little endian). File header, 32 bytes: magic `LATENZJ1`, u32 version = 1, u32 CPU,
i64 period_ns (0: not periodic), i64 reserved. CPU 0xFFFFFFFF: the samples have none of their own.
Then frames: u32 magic "LFRM", u32 record count, u32 CRC-32 of the records, u32 reserved; then that
many records of two i64: `t_ns`, when the activation was due, and `latency_ns`. Due times lie whole
periods apart, so the activations skipped after a late one follow from the next due time.

Version 2 holds cycles of running programs: records of 64 bytes, `CYCLE`. Those of partial cycles
tell only when they were due: they are no samples, and were not missed.
"""

import mmap
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latenz.columns import int64_column
from latenz.errors import BadInput
from latenz.model import CYCLE_COLUMNS, Metadata, SampleSet, TimeBase

MAGIC = b"LATENZJ1"
_HEADER = struct.Struct("<8sIIqq")
_FRAME = struct.Struct("<IIII")
_NO_CPU = 0xFFFFFFFF
_CPUS = 1 << 31  # the kernel numbers them by an int
_FRAME_MAGIC = 0x4D52464C
RECORD = np.dtype([("t_ns", "<i8"), ("latency_ns", "<i8")])
CYCLE = np.dtype(
    [
        *RECORD.descr,
        ("response_ns", "<i8"),
        ("execution_ns", "<i8"),
        ("blocked_ns", "<i8"),
        ("timer_late_ns", "<i8"),
        ("interrupts_ns", "<i8"),
        ("preemptions", "<u2"),
        ("blocks", "<u2"),
        ("faults", "<u2"),
        ("migrations", "u1"),
        ("flags", "u1"),
    ]
)
VERSION = 1
"""Of journals whose records are `RECORD`."""
_RECORDS = {VERSION: RECORD, 2: CYCLE}
_PARTIAL = 1  # of `flags`
_BATCH_RECORDS = 1 << 20
COLUMNS = ("latency_ns", "t_ns", "missed")

Records = npt.NDArray[np.void]


class Journal:
    """A journal file, possibly cut short.

    Attributes:
        cpu: The CPU it was recorded on; None: on any.
        period_ns: Distance of the due times; 0 if they are not periodic.
        damaged_bytes: Bytes after the last whole frame, known after a full pass.
        columns: What `batches` gives.
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
        if version not in _RECORDS:
            known = " and ".join(map(str, _RECORDS))
            raise BadInput(f"has journal version {version}", str(path), f"known are {known}")
        self._record = _RECORDS[version]
        if not 0 <= self.period_ns < 2**62:
            raise BadInput(
                f"has a period of {self.period_ns} ns", str(path), "0 to 2^62 - 1 can be"
            )
        if self.cpu is not None and self.cpu >= _CPUS:
            raise BadInput(f"is of CPU {self.cpu}", str(path), f"0 to {_CPUS - 1} can be")
        self.columns = COLUMNS if self.period_ns else COLUMNS[:2]
        if self._record is CYCLE:
            self.columns = (*self.columns, *CYCLE_COLUMNS)

    def count(self) -> int:
        """Return how many samples it holds; afterwards `damaged_bytes` is known."""
        return sum(int(self._whole(frame).sum()) for frame in self.frames())

    def frames(self) -> Iterator[Records]:
        """Give the records of each whole frame; stop at the first that is cut short or damaged."""
        if self.path.stat().st_size <= _HEADER.size:
            return
        with (
            self.path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            place = _HEADER.size
            while (end := _frame_end(content, place, self._record.itemsize)) is not None:
                yield np.frombuffer(content[place + _FRAME.size : end], dtype=self._record)
                place = end
            self.damaged_bytes = len(content) - place

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give batches of `columns`, about a million samples each."""
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
        # Due times of a program's cycles may lie a little off their grid.
        half_ns = self.period_ns // 2 if self._record is CYCLE else 0
        missed = (
            np.maximum((following - t_ns + half_ns) // self.period_ns - 1, 0)
            if self.period_ns
            else np.zeros(len(t_ns), dtype=np.int64)
        )
        whole = self._whole(records)
        values = {"missed": missed[whole]}
        for name in set(self.columns) - {"missed", "ready_ns"}:
            values[name] = records[name][whole].astype("i8")
        if self._record is CYCLE:
            shares = ("timer_late_ns", "execution_ns", "blocked_ns")
            values["ready_ns"] = values["response_ns"] - sum(values[name] for name in shares)
        return pa.RecordBatch.from_pydict(
            {name: int64_column(values[name]) for name in self.columns}
        )

    def _whole(self, records: Records) -> npt.NDArray[np.bool_]:
        """Tell which records are samples."""
        if self._record is RECORD:
            return np.ones(len(records), dtype=bool)
        whole: npt.NDArray[np.bool_] = (records["flags"] & _PARTIAL) == 0
        return whole


def _frame_end(content: mmap.mmap, place: int, record_bytes: int) -> int | None:
    """Return where the frame at `place` ends, or None if it is not whole."""
    if place + _FRAME.size > len(content):
        return None
    magic, count, checksum, _ = _FRAME.unpack_from(content, place)
    start = place + _FRAME.size
    end = start + int(count) * record_bytes
    if magic != _FRAME_MAGIC or end > len(content):
        return None
    return end if zlib.crc32(content[start:end]) == checksum else None


def journal_sample_set(path: Path, metadata: Metadata) -> SampleSet:
    """Return a journal's samples under the given metadata."""
    journal = Journal(path)

    def batches(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        chosen = [name for name in wanted if name in journal.columns]
        for batch in journal.batches():
            yield batch.select(chosen)

    return SampleSet(metadata, "samples", batches, journal.columns)


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
