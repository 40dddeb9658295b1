import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latenz.errors import BadInput
from latenz.icc.region import Region
from latenz.ip.ring import RECORD_BYTES, Gaps, Records, RingReader

COUNT = 1 << 32
record = st.tuples(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**48 - 1),
    st.integers(0, 255),
    st.integers(0, 1),
    st.integers(0, 127),
)


def encoded(fields):
    """As hdl/latencies_ip/rtl/sample_stream.vhd puts a beat together, little endian in memory."""
    start, latency, channel, saturated, sequence = fields
    beat = start | latency << 64 | channel << 112 | saturated << 120 | sequence << 121
    return beat.to_bytes(RECORD_BYTES, "little")


def listed(records):
    names = ("start", "latency", "channel", "saturated", "sequence")
    return list(zip(*(getattr(records, name).tolist() for name in names), strict=True))


class Memory:
    """A ring in a file, and a writer that obeys what stream_ring_writer.rdl says."""

    def __init__(self, path, size, written=0):
        self.path, self.size = path, size
        path.write_bytes(bytes(size * RECORD_BYTES))
        self.count, self.handed_back = written, written

    def put(self, records):
        content = bytearray(self.path.read_bytes())
        for each in records:
            assert (self.count - self.handed_back) % COUNT < self.size, "no place is written twice"
            at = self.count % self.size * RECORD_BYTES
            content[at : at + RECORD_BYTES] = encoded(each)
            self.count = (self.count + 1) % COUNT
        self.path.write_bytes(content)

    def free(self):
        return self.size - (self.count - self.handed_back) % COUNT

    def written(self):
        return self.count

    def consume(self, count):
        self.handed_back = count

    def region(self):
        descriptor = os.open(self.path, os.O_RDONLY)
        return Region(str(self.path), descriptor, self.size * RECORD_BYTES)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.lists(record, max_size=12), max_size=12),
    st.sampled_from([1, 2, 8]),
    st.sampled_from([0, 5, COUNT - 3]),
    st.integers(1, 9),
)
def test_each_record_is_read_once_and_in_order(tmp_path_factory, batches, size, begin, most):
    memory = Memory(tmp_path_factory.mktemp("ring") / "memory", size, begin)
    put, got = [], []
    with memory.region() as region:
        reader = RingReader(region, memory, begin)
        for batch in batches:
            part = batch[: memory.free()]
            memory.put(part)
            put += part
            got += listed(reader.read(most))
        while (rest := reader.read(most)) and len(rest):
            got += listed(rest)
    assert got == put
    assert memory.handed_back == memory.count


def test_a_reset_writer_is_noticed(tmp_path):
    memory = Memory(tmp_path / "memory", 8)
    memory.put([(1, 2, 3, 0, 0)] * 3)
    with memory.region() as region:
        reader = RingReader(region, memory)
        assert len(reader.read()) == 3
        memory.count = 0
        with pytest.raises(BadInput, match="was the writer reset"):
            reader.read()


@pytest.mark.parametrize("size", [16 * 3, 24, 8])
def test_memory_that_is_no_ring_is_refused(tmp_path, size):
    path = tmp_path / "memory"
    path.write_bytes(bytes(size))
    region = Region("ring", os.open(path, os.O_RDONLY), size)
    with region, pytest.raises(BadInput, match="no ring"):
        RingReader(region, Memory(tmp_path / "other", 1))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 127)), max_size=300))
def test_dropped_samples_show_as_gaps(steps):
    """Channels whose streams drop up to 127 samples now and then, in any mixture."""
    numbers, records, dropped = {}, [], 0
    for channel, gap in steps:
        first = channel not in numbers
        number = (numbers.get(channel, 0) + (0 if first else gap)) % 128
        dropped += 0 if first else gap
        records.append((0, 0, channel, 0, number))
        numbers[channel] = number + 1
    gaps = Gaps()
    content = b"".join(encoded(each) for each in records)
    half = len(records) // 2 * RECORD_BYTES
    for part in (content[:half], content[half:]):
        gaps.add(Records.decode(part))
    assert gaps.dropped == dropped
