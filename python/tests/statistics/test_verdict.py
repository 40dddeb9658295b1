"""Verdicts are wrong as seldom as they say, whatever the lateness is like, and not in vain."""

import math

import numpy as np
import pytest

from latenz._core import LatenessScan
from latenz.allowance import parse_allowance
from latenz.deadlines import parse_deadline
from latenz.errors import BadInput
from latenz.model import Deadline, Metadata, SampleSet, TimeBase
from latenz.statistics import Evidence, duration_for_allowance, judge, summarize
from latenz.statistics.bounds import (
    episodes_error,
    episodes_lower,
    episodes_upper,
    share_error,
    share_lower,
    share_upper,
)
from latenz.statistics.evidence import observe
from latenz.statistics.joint import jointly, over_runs
from latenz.statistics.lateness import Lateness, pause_ns
from latenz.statistics.sentence import length

pytestmark = pytest.mark.proofs

PERIOD_NS = 1_000_000
SECOND = 1000  # activations
TRIALS = 300


def wrong_at_most(share=0.05, trials=TRIALS):
    """Say how many of the trials may be wrong: what is allowed, and chance's 3 sigma."""
    return trials * share + 3 * math.sqrt(trials * share * (1 - share))


def two_state(random, n, on, off, fixed):
    """Return first and last late activation of each burst, of a process seen from any moment."""
    count = int(3 * n / (on + off)) + 60
    bursts, pauses = (
        np.full(count, mean) if fixed else 1 + random.exponential(mean, count).astype(np.int64)
        for mean in (on, off)
    )
    begins_late = random.random() < on / (on + off)
    order = (bursts, pauses) if begins_late else (pauses, bursts)
    ends = np.cumsum(np.column_stack(order).ravel())
    if fixed:
        ends -= random.integers(ends[0])
    edges = np.concatenate(([0], ends))
    first, last = edges[not begins_late : -1 : 2], edges[1 + (not begins_late) :: 2]
    first, last = np.maximum(first, 0), np.minimum(last, n) - 1
    return first[last >= first], last[last >= first]


def periodic(random, n, on, period):
    first = np.arange(-period, n, period) + random.integers(period)
    first, last = np.maximum(first, 0), np.minimum(first + on, n) - 1
    return first[last >= first], last[last >= first]


def independent(random, n, late):
    at = np.unique(random.integers(0, n, random.binomial(n, late)))
    return at, at


def verdict(first, last, n, allowed, burst_ns=10**9):
    """Judge what a probe would have recorded; only late activations are handed in."""
    scan = LatenessScan(
        [(0, pause_ns(burst_ns, PERIOD_NS), burst_ns)], PERIOD_NS, PERIOD_NS, 1 << 16
    )
    count = last - first + 1
    scan.add(count * PERIOD_NS, count - 1, first * PERIOD_NS)
    late, finer, episodes, longest_ns = scan.found[0]
    assert late == count.sum()
    evidence = Evidence(
        late,
        0,
        n,
        n * PERIOD_NS,
        Lateness(min(episodes, late), min(finer, late), longest_ns, longest_ns),
    )
    return judge(Deadline(name="d", limit_ns=1, allowed=allowed, burst_ns=burst_ns), evidence, None)


PROCESSES = {
    "10 ms each second": (two_state, 10, 1000, False),
    "100 ms each 10 s": (two_state, 100, 10_000, False),
    "100 ms each minute, all alike": (two_state, 100, 60_000, True),
    "500 ms each 20 s": (two_state, 500, 20_000, False),
    "900 ms each 10 min, all alike": (two_state, 900, 600_000, True),
    "100 ms each 10 min": (two_state, 100, 600_000, False),
    "20 ms every 5 s exactly": (periodic, 20, 5_000),
    "500 ms every minute exactly": (periodic, 500, 60_000),
}
DURATIONS_S = (3, 30, 300, 3_000, 86_400)


@pytest.mark.parametrize("duration_s", DURATIONS_S)
@pytest.mark.parametrize("process", PROCESSES)
def test_verdicts_on_bursts_are_wrong_as_seldom_as_they_say(process, duration_s):
    make, on, *rest = PROCESSES[process]
    cycle = (on + rest[0] if make is two_state else rest[0]) / SECOND
    if duration_s / cycle > 5_000:
        duration_s = 5_000 * cycle
    random = np.random.default_rng(7)
    truths = {"share": on / SECOND / cycle, "rate": 1 / cycle}
    meets, violates = dict.fromkeys(truths, 0), dict.fromkeys(truths, 0)
    n = int(duration_s * SECOND)
    for _ in range(TRIALS):
        first, last = make(random, n, on, *rest)
        for kind, truth in truths.items():
            unit = "/s" if kind == "rate" else ""
            meets[kind] += verdict(first, last, n, f"{truth / 1.05:.8f}{unit}").verdict == "meets"
            violates[kind] += verdict(first, last, n, f"{truth:.8f}{unit}").verdict == "violates"
    assert max(meets.values()) <= wrong_at_most(), meets
    assert max(violates.values()) <= wrong_at_most(), violates


@pytest.mark.parametrize("allowed", ["1e-1", "1e-3", "1e-5", "1/s", "1/min", "1/h", "2/day"])
def test_three_times_the_shortest_duration_shows_a_tenth_of_what_is_allowed(allowed):
    allowance = parse_allowance(allowed)
    shortest_s = duration_for_allowance(allowance, 10**9)
    n = math.ceil(3 * shortest_s * SECOND)
    late = allowance.value / 10 / (SECOND if allowance.kind == "rate" else 1)
    random = np.random.default_rng(3)
    trials = 60
    meets = sum(
        verdict(*independent(random, n, late), n, allowed).verdict == "meets" for _ in range(trials)
    )
    assert meets >= 0.9 * trials


@pytest.mark.parametrize("allowed", ["1e-3", "0.1%", "1/min", "1/h", "30/day"])
def test_the_shortest_duration_is_what_show_needs(allowed):
    """`latenz sample-size` and `latenz show` say the same."""
    nothing = np.array([], np.int64)
    shortest_s = duration_for_allowance(parse_allowance(allowed), 10**9)
    short, enough = (int(shortest_s * part * SECOND) for part in (0.99, 1.01))
    before = verdict(nothing, nothing, short, allowed)
    assert before.verdict == "not shown"
    assert before.needed_s == pytest.approx(shortest_s)
    assert verdict(nothing, nothing, enough, allowed).verdict == "meets"
    for late in (1, 2, 7):
        needed_s = duration_for_allowance(parse_allowance(allowed), 10**9, late=late)
        burst = SECOND if "/" not in allowed else 1
        first = np.arange(late) * 20 * SECOND
        for part, wanted in ((0.99, "not shown"), (1.01, "meets")):
            n = int(needed_s * part * SECOND)
            assert verdict(first, first + burst - 1, n, allowed).verdict == wanted, (late, part)


def test_needed_is_where_the_verdict_comes_if_lateness_goes_on():
    first = np.arange(7) * 86 * SECOND
    found = verdict(first, first, 602 * SECOND, "1/min")
    assert found.verdict == "not shown"
    more = np.arange(int(found.needed_s * 1.02 / 86)) * 86 * SECOND
    assert verdict(more, more, int(found.needed_s * 1.02) * SECOND, "1/min").verdict == "meets"


def test_nothing_may_be_late_where_nothing_is_allowed_and_no_measurement_shows_it():
    nothing = np.array([], np.int64)
    found = verdict(nothing, nothing, 10**9, "0")
    assert (found.verdict, found.needed_s) == ("not shown", None)
    assert "analysis" in found.sentence
    found = verdict(np.array([5]), np.array([5]), 10**9, "0")
    assert found.verdict == "violates"
    assert found.sentence.endswith("none is allowed.")


def test_one_late_activation_in_a_million_does_not_violate_one_in_a_thousand():
    found = verdict(np.array([5]), np.array([5]), 10**8, "1e-3")
    assert found.verdict == "meets"
    assert found.exceeding == 1


def test_the_longer_one_measures_the_surer_the_verdict():
    """Lateness a hundred times rarer than allowed is `meets` for good."""
    random = np.random.default_rng(5)
    for duration_s in (9_000, 90_000, 900_000):
        n = duration_s * SECOND
        assert verdict(*independent(random, n, 1e-5), n, "1e-3").verdict == "meets"


def sample_set(late, **known):
    known = {"name": "x", "time_base": TimeBase.SILICON, "period_ns": PERIOD_NS, **known}
    latency = np.where(late, 1_000_000, 10_000)
    return SampleSet.from_columns(Metadata(**known), latency_ns=latency)


@pytest.mark.parametrize(("correlation", "late"), [(100, 0.01), (1000, 0.01), (1000, 0.05)])
def test_verdicts_on_autoregressive_lateness_are_wrong_as_seldom(correlation, late):
    """Every activation depends on those of a second before; the data tell how far."""
    from scipy.signal import lfilter
    from scipy.stats import norm

    random, trials, n = np.random.default_rng(2), 60, 200_000
    factor = math.exp(-1 / correlation)
    limit = norm.isf(late)
    wrong = 0
    for _ in range(trials):
        noise = random.normal(size=n) * math.sqrt(1 - factor**2)
        series, _ = lfilter([1], [1, -factor], noise, zi=[factor * random.normal()])
        deadline = Deadline(name="d", limit_ns=500_000, allowed=f"{late / 1.05:.6f}")
        [found] = summarize(sample_set(series > limit), [deadline]).deadlines
        wrong += found.verdict == "meets"
    assert wrong <= wrong_at_most(trials=trials)


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("late", "blocks"), [(0, 1), (0, 50), (0.3, 40), (1, 7), (4.2, 300)])
def test_bounds_and_errors_are_inverse_to_each_other(late, blocks, confidence):
    upper = share_upper(late, blocks, confidence)
    if upper < 1:
        assert share_error(late, blocks, upper) == pytest.approx(1 - confidence, rel=1e-6)
    assert share_lower(late, blocks, confidence) <= late / blocks <= upper
    mean = episodes_upper(late, confidence, 1.7)
    assert episodes_error(late, mean, 1.7) == pytest.approx(1 - confidence, rel=1e-9)
    assert episodes_lower(late, confidence, 1.7) <= late <= mean


def test_bounds_on_episodes_are_garwoods():
    """Two-sided 95 % limits as printed: Garwood, Biometrika 28 (1936), table 1."""
    for seen, lower, upper in (
        (0, 0, 3.69),
        (1, 0.0253, 5.57),
        (5, 1.62, 11.67),
        (10, 4.80, 18.39),
    ):
        assert episodes_lower(seen, 0.975) == pytest.approx(lower, abs=6e-3)
        assert episodes_upper(seen, 0.975) == pytest.approx(upper, abs=6e-3)


@pytest.mark.parametrize("mean", [0.001, 0.02, 0.2])
@pytest.mark.parametrize("shape", ["all or nothing", "even", "few"])
def test_bounds_on_shares_hold_for_any_distribution_of_blocks(mean, shape):
    random, trials = np.random.default_rng(4), 2000
    for blocks in (5, 40, 400):
        size = (trials, blocks)
        shares = {
            "all or nothing": lambda size: random.random(size) < mean,
            "even": lambda size: random.binomial(1000, mean, size) / 1000,
            "few": lambda size: (random.random(size) < 2 * mean) * random.random(size),
        }[shape](size)
        sums = np.round(shares.sum(axis=1), 6)
        values, counts = np.unique(sums, return_counts=True)
        above = sum(c for s, c in zip(values, counts, strict=True) if share_upper(s, blocks) < mean)
        below = sum(c for s, c in zip(values, counts, strict=True) if share_lower(s, blocks) > mean)
        assert above <= wrong_at_most(trials=trials)
        assert below <= wrong_at_most(trials=trials)


def test_all_verdicts_together():
    nothing = np.array([], np.int64)
    meets = verdict(nothing, nothing, 10_000 * SECOND, "1/h")
    just = verdict(nothing, nothing, 10_800 * SECOND, "1/h")
    open_ = verdict(nothing, nothing, SECOND, "1/h")
    late = verdict(np.array([5]), np.array([5]), SECOND, "0")
    assert meets.verdict == "not shown"
    assert jointly([]) is None
    assert jointly([just] * 8).sentence == (
        "Every deadline is met (8 verdicts), jointly at 95 % confidence."
    )
    some = jointly([just, just, open_])
    assert (some.verdict, some.meets, some.jointly) == ("not shown", 2, 0)
    surer = verdict(nothing, nothing, 40_000 * SECOND, "1/h")
    assert jointly([surer, just, open_]).jointly == 1
    assert jointly([surer, surer, open_, late]).verdict == "violates"


def test_verdicts_over_runs_claim_nothing_from_one():
    nothing = np.array([], np.int64)
    met, open_ = (verdict(nothing, nothing, s * SECOND, "1/h") for s in (20_000, 10))
    runs = [(f"idle-r{i}/cpu0", "idle", [met]) for i in range(1, 6)]
    [over] = over_runs(runs)
    assert (over.name, over.runs, over.meets) == ("idle/cpu0", 5, 5)
    assert over.share_lower == pytest.approx(0.05 ** (1 / 5))
    assert over.sentence.startswith("meets on 5 of 5 runs")
    assert over_runs([("idle-r1/cpu0", "idle", [met]), ("load/cpu0", "load", [met])]) == []
    [over] = over_runs([("idle-r1", "idle", [met]), ("idle-r2", "idle", [open_])])
    assert (over.meets, over.violates) == (1, 0)
    # a number in a condition's own name is not a run, and two deadlines are not two runs
    assert over_runs([("cortex-r5", "cortex-r5", [met]), ("cortex-r52", "cortex-r52", [met])]) == []
    other = verdict(nothing, nothing, 20_000 * SECOND, "2/h")
    assert over_runs([("idle-r1", "idle", [met, other])]) == []


@pytest.mark.parametrize(("period_s", "share"), [(2, 0.01), (10, 0.01), (60, 0.05)])
def test_slow_activations_are_no_more_blocks_than_there_are(period_s, share):
    """Independent lateness of activations that are further apart than a burst is long."""
    random, trials = np.random.default_rng(6), 200
    n = int(1.1 * 3 / share)
    wrong = 0
    for _ in range(trials):
        late = random.random(n) < 1.05 * share
        deadline = Deadline(name="d", limit_ns=500_000, allowed=f"{share}")
        slow = sample_set(late, period_ns=period_s * 10**9)
        wrong += summarize(slow, [deadline]).deadlines[0].verdict == "meets"
    assert wrong <= wrong_at_most(trials=trials)


def test_aperiodic_activations_are_weighed_by_where_they_are():
    """A thousand within 100 ms once a minute, late together or not at all."""
    random, trials, share = np.random.default_rng(6), 100, 0.05
    minute = np.arange(1000) * 100_000
    wrong = 0
    for _ in range(trials):
        groups = random.random(30) < 1.05 * share
        known = Metadata(name="x", time_base=TimeBase.SILICON)
        made = SampleSet.from_columns(
            known,
            latency_ns=np.where(np.repeat(groups, 1000), 1_000_000, 10_000),
            t_ns=np.concatenate([minute + i * 60 * 10**9 for i in range(30)]),
        )
        deadline = Deadline(name="d", limit_ns=500_000, allowed=f"{share}")
        wrong += summarize(made, [deadline]).deadlines[0].verdict == "meets"
    assert wrong <= wrong_at_most(trials=trials)


def test_spikes_of_one_event_are_one_episode():
    """Twenty spikes within a second, once a minute: as episodes that is one a minute."""
    random, trials, duration_s = np.random.default_rng(6), 100, 30
    wrong = 0
    for _ in range(trials):
        start = np.sort(random.uniform(0, duration_s, random.poisson(duration_s / 60)))
        first = np.unique((start[:, None] + np.arange(20) * 0.05).ravel() * SECOND).astype(np.int64)
        first = first[first < duration_s * SECOND]
        found = verdict(first, first, duration_s * SECOND, f"{1 / 60 / 1.05:.6f}/s")
        wrong += found.verdict == "meets"
    assert wrong <= wrong_at_most(trials=trials)


def test_needed_says_which_verdict_comes():
    first = np.arange(9) * 300 * SECOND
    found = verdict(first, first, 2700 * SECOND, "10/h")
    assert (found.verdict, found.needed_for) == ("not shown", "violates")
    assert "going on like this, more than that is shown after" in found.sentence
    found = verdict(first, first, 2700 * SECOND, "14/h")
    assert (found.verdict, found.needed_for) == ("not shown", "meets")
    assert found.sentence.endswith("to show if lateness goes on as it did.")


@pytest.mark.parametrize("text", ["1e-400", "1e-16", "99.9999999999999%", "1e-320/h", "1e-300"])
def test_allowances_that_nothing_can_show_are_refused(text):
    with pytest.raises(BadInput):
        parse_allowance(text)


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [("0", "hard", 0), ("0.0%", "hard", 0), (".1%", "share", 1e-3), ("1e+3/hour", "rate", 1 / 3.6)],
)
def test_allowances_as_people_write_them(text, kind, value):
    assert parse_allowance(text).kind == kind
    assert parse_allowance(text).value == pytest.approx(value)


def test_bounds_are_rounded_to_the_safe_side():
    assert (length(3599.9), length(3599.9, up=False)) == ("60 min", "59.9 min")
    assert (length(600), length(600, up=False)) == ("10 min", "10 min")
    nothing = np.array([], np.int64)
    found = verdict(nothing, nothing, 2989 * SECOND, "0.1%")
    assert "at most 0.101 % are late" in found.sentence


@pytest.mark.parametrize(
    ("text", "name", "limit_ns", "allowed"),
    [
        ("3ms", "3ms", 3_000_000, "1/h"),
        ("30us@1/h", "30us", 30_000, "1/h"),
        ("goose=3 ms@0", "goose", 3_000_000, "0"),
        ("a=b=1us@0.1%", "a=b", 1000, "0.1%"),
        ("20us@1e-3", "20us", 20_000, "1e-3"),
        ("128 instr @ 200 MHz", "128 instr @ 200 MHz", 640, "1/h"),
    ],
)
def test_deadlines_as_people_write_them(text, name, limit_ns, allowed):
    found = parse_deadline(text)
    assert (found.name, found.limit_ns, found.allowed) == (name, limit_ns, allowed)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "30000",
        "3ms@",
        "=3ms",
        "3ms@1/fortnight",
        "3ms@2",
        "3ms@-1",
        "3ms@0/h",
        "0ms",
        "@1/h",
    ],
)
def test_what_is_no_deadline_is_one_line(text):
    with pytest.raises(BadInput) as refusal:
        parse_deadline(text)
    assert "\n" not in str(refusal.value)
    assert "--deadline" in str(refusal.value)


def test_deadlines_of_older_runs_are_read():
    assert (
        Deadline.model_validate({"name": "d", "limit_ns": 5, "exceedance": 1e-6}).allowed == "1e-06"
    )


def test_a_deadline_judges_the_sets_it_names():
    known = {"deadlines": (Deadline(name="d", limit_ns=5, sets="stress/*"),)}
    late = np.zeros(10, bool)
    assert summarize(sample_set(late, name="idle/cpu0", **known)).deadlines == ()
    assert len(summarize(sample_set(late, name="stress/cpu0", **known)).deadlines) == 1


def test_without_times_nothing_is_shown():
    late = np.zeros(100_000, bool)
    [found] = summarize(
        sample_set(late, period_ns=None), [Deadline(name="d", limit_ns=500_000, allowed="1e-2")]
    ).deadlines
    assert (found.verdict, found.observed_s, found.exceedance_upper) == ("not shown", None, 1.0)
    assert "unknown" in found.sentence


def test_a_histogram_is_judged_by_its_counts_and_period():
    known = Metadata(name="x", time_base=TimeBase.SILICON, period_ns=PERIOD_NS)
    cells = {"latency_ns": [10, 600_000], "width_ns": [1, 1], "count": [3_600_000, 2]}
    deadline = Deadline(name="d", limit_ns=500_000, allowed="10/h")
    [found] = summarize(SampleSet.from_columns(known, **cells), [deadline]).deadlines
    assert found.observed_s == pytest.approx(3600.002)
    assert found.rate_upper_per_h == pytest.approx(6.296, rel=1e-3)  # two late: two episodes
    assert found.verdict == "meets"


def test_evidence_of_no_deadline_is_none():
    assert observe(sample_set(np.zeros(5, bool)), [], {}) == []
