"""Skipped activations, against a model that runs each activation by itself."""

from hypothesis import given
from hypothesis import strategies as st
from made_sets import metadata, played

from latenz.model import Deadline, Reported, SampleSet
from latenz.statistics import summarize

PERIOD = 1000


def judged(sample_set: SampleSet, limit_ns: int):
    twice = [Deadline(name=name, limit_ns=limit_ns) for name in ("d", "the same again")]
    return summarize(sample_set, twice).deadlines[0]


WAKE_UPS = st.lists(st.integers(0, 7 * PERIOD), min_size=1, max_size=50)


@given(WAKE_UPS, st.integers(1, 8 * PERIOD))
def test_each_skipped_activation_counts_by_how_long_it_waited(wake_ups, limit_ns) -> None:
    latencies, missed, every = played(wake_ups, PERIOD)
    sample_set = SampleSet.from_columns(
        metadata(period_ns=PERIOD), latency_ns=latencies, missed=missed
    )
    verdict = judged(sample_set, limit_ns)
    assert verdict.trials == len(every)
    assert verdict.exceeding == sum(latency > limit_ns for latency in every)
    assert verdict.undecided == 0


@given(WAKE_UPS, st.integers(1, 8 * PERIOD), st.sampled_from([1, 16, 300]))
def test_cells_bound_them_from_both_sides(wake_ups, limit_ns, width) -> None:
    latencies, missed, every = played(wake_ups, PERIOD)
    cells = sorted({latency // width * width for latency in latencies})
    sample_set = SampleSet.from_columns(
        metadata(
            period_ns=PERIOD,
            missed_periods=sum(missed),
            reported=Reported(max_ns=max(latencies)),
        ),
        latency_ns=cells,
        width_ns=[width] * len(cells),
        count=[sum(latency // width * width == cell for latency in latencies) for cell in cells],
    )
    verdict = judged(sample_set, limit_ns)
    exceeding = sum(latency > limit_ns for latency in every)
    assert verdict.trials == len(every)
    if width == 1:
        assert (verdict.exceeding, verdict.undecided) == (exceeding, 0)
    assert verdict.exceeding <= max(exceeding, 1)
    assert verdict.exceeding + verdict.undecided >= exceeding


def test_a_mere_count_decides_only_where_no_latency_was_over_the_limit() -> None:
    def printed(max_ns: int):
        reported = Reported(n=10_000, max_ns=max_ns)
        return judged(SampleSet.from_columns(metadata(missed_periods=7, reported=reported)), PERIOD)

    kept = printed(PERIOD)
    assert (kept.undecided, kept.exceeding, kept.trials) == (0, 0, 10_007)
    late = printed(PERIOD + 1)
    assert (late.exceeding, late.undecided) == (1, 10_006)


def test_half_a_second_at_a_millisecond_is_five_hundred_deadlines() -> None:
    latencies = [10_000] * 1000 + [500_000_000] + [10_000] * 1000
    missed = [0] * 1000 + [500] + [0] * 1000
    sample_set = SampleSet.from_columns(
        metadata(period_ns=1_000_000), latency_ns=latencies, missed=missed
    )
    summary = summarize(sample_set, [Deadline(name="GOOSE", limit_ns=3_000_000)])
    assert summary.missed_periods == 500
    assert summary.deadlines[0].exceeding == 497  # the late one, and 496 that waited over 3 ms


def test_skipped_ones_that_no_lateness_explains_decide_nothing() -> None:
    half = SampleSet.from_columns(
        metadata(period_ns=PERIOD), latency_ns=[9] * 5000, missed=[1] * 5000
    )
    verdict = judged(half, 500)
    assert (verdict.verdict, verdict.exceeding) == ("not shown", 0)
    assert (verdict.undecided, verdict.trials) == (5000, 10_000)
