"""The two oracles against published-equation counterexamples, brute force and each other."""

import json
from itertools import combinations_with_replacement, pairwise
from pathlib import Path
from random import Random
from typing import Any

import oracle_bounds as bounds
import oracle_simulator as simulator
import pytest
import random_systems

pytestmark = pytest.mark.proofs

CASES = json.loads(
    (Path(__file__).parent.parent / "data/beckert2014/counterexamples.json").read_text()
)["cases"]
BY_NAME = {case["name"]: case for case in CASES}
MODES = simulator.MODES

every_case = pytest.mark.parametrize("case", CASES, ids=list(BY_NAME))
every_mode = pytest.mark.parametrize("mode", MODES)


@every_mode
@every_case
def test_sound_bounds_of_the_counterexamples(case: dict[str, Any], mode: str) -> None:
    assert bounds.sound_bounds(case["system"], mode) == case["expected"]["sound"][mode]


@every_mode
@every_case
def test_tight_bounds_of_the_counterexamples(case: dict[str, Any], mode: str) -> None:
    expected = case["expected"]
    for name, bound in bounds.sound_bounds(case["system"], mode, tight=True).items():
        assert bound is not None
        assert expected["simulated_max"][mode][name] <= bound <= expected["sound"][mode][name]


@every_mode
@every_case
def test_simulated_maxima_of_the_counterexamples(case: dict[str, Any], mode: str) -> None:
    served = simulator.simulate(case["system"], case["arrivals"], mode)
    highest = {name: simulator.highest_latency(records) for name, records in served.items()}
    assert highest == case["expected"]["simulated_max"][mode]


@every_case
def test_equations_as_printed_of_the_counterexamples(case: dict[str, Any]) -> None:
    system, expected = case["system"], case["expected"]
    for source in system["sources"]:
        name = source["name"]
        assert bounds.equation_11(system, source) == expected["eq11_as_printed"][name]
        assert bounds.equation_16(system, source) == expected["eq16_as_printed"][name]


@every_case
def test_what_the_counterexamples_are_for(case: dict[str, Any]) -> None:
    """Each has a source seen above Eq. (11) without the monitor's help or Eq. (16) with it."""
    expected = case["expected"]
    exceeded = [
        seen > printed[name]
        for mode, printed in (
            ("plain", expected["eq11_as_printed"]),
            ("paper", expected["eq16_as_printed"]),
        )
        for name, seen in expected["simulated_max"][mode].items()
    ]
    assert any(exceeded)


# --- arrivals and slots by brute force ----------------------------------------------------------


def most_arrivals(vector: tuple[int, ...], window: int, limit: int) -> int:
    """The longest legal sequence within a window, among all sequences of integers."""
    longest = 0
    for size in range(1, limit + 1):
        for times in combinations_with_replacement(range(window), size):
            legal = all(
                times[later] - times[later - gaps] >= entry
                for gaps, entry in enumerate(vector, start=1)
                for later in range(gaps, size)
            )
            if legal:
                longest = size
                break
    return longest


@pytest.mark.parametrize("vector", [(3,), (2, 5), (0, 4), (1, 1, 6), (2, 2, 2), (4, 5), (0, 0, 7)])
def test_closing_a_vector_allows_what_legal_sequences_do(vector: tuple[int, ...]) -> None:
    model = {"type": "delta", "vector": list(vector)}
    for window in range(1, 11):
        assert bounds.arrivals_within(model, window) == most_arrivals(vector, window, 7)


def test_a_periodic_source_with_jitter_in_a_window() -> None:
    model = {"type": "pjd", "period": 10, "jitter": 25, "dmin": 2}
    # by hand: three events come late enough to meet the fourth, 2 apart, then one every 10
    assert [bounds.distance(model, events) for events in range(1, 7)] == [0, 2, 4, 6, 15, 25]
    assert [bounds.arrivals_within(model, dt) for dt in (0, 1, 2, 3, 6, 7, 15, 16)] == (
        [0, 1, 1, 2, 3, 4, 4, 5]
    )


@pytest.mark.parametrize("seed", range(40))
def test_blocked_time_over_all_alignments(seed: int) -> None:
    system = random_systems.tiny_system(Random(seed))
    if seed % 4 == 0:
        system["c_switch"] = 4  # longer than some slots: the switch runs on into the next
    for partition in {slot["partition"] for slot in system["slots"]}:
        for window in range(0, 2 * bounds.cycle(system) + 2, 3):
            assert bounds.blocked(system, partition, window) == (
                bounds.blocked_at_any_alignment(system, partition, window)
            )


def test_blocked_time_by_hand() -> None:
    system = {
        "slots": [{"partition": "P1", "length": 10}, {"partition": "P2", "length": 5}],
        "c_switch": 2,
    }
    # from 10 on: P2's slot and the switch into P1's, 7; then 8 free
    assert [bounds.blocked(system, "P1", dt) for dt in (1, 7, 8, 15, 16, 22)] == (
        [1, 7, 7, 7, 8, 14]
    )
    # from 0 on: P1's slot and the switch into P2's, 12; then 3 free
    assert [bounds.blocked(system, "P2", dt) for dt in (12, 15, 16)] == [12, 12, 13]
    assert [bounds.switches_within(system, dt) for dt in (0, 1, 5, 6, 15, 16, 21)] == (
        [0, 1, 1, 2, 2, 3, 4]
    )


# --- single rules, by hand ----------------------------------------------------------------------


def small_system(**changes: Any) -> dict[str, Any]:
    """P1 has [0, 10), P2 [10, 20); source a of P1, monitored every 5; sched 1, switching 2."""
    source = {
        "name": "a",
        "partition": "P1",
        "c_th": 1,
        "c_bh": 3,
        "model": {"type": "pjd", "period": 100, "jitter": 0, "dmin": 0},
        "monitor": [5],
    }
    return {
        "slots": [{"partition": "P1", "length": 10}, {"partition": "P2", "length": 10}],
        "c_switch": 0,
        "c_mon": 0,
        "c_sched": 1,
        "c_ctx": 2,
        "sources": [source],
        **changes,
    }


def served(system: dict[str, Any], times: list[int], mode: str) -> list[tuple[int, str]]:
    return [
        (record.end_ns, record.kind)
        for record in simulator.simulate(system, {"a": times}, mode)["a"]
    ]


def test_a_completion_at_the_slot_end_counts() -> None:
    # top handler [6, 7), bottom handler [7, 10)
    assert served(small_system(), [6], "plain") == [(10, "direct")]
    assert served(small_system(), [7], "plain") == [(21, "direct")]


def test_the_first_slot_is_switched_into_as_well() -> None:
    assert served(small_system(c_switch=2), [0], "plain") == [(6, "direct")]


def test_an_arrival_at_the_slot_end_is_foreign() -> None:
    # top handler [10, 11), in [11, 14), bottom handler [14, 17)
    assert served(small_system(), [10], "paper") == [(17, "interposed")]


def test_a_cut_bottom_handler_is_interposed_at_once_in_carry_only() -> None:
    # cut after 2 of 3: the job enters in [10, 13) and has 1 left
    assert served(small_system(), [7], "carry") == [(14, "direct")]
    assert served(small_system(), [7], "paper") == [(21, "direct")]


@every_mode
def test_a_job_that_could_only_start_with_its_own_slot_is_dropped(mode: str) -> None:
    # the top handler ends at 20, where P1's slot begins
    kind = "delayed" if mode == "plain" else "interposed"
    assert served(small_system(), [19], mode) == [(23, kind)]


def test_a_job_that_has_started_goes_on_in_its_own_slot() -> None:
    # top handler [18, 19), in [19, 22), bottom handler [22, 25)
    assert served(small_system(), [18], "paper") == [(25, "interposed")]


def test_a_dropped_job_keeps_its_budget_in_carry_only() -> None:
    # top handlers [17, 18), [19, 20); the first job enters in [18, 19) + [20, 22), serves [22, 28)
    # and leaves until 30: P1's slot [20, 30) is gone, in which the second job was dropped
    system = small_system()
    system["sources"][0] |= {"monitor": [1], "c_bh": 6}
    assert served(system, [17, 19], "paper") == [(28, "interposed"), (46, "interposed")]
    assert served(system, [17, 19], "carry") == [(28, "interposed"), (39, "interposed")]


def with_long_foreign_slot() -> dict[str, Any]:
    return small_system(
        slots=[{"partition": "P1", "length": 10}, {"partition": "P2", "length": 30}]
    )


def test_a_granted_irq_serves_the_one_before_it() -> None:
    # the second is denied; the third's job enters in [21, 24) and serves the second, [24, 27)
    assert served(with_long_foreign_slot(), [10, 11, 18], "paper") == (
        [(18, "interposed"), (27, "delayed"), (43, "interposed")]
    )


def test_a_job_whose_queue_is_empty_runs_all_the_same() -> None:
    # a, cut at 10 with 1 left, has a job with a budget of 3, which serves its mate b too: the job
    # of b has nothing to serve, and yet is paid for
    system = with_long_foreign_slot()
    a = system["sources"][0]
    system["sources"] += [
        {**a, "name": "b", "c_bh": 2},
        {**a, "name": "c", "partition": "P2", "monitor": None},
    ]
    run = simulator.Simulation(system, {"a": [7], "b": [10], "c": [18]}, "carry").run()
    # b's top handler [10, 11), a's job [11, 14) + [14, 17) + [17, 18), c's top handler [18, 19),
    # a's job [19, 20), b's job [20, 23) + [23, 25), c's bottom handler
    assert {name: records[0].end_ns for name, records in run.records().items()} == (
        {"a": 15, "b": 17, "c": 28}
    )


def test_top_handlers_do_not_use_up_the_budget() -> None:
    system = with_long_foreign_slot()
    system["sources"].append({**system["sources"][0], "name": "b", "partition": "P2"})
    run = simulator.Simulation(system, {"a": [10], "b": [15, 16]}, "paper").run()
    # in [11, 14), [14, 15) of the bottom handler, top handlers [15, 17), the other 2 of it
    assert run.records()["a"][0].end_ns == 19


def test_arrivals_at_one_instant_come_in_the_order_of_the_file() -> None:
    system = small_system()
    system["sources"].append({**system["sources"][0], "name": "b"})
    records = simulator.simulate(system, {"b": [0], "a": [0]}, "plain")
    assert (records["a"][0].end_ns, records["b"][0].end_ns) == (5, 8)


# --- the simulator against the bound ------------------------------------------------------------


def test_jobs_that_come_late_can_come_close_together() -> None:
    """Two jobs of b start 1 apart though b's monitor wants 20: the bound must count both."""
    source = {"c_th": 0, "model": {"type": "pjd", "period": 1000, "jitter": 0, "dmin": 0}}
    every_20 = {"type": "pjd", "period": 20, "jitter": 0, "dmin": 0}
    system = {
        "slots": [{"partition": "P2", "length": 20}, {"partition": "P1", "length": 20}],
        "c_switch": 0,
        "c_mon": 0,
        "c_sched": 0,
        "c_ctx": 1,
        "sources": [
            {**source, "name": "mate", "partition": "P2", "c_bh": 20, "monitor": None},
            {**source, "name": "b", "partition": "P2", "c_bh": 2, "monitor": [20]},
            {**source, "name": "a", "partition": "P1", "c_bh": 1, "monitor": [1000]},
        ],
    }
    system["sources"][1]["model"] = every_20
    # mate fills P2's slot; b's first job comes at its end, the second 1 after it, and a waits
    arrivals = {"mate": [0], "b": [1, 21], "a": [21]}
    latency_ns = simulator.highest_latency(simulator.simulate(system, arrivals, "carry")["a"])
    one_job_each_ns = (1 + 2) + (2 + 2)
    assert latency_ns == 8 > one_job_each_ns
    for tight in (False, True):
        bound_ns = bounds.sound_bounds(system, "carry", tight=tight)["a"]
        assert bound_ns is not None
        assert latency_ns <= bound_ns


def check_system(system: dict[str, Any], rng: Random, horizon_ns: int) -> None:
    arrivals = [random_systems.random_arrivals(rng, system) for _ in range(3)]
    for mode in MODES:
        stated = bounds.sound_bounds(system, mode, horizon_ns)
        bound = (
            bounds.sound_bounds(system, mode, horizon_ns, tight=True)
            if (mode == "carry")
            else stated
        )
        for name, stated_ns in stated.items():
            if stated_ns is not None:
                tight_ns = bound[name]
                assert tight_ns is not None
                assert tight_ns <= stated_ns
        for times in arrivals:
            run = simulator.Simulation(system, times, mode).run()
            check_conservation(run)
            for name, records in run.records().items():
                assert [record.arrival_ns for record in records] == times[name]
                if records and bound[name] is not None:
                    assert simulator.highest_latency(records) <= bound[name], (mode, name, times)
            check_promise(run, bound)


def check_conservation(run: simulator.Simulation) -> None:
    """One processor, and every bottom handler gets its time and not more."""
    stretches = run.timeline
    assert all(first.end_ns <= second.start_ns for first, second in pairwise(stretches))
    bottoms = sum(s.end_ns - s.start_ns for s in stretches if s.what == "bottom")
    jobs = sum(s.end_ns - s.start_ns for s in stretches if s.what == "interposed")
    needed = sum(irq.source["c_bh"] for irqs in run.irqs.values() for irq in irqs)
    assert bottoms <= needed <= bottoms + jobs


def check_promise(run: simulator.Simulation, bound: dict[str, int | None]) -> None:
    """No window loses more to switches, top handlers and interposed jobs than is promised."""
    taken = [stretch for stretch in run.timeline if stretch.what != "bottom"]
    for first in range(0, len(taken), 5):
        inside_ns = 0
        for stretch in taken[first : first + 12]:
            inside_ns += stretch.end_ns - stretch.start_ns
            window_ns = stretch.end_ns - taken[first].start_ns
            promise_ns = bounds.interference_promise(run.system, run.mode, window_ns, bound)
            if promise_ns is None:
                return
            assert inside_ns <= promise_ns


@pytest.mark.parametrize("batch", range(6))
def test_no_tiny_system_exceeds_its_bound(batch: int) -> None:
    for seed in range(30 * batch, 30 * (batch + 1)):
        rng = Random(seed)
        check_system(random_systems.tiny_system(rng), rng, horizon_ns=3000)


@pytest.mark.parametrize("batch", range(4))
def test_no_microsecond_system_exceeds_its_bound(batch: int) -> None:
    for seed in range(10 * batch, 10 * (batch + 1)):
        rng = Random(seed)
        check_system(random_systems.microsecond_system(rng), rng, horizon_ns=50_000_000)
