"""Tails of dependent series: what is said of processes whose truth is known, and of real series.

`bench/tails.py` draws hundreds where these tests, whose seeds are fixed, draw a few.
"""

import csv
from pathlib import Path

import numpy as np
import pytest
from known_tails import PERIOD_NS, PROCESSES, UNIT_NS, N, drawn, sample_set, truths

from latenz.errors import BadInput
from latenz.model import SampleSet
from latenz.statistics import TailFit, TailRefusal, fit_peaks, fit_tail
from latenz.statistics.clusters import Exceedances
from latenz.statistics.mixture import MixedTail

pytestmark = pytest.mark.proofs

DAY_NS = 86_400 * 10**9
REAL = Path(__file__).parents[1] / "data/tails"

FITTED = (
    "exponential",
    "lognormal, s = 1",
    "Gaussian",
    "gamma, shape 2",
    "Pareto, shape 0.2",
    "two states, far apart, 20",
    "two states, far apart, 200",
    "autoregressive, 0.5",
    "autoregressive, 0.9",
    "moving maxima of 4, exponential",
    "moving maxima of 10, Pareto 0.2",
    "fading stalls, lognormal",
)
DRAWS = 3


@pytest.mark.long
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    held = dict.fromkeys(truths(PROCESSES["exponential"]), 0)
    fits = 0
    for name in FITTED:
        process = PROCESSES[name]
        asked = truths(process)
        for seed in range(DRAWS):
            tail = fit_tail(drawn(process, seed))
            if isinstance(tail, TailRefusal):
                continue
            assert isinstance(tail, TailFit)
            fits += 1
            for question, (in_time, m, truth) in asked.items():
                level = tail.largest_in(m * PERIOD_NS) if in_time else tail.return_level(m)
                assert level.lower < level.value < level.upper
                held[question] += level.lower <= truth <= level.upper
    assert fits >= 0.9 * DRAWS * len(FITTED)  # about one in thirty is refused
    assert min(held.values()) >= 0.9 * fits  # one in a hundred times it were below, by chance


@pytest.mark.parametrize(
    ("name", "index"),
    [("autoregressive, 0.5", 0.85), ("moving maxima of 4, exponential", 0.25)],
)
def test_the_extremal_index_is_told(name: str, index: float) -> None:
    tail = fit_tail(drawn(PROCESSES[name], 2))
    assert isinstance(tail, TailFit)
    assert tail.extremal_index == pytest.approx(index, abs=0.08)
    assert tail.clusters < tail.exceedances or index == 1


def test_levels_probabilities_and_episodes_are_one_curve() -> None:
    tail = fit_tail(drawn(PROCESSES["moving maxima of 4, exponential"], 2))
    assert isinstance(tail, TailFit)
    level = tail.largest_in(DAY_NS)
    episodes = tail.episodes(level.value, DAY_NS)
    assert episodes.value == pytest.approx(1, rel=1e-3)
    assert episodes.lower < 1 < episodes.upper
    one = tail.exceedance(level.value)
    assert one.value == pytest.approx(tail.exceedance_curve(np.array([level.value]))[0])
    assert tail.return_level(1 / one.value).value == pytest.approx(level.value, rel=1e-3)
    # four activations a cluster: the level of so many activations is that of a longer time
    assert one.value * DAY_NS / PERIOD_NS == pytest.approx(4, rel=0.1)


def test_levels_in_time_need_a_time_beyond_the_threshold() -> None:
    values = 1 + np.random.default_rng(1).exponential(1, 50_000)
    tail = fit_tail(sample_set(values))
    untimed = fit_tail(sample_set(values, period_ns=None))
    assert isinstance(tail, TailFit)
    assert isinstance(untimed, TailFit)
    with pytest.raises(BadInput, match="below the threshold"):
        tail.largest_in(10 * PERIOD_NS)
    with pytest.raises(BadInput, match="neither times nor a period"):
        untimed.largest_in(DAY_NS)
    assert untimed.return_level(1e6).value == tail.return_level(1e6).value


def test_two_kinds_are_refused_with_what_would_tell_them_apart() -> None:
    found = [fit_tail(drawn(PROCESSES["two states, bursts of 20"], seed)) for seed in range(5)]
    reasons = [tail.reason for tail in found if isinstance(tail, TailRefusal)]
    assert len(reasons) >= 4
    told = [reason for reason in reasons if reason.startswith("one kind")]
    assert len(told) >= 3
    assert "measure 4 times as long (400 s)" in told[0]
    assert "latenz run --trace" in told[0]


def skipping(values: np.ndarray) -> SampleSet:
    """The samples that a thread would have: one that is late for several activations runs once."""
    latency_ns = (values * UNIT_NS).astype(np.int64)
    missed = np.maximum(0, latency_ns // PERIOD_NS)
    due = np.arange(len(values)) + np.cumsum(missed) - missed
    return SampleSet.from_columns(
        sample_set(values[:1]).metadata,
        t_ns=due * PERIOD_NS,
        latency_ns=latency_ns,
        missed=missed,
    )


def test_skipped_activations_make_clusters_larger_and_no_peak_other() -> None:
    """Stalls of several periods are one late sample each; all their activations count."""
    rng = np.random.default_rng(4)
    values = rng.exponential(1, 50_000)
    stalls = rng.random(len(values)) < 0.01
    values[stalls] += 300 * (1 + rng.exponential(1, stalls.sum()))  # 3 ms and more
    with_skipped = skipping(values)
    tail = fit_tail(with_skipped)
    assert isinstance(tail, TailFit)
    alone = fit_tail(sample_set(values))
    assert isinstance(alone, TailFit)
    missed = sum(int(batch.column(0).to_numpy().sum()) for batch in with_skipped.batches("missed"))
    assert tail.n == len(values) + missed
    latencies = values * UNIT_NS
    over = latencies[latencies > tail.threshold_ns]
    due = sum(1 + int((latency - tail.threshold_ns) // PERIOD_NS) for latency in over)
    assert tail.exceedances == pytest.approx(due, abs=2)
    # the same peaks in more time
    assert tail.excesses_ns.max() + tail.threshold_ns == pytest.approx(latencies.max(), abs=2)
    truth = UNIT_NS * (300 * (1 + np.log(1e6 * 0.01 / (1 + missed / len(values)))))
    level = tail.largest_in(1e6 * PERIOD_NS)
    assert level.lower < truth < level.upper


def with_causes(seed: int, above: float) -> tuple[SampleSet, dict[int, str]]:
    """Bursts of another kind than what comes alone, as in `two states, bursts of 20`."""
    rng = np.random.default_rng(seed)
    lengths = np.empty(400, dtype=np.int64)
    lengths[::2], lengths[1::2] = rng.geometric(5e-4, 200), rng.geometric(0.05, 200)
    late = np.repeat(np.arange(400) % 2 == 1, lengths)[:N]
    values = np.where(late, 3 + rng.exponential(3, N), rng.exponential(1, N))
    times = np.arange(N) * PERIOD_NS
    found = SampleSet.from_columns(
        sample_set(values[:1]).metadata, t_ns=times, latency_ns=(values * UNIT_NS).astype(np.int64)
    )
    known = np.flatnonzero(values > above)
    return found, {int(times[at]): "memory" if late[at] else "interrupt" for at in known}


def test_causes_split_a_mixture_of_two_regimes() -> None:
    truth = UNIT_NS * PROCESSES["two states, bursts of 20"].largest(10**6)
    held = fitted = 0
    for seed in range(2):
        found, causes = with_causes(seed, 4)
        if isinstance(fit_tail(found), TailFit):
            continue
        tail = fit_tail(found, causes)
        assert isinstance(tail, MixedTail)
        assert set(tail.parts) == {"interrupt", "memory"}
        fitted += 1
        level = tail.largest_in(10**6 * PERIOD_NS)
        held += level.lower <= truth <= level.upper
        assert tail.episodes(level.value, 10**6 * PERIOD_NS).value == pytest.approx(1, rel=1e-3)
        curve = tail.exceedance_curve(np.array([level.value]))[0]
        assert curve == pytest.approx(tail.exceedance(level.value).value)
    assert fitted == 2
    assert held >= 1  # and both, in nineteen of twenty draws


def test_causes_of_a_few_samples_only_are_not_enough() -> None:
    found, causes = with_causes(0, 15)
    assert 0 < len(causes) < 50
    tail = fit_tail(found, causes)
    assert isinstance(tail, TailRefusal)
    assert tail.reason.startswith("cause ")
    assert "explain or measure" in tail.reason


def real(name: str) -> Exceedances:
    with (REAL / name).open() as text:
        n, threshold_ns = (int(next(text).split("=")[1]) for _ in range(2))
        rows = np.array([[int(each) for each in row] for row in csv.reader(text)], dtype=np.int64)
    position, latency_ns, missed = rows.T
    return Exceedances(threshold_ns, latency_ns, position, missed, n, PERIOD_NS, n * PERIOD_NS)


@pytest.mark.parametrize("name", ["busy-1.csv", "busy-2.csv", "busy-3.csv"])
def test_real_series_get_a_fit_or_what_would_make_one_possible(name: str) -> None:
    tail = fit_peaks(real(name))
    if isinstance(tail, TailRefusal):
        assert "times as long (" in tail.reason
        assert all(test.detail for test in tail.diagnostics)
    else:
        assert tail.extremal_index < 1


def test_three_clusters_of_a_real_series_are_refused_with_how_long_it_takes() -> None:
    whole = real("busy-2.csv")
    early = whole.where(whole.position < whole.n // 20, whole.threshold_ns)
    tail = fit_peaks(early)
    assert isinstance(tail, TailRefusal)
    assert "times as" in tail.reason
