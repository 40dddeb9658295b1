"""Samples from a ring in memory, into which `stream_ring_writer` writes what Latencies IPs send.

The writer and the reader count records modulo 2**32; record i lies at 16 (i mod size). A place is
written again only after the reader has handed it back, so that nothing in the ring is ever lost;
what finds no place is dropped by the IP and counted there (`stream_dropped`). A record says which
sample of its series it is, modulo 128: a gap shows where some were dropped.

A record is 16 bytes, little endian: u64 tick of the start; u64 with the latency in bits 47:0, the
IP's channel in 55:48, whether the latency is longer than its width can hold in 56, the number of
the sample modulo 128 in 63:57.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from latenz.errors import BadInput
from latenz.icc.region import DeviceRegion, Region
from latenz.ip.instance import Words
from latenz.ip.registers import STREAM_RING_WRITER_OFFSETS as OFFSETS

RECORD_BYTES = 16
_COUNT = 1 << 32
_SEQUENCES = 128
_MOST_LOG2 = 31


@dataclass(frozen=True)
class Records:
    """Some records, in the order in which they were written; one entry each in every array.

    Attributes:
        start: Tick at which the latency began.
        latency: In clock cycles.
        channel: Number of the IP.
        saturated: The latency is longer than that.
        sequence: Number of the sample in its series, modulo 128.
    """

    start: Words
    latency: Words
    channel: Words
    saturated: Words
    sequence: Words

    @classmethod
    def decode(cls, content: bytes) -> "Records":
        """Decode whole records."""
        pairs = np.frombuffer(content, dtype="<u8").reshape(-1, 2)
        start, rest = pairs[:, 0].astype(np.uint64), pairs[:, 1].astype(np.uint64)

        def field(first: int, bits: int) -> Words:
            return np.asarray(rest >> np.uint64(first) & np.uint64((1 << bits) - 1))

        return cls(start, field(0, 48), field(48, 8), field(56, 1), field(57, 7))

    def __len__(self) -> int:
        return len(self.start)


class Gaps:
    """Finds dropped samples by the sequence numbers, for each channel.

    Attributes:
        dropped: How many, if never 128 or more were dropped at once; the IP's `stream_dropped` is
            exact.
    """

    def __init__(self) -> None:
        self.dropped = 0
        self._next: dict[int, int] = {}

    def add(self, records: Records) -> None:
        """Look at the next records."""
        for channel in np.unique(records.channel).tolist():
            sequence = records.sequence[records.channel == channel].tolist()
            expected = self._next.get(channel, sequence[0])
            for number in sequence:
                self.dropped += (number - expected) % _SEQUENCES
                expected = (number + 1) % _SEQUENCES
            self._next[channel] = expected


class RingWriter(Protocol):
    """What a reader needs of the other side."""

    def written(self) -> int:
        """Return how many records have been written, modulo 2**32."""

    def consume(self, count: int) -> None:
        """Hand back every place up to this count of records, modulo 2**32."""


class RegisterRingWriter:
    """The registers of a `stream_ring_writer`.

    Args:
        registers: Its window.
    """

    def __init__(self, registers: DeviceRegion) -> None:
        self._registers = registers

    @property
    def size_log2(self) -> int:
        """Of the ring, in records."""
        return self._read("size_log2")

    def written(self) -> int:
        """Return how many records have been written, modulo 2**32."""
        return self._read("written")

    def consumed(self) -> int:
        """Return how many were handed back, modulo 2**32."""
        return self._read("consumed")

    def consume(self, count: int) -> None:
        """Hand back every place up to this count of records, modulo 2**32."""
        self._registers.write(OFFSETS["consumed"], count)

    def _read(self, name: str) -> int:
        return int.from_bytes(self._registers.read(OFFSETS[name], 4), "little")


class RingReader:
    """Takes records out of a ring: each once, in order.

    Args:
        memory: The ring; its size is a power of two records.
        writer: The other side.
        consumed: Records that were handed back before, modulo 2**32.

    Raises:
        BadInput: The memory is no ring of records.
    """

    def __init__(self, memory: Region, writer: RingWriter, consumed: int = 0) -> None:
        self._memory = memory
        self._writer = writer
        self._consumed = consumed % _COUNT
        self._size = memory.size // RECORD_BYTES
        whole = self._size * RECORD_BYTES == memory.size
        if not whole or self._size.bit_count() != 1 or self._size > 1 << _MOST_LOG2:
            raise BadInput(
                f"{memory.size} bytes are no ring", memory.name, "16 bytes times a power of two"
            )

    def read(self, most: int = 1 << 16) -> Records:
        """Return new records, none if there are none, and hand their places back.

        Raises:
            BadInput: The writer counts what cannot be: it was reset, or is another one's.
        """
        new = (self._writer.written() - self._consumed) % _COUNT
        if new > self._size:
            raise BadInput(
                f"{new} records are new in a ring of {self._size}",
                self._memory.name,
                "was the writer reset? begin anew",
            )
        count = min(new, most)
        records = Records.decode(self._copied(count))
        self._consumed = (self._consumed + count) % _COUNT
        if count:
            self._writer.consume(self._consumed)
        return records

    def _copied(self, count: int) -> bytes:
        first = self._consumed % self._size
        before_end = min(count, self._size - first)
        content = self._memory.read(first * RECORD_BYTES, before_end * RECORD_BYTES)
        if count > before_end:
            content += self._memory.read(0, (count - before_end) * RECORD_BYTES)
        return content
