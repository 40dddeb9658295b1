"""The behavioural model against what others say the semantics are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latenz.importers.pairing import POLICIES, Pairing
from verification.model.configuration import Configuration
from verification.model.latencies import Latencies

EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), max_size=60)


@pytest.mark.parametrize("policy", POLICIES)
@given(EDGES)
def test_the_model_pairs_as_the_import_of_traces_does(
    policy: str, edges: list[tuple[int, int]]
) -> None:
    model = Latencies(Configuration(overlap_policy=policy, queue_depth=64))
    model.write_we(True)
    pairing, pairs, tick = Pairing(policy), [], 0
    for gap, kind in edges:
        tick += gap + 1
        model.edges(tick, kind & 1 == 1, kind & 2 == 2)
        pairs += pairing.edges(tick, kind & 1, kind >> 1)
    assert [(start, start + latency) for start, latency in model.samples()] == pairs
    assert model.orphans == pairing.orphan_ends
    assert model.overlaps == pairing.overlaps
    assert model.open == pairing.open_at_end
    irqs = sum(kind & 1 for _, kind in edges)
    assert irqs == len(pairs) + model.missed + model.open


@given(EDGES, st.integers(1, 12))
def test_every_irq_is_a_sample_or_missed_with_a_watchdog_as_well(
    edges: list[tuple[int, int]], timeout: int
) -> None:
    model = Latencies(Configuration(watchdog=True))
    model.timeout = timeout
    model.write_we(True)
    tick = 0
    for gap, kind in edges:
        tick += gap + 1
        model.edges(tick, kind & 1 == 1, kind & 2 == 2)
    model.pass_time(tick + timeout + 1)
    assert max(model.true_latencies, default=0) <= timeout
    assert sum(kind & 1 for _, kind in edges) == len(model.starts) + model.missed
    assert model.open == 0


@pytest.mark.parametrize("sub_bits", [1, 3, 5])
def test_log_linear_bins_are_contiguous_and_as_fine_as_promised(sub_bits: int) -> None:
    model = Latencies(Configuration(histogram_kind="log-linear", histogram_sub_bits=sub_bits))
    bins: dict[int, list[int]] = {}
    for value in range(5000):
        bins.setdefault(model.bin(value), []).append(value)
    assert list(bins) == list(range(len(bins)))
    for values in list(bins.values())[:-1]:
        assert (len(values) - 1) << sub_bits < max(values[0], 1)


def test_a_published_example_by_hand() -> None:
    model = Latencies(Configuration(depth=2))
    model.write_we(True)
    model.alarm_lat = 9
    for tick, kind in ((10, 1), (11, 2), (20, 3), (30, 1), (39, 2), (50, 1), (60, 2)):
        model.edges(tick, kind & 1 == 1, kind & 2 == 2)
    assert model.latencies() == [1, 0, 9, 10]
    assert (model.last, model.max, model.min, model.num) == (10, 10, 0, 4)
    assert model.alarm
    assert [model.memory()[index].latency for index in range(2)] == [1, 0]
    model.wrap = True
    assert [model.memory()[index].latency for index in range(2)] == [9, 10]
