"""Episodes of lateness against a plain reading of their definition, activation by activation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latenz._core import LatenessScan
from latenz.model import Deadline, Metadata, SampleSet, TimeBase
from latenz.statistics.lateness import observe_samples, pause_ns

NOTHING = np.iinfo(np.int64).min


def plain(due, latency, missed, period, limit, pause, burst):
    """Return late activations and, as defined: finer episodes, episodes, the longest stretch."""
    times = sorted(
        t + k * period
        for t, each, skipped in zip(due, latency, missed, strict=True)
        for k in range(skipped + 1)
        if each - k * period > limit
    )
    finer, episodes = [], []
    for i, t in enumerate(times):
        for runs, gap in ((finer, pause), (episodes, burst)):
            if i == 0 or t - times[i - 1] > gap:
                runs.append([t, t])
            runs[-1][1] = t
    longest = max((end - begin for begin, end in finer), default=0)
    counted = [
        sum((end - begin) // lasting + 1 for begin, end in runs)
        for runs, lasting in ((finer, burst), (episodes, 10 * burst))
    ]
    return len(times), *counted, longest


@given(
    st.lists(st.tuples(st.integers(-5, 60), st.integers(0, 8)), min_size=1, max_size=60),
    st.integers(1, 12),
    st.integers(0, 30),
    st.integers(0, 20),
    st.integers(1, 50),
    st.sampled_from([2, 4, 64]),
)
@settings(deadline=None)
def test_the_scan_is_as_plain_reading_is(activations, period, limit, pause, burst, cells):
    pause, burst = pause + period, burst + period  # nothing is finer than activations
    latency = np.array([each for each, _ in activations], np.int64)
    # no more can have been skipped than what was waited for
    missed = np.minimum([each for _, each in activations], np.maximum(latency, 0) // period)
    due = np.concatenate(([0], np.cumsum(missed + 1)[:-1])) * period
    scan = LatenessScan([(limit, pause, burst)], period, 1, cells)
    half = len(latency) // 2
    for part in (slice(half), slice(half, None)):
        scan.add(latency[part], missed[part], None)
    wanted = plain(due, latency, missed, period, limit, pause, burst)
    assert scan.found == [wanted]
    assert int(scan.late(0).sum()) == wanted[0]
    assert len(scan.highest) <= cells
    highest = {}
    for t, each, skipped in zip(due, latency, missed, strict=True):
        for k in range(skipped + 1):
            cell = (t + k * period) // scan.cell_ns
            highest[cell] = max(highest.get(cell, NOTHING), each - k * period)
    assert scan.highest.max() == latency.max()
    for cell, value in highest.items():  # what waited below zero or the limit is not placed
        if value > limit:
            assert scan.highest[cell] == value


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), st.data())
@settings(deadline=None)
def test_no_numbers_break_it(latency, data):
    n = len(latency)
    numbers = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n)
    missed = np.array(data.draw(numbers), np.int64)
    due = np.array(data.draw(numbers), np.int64)
    for period in (0, 1, 2**40, 2**60):
        for times in (None, due):
            scan = LatenessScan([(10, 5, 7), (2**62, 1, 1)], period, 1000, 64)
            scan.add(np.array(latency, np.int64), missed, times)
            assert len(scan.highest) <= 64
            assert all(figure >= 0 for found in scan.found for figure in found)


def made(late, period_ns=1_000_000, **columns):
    known = Metadata(name="x", time_base=TimeBase.SILICON, period_ns=period_ns)
    latency = np.where(late, 1_000_000, 10_000)
    return SampleSet.from_columns(known, latency_ns=latency, **columns)


def one(sample_set, **settings_of):
    deadline = Deadline(name="d", limit_ns=500_000, **settings_of)
    return observe_samples(sample_set, [deadline])


def test_one_event_is_one_episode_though_it_makes_every_second_activation_late():
    late = np.zeros(60_000, bool)
    late[10_000:10_200:2] = True  # 200 ms
    late[40_000:40_003] = True
    found = one(made(late))
    assert found.time_ns == 60_000_000_000
    assert found.lateness[0].episodes == 2
    assert found.lateness[0].possible_episodes == 2
    assert found.lateness[0].longest_ns == 198_000_000


def test_events_nearer_than_a_burst_are_one_episode_but_bounded_by_each():
    late = np.zeros(60_000, bool)
    late[::500] = True
    assert one(made(late)).lateness[0].episodes == 6  # 60 s are six times ten bursts
    assert one(made(late)).lateness[0].possible_episodes == 120


def test_lasting_lateness_is_more_than_one_episode():
    assert one(made(np.ones(60_000, bool))).lateness[0].episodes == 6
    assert one(made(np.ones(60_000, bool))).lateness[0].possible_episodes == 60


def test_there_are_no_more_episodes_than_late_activations():
    late = np.arange(10) % 2 == 0
    found = one(made(late, period_ns=10**9)).lateness[0]
    assert max(found.episodes, found.possible_episodes) <= 5


def timed(t_ns, late=()):
    known = Metadata(name="x", time_base=TimeBase.SILICON)
    latency = np.full(len(t_ns), 10_000)
    latency[list(late)] = 1_000_000
    return SampleSet.from_columns(known, latency_ns=latency, t_ns=t_ns)


def test_gaps_in_a_recording_are_not_observed():
    """Two recordings of five seconds, four hours apart, in one file."""
    part = np.arange(5000) * 1_000_000
    found = one(timed(np.concatenate((part, part + 4 * 3600 * 10**9))))
    assert 10e9 <= found.time_ns <= 11.1e9


def test_times_that_go_back_tell_no_time():
    part = np.arange(5000) * 1_000_000
    assert one(timed(np.concatenate((part, part)))).time_ns is None


def test_any_epoch_will_do():
    part = np.arange(5000) * 1_000_000 + 2**62 + 2**61
    found = one(timed(part, late=(5, 4000)))
    assert (found.time_ns, found.lateness[0].episodes) == (5_000_000_000, 2)


def test_the_fullest_block_says_how_many_blocks_there_are():
    """A thousand activations in 100 ms once a minute: an hour of them is sixty blocks."""
    bursts = np.concatenate([np.arange(1000) * 100_000 + i * 60 * 10**9 for i in range(60)])
    assert one(timed(bursts)).lateness[0].in_a_block == 1000
    assert one(made(np.zeros(60_000, bool))).lateness[0].in_a_block == 1000


def test_bursts_reach_as_far_as_they_last_and_independent_lateness_nowhere():
    random = np.random.default_rng(1)
    bursts = np.zeros(3_000_000, bool)
    for start in random.integers(0, len(bursts) - 3000, 60):
        bursts[start : start + 3000] = True
    assert 2.5e9 < one(made(bursts)).lateness[0].dependence_ns < 8e9
    alone = random.random(3_000_000) < 1e-4
    found = one(made(alone)).lateness[0]
    assert found.dependence_ns < 1_000_000_000
    assert found.dispersion == 1.0


def test_times_are_taken_where_no_period_is_known():
    late = np.zeros(1000, bool)
    late[[10, 500]] = True
    known = Metadata(name="x", time_base=TimeBase.SILICON)
    latency = np.where(late, 1_000_000, 10_000)
    timed = SampleSet.from_columns(known, latency_ns=latency, t_ns=np.arange(1000) * 10**9)
    assert one(timed).time_ns == 1000 * 10**9
    assert one(timed).lateness[0].episodes == 2
    assert one(SampleSet.from_columns(known, latency_ns=latency)).time_ns is None


@pytest.mark.parametrize(
    ("burst_ns", "period_ns", "pause"), [(10**9, 0, 10**7), (10**9, 10**8, 3 * 10**8), (1, 0, 1)]
)
def test_a_pause_is_a_hundredth_of_a_burst_or_three_periods(burst_ns, period_ns, pause):
    assert pause_ns(burst_ns, period_ns) == pause
