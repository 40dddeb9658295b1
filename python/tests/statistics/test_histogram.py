"""Histograms against the independent `hdrhistogram` package, cell by cell and text by text."""

import base64
import zlib

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st
from made_sets import metadata

from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.statistics import Histogram

LAYOUTS = st.tuples(
    st.sampled_from([1, 2, 3, 100, 1000]),
    st.sampled_from([10**4, 10**6, 3_600_000_000_000]),
    st.integers(1, 4),
)


def both(layout: tuple[int, int, int], values: list[int]) -> tuple[Histogram, HdrHistogram]:
    lowest, highest, digits = layout
    ours, theirs = Histogram(highest, lowest, digits), HdrHistogram(lowest, highest, digits)
    ours.record(np.array(values, np.int64))
    for value in values:
        theirs.record_value(value)
    return ours, theirs


@given(LAYOUTS, st.lists(st.integers(0, 9999), max_size=50))
@settings(deadline=None, max_examples=60)
def test_text_and_cells_equal_the_peer(layout, values) -> None:
    ours, theirs = both(layout, values)
    assert ours.n == theirs.get_total_count()
    decoded = HdrHistogram.decode(ours.encode())
    assert decoded.get_total_count() == theirs.get_total_count()
    again = Histogram.decode(theirs.encode().decode())
    for lowest, width, count in zip(*ours.cells(), strict=True):
        assert theirs.get_count_at_value(int(lowest)) == count
        assert theirs.get_lowest_equivalent_value(int(lowest + width - 1)) == lowest
        assert theirs.get_highest_equivalent_value(int(lowest)) == lowest + width - 1
        assert decoded.get_count_at_value(int(lowest)) == count
    for mine, other in zip(ours.cells(), again.cells(), strict=True):
        assert np.array_equal(mine, other)


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=99))
@settings(deadline=None, max_examples=30)
def test_quantiles_equal_the_peer(values) -> None:
    # the peer rounds p n to the nearest rank instead of up: both agree where p n is whole
    ours, theirs = both((1, 3_600_000_000_000, 3), [])
    ours.record_counts(np.array(values, np.int64), np.full(len(values), 1000, np.int64))
    for value in values:
        theirs.record_value(value, 1000)
    for probability in ("0.5", "0.9", "0.999"):
        found = theirs.get_value_at_percentile(float(probability) * 100)
        assert ours.quantile_ns(probability) == theirs.get_lowest_equivalent_value(found)


@given(st.lists(st.integers(1, 2**61), min_size=1, max_size=20))
@settings(deadline=None)
def test_any_count_survives_encoding(counts) -> None:
    histogram = Histogram()
    spread = np.arange(len(counts), dtype=np.int64) ** 5
    histogram.record_counts(spread, np.array(counts, np.int64) // len(counts))
    again = Histogram.decode(histogram.encode())
    assert [part.tolist() for part in again.cells()] == [
        part.tolist() for part in histogram.cells()
    ]


def test_parts_merged_equal_the_whole() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 10**13, 10_000)  # some beyond the hour
    whole, first, second = Histogram(), Histogram(), Histogram()
    whole.record(values)
    first.record(values[:3000])
    second.record(values[3000:])
    first.merge(second)
    assert first.encode() == whole.encode()
    assert first.unrecorded == whole.unrecorded == int((values >= 2**42).sum())


def test_a_sample_set_becomes_a_histogram_without_losing_any() -> None:
    samples = SampleSet.from_columns(metadata(), latency_ns=[5, 5, -1, 10**15])
    assert (Histogram.of(samples).n, Histogram.of(samples).unrecorded) == (2, 2)
    cells = SampleSet.from_columns(
        metadata(beyond_range=4), latency_ns=[0, 1000], width_ns=[1000, 1000], count=[3, 2]
    )
    assert (Histogram.of(cells).n, Histogram.of(cells).unrecorded) == (5, 4)


def test_impossible_layouts_and_empty_histograms_are_refused() -> None:
    for highest, lowest, digits in ((1, 1, 3), (10, 0, 3), (10**9, 1, 6), (2**64, 1, 3)):
        with pytest.raises(BadInput, match="no histogram reaches"):
            Histogram(highest, lowest, digits)
    with pytest.raises(BadInput, match="holds no latencies"):
        Histogram().quantile_ns("0.5")


def test_every_damage_is_refused_or_read() -> None:
    ours, _ = both((1, 10**6, 3), [1, 5, 5, 777, 99_999])
    text = ours.encode()
    data = bytearray(base64.b64decode(text))
    plain = bytearray(zlib.decompress(bytes(data[8:])))
    rng = np.random.default_rng(2)
    refused = 0
    for _ in range(3000):
        damaged = bytearray(plain)
        damaged[rng.integers(len(plain))] ^= 1 << rng.integers(8)
        packed = zlib.compress(bytes(damaged))
        envelope = data[:4] + len(packed).to_bytes(4, "big")
        try:
            Histogram.decode(base64.b64encode(bytes(envelope) + packed).decode())
        except BadInput:
            refused += 1
    assert refused > 500
    for cut in range(len(text)):
        with pytest.raises(BadInput):
            Histogram.decode(text[:cut])


def test_a_compression_bomb_is_refused() -> None:
    header = zlib.decompress(base64.b64decode(Histogram().encode())[8:])
    plain = header[:4] + (50_000_000).to_bytes(4, "big") + header[8:40]
    packed = zlib.compress(plain + bytes(50_000_000), 1)
    envelope = (0x1C849314).to_bytes(4, "big") + len(packed).to_bytes(4, "big")
    with pytest.raises(BadInput, match="more counts than cells"):
        Histogram.decode(base64.b64encode(envelope + packed).decode())
