"""Activations that were skipped count: who misses half of them does not look better."""

import numpy as np
import pytest
from processes import KHZ, independent, run_of

from latenz.compare import Settings, compare, judge
from latenz.model import Metadata, SampleSet, TimeBase

PERIOD_NS = 1_000_000


def counted(name: str, latency_ns, missed, **known) -> SampleSet:
    given = {"time_base": TimeBase.SILICON, "period_ns": PERIOD_NS, **known}
    return SampleSet.from_columns(
        Metadata(name=name, **given), latency_ns=latency_ns, missed=missed
    )


def late(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A wake-up each period, but every second one 1.2 periods late: the next is skipped."""
    random = np.random.default_rng(seed)
    latency_ns = independent(random, n)
    half = random.random(n) < 1 / 3
    latency_ns[half] += 1_200_000
    return latency_ns, half.astype(np.int64)


def test_who_misses_activations_does_not_look_better() -> None:
    n = 60 * KHZ
    quiet = counted("x", independent(np.random.default_rng(1), n), np.zeros(n, np.int64))
    latency_ns, missed = late(2, 45_000)
    comparison = compare([quiet], [counted("x", latency_ns, missed)])
    [pair] = comparison.pairs
    assert pair.view == "as due"
    assert (pair.skipped_a, pair.skipped_b) == (0, missed.sum())
    due = np.sort(np.r_[latency_ns, latency_ns[missed > 0] - PERIOD_NS])
    assert pair.statistics["mean"].b == pytest.approx(due.mean())
    for name, share in (("p90", 0.9), ("p99", 0.99)):
        effect = pair.statistics[name]
        assert effect.b == due[int(np.ceil(share * len(due))) - 1]
        assert effect.low > 0
        assert judge(comparison, f"{name} significantly > +10%").violated is True


def test_intervals_are_those_of_the_activations_written_out() -> None:
    sides = [late(seed, 45_000) for seed in (2, 3)]
    folded = [counted("x", *side) for side in sides]
    unfolded = []
    for latency_ns, missed in sides:
        rows = [
            latency - k * PERIOD_NS
            for latency, skipped in zip(latency_ns.tolist(), missed.tolist(), strict=True)
            for k in range(skipped + 1)
        ]
        unfolded.append(run_of("x", np.array(rows)))
    first, second = (compare([a], [b]).pairs[0] for a, b in (folded, unfolded))
    for name, effect in first.statistics.items():
        if name == "miss_rate":
            continue
        other = second.statistics[name]
        assert (effect.a, effect.b) == (pytest.approx(other.a), pytest.approx(other.b)), name
        assert effect.low == pytest.approx(other.low), name
        assert effect.high == pytest.approx(other.high), name
    assert first.superiority.probability == pytest.approx(second.superiority.probability)


@pytest.mark.parametrize("turned", [False, True])
def test_a_source_that_counts_is_not_held_against_one_that_cannot(turned: bool) -> None:
    latency_ns, missed = late(2, 45_000)
    sides = [[counted("x", latency_ns, missed)], [run_of("x", latency_ns)]]
    comparison = compare(*(reversed(sides) if turned else sides))
    [pair] = comparison.pairs
    assert pair.view == "unlike"
    assert pair.statistics["p99"].difference == 0  # the same samples
    for name in ("mean", "median", "p99", "stdev", "min", "miss_rate"):
        assert pair.statistics[name].low is None
    for expression in ("p99 > +10%", "median significantly > +1%", "mean > 1us", "max > +1%"):
        gate = judge(comparison, expression)
        assert gate.violated is (False if expression.startswith("max") else None), expression
    assert "only one side counts" in judge(comparison, "p99 > +10%").reasons[0]


def test_the_largest_of_unlike_sides_is_known_only_if_no_skipped_one_may_be_later() -> None:
    n = 5000
    latency_ns = independent(np.random.default_rng(1), n)
    a = counted("x", latency_ns, np.ones(n, np.int64), period_ns=None)
    comparison = compare([a], [run_of("x", latency_ns)])
    assert comparison.pairs[0].view == "unlike"
    assert comparison.pairs[0].statistics["max"].a is None
    assert judge(comparison, "max > +10%").violated is None


def test_repetitions_are_not_mixed_either() -> None:
    latency_ns, missed = late(2, 5000)
    a = [counted(f"x-r{i}", latency_ns, missed) for i in range(1, 5)]
    b = [run_of(f"x-r{i}", latency_ns) for i in range(1, 5)]
    [pair] = compare(a, b).pairs
    assert pair.view == "unlike"
    assert pair.statistics["mean"].why_no_interval.startswith("only one side counts")


def test_skipped_activations_of_unknown_latency_leave_no_interval() -> None:
    n = 60 * KHZ
    random = np.random.default_rng(4)
    sides = [
        counted("x", independent(random, n), np.zeros(n, np.int64), missed_periods=5)
        for _ in range(2)
    ]
    comparison = compare([sides[0]], [sides[1]])
    [pair] = comparison.pairs
    assert pair.statistics["median"].difference is not None
    assert pair.statistics["median"].low is None
    assert "not known how late" in pair.statistics["median"].why_no_interval
    assert judge(comparison, "median significantly > +1%").exit_code == 3


def test_a_limit_that_only_one_side_exceeds_has_an_interval() -> None:
    """The side that keeps it does not tell how lateness comes together; the other one does."""
    n = 60 * KHZ
    random = np.random.default_rng(5)
    kept, exceeded = independent(random, n), independent(random, n)
    exceeded[random.random(n) < 2e-3] += 10**6
    a, b = (counted("x", each, np.zeros(n, np.int64)) for each in (kept, exceeded))
    [pair] = compare([a], [b], Settings(deadline_ns=100_000)).pairs
    effect = pair.statistics["miss_rate"]
    assert effect.a == 0
    assert effect.b == np.mean(exceeded > 100_000)
    assert 0 < effect.low < effect.difference < effect.high
