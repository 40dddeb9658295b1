from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.ip.configuration import Configuration
from latenz.ip.instance import Bins, Statistics
from latenz.ip.tally import Tally

FEATURES = frozenset({"snapshot", "sums", "histogram", "counters", "wide_num"})
KINDS = [
    Configuration(features=FEATURES, bins=64),
    Configuration(features=FEATURES, bins=64, sub_bits=2),
    Configuration(latency_width=48, features=FEATURES, bins=1024, sub_bits=4),
]


def hardware(configuration, shift, limit, latencies, saturated=0):
    """What the IP counts, by its documentation; the last `saturated` samples are too long."""
    longest = configuration.longest
    values = [*latencies, *[longest] * saturated]
    counts, overflow = np.zeros(configuration.bins, dtype=np.uint64), saturated
    for each in latencies:
        if configuration.sub_bits is None:
            at = each // 2**shift
        else:
            size = 2**configuration.sub_bits
            at, width, begin = 0, 1, 0  # walk over the bins as they lie
            while each >= begin + width:
                begin, at = begin + width, at + 1
                if at >= 2 * size and at % size == 0:
                    width *= 2
        if at < configuration.bins:
            counts[at] += np.uint64(1)
        else:
            overflow += 1
    told = Statistics(
        num=len(values),
        last=values[-1] if values else 0,
        max=max(values, default=0),
        min=min(values, default=longest),
        alarm=any(each > limit for each in latencies) or saturated > 0,
        sum=sum(values),
        sum_of_squares=sum(each**2 for each in values),
    )
    return told, Bins(counts, overflow, shift)


samples = st.lists(st.integers(0, 3000), max_size=30)


@given(st.sampled_from(KINDS), samples, st.integers(0, 7), st.integers(0, 4000), st.integers(0, 2))
def test_what_the_hardware_counts_right_is_agreed_with(kind, latencies, shift, limit, saturated):
    told, bins = hardware(kind, shift, limit, latencies, saturated)
    tally = Tally(kind, shift, limit)
    half = len(latencies) // 2
    every = np.array([*latencies, *[kind.longest] * saturated], dtype=np.uint64)
    for part in (every[:half], every[half:]):
        tally.add(part)
    assert tally.disagreements(told, bins, 0) == []


@pytest.mark.parametrize("field", ["num", "last", "max", "min", "sum", "sum_of_squares", "alarm"])
def test_each_wrong_figure_is_told(field):
    kind, latencies = KINDS[0], [5, 9, 7]
    told, bins = hardware(kind, 0, 8, latencies)
    tally = Tally(kind, 0, 8)
    tally.add(np.array(latencies, dtype=np.uint64))
    value = getattr(told, field)
    wrong = replace(told, **{field: not value if field == "alarm" else value + 1})
    (text,) = tally.disagreements(wrong, bins, 0)
    assert field.replace("_", " ") in text


def test_a_wrong_bin_is_told():
    kind, latencies = KINDS[1], [5, 9, 7]
    told, bins = hardware(kind, 0, 8, latencies)
    tally = Tally(kind, 0, 8)
    tally.add(np.array(latencies, dtype=np.uint64))
    counts = bins.counts.copy()
    counts[[5, 6]] = counts[[6, 5]]
    found = tally.disagreements(told, replace(bins, counts=counts), 0)
    assert [text[:6] for text in found] == ["bin 5 ", "bin 6 "]
    assert tally.disagreements(told, replace(bins, overflow=1), 0)


def test_of_samples_that_were_not_read_only_bounds_are_known():
    kind = KINDS[0]
    tally = Tally(kind, 0, 8)
    tally.add(np.array([5, 9, 7], dtype=np.uint64))
    told, bins = hardware(kind, 0, 8, [5, 9, 7, 30, 2])
    assert tally.disagreements(told, bins, 2) == []
    assert tally.disagreements(told, bins, 3)
    assert tally.disagreements(replace(told, max=8), bins, 2)
    assert tally.disagreements(replace(told, min=6), bins, 2)
