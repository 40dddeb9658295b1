"""Summaries against Python's own statistics module and fractions, on plain and hostile data."""

import json
import math
import statistics
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_sets import histogram, metadata, samples

from latenz.errors import BadInput
from latenz.model import Deadline, Reported, SampleSet
from latenz.statistics import QUANTILES, summarize

INT64 = st.integers(-(2**63), 2**63 - 1)
LATENCIES = st.one_of(
    st.lists(st.integers(0, 10**7), min_size=1, max_size=300),
    st.lists(INT64, min_size=1, max_size=60),
    st.lists(st.sampled_from([-5, 2**62, 2**62 + 1]), min_size=1, max_size=60),
    st.lists(st.integers(2**63 - 4, 2**63 - 1), min_size=1, max_size=60),
    st.builds(lambda v, n: [v] * n, INT64, st.integers(1, 99)),
)


def close(found: float | None, exact: Fraction | float) -> bool:
    return found is not None and abs(Fraction(found) - Fraction(exact)) <= abs(
        Fraction(exact)
    ) * Fraction(1, 10**12)


def assert_exact(summary, values: list[int]) -> None:
    ordered = sorted(values)
    n = len(values)
    mean = Fraction(sum(values), n)
    assert summary.n == n
    assert (summary.min_ns, summary.max_ns) == (ordered[0], ordered[-1])
    assert close(summary.mean_ns, mean)
    assert close(summary.jitter_ns, max(ordered[-1] - mean, mean - ordered[0]))
    assert close(summary.median_ns, Fraction(statistics.median(map(Fraction, values))))
    if n == 1:
        assert summary.stdev_ns is None
    else:
        variance = sum((Fraction(v) - mean) ** 2 for v in values) / (n - 1)
        assert close(summary.stdev_ns**2, variance)
    for p in QUANTILES:
        rank = math.ceil(Fraction(p) * n)
        expected = ordered[rank - 1] if n * (1 - Fraction(p)) >= 1 else None
        assert summary.quantiles_ns[p] == expected
    assert summary.negative == sum(v < 0 for v in values)


@given(LATENCIES)
@settings(deadline=None)
def test_samples_equal_an_exact_computation(values: list[int]) -> None:
    assert_exact(summarize(samples(values)), values)


@given(LATENCIES)
@settings(deadline=None)
def test_a_complete_histogram_equals_its_samples(values: list[int]) -> None:
    cells = {value: values.count(value) for value in values}
    assert_exact(summarize(histogram(cells)), values)


def test_quantile_ranks_are_computed_on_exact_decimals() -> None:
    values = list(range(1, 100_001))
    quantiles = summarize(samples(values)).quantiles_ns
    assert quantiles == {
        "0.5": 50_000,
        "0.9": 90_000,  # as floats 0.9 * 100000 is exact, but 0.999 * 1000 is 999.0000000000001
        "0.99": 99_000,
        "0.999": 99_900,
        "0.9999": 99_990,
        "0.99999": 99_999,
    }


def test_an_empty_set_is_refused_in_every_form() -> None:
    for empty in (
        samples([]),
        histogram({}),
        histogram({5: 0}),
        SampleSet.from_columns(metadata()),
        SampleSet.from_columns(metadata(reported=Reported(n=0))),
    ):
        with pytest.raises(BadInput, match="holds no samples"):
            summarize(empty)


def test_negative_latencies_are_counted_and_said() -> None:
    summary = summarize(samples([-3, -2, 5]))
    assert summary.negative == 2
    assert any("negative" in note for note in summary.notes)


def test_beyond_range_leaves_unknown_what_is_unknown() -> None:
    # the cyclictest stall: 1975 of 2000 cycles in range, the maximum printed beside
    cells = {1000 * v: 79 for v in range(25)}
    known = summarize(
        histogram(
            cells,
            1000,
            resolution_ns=1000,
            beyond_range=25,
            beyond_range_from_ns=25_000,
            reported=Reported(mean_ns=50_000.0, max_ns=5_512_000, min_ns=0),
        )
    )
    assert known.n == 2000
    assert known.max_ns == 5_512_000
    assert known.mean_ns == 50_000.0
    assert known.stdev_ns is None
    assert known.jitter_ns == 5_462_000.0
    assert known.quantiles_ns["0.9"] == 22_000
    assert known.quantiles_ns["0.99"] is None
    assert known.quantiles_ns["0.99999"] is None  # of 2000 none is expected beyond it
    unknown = summarize(histogram(cells, 1000, resolution_ns=1000, beyond_range=25))
    assert (unknown.max_ns, unknown.mean_ns, unknown.jitter_ns) == (None, None, None)
    assert unknown.min_ns == 0


def test_wide_cells_take_mean_and_extremes_from_the_source() -> None:
    reported = Reported(n=3, mean_ns=1050.0, min_ns=1003, max_ns=1098)
    summary = summarize(histogram({1000: 3}, 100, reported=reported))
    assert (summary.min_ns, summary.max_ns, summary.mean_ns) == (1003, 1098, 1050.0)
    assert summary.jitter_ns == 48.0
    assert summary.median_ns == 1003  # never below the known minimum
    assert any("100 ns wide" in note for note in summary.notes)


def test_a_summary_only_set_tells_what_was_printed() -> None:
    reported = Reported(n=400, mean_ns=10.5, min_ns=8, max_ns=20)
    summary = summarize(SampleSet.from_columns(metadata(reported=reported)))
    assert (summary.n, summary.median_ns, summary.stdev_ns) == (400, None, None)
    assert summary.jitter_ns == 9.5
    assert set(summary.quantiles_ns.values()) == {None}


def test_missed_periods_come_from_the_column_when_the_source_did_not_count() -> None:
    columns = {"latency_ns": [5, 6], "missed": [0, 503]}
    assert summarize(SampleSet.from_columns(metadata(), **columns)).missed_periods == 503
    assert summarize(samples([5, 6])).missed_periods is None


LIMIT = Deadline(name="d", limit_ns=1000, allowed="0.1%")
HARD = Deadline(name="d", limit_ns=1000, allowed="0")
SLOW = {"period_ns": 10**9}  # an activation a second: each is a block by itself


def verdict(sample_set: SampleSet, deadline: Deadline = LIMIT):
    return summarize(sample_set, [deadline]).deadlines[0]


def test_verdicts_on_samples() -> None:
    assert verdict(samples([1] * 2995, **SLOW)).verdict == "meets"
    assert verdict(samples([1] * 2994, **SLOW)).verdict == "not shown"  # one too few at 95 %
    late = verdict(samples([1] * 5000 + [1001], **SLOW), HARD)
    assert (late.verdict, late.exceeding, late.trials) == ("violates", 1, 5001)


def test_a_value_that_straddles_the_limit_decides_nothing() -> None:
    # 1 us resolution: a printed 1000 ns stands for 1000 to 1999 ns
    straddling = verdict(samples([0] * 2999 + [1000], resolution_ns=1000, **SLOW))
    assert (straddling.verdict, straddling.exceeding, straddling.undecided) == ("not shown", 0, 1)
    many = verdict(samples([0] * 9000 + [1000] * 1000, resolution_ns=1000, **SLOW))
    assert (many.verdict, many.exceeding, many.undecided) == ("not shown", 0, 1000)


def test_verdicts_on_values_beyond_the_range() -> None:
    cells = {0: 3_000}

    def judged(deadline: Deadline, **changes: object):
        return verdict(histogram(cells, beyond_range=3, **SLOW, **changes), deadline)

    assert judged(LIMIT, reported=Reported(max_ns=900)).verdict == "meets"
    after = judged(HARD, beyond_range_from_ns=1001)
    assert (after.verdict, after.exceeding) == ("violates", 3)
    within = judged(HARD, beyond_range_from_ns=500, reported=Reported(max_ns=1001))
    assert (within.verdict, within.exceeding, within.undecided) == ("violates", 1, 2)
    open_ended = judged(LIMIT, beyond_range_from_ns=500)
    assert (open_ended.exceeding, open_ended.undecided) == (0, 3)
    assert open_ended.verdict == "not shown"


def test_verdicts_on_printed_figures() -> None:
    def judged(deadline: Deadline = LIMIT, **figures: object):
        reported = Reported.model_validate(figures)
        return verdict(SampleSet.from_columns(metadata(reported=reported, **SLOW)), deadline)

    assert judged(n=10_000, max_ns=1000).verdict == "meets"
    assert judged(n=10, max_ns=1000).verdict == "not shown"
    assert judged(max_ns=1000).verdict == "not shown"  # how many there were is unknown
    assert judged(HARD, n=10_000, max_ns=1001).verdict == "violates"
    assert judged(HARD, max_ns=1001).verdict == "violates"
    assert judged(n=10_000, mean_ns=1.0).verdict == "not shown"
    assert judged(n=10_000, min_ns=1001, max_ns=2000).exceeding == 10_000


def test_json_has_the_documented_keys_and_plain_values() -> None:
    summary = summarize(samples([1, 2, 4]), [LIMIT])
    text = json.loads(json.dumps(summary.to_json()))
    assert list(text)[:10] == [
        "name",
        "time_base",
        "n",
        "mean_ns",
        "median_ns",
        "min_ns",
        "max_ns",
        "jitter_ns",
        "stdev_ns",
        "quantiles_ns",
    ]
    assert text["deadlines"][0]["limit_ns"] == 1000


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan])
def test_a_confidence_out_of_range_is_refused(confidence: float) -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        summarize(samples([1]), confidence=confidence)


def test_damaged_cells_are_refused() -> None:
    for cells, width in (({5: -1}, 1), ({5: 1}, 0), ({5: 2**62, 6: 2**62}, 1)):
        with pytest.raises(BadInput):
            summarize(histogram(cells, width))
