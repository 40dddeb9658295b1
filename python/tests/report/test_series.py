import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from latenz.report.series import SeriesBuilder


@given(
    latency_ns=arrays(np.int64, st.integers(1, 400), elements=st.integers(-1000, 10**12)),
    buckets=st.integers(1, 50),
    cuts=st.lists(st.integers(0, 400), max_size=6),
)
@settings(max_examples=300, deadline=None)
def test_every_bucket_has_its_own_extremes(
    latency_ns: np.ndarray, buckets: int, cuts: list[int]
) -> None:
    n = len(latency_ns)
    buckets = min(buckets, n)
    missed = (latency_ns % 7 == 0).astype(np.int64)
    t_ns = 10**15 + 1000 * np.arange(n)
    builder = SeriesBuilder(n, buckets, keep_worst=5)
    edges = [0, *sorted(min(cut, n) for cut in cuts), n]
    for start, end in itertools.pairwise(edges):
        builder.add(latency_ns[start:end], t_ns[start:end], missed[start:end])

    member = np.arange(n) * buckets // n
    found = builder.series
    assert len(found) == buckets
    for number, bucket in enumerate(found):
        own = latency_ns[member == number]
        assert bucket.max_ns == own.max()
        assert bucket.min_ns == own.min()
        assert bucket.missed == missed[member == number].sum()
        assert latency_ns[bucket.at // 1000] == bucket.max_ns
        assert member[bucket.at // 1000] == number
    assert [late.latency_ns for late in builder.worst] == sorted(latency_ns, reverse=True)[:5]
    assert all(latency_ns[late.at // 1000] == late.latency_ns for late in builder.worst)
    assert builder.origin_ns == 10**15


def test_without_times_the_place_is_the_number_of_the_sample() -> None:
    builder = SeriesBuilder(4, 2)
    builder.add(np.array([3, 9]), None, None)
    builder.add(np.array([1, 2]), None, None)
    assert [bucket.at for bucket in builder.series] == [1, 3]
    assert builder.origin_ns is None
