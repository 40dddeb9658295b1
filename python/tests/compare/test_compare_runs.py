"""Comparing sample sets of every form, and what must not be claimed of them."""

import numpy as np
import pytest
from autocorrelated import latencies, sample_set
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from latenz import published
from latenz.compare import Settings, compare, judge
from latenz.compare.matching import match
from latenz.compare.series import block_maxima, digest
from latenz.compare.superiority import probability_later
from latenz.durations import format_duration
from latenz.errors import BadInput
from latenz.model import Deadline, Metadata, SampleSet, TimeBase
from latenz.statistics import summarize

BEFORE = latencies(1, 6000, 0.6)
AFTER = latencies(2, 6000, 0.6, scale=5500)


def pair_of(a: SampleSet, b: SampleSet, **settings):
    [pair] = compare([a], [b], Settings(**settings)).pairs
    return pair


def histogram(name: str, **known) -> SampleSet:
    metadata = Metadata(name=name, time_base=TimeBase.SILICON, **known)
    return SampleSet.from_columns(
        metadata, latency_ns=[1000, 2000, 3000], width_ns=[1000] * 3, count=[5, 3, 2]
    )


# --- effects


def test_differences_are_those_of_the_summaries() -> None:
    a, b = sample_set("a", BEFORE), sample_set("b", AFTER)
    pair = pair_of(a, b)
    first, second = summarize(a), summarize(b)
    assert pair.statistics["mean"].difference == second.mean_ns - first.mean_ns
    assert pair.statistics["max"].ratio == second.max_ns / first.max_ns
    quantile = pair.statistics["p99"]
    assert (quantile.a, quantile.b) == (first.quantiles_ns["0.99"], second.quantiles_ns["0.99"])
    assert quantile.low < quantile.difference < quantile.high
    assert quantile.ratio_low < quantile.ratio < quantile.ratio_high
    assert pair.statistics["median"].low > 0, "scaled by 1.1: it must show"
    assert not pair.identical


def test_the_largest_latency_has_no_interval_but_block_maxima_have() -> None:
    pair = pair_of(sample_set("a", BEFORE), sample_set("b", AFTER))
    assert pair.statistics["max"].low is None
    assert pair.statistics["max"].why_no_interval
    assert pair.statistics["max"].needed is None
    typical, maxima = pair.statistics["block_max"], pair.block_maxima
    assert typical.low is not None
    cut = BEFORE[: maxima.n_a * maxima.activations].reshape(maxima.n_a, -1).max(axis=1)
    assert typical.a == np.median(cut)
    gate = judge(
        compare([sample_set("a", BEFORE)], [sample_set("b", AFTER)]), "max significantly > -99%"
    )
    assert (
        f"interval {format_duration(typical.low)}" in "".join(gate.reasons) or not typical.low > 0
    )


def test_block_maxima_show_a_difference_of_late_latencies_only() -> None:
    random = np.random.default_rng(8)
    quiet, late = latencies(5, 20_000, 0.5), latencies(6, 20_000, 0.5)
    late[random.integers(0, 20_000, 220)] += 50_000
    pair = pair_of(sample_set("a", quiet), sample_set("b", late))
    assert pair.block_maxima.p_value < 1e-3
    assert pair.statistics["block_max"].low > 10_000
    assert abs(pair.statistics["median"].difference) < 200


def test_quantiles_that_rest_on_few_blocks_have_no_interval() -> None:
    pair = pair_of(sample_set("a", BEFORE), sample_set("b", AFTER))
    assert pair.statistics["p99.99"].difference is None  # of 6000 none is expected beyond it
    rare = pair.statistics["p99.9"]
    assert rare.difference is not None
    assert rare.low is None
    assert "fewer than 10 independent" in rare.why_no_interval


def test_short_series_get_no_interval_at_all() -> None:
    pair = pair_of(sample_set("a", BEFORE[:9]), sample_set("b", AFTER[:9]))
    assert all(effect.low is None for effect in pair.statistics.values())
    assert pair.superiority.low is None
    one = pair_of(sample_set("a", [5]), sample_set("b", [7]))
    assert one.statistics["mean"].difference == 2
    assert one.statistics["stdev"].difference is None


def test_nothing_is_drawn_at_random() -> None:
    a, b = sample_set("a", BEFORE), sample_set("b", AFTER)
    first, other = (pair_of(a, b, seed=seed).to_json() for seed in (4, 5))
    assert first == other


def test_a_higher_confidence_gives_wider_intervals() -> None:
    a, b = sample_set("a", BEFORE), sample_set("b", AFTER)
    narrow, wide = (pair_of(a, b, confidence=level).statistics["p90"] for level in (0.8, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def _long(values: list[int]) -> list[int]:
    """Long enough for intervals, with as many equal values as there can be."""
    return values * (200 // len(values))


@settings(max_examples=40, deadline=None)
@example([-(2**63)] * 200, [2**63 - 1] * 200)
@given(
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=60).map(_long),
    st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=60).map(_long)
    | st.lists(st.integers(0, 9), min_size=1, max_size=5),
)
def test_any_values_give_ordered_intervals(a: list[int], b: list[int]) -> None:
    pair = pair_of(sample_set("a", a), sample_set("b", b))
    for effect in pair.statistics.values():
        assert effect.low is None or effect.low <= effect.high
    assert 0 <= pair.superiority.probability <= 1


# --- superiority


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=30),
    st.lists(st.integers(0, 9), min_size=1, max_size=30),
)
def test_probability_of_superiority_counts_all_pairs(a: list[int], b: list[int]) -> None:
    wins = sum((y > x) + (y == x) / 2 for x in a for y in b) / (len(a) * len(b))
    first, second = np.sort(a), np.sort(b)
    ones = np.ones_like(first), np.ones_like(second)
    sides = zip((first, second), ones, strict=True)
    assert probability_later(*sides) == pytest.approx(wins, rel=1e-12)


def test_superiority_is_that_of_mann_and_whitney() -> None:
    pair = pair_of(sample_set("a", BEFORE), sample_set("b", AFTER))
    statistic = stats.mannwhitneyu(AFTER, BEFORE).statistic
    found = pair.superiority
    assert found.probability == pytest.approx(statistic / 6000**2, rel=1e-12)
    assert found.low < found.probability < found.high
    assert found.low > 0.5
    assert found.to_json()["cliffs_delta"] == pytest.approx(2 * found.probability - 1)


# --- what is certain, and what is not known


@pytest.mark.parametrize("time_base", ["silicon", "virtual"])
def test_equal_sets_are_identical_and_differ_by_exactly_nothing(time_base: str) -> None:
    pair = pair_of(sample_set("a", BEFORE, time_base), sample_set("b", BEFORE, time_base))
    assert pair.identical
    for name, effect in pair.statistics.items():
        if effect.difference is not None:
            assert (effect.difference, effect.low, effect.high) == (0, 0, 0), name
    assert pair.superiority.probability == 0.5


def test_the_same_values_in_another_order_are_not_identical() -> None:
    pair = pair_of(sample_set("a", [1, 2, 3]), sample_set("b", [3, 2, 1]))
    assert not pair.identical
    assert digest(sample_set("a", [1, 2])) != digest(sample_set("a", [2, 1]))


def test_emulated_differences_are_exact() -> None:
    changed = BEFORE.copy()
    changed[17] += 1
    comparison = compare(
        [sample_set("a", BEFORE, "virtual")], [sample_set("b", changed, "virtual")]
    )
    [pair] = comparison.pairs
    mean = pair.statistics["mean"]
    assert not pair.identical
    assert mean.low == mean.high == mean.difference == pytest.approx(1 / 6000)
    assert judge(comparison, "mean significantly > +0ns").violated is True


def test_histograms_and_printed_figures_have_no_intervals() -> None:
    pair = pair_of(histogram("a"), sample_set("b", AFTER))
    assert pair.statistics["p90"].difference is not None
    assert all(effect.low is None for effect in pair.statistics.values())
    assert "no intervals" in pair.notes[0]
    assert pair.superiority.probability == pytest.approx(
        probability_later(
            (np.array([1000, 2000, 3000]), np.array([5, 3, 2])), (np.sort(AFTER), np.ones(6000))
        )
    )


def test_equal_histograms_may_still_be_two_runs() -> None:
    pair = pair_of(histogram("a"), histogram("b"))
    assert pair.identical
    assert pair.statistics["mean"].difference == 0
    assert pair.statistics["mean"].low is None


def test_published_tables_compare_without_intervals() -> None:
    sets = {each.metadata.condition: each for each in published.load("alonso2024.table4")}
    pair = pair_of(sets["xen"], sets["xen-stress"])
    assert pair.statistics["max"].difference == 570
    assert pair.statistics["mean"].difference == pytest.approx(-2.29)
    assert pair.statistics["p99"].difference is None
    assert pair.superiority is None
    assert "printed" in pair.notes[0]
    comparison = compare([sets["xen"]], [sets["xen-stress"]])
    assert judge(comparison, "max > +10%").violated is True
    assert judge(comparison, "max significantly > +10%").violated is None
    assert judge(comparison, "p99 > +10%").violated is None


def test_values_beyond_a_histogram_leave_quantiles_unknown() -> None:
    short = histogram("a", beyond_range=1, beyond_range_from_ns=4000)
    pair = pair_of(short, histogram("b"))
    assert pair.statistics["p99"].a is None
    assert pair.statistics["p99"].difference is None
    assert pair.superiority is None


def test_mixed_time_bases_are_refused() -> None:
    with pytest.raises(BadInput, match="virtual time and B is silicon time"):
        compare([sample_set("a", BEFORE, "virtual")], [sample_set("b", BEFORE)])


def test_empty_sets_are_refused() -> None:
    with pytest.raises(BadInput, match="no samples"):
        compare([sample_set("a", [])], [sample_set("b", BEFORE)])


# --- misses


def test_miss_rate_counts_late_and_skipped_activations() -> None:
    late = BEFORE.copy()
    places = np.random.default_rng(3).permutation(6000)[:60]
    late[places] = 10**8
    missed = np.zeros(6000, np.int64)
    missed[places] = 3
    deadline = (Deadline(name="d", limit_ns=50_000_000), Deadline(name="e", limit_ns=10**11))
    known = {"deadlines": deadline, "period_ns": 20_000_000}
    a = sample_set("a", late, missed=np.zeros(6000, np.int64), **known)
    b = sample_set("b", late, missed=missed, **known)
    pair = pair_of(a, b)
    effect = pair.statistics["miss_rate"]
    assert pair.miss_limit_ns == 50_000_000
    assert effect.a == 60 / 6000
    assert effect.b == (60 + 120) / (6000 + 180)  # they waited for 80, 60 and 40 ms
    assert 0 < effect.low < effect.difference < effect.high
    assert pair_of(a, b, deadline_ns=10**11).statistics["miss_rate"].a == 0


def test_no_misses_are_no_proof() -> None:
    skipped = np.zeros(6000, np.int64)
    pair = pair_of(sample_set("a", BEFORE, missed=skipped), sample_set("b", AFTER, missed=skipped))
    assert pair.statistics["miss_rate"].difference == 0
    assert pair.statistics["miss_rate"].low is None


# --- repetitions


def repeated(offset: int, n: int) -> list[SampleSet]:
    """Repetitions that differ more from each other than values within one do."""
    drift = np.random.default_rng(9).integers(0, 800, n)
    return [
        sample_set(f"idle-r{i + 1}/cpu0", latencies(offset + i, 1500, 0.5) + drift[i])
        for i in range(n)
    ]


@pytest.mark.parametrize("paired", [False, True])
def test_repetitions_have_the_interval_of_scipy(paired: bool) -> None:
    a, b = repeated(100, 8), repeated(200, 8)
    pair = compare(a, b, Settings(paired=paired)).pairs[0]
    assert pair.name == "idle/cpu0"
    assert pair.repetitions == (8, 8)
    assert pair.n_a == 12_000
    means = [[summarize(each).mean_ns for each in side] for side in (a, b)]
    effect = pair.statistics["mean"]
    assert effect.difference == pytest.approx(np.mean(means[1]) - np.mean(means[0]))
    if paired:
        peer = stats.ttest_rel(means[1], means[0]).confidence_interval(0.95)
        low, high = peer.low, peer.high
    else:
        reach = stats.t.ppf(0.975, 7) * np.hypot(*(stats.sem(side) for side in means))
        low, high = effect.difference - reach, effect.difference + reach
    assert (effect.low, effect.high) == (pytest.approx(low), pytest.approx(high))
    assert effect.basis == ("paired repetitions" if paired else "repetitions")
    largest = [max(summarize(each).max_ns for each in side) for side in (a, b)]
    assert (pair.statistics["max"].a, pair.statistics["max"].b) == tuple(largest)
    assert pair.statistics["block_max"].low is not None
    assert pair.superiority.low < pair.superiority.probability < pair.superiority.high


def test_sides_may_have_different_numbers_of_repetitions() -> None:
    a, b = repeated(100, 7), repeated(200, 4)
    comparison = compare(a, b)
    [pair] = comparison.pairs
    assert pair.repetitions == (7, 4)
    assert pair.statistics["p90"].low is not None
    assert comparison.unmatched_a == ()
    together = compare(repeated(100, 7), repeated(200, 6), Settings(paired=True))
    assert together.pairs[0].repetitions == (6, 6)
    assert together.unmatched_a == ("idle-r7/cpu0",)


def test_repetitions_of_histograms_have_intervals_too() -> None:
    def sets(shift: int) -> list[SampleSet]:
        metadata = [Metadata(name=f"idle-r{i}", time_base=TimeBase.SILICON) for i in range(4)]
        return [
            SampleSet.from_columns(
                each, latency_ns=[1000 + shift + i, 2000 + i], width_ns=[1, 1], count=[9, 1]
            )
            for i, each in enumerate(metadata, 1)
        ]

    [pair] = compare(sets(0), sets(50)).pairs
    assert pair.statistics["median"].low > 0
    assert pair.statistics["median"].basis == "repetitions"


def test_what_never_varies_is_no_proof() -> None:
    def sets(values: list[int]) -> list[SampleSet]:
        known = {"missed": np.zeros(300, np.int64), "period_ns": 10**6}
        return [
            sample_set(f"idle-r{i}", np.full(300, value), **known)
            for i, value in enumerate(values, 1)
        ]

    [pair] = compare(sets([5, 6, 7]), sets([6, 7, 8]), Settings(deadline_ns=100)).pairs
    effect = pair.statistics["miss_rate"]
    assert (effect.a, effect.b, effect.low) == (0, 0, None)
    assert "the same in all repetitions" in effect.why_no_interval


def test_too_few_repetitions_tell_how_many_it_takes() -> None:
    comparison = compare(repeated(100, 2), repeated(200, 2))
    [pair] = comparison.pairs
    assert pair.repetitions == (2, 2)
    mean = pair.statistics["mean"]
    assert mean.difference is not None
    assert mean.low is None
    assert mean.needed.repetitions == 3
    assert "cannot tell what varies between them" in mean.why_no_interval
    assert judge(comparison, "mean significantly > +1%").exit_code == 3
    assert Settings(confidence=0.999).fewest_repetitions == 6
    assert Settings(paired=True).fewest_repetitions == 6
    [one] = compare(repeated(100, 1), repeated(200, 3)).pairs
    assert one.repetitions == (1, 3)
    assert one.statistics["mean"].needed.repetitions == 3


def test_pairs_need_repetitions() -> None:
    with pytest.raises(BadInput, match="no repetitions to pair"):
        compare([sample_set("a", BEFORE)], [sample_set("b", AFTER)], Settings(paired=True))


def test_identical_repetitions_are_identical() -> None:
    pair = compare(repeated(100, 6), repeated(100, 6)).pairs[0]
    assert pair.identical
    assert pair.statistics["mean"].low == pair.statistics["mean"].high == 0


# --- matching


def test_sets_match_by_name_then_by_condition_and_cpu() -> None:
    a = [
        sample_set("idle/cpu0", [1]),
        sample_set("old name", [1], condition="stress", cpu=0),
        sample_set("only here", [1]),
    ]
    b = [
        sample_set("new name", [1], condition="stress", cpu=0),
        sample_set("idle/cpu0", [1]),
        sample_set("only there", [1], condition="stress", cpu=1),
    ]
    found = match(a, b)
    assert [pair.name for pair in found.matches] == ["idle/cpu0", "new name"]
    assert found.unmatched_a == ("only here",)
    assert found.unmatched_b == ("only there",)


def test_ambiguous_conditions_do_not_match() -> None:
    a = [sample_set(name, [1], condition="idle") for name in ("x", "y")]
    b = [sample_set(name, [1], condition="idle") for name in ("u", "v")]
    assert match(a, b).matches == ()
    assert judge(compare(a, b), "max > 1s").violated is None


def test_files_of_one_tool_match_in_order_where_no_name_does() -> None:
    def sets(names: list[str], **known: object) -> list[SampleSet]:
        return [sample_set(name, [1, 2], **{"tool": "cyclictest", **known}) for name in names]

    text, other = sets(["thread0", "thread1"]), sets(["cpu0", "cpu1"])
    assert [(pair.a[0].metadata.name, pair.name) for pair in match(text, other).matches] == [
        ("thread0", "cpu0"),
        ("thread1", "cpu1"),
    ]
    assert {pair.matched_by for pair in compare(text, other).pairs} == {"order"}
    assert match(text, sets(["cpu0"])).matches == ()
    assert match(text, sets(["cpu0", "cpu1"], tool="oslat")).matches == ()
    assert match(text, sets(["a", "b"], condition="idle")).matches == ()
    assert not compare(text, sets(["cpu0"])).told


def test_a_repeated_name_is_refused() -> None:
    with pytest.raises(BadInput, match="several sample sets"):
        match([sample_set("x", [1])] * 2, [sample_set("x", [1])])


def test_names_that_only_look_like_repetitions_stay_alone() -> None:
    names = ["standalone-r5", "standalone-r52", "amp-r5/cpu0", "idle"]
    sets = [sample_set(name, [1]) for name in names]
    assert [found.name for found in match(sets, sets).matches] == names


# --- long sets


def test_figures_do_not_depend_on_how_a_set_is_read() -> None:
    import pyarrow as pa

    parts = np.split(BEFORE, [1, 700, 701, 5000])
    metadata = Metadata(name="a", time_base=TimeBase.SILICON)
    pieces = [pa.RecordBatch.from_pydict({"latency_ns": part}) for part in parts]
    cut = SampleSet(metadata, "samples", lambda _wanted: iter(pieces), ("latency_ns",))
    assert (block_maxima(parts, 130) == block_maxima([BEFORE], 130)).all()
    assert digest(cut) == digest(sample_set("a", BEFORE))
    other = sample_set("b", AFTER)
    whole, apart = (
        pair_of(each, other).to_json()["statistics"] for each in (sample_set("a", BEFORE), cut)
    )
    for name, effect in whole.items():
        for key, value in effect.items():
            assert apart[name][key] == (
                pytest.approx(value, rel=1e-9) if isinstance(value, float) else value
            ), (name, key)


def test_superiority_of_long_series_is_within_a_class_of_the_exact_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    a, b = sample_set("a", BEFORE), sample_set("b", AFTER)
    exact = pair_of(a, b).superiority
    for module in ("blocks", "superiority"):
        monkeypatch.setattr(f"latenz.compare.{module}.MOST_SORTED", 100)
    rough = pair_of(a, b).superiority
    assert rough.probability == pytest.approx(exact.probability, abs=1e-3)
    assert rough.low == pytest.approx(exact.low, abs=1e-3)


# --- gates


def test_one_violating_pair_violates_and_a_missing_set_cannot_pass() -> None:
    a = [sample_set("x", BEFORE), sample_set("y", BEFORE), sample_set("gone", BEFORE)]
    b = [sample_set("x", BEFORE), sample_set("y", AFTER), sample_set("new", AFTER)]
    comparison = compare(a, b)
    gate = judge(comparison, "median significantly > +5%")
    assert gate.violated is True
    assert gate.exit_code == 1
    assert any(reason.startswith("y: median significantly > +5%") for reason in gate.reasons)
    passed = judge(comparison, "median > +50%")
    assert passed.violated is None
    assert passed.exit_code == 3
    assert passed.reasons == ("gone: has no counterpart in B",)


@pytest.mark.parametrize("confidence", [0, 0.4, 1, 2, float("nan")])
def test_impossible_confidence_is_refused(confidence: float) -> None:
    with pytest.raises(BadInput, match="confidence"):
        Settings(confidence=confidence)
