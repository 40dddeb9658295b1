"""Traces as a clock samples them: what a replay drives into the IP, and what must come out."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latenz.errors import BadInput
from latenz.ip.trace import IDLE_CYCLES, Instant, pair, read_trace, sample, segments
from latenz.model import Metadata, SampleSet, TimeBase
from latenz.store.run import RunWriter

policies = st.sampled_from(["drop", "restart", "queue"])
steps = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 3)), min_size=1, max_size=60)


def instants_of(gaps, scale=1):
    time, found = 0, []
    for gap, which in gaps:
        time += gap * scale
        found.append(Instant(time, which & 1, which >> 1))
    return found


def measured(instants, policy):
    """A behavioural model of the IP, cycle by cycle, that shares no code with the importer."""
    by_cycle = {each.time: each for each in instants}
    waiting, found = [], []
    for now in range(max(by_cycle) + 1):
        _, starts, ends = by_cycle.get(now, (now, 0, 0))
        if ends and waiting:
            begin = waiting.pop(0)
            found.append((begin, now - begin))
            ends = 0
        if starts and ends and not waiting:
            found.append((now, 0))
        elif starts and not waiting:
            waiting.append(now)
        elif starts and policy == "restart":
            waiting = [now]
        elif starts and policy == "queue":
            waiting.append(now)
    return found


@settings(deadline=None)
@given(steps, policies, st.integers(1, 1000))
def test_an_exact_clock_changes_no_latency(gaps, policy, scale):
    instants = instants_of(gaps, scale)
    own = pair(instants, policy)
    sampled = sample(instants)
    assert sampled.is_exact
    assert sampled.merged == 0
    again = pair(sampled.instants, policy)
    origin = instants[0].time
    assert [
        (origin + each.begin * sampled.period, each.end - each.begin) for each in again.pairs
    ] == [(each.begin, Fraction(each.end - each.begin) / sampled.period) for each in own.pairs]
    assert measured(sampled.instants, policy) == [(e.begin, e.end - e.begin) for e in again.pairs]
    for which in (1, 2):  # a signal has to fall before it can rise again
        times = [each.time for each in sampled.instants if each[which]]
        assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(times))


@settings(deadline=None)
@given(steps, policies, st.fractions(Fraction(1, 3), 30, max_denominator=7))
def test_a_coarse_clock_sees_each_edge_at_its_next_tick(gaps, policy, period):
    instants = instants_of(gaps)
    sampled = sample(instants, period)
    driven = {1: set(), 2: set()}
    for instant in instants:
        for which in (1, 2):
            if instant[which]:
                driven[which].add(math.ceil(instant.time / period))
    edges = sum(each.starts + each.ends for each in instants)
    for which in (1, 2):  # a pulse of a cycle each: an edge is where the cycle before was low
        expected = sorted(cycle for cycle in driven[which] if cycle - 1 not in driven[which])
        assert [each.time for each in sampled.instants if each[which]] == expected
        edges -= len(expected)
    assert sampled.merged == edges


@settings(deadline=None)
@given(steps, policies, st.integers(1, 5))
def test_segments_keep_every_latency_and_shorten_only_idleness(gaps, policy, most):
    sampled = sample(instants_of(gaps))
    whole = pair(sampled.instants, policy)
    parts = list(segments(sampled, policy, most))
    found = [
        (part.original[each.begin], each.end - each.begin) for part in parts for each in part.pairs
    ]
    assert found == [(each.begin, each.end - each.begin) for each in whole.pairs]
    for part in parts:
        assert measured(part.instants, policy) == [(e.begin, e.end - e.begin) for e in part.pairs]
        assert part.instants[0].time == IDLE_CYCLES
        if part is not parts[-1]:
            assert len(part.pairs) >= most


def test_edges_at_one_time_are_not_hidden():
    """No clock can see two rising edges of one signal at one instant: they count as merged."""
    sampled = sample([Instant(0, 2, 0), Instant(10, 0, 1), Instant(20, 0, 1)])
    assert sampled.merged == 1


def sample_run(folder, *sets):
    writer = RunWriter(folder)
    for name, columns in sets:
        metadata = Metadata(name=name, time_base=TimeBase.VIRTUAL, from_event="a", to_event="b")
        writer.add(SampleSet.from_columns(metadata, **columns))
    writer.close()
    return folder


def test_sample_sets_become_edges(tmp_path):
    columns = {"t_ns": [100, 300, 900], "latency_ns": [50, 0, 7]}
    trace = read_trace(sample_run(tmp_path / "run", ("x", columns)), None, None, "drop")
    assert trace.instants == [(100, 1, 0), (150, 0, 1), (300, 1, 1), (900, 1, 0), (907, 0, 1)]
    assert [tuple(each) for each in trace.own.pairs] == [(100, 150), (300, 300), (900, 907)]
    assert trace.notes == ()


def test_samples_without_times_come_one_after_another(tmp_path):
    run = sample_run(tmp_path / "run", ("x", {"latency_ns": [5, 0, 9]}))
    trace = read_trace(run, None, None, "drop")
    assert [each.end - each.begin for each in trace.own.pairs] == [5, 0, 9]
    begins = [each.begin for each in trace.own.pairs]
    ends = [each.end for each in trace.own.pairs]
    assert all(end < begin for end, begin in zip(ends, begins[1:], strict=False))
    assert trace.notes


def test_what_cannot_be_replayed_is_refused(tmp_path):
    one, two = ("x", {"latency_ns": [5]}), ("y", {"latency_ns": [6]})
    run = sample_run(tmp_path / "two", one, two)
    with pytest.raises(BadInput, match="--set: x, y"):
        read_trace(run, None, None, "drop")
    assert read_trace(run, None, None, "drop", "y").name == "y"
    with pytest.raises(BadInput, match="no sample set 'xx'"):
        read_trace(run, None, None, "drop", "xx")
    with pytest.raises(BadInput, match="only a value change dump has signals"):
        read_trace(run, "irq", None, "drop")
    negative = sample_run(tmp_path / "negative", ("x", {"latency_ns": [5, -1]}))
    with pytest.raises(BadInput, match="negative"):
        read_trace(negative, None, None, "drop")
    cells = ("x", {"latency_ns": [5], "width_ns": [1], "count": [3]})
    with pytest.raises(BadInput, match="samples are needed"):
        read_trace(sample_run(tmp_path / "cells", cells), None, None, "drop")
    with pytest.raises(BadInput, match="no such file"):
        read_trace(tmp_path / "nothing", None, None, "drop")
