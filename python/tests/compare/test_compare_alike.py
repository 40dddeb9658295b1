"""Two sides made by the same process must not seem different; sides that differ must.

`bench/compare_alike.py` does the same at length; docs/compare.md shows its table.
"""

import numpy as np
import pytest
from processes import KHZ, PROCESSES, autoregressive, independent, run_of, two_state
from scipy.stats import binom

from latenz.compare import Comparison, Settings, compare, judge
from latenz.compare.estimate import of_pairs, of_repetitions

JUDGED = ("mean", "median", "p90", "p99", "p99.9", "stdev", "block_max")
QUANTILES = (0.5, 0.9, 0.99)


def different(comparison: Comparison) -> dict[str, bool | None]:
    """For each statistic whether its interval excludes zero; None if there is none."""
    [pair] = comparison.pairs
    found = {}
    for name in JUDGED:
        effect = pair.statistics[name]
        told = effect.low is not None and effect.high is not None
        found[name] = not effect.low <= 0 <= effect.high if told else None
        assert told or effect.why_no_interval
    return found


def likely(count: int, trials: int, share: float = 0.07) -> bool:
    """Whether so many of so many trials may come by chance, if each does with that share."""
    return binom.sf(count - 1, trials, share) > 1e-3


@pytest.mark.parametrize("name", PROCESSES)
def test_single_runs_of_one_process_seldom_seem_different(name: str) -> None:
    """One minute each. Where runs are too short to tell, no interval is given."""
    random = np.random.default_rng(20)
    trials = 8
    wrong = dict.fromkeys(JUDGED, 0)
    for _ in range(trials):
        a, b = (run_of("x", PROCESSES[name](random, 60 * KHZ)) for _ in range(2))
        for statistic, outcome in different(compare([a], [b])).items():
            wrong[statistic] += outcome is True
    assert all(likely(count, trials) for count in wrong.values()), wrong


@pytest.mark.parametrize(("busy_s", "quiet_s"), [(5, 20), (2, 8), (1, 4)])
def test_phases_of_seconds_are_told_to_need_more(busy_s: float, quiet_s: float) -> None:
    random = np.random.default_rng(3)
    process = two_state(busy_s, quiet_s)
    told = 0
    for _ in range(8):
        a, b = (run_of("x", process(random, 60 * KHZ)) for _ in range(2))
        comparison = compare([a], [b])
        [pair] = comparison.pairs
        effect = pair.statistics["mean"]
        if effect.low is not None:
            told += 1
            continue
        assert "resembles itself" in effect.why_no_interval
        assert effect.needed.repetitions == 3
        assert effect.needed.duration_s == 60
        gate = judge(comparison, "mean significantly > +1%")
        assert gate.exit_code == 3
        assert "3 repetitions of each side, of 60 s" in gate.reasons[0]
    assert told <= 1


@pytest.mark.parametrize("duration_s", [3, 10, 59])
def test_a_run_that_one_phase_may_fill_tells_nothing_of_others(duration_s: int) -> None:
    """All of one run may be busy and all of the other quiet: each seems perfectly steady."""
    random = np.random.default_rng(1)
    quiet, busy = independent(random, duration_s * KHZ), independent(random, duration_s * KHZ)
    comparison = compare([run_of("x", quiet)], [run_of("x", busy + 15_000)])
    [pair] = comparison.pairs
    assert pair.statistics["mean"].difference > 14_000
    assert all(effect.low is None for effect in pair.statistics.values())
    assert "single phase" in pair.statistics["mean"].why_no_interval
    assert judge(comparison, "mean significantly > +10%").violated is None


def test_how_long_samples_without_a_period_took_is_seen_in_their_times() -> None:
    random = np.random.default_rng(1)
    n = 20_000
    steady = [independent(random, n) for _ in range(2)]
    for step_ns, told in ((10**6, False), (4 * 10**6, True)):
        sides = [
            run_of("x", each).from_columns(
                run_of("x", each).metadata.model_copy(update={"period_ns": None}),
                latency_ns=each,
                t_ns=np.arange(n) * step_ns,
            )
            for each in steady
        ]
        [pair] = compare([sides[0]], [sides[1]]).pairs
        assert (pair.statistics["mean"].low is not None) is told


# --- repetitions


def figures(name: str, duration_s: float, runs: int) -> np.ndarray:
    """Mean, quantiles and maximum of many short runs of a process."""
    random = np.random.default_rng(8)
    n = int(duration_s * KHZ)
    rows = []
    for _ in range(runs):
        values = np.sort(PROCESSES[name](random, n))
        ranks = [int(np.ceil(p * n)) - 1 for p in QUANTILES]
        rows.append([values.mean(), values[-1], *values[ranks]])
    return np.array(rows)


@pytest.mark.parametrize("name", PROCESSES)
def test_repetitions_of_one_process_seldom_seem_different(name: str) -> None:
    """Also where a run is far shorter than the phases of the process."""
    pool = figures(name, 3, 120)
    random = np.random.default_rng(4)
    trials = 300
    for repetitions in (3, 6):
        wrong = np.zeros(pool.shape[1])
        for _ in range(trials):
            chosen = pool[random.choice(len(pool), 2 * repetitions, replace=False)]
            for place, values in enumerate(chosen.T):
                a, b = values[:repetitions].tolist(), values[repetitions:].tolist()
                low, high = of_repetitions(a, b).difference(0.95)
                wrong[place] += not low <= 0 <= high
        assert all(likely(int(count), trials) for count in wrong), (repetitions, wrong / trials)


def test_repetitions_that_take_one_of_two_values_seldom_seem_different() -> None:
    """A boot that is either good or bad: by chance all of A are good and all of B bad."""
    random = np.random.default_rng(2)
    for repetitions in (3, 4, 5, 6):
        wrong = 0
        for _ in range(2000):
            sides = random.integers(0, 2, (2, repetitions)) * 10_000 + random.normal(
                0, 10, (2, repetitions)
            )
            low, high = of_repetitions(*sides.tolist()).difference(0.95)
            wrong += not low <= 0 <= high
        assert wrong / 2000 <= 0.055, repetitions
    assert of_repetitions([1, 2], [3, 4]).difference(0.95) is None
    assert of_pairs([1, 2, 3, 4, 5], [2, 3, 4, 5, 7]).difference(0.95) is None


def repeated(random: np.random.Generator, factor: float = 1, duration_s: int = 60) -> list:
    return [
        run_of(f"idle-r{i + 1}/cpu0", independent(random, duration_s * KHZ) * factor)
        for i in range(6)
    ]


def test_six_repetitions_of_a_minute_find_a_tenth_more_p99() -> None:
    random = np.random.default_rng(6)
    trials, found = 6, 0
    for _ in range(trials):
        [pair] = compare(repeated(random), repeated(random, 1.1)).pairs
        effect = pair.statistics["p99"]
        assert effect.basis == "repetitions"
        found += effect.low > 0
        assert effect.ratio_low < 1.1 < effect.ratio_high
    assert found == trials  # at a true share of 90 % that were 53 % of all seeds


def test_the_spread_between_runs_counts_not_that_within() -> None:
    """Boots that differ by far more than a run tells: the longest run cannot know."""
    random = np.random.default_rng(7)

    def boots(n: int) -> list:
        return [
            run_of(f"idle-r{i + 1}", independent(random, 5 * KHZ) + int(random.normal(0, 2000)))
            for i in range(n)
        ]

    wrong = sum(different(compare(boots(4), boots(4)))["median"] is True for _ in range(25))
    assert likely(wrong, 25)
    single = [run_of("idle", independent(random, 60 * KHZ) + shift) for shift in (0, 2000)]
    comparison = compare([single[0]], [single[1]])
    assert comparison.pairs[0].statistics["median"].basis == "one run of each side"
    assert any("not what differs between runs or boots" in n for n in comparison.pairs[0].notes)


# --- many statements


def test_a_gate_over_many_sets_is_not_violated_by_chance() -> None:
    """40 CPUs without any difference: at 95 % each, some interval excludes zero nearly always."""
    random = np.random.default_rng(12)
    sides = [
        [
            run_of(f"idle-r{i + 1}/cpu{cpu}", independent(random, 500))
            for cpu in range(40)
            for i in range(6)
        ]
        for _ in range(2)
    ]
    comparison = compare(*sides)
    apart = [pair for pair in comparison.pairs if different_mean(pair)]
    assert apart
    gate = judge(comparison, "mean significantly > +0ns or mean significantly < -0ns")
    assert gate.violated is False
    assert gate.statements == 40
    assert gate.confidence == pytest.approx(1 - 0.05 / 40)
    assert gate.to_json()["statements"] == 40


def different_mean(pair) -> bool:
    effect = pair.statistics["mean"]
    return not effect.low <= 0 <= effect.high


def test_too_few_repetitions_for_many_statements_are_told() -> None:
    """Three repetitions tell at 95 %; that 40 statements hold together takes more."""
    random = np.random.default_rng(12)

    def sets(shift: int) -> list:
        return [
            run_of(f"idle-r{i + 1}/cpu{cpu}", independent(random, 300) + shift)
            for cpu in range(40)
            for i in range(3)
        ]

    comparison = compare(sets(0), sets(20_000))
    assert all(pair.statistics["mean"].low > 0 for pair in comparison.pairs)
    gate = judge(comparison, "mean significantly > +10%")
    assert gate.exit_code == 3
    assert "6 repetitions" in gate.reasons[0]


def test_a_correlated_series_has_the_width_that_theory_tells() -> None:
    """Of an autoregressive series the error of the mean is known."""
    random = np.random.default_rng(5)
    memory_s, seconds = 0.02, 120
    process = autoregressive(memory_s, scale=0.01)
    a, b = (run_of("x", process(random, seconds * KHZ)) for _ in range(2))
    [pair] = compare([a], [b], Settings(confidence=0.95)).pairs
    effect = pair.statistics["mean"]
    error = 150 * np.sqrt(2 * memory_s / seconds) * np.sqrt(2)
    assert 0.4 < (effect.high - effect.low) / (2 * 2.36 * error) < 2
