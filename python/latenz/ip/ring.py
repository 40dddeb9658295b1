"""Samples from a ring in memory, into which `stream_ring_writer` writes what Latencies IPs send.

The writer and the reader count records modulo 2**32; record i lies at 16 (i mod size). A place is
written again only after the reader has handed it back, so that nothing in the ring is ever lost;
what finds no place is dropped by the IP and counted there (`stream_dropped`). A record says which
sample of its series it is, modulo 128: a gap shows where some were dropped.

A record is 16 bytes, little endian: u64 tick of the start; u64 with the latency in bits 47:0, the
IP's channel in 55:48, whether the latency is longer than its width can hold in 56, the number of
the sample modulo 128 in 63:57.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from latenz.errors import BadInput
from latenz.ip.instance import Words
from latenz.ip.registers import STREAM_RING_WRITER_FIELDS as FIELDS
from latenz.ip.registers import STREAM_RING_WRITER_OFFSETS as OFFSETS

RECORD_BYTES = 16
WRITER_BYTES = 4096
"""The registers of a stream_ring_writer."""
_COUNT = 1 << 32
_PATIENCE = 1_000
"""How often it is looked whether the writes under way are finished."""
SEQUENCES = 128
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

    Args:
        first: Number of the first sample that is looked for; None: that of the first record.

    Attributes:
        dropped: How many, if never 128 or more were dropped at once; the IP's `stream_dropped` is
            exact.
    """

    def __init__(self, first: int | None = None) -> None:
        self.dropped = 0
        self._first = first
        self._next: dict[int, int] = {}

    def add(self, records: Records) -> None:
        """Look at the next records."""
        for channel in np.unique(records.channel).tolist():
            sequence = records.sequence[records.channel == channel].tolist()
            first = sequence[0] if self._first is None else self._first
            expected = self._next.get(channel, first)
            for number in sequence:
                self.dropped += (number - expected) % SEQUENCES
                expected = (number + 1) % SEQUENCES
            self._next[channel] = expected

    def until(self, num: int) -> int:
        """Return how many were dropped of a series of so many samples, of one channel.

        Those behind its last record are among them.
        """
        expected = next(iter(self._next.values()), self._first or 0)
        return self.dropped + (num - expected) % SEQUENCES


class Memory(Protocol):
    """What a reader needs of the ring: a `Region`, or a window of a board."""

    name: str
    size: int

    def read(self, offset: int, size: int) -> bytes:
        """Return bytes; both numbers are multiples of 4."""


class Registers(Memory, Protocol):
    """Memory that can be written, too."""

    def write(self, offset: int, word: int) -> None:
        """Write one word."""


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

    def __init__(self, registers: Registers) -> None:
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
        self._write("consumed", count)

    @property
    def bus_error(self) -> bool:
        """Whether the memory refused a record; nothing more is taken then."""
        return self._status("bus_error")

    def begin(self, base: int, size_log2: int, pause: Callable[[], None]) -> int:
        """Let it fill a ring from now on; what was in one before is forgotten.

        Args:
            base: Address of the ring on its bus.
            size_log2: The ring has 2 to this power records.
            pause: Lets a little time pass.

        Returns:
            How many records it has written so far, and how many are handed back.

        Raises:
            BadInput: It does not come to rest, or its bus has no such address.
        """
        self.stop(pause)
        self._write("status", FIELDS["status_bus_error"].at(1))
        for name, value in (
            ("base_low", base & 0xFFFF_FFFF),
            ("base_high", base >> 32),
            ("size_log2", size_log2),
        ):
            self._write(name, value)
            if (told := self._read(name)) != value:
                raise BadInput(
                    f"its {name} is {told:#x} after {value:#x} was written",
                    self._registers.name,
                    "is this a stream_ring_writer, and the ring where its bus can reach it?",
                )
        written = self.written()
        self.consume(written)
        self._write("enable", 1)
        return written

    def stop(self, pause: Callable[[], None]) -> None:
        """Let it take no more records, and finish those under way.

        Raises:
            BadInput: It does not come to rest.
        """
        self._write("enable", 0)
        for _ in range(_PATIENCE):
            if self._status("idle"):
                return
            pause()
        raise BadInput(
            "its writes do not end", self._registers.name, "does the memory behind it answer?"
        )

    def _status(self, bit: str) -> bool:
        return bool(FIELDS[f"status_{bit}"].of(self._read("status")))

    def _write(self, name: str, value: int) -> None:
        self._registers.write(OFFSETS[name], value)

    def _read(self, name: str) -> int:
        return int.from_bytes(self._registers.read(OFFSETS[name], 4), "little")


class RingReader:
    """Takes records out of a ring: each once, in order.

    Args:
        memory: The ring; its size is a power of two records.
        writer: The other side.
        consumed: Records that were handed back before, modulo 2**32.

    Raises:
        BadInput: The memory is not a ring of records.
    """

    def __init__(self, memory: Memory, writer: RingWriter, consumed: int = 0) -> None:
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
