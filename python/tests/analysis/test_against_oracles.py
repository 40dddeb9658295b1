"""Bounds and simulation against published reference answers and against the slow oracles."""

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, get_args

import oracle_bounds
import oracle_simulator
import pytest
from dictionaries import arrivals_of, system_of
from random_systems import (
    microsecond_system,
    random_arrivals,
    tiny_system,
    tops_by_curve,
    with_curves,
)

from latenz.analysis import Simulator, bound, printed_equations, simulate
from latenz.analysis.simulate import HANDLINGS
from latenz.system import Mode, System

pytestmark = pytest.mark.proofs

DATA = Path(__file__).parents[1] / "data" / "beckert2014" / "counterexamples.json"
CASES = json.loads(DATA.read_text())["cases"]
MODES: tuple[Mode, ...] = get_args(Mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_reference_answers(case: dict[str, Any], mode: Mode) -> None:
    system = system_of(case["system"])
    expected = case["expected"]
    bounds = bound(system, mode)
    assert {each.name: each.wcrt_ns for each in bounds.sources} == expected["sound"][mode]
    outcome = simulate(system, mode, arrivals=arrivals_of(system, case["arrivals"]))
    simulated = {each.name: each.max_ns for each in outcome.sources if each.n}
    assert simulated == expected["simulated_max"][mode]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_reference_values_of_the_printed_equations(case: dict[str, Any]) -> None:
    system = system_of(case["system"])
    printed = zip(system.sources, printed_equations(system), strict=True)
    values = {source.name: (each.eq11_ns, each.eq16_ns) for source, each in printed}
    expected = case["expected"]
    assert {name: eq11 for name, (eq11, _) in values.items()} == expected["eq11_as_printed"]
    assert {name: eq16 for name, (_, eq16) in values.items()} == expected["eq16_as_printed"]


def irqs(system: System, mode: Mode, arrivals: dict[str, list[int]]) -> dict[str, list[tuple]]:
    """Simulate; return arrival, top handler's start, end and handling by source."""
    simulator = Simulator(system, mode, arrivals=arrivals_of(system, arrivals), watch="irqs")
    while not simulator.run():
        pass
    taken = simulator.take_irqs()
    found: dict[str, list[tuple]] = {source.name: [] for source in system.sources}
    for source, handling, *times in zip(
        taken.source,
        taken.handling,
        taken.arrival_ns,
        taken.top_start_ns,
        taken.end_ns,
        strict=True,
    ):
        found[system.sources[source].name].append((*map(int, times), HANDLINGS[handling]))
    return {name: sorted(each) for name, each in found.items()}


@pytest.mark.parametrize("kind", [tiny_system, microsecond_system], ids=["tiny", "microseconds"])
@pytest.mark.parametrize("batch", range(4))
def test_every_irq_is_as_the_oracle_simulates_it(kind: Any, batch: int) -> None:
    rng = Random(f"{kind.__name__} {batch}")
    for _ in range(60):
        described = kind(rng)
        system = system_of(described)
        arrivals = random_arrivals(rng, described, most=12)
        for mode in MODES:
            served = oracle_simulator.simulate(described, arrivals, mode)
            expected = {
                name: sorted((r.arrival_ns, r.top_start_ns, r.end_ns, r.kind) for r in records)
                for name, records in served.items()
            }
            assert irqs(system, mode, arrivals) == expected, (mode, described, arrivals)


def broken(rng: Random, arrivals: dict[str, list[int]]) -> dict[str, list[int]]:
    """Arrivals against the sources' models: more of them, some at once."""
    crowd = {}
    for name, times in arrivals.items():
        more = [time_ns + rng.choice((0, 0, 1, 7)) for time_ns in times]
        crowd[name] = sorted(times + (more if rng.random() < 0.7 else []))
    return crowd


@pytest.mark.parametrize("kind", [tiny_system, microsecond_system], ids=["tiny", "microseconds"])
@pytest.mark.parametrize("batch", range(2))
def test_sources_beyond_their_limits_are_masked_as_the_oracle_masks_them(
    kind: Any, batch: int
) -> None:
    rng = Random(f"limits {kind.__name__} {batch}")
    masked = 0
    for _ in range(60):
        described = kind(rng) | {"c_lim": rng.choice((0, 1, 2))}
        system = system_of(described)
        arrivals = broken(rng, random_arrivals(rng, described, most=8))
        for mode in MODES:
            served = oracle_simulator.simulate(described, arrivals, mode, oracle_bounds.distance)
            expected = {
                name: sorted((r.arrival_ns, r.top_start_ns, r.end_ns, r.kind) for r in records)
                for name, records in served.items()
            }
            assert irqs(system, mode, arrivals) == expected, (mode, described, arrivals)
            freely = oracle_simulator.simulate(described, arrivals, mode)
            masked += freely != served
    assert masked > 60


HORIZON_NS = {tiny_system: 20_000, microsecond_system: 1_000_000_000}


@pytest.mark.parametrize("batch", range(3))
def test_enforced_bounds_are_the_oracle_s(batch: int) -> None:
    rng = Random(f"enforced {batch}")
    horizon_ns, higher = 3000, 0
    for _ in range(40):
        described = tiny_system(rng) | {"c_lim": rng.choice((0, 0, 1))}
        system = system_of(described)
        for mode in MODES:
            bounds = bound(system, mode, horizon_ns=horizon_ns)
            found = {each.name: each.enforced_ns for each in bounds.sources}
            expected = oracle_bounds.enforced_bounds(described, mode, horizon_ns)
            assert found == expected, (mode, described)
            higher += any(each.wcrt_ns != each.enforced_ns for each in bounds.sources)
    assert higher > 10


@pytest.mark.parametrize("kind", [tiny_system, microsecond_system], ids=["tiny", "microseconds"])
@pytest.mark.parametrize("batch", range(4))
def test_bounds_and_equations_are_the_oracle_s(kind: Any, batch: int) -> None:
    """Equal in plain and paper; in carry never above, as deferral is bounded in two more ways."""
    rng = Random(f"bounds {kind.__name__} {batch}")
    horizon_ns = HORIZON_NS[kind]
    for _ in range(60):
        described = kind(rng)
        system = system_of(described)
        for mode in MODES:
            expected = oracle_bounds.sound_bounds(described, mode, horizon_ns, tight=True)
            found = {
                each.name: each.wcrt_ns
                for each in bound(system, mode, horizon_ns=horizon_ns).sources
            }
            if mode == "carry":
                assert all(
                    reference is None or (found[name] or horizon_ns) <= reference
                    for name, reference in expected.items()
                ), described
            else:
                assert found == expected, (mode, described)


def greedy(sums: tuple[int, ...], executions: int) -> list[int]:
    """Execution times that take the whole curve from the first on."""
    until = [oracle_bounds.closed_sum(sums, q) for q in range(executions + 1)]
    return [after - before for before, after in pairwise(until)]


def with_tops(described: dict[str, Any], tops: Callable[[tuple[int, ...]], list[int]]) -> Any:
    """The same system, with what the top handlers of each source with a curve take."""
    return described | {
        "sources": [
            each | {"tops": tops(each["sums"])} if "sums" in each else each
            for each in described["sources"]
        ]
    }


@pytest.mark.parametrize("kind", [tiny_system, microsecond_system], ids=["tiny", "microseconds"])
def test_with_cost_curves_every_irq_is_as_the_oracle_simulates_it(kind: Any) -> None:
    rng = Random(f"curves {kind.__name__}")
    for _ in range(60):
        described = with_curves(rng, kind(rng))
        system = system_of(described)
        arrivals = random_arrivals(rng, described, most=12)
        with_costs = with_tops(described, lambda sums: greedy(sums, 12))
        for mode in MODES:
            served = oracle_simulator.simulate(with_costs, arrivals, mode)
            expected = {
                name: sorted((r.arrival_ns, r.top_start_ns, r.end_ns, r.kind) for r in records)
                for name, records in served.items()
            }
            assert irqs(system, mode, arrivals) == expected, (mode, described, arrivals)


@pytest.mark.parametrize("kind", [tiny_system, microsecond_system], ids=["tiny", "microseconds"])
def test_bounds_with_cost_curves_are_the_oracle_s(kind: Any) -> None:
    rng = Random(f"bounds with curves {kind.__name__}")
    horizon_ns, lower = HORIZON_NS[kind], 0
    for _ in range(20):
        described = with_curves(rng, kind(rng))
        system = system_of(described)
        for mode in MODES:
            expected = oracle_bounds.sound_bounds(described, mode, horizon_ns, tight=True)
            bounds = bound(system, mode, horizon_ns=horizon_ns)
            found = {each.name: each.wcrt_ns for each in bounds.sources}
            if mode == "carry":
                assert all(
                    reference is None or (found[name] or horizon_ns) <= reference
                    for name, reference in expected.items()
                ), described
            else:
                assert found == expected, (mode, described)
            flat = replace(
                system, sources=tuple(replace(each, top_sums_ns=None) for each in system.sources)
            )
            without = bound(flat, mode, horizon_ns=horizon_ns)
            for one, other in zip(bounds.sources, without.sources, strict=True):
                assert (one.wcrt_ns or horizon_ns) <= (other.wcrt_ns or horizon_ns)
                lower += one.wcrt_ns != other.wcrt_ns
    assert lower > 10


def test_enforced_bounds_with_cost_curves_are_the_oracle_s() -> None:
    rng = Random("enforced with curves")
    for _ in range(10):
        described = with_curves(rng, tiny_system(rng)) | {"c_lim": rng.choice((0, 0, 1))}
        for mode in MODES:
            bounds = bound(system_of(described), mode, horizon_ns=3000)
            found = {each.name: each.enforced_ns for each in bounds.sources}
            expected = oracle_bounds.enforced_bounds(described, mode, 3000)
            assert found == expected, (mode, described)


@pytest.mark.parametrize("batch", range(2))
def test_no_execution_times_that_keep_a_curve_exceed_the_bound(batch: int) -> None:
    """Whatever the top handlers take, not only all that their curves permit from the first on."""
    rng = Random(f"costs by curve {batch}")
    reached = 0
    for _ in range(100):
        described = with_curves(rng, tiny_system(rng))
        system = system_of(described)
        arrivals = random_arrivals(rng, described, most=12)
        with_costs = with_tops(described, lambda sums: tops_by_curve(rng, sums, 12))
        for mode in MODES:
            served = oracle_simulator.simulate(with_costs, arrivals, mode)
            for each in bound(system, mode).sources:
                if each.wcrt_ns is not None and served[each.name]:
                    highest = oracle_simulator.highest_latency(served[each.name])
                    assert highest <= each.wcrt_ns, (mode, with_costs, arrivals)
                    reached += highest == each.wcrt_ns
    assert reached > 5
