"""What explore tries and finds, against loops written here and the definition of the front."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from math import ceil

import numpy as np
import pytest
from gateway import GATEWAY, LIMITS, all_candidates, gateway_plan, small_system
from hypothesis import given
from hypothesis import strategies as st

from latenz.analysis import bound
from latenz.analysis.explore import Plan, explore, search
from latenz.analysis.explore.options import shares_of
from latenz.analysis.explore.search import best_of_each, pareto_front
from latenz.analysis.explore.space import (
    Space,
    monitors_of,
    permutation,
    permutation_number,
    spread,
)
from latenz.system import (
    Exponential,
    Monitor,
    Periodic,
    Slot,
    System,
    read_system,
)

pytestmark = pytest.mark.proofs

# ---- the whole space, tried by hand ------------------------------------------------------------

CYCLE_PARTS = [(1, 8), (1, 6), (1, 5), (1, 4), (1, 3), (2, 5), (1, 2), (3, 5), (2, 3), (3, 4)]
CYCLE_PARTS += [(4, 5), (1, 1)]
FACTORS = [1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16]
BY_HAND_LIMITS = {"can": 250_000, "timer": 700_000}


def by_hand_slots(part: tuple[int, int], first: int, second: int) -> tuple[Slot, ...]:
    """Two partitions: each split, the rarer one's slots among those of the other."""
    common = np.gcd(first, second)
    first, second = first // common, second // common
    totals = [round(total * part[0] / (part[1] * common)) for total in (900_000, 600_000)]
    rounds = max(first, second)
    owners = [
        name
        for at in range(rounds)
        for name, parts in sorted([("P1", first), ("P2", second)], key=lambda each: -each[1])
        if parts == rounds or at in [each * rounds // parts for each in range(parts)]
    ]
    slots = []
    for at, name in enumerate(owners):
        total, parts = (totals[0], first) if name == "P1" else (totals[1], second)
        before = owners[:at].count(name)
        slots.append(Slot(name, total // parts + (before < total % parts)))
    return tuple(slots)


def by_hand() -> dict[tuple[object, ...], tuple[float, float, float] | None]:
    """Bounds and objectives of every candidate; None if a deadline is missed."""
    given = small_system()
    can, timer = given.sources
    vectors: list[tuple[int, ...] | None] = [None]
    for factor in FACTORS:
        vectors += [(ceil(300_000 * factor),), (ceil(750_000 * factor),)]
        vectors.append((ceil(400_000 * factor), ceil(1_500_000 * factor)))
    found: dict[tuple[object, ...], tuple[float, float, float] | None] = {}
    for part, first, second, vector in product(
        CYCLE_PARTS, (1, 2, 3, 4), (1, 2, 3, 4), dict.fromkeys(vectors)
    ):
        slots = by_hand_slots(part, first, second)
        key = (tuple((slot.partition, slot.length_ns) for slot in slots), vector)
        if key not in found:
            monitor = None if vector is None else Monitor(vector)
            sources = (replace(can, monitor=monitor), timer)
            found[key] = objectives(System(given.platform, slots, sources, given.mode))
    return found


def objectives(system: System, limits=BY_HAND_LIMITS) -> tuple[float, float, float] | None:
    bounds = bound(system)
    ratios = []
    for name, limit_ns in limits.items():
        wcrt_ns = bounds.of(name).wcrt_ns
        if wcrt_ns is None or wcrt_ns > limit_ns:
            return None
        ratios.append(wcrt_ns / limit_ns)
    lost = []
    for promise in bounds.partitions:
        own_ns = sum(slot.length_ns for slot in system.slots if slot.partition == promise.name)
        lost.append(sum(promise.conforming_interference_ns_by_slot) / own_ns)
    cycle_ns = sum(slot.length_ns for slot in system.slots)
    switches = len(system.slots) * 1e9 / cycle_ns
    return round(max(lost), 6), round(switches, 3), round(max(ratios), 6)


def dominated(one: tuple[float, ...], others: set[tuple[float, ...]]) -> bool:
    return any(
        other != one and all(a <= b for a, b in zip(other, one, strict=True)) for other in others
    )


def test_a_whole_space_against_loops_written_here(tmp_path):
    expected = by_hand()
    names = ("interference", "switches", "latency")
    plan = Plan(small_system(), BY_HAND_LIMITS, names, candidates=50_000)
    found = explore(plan, tmp_path / "all", processes=1)
    assert found.evaluated == found.possible == 12 * 16 * 31

    tried = {}
    for row in all_candidates(tmp_path / "all").to_pylist():
        slots = tuple(zip(row["slot_partition"], row["slot_length_ns"], strict=True))
        monitor = row["monitor_ns:can"]
        key = (slots, None if monitor is None else tuple(monitor))
        values = (
            row["interference_share"],
            row["switches_per_s"],
            row["latency_of_deadline"],
        )
        tried[key] = values if row["feasible"] else None
    assert tried == expected

    feasible = {values for values in expected.values() if values is not None}
    assert len(feasible) > 100
    front = {values for values in feasible if not dominated(values, feasible)}
    assert {(each.interference, each.switches_per_s, each.latency) for each in found.front} == front
    assert len(found.front) == len(front)

    for count in (1, 2):  # fewer objectives, from the same candidates
        fewer = explore(
            Plan(small_system(), BY_HAND_LIMITS, names[:count], candidates=50_000), processes=1
        )
        points = {values[:count] for values in feasible}
        front = {values for values in points if not dominated(values, points)}
        shown = [(each.interference, each.switches_per_s)[:count] for each in fewer.front]
        assert set(shown) == front
        assert shown == sorted(front)


# ---- the front ---------------------------------------------------------------------------------

rows = st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=40)


@given(rows, st.integers(1, 3))
def test_the_front_is_what_nothing_dominates(points, columns):
    values = np.array(points, float).reshape(-1, 3)[:, :columns]
    ties = np.arange(len(points), dtype=float).reshape(-1, 1)
    found = pareto_front(values, ties).tolist()
    rows_of = {tuple(row) for row in values.tolist()}
    expected = {row for row in rows_of if not dominated(row, rows_of)}
    assert [tuple(values[at].tolist()) for at in found] == sorted(expected)
    for at in found:  # of equal ones the first
        assert at == values.tolist().index(values[at].tolist())


@given(rows)
def test_the_best_of_each_kind(points):
    values = np.array(points, float).reshape(-1, 3)
    ties = np.arange(len(points), dtype=float).reshape(-1, 1)
    found = best_of_each(values, ties, values[:, 2]).tolist()
    best = {}
    for at in sorted(range(len(points)), key=lambda at: points[at]):
        best.setdefault(points[at][2], at)
    assert found == list(best.values())


# ---- the space -----------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.randoms())
def test_slots_of_a_partition_are_evenly_spread(splits, random):
    ranked = list(range(len(splits)))
    random.shuffle(ranked)
    found = spread(tuple(ranked), tuple(splits))
    assert [found.count(number) for number in range(len(splits))] == splits
    if len(set(splits)) == 1:
        assert found == tuple(ranked) * splits[0]
    rest = sum(splits) - max(splits)
    if rest >= max(splits) and len(splits) > 2:  # then nobody need own two slots in a row
        most = splits.index(max(splits))
        assert all(pair != (most, most) for pair in zip(found, found[1:] + found[:1], strict=True))


@given(st.integers(1, 6), st.data())
def test_permutations_have_numbers(size, data):
    everyone = list(permutations(range(size)))
    number = data.draw(st.integers(0, len(everyone) - 1))
    assert tuple(permutation(number, size)) == everyone[number]
    assert permutation_number(list(everyone[number])) == number


def test_every_cyclic_order_is_tried():
    space = Space(read_system(GATEWAY))
    size = space.dimensions[0].size
    orders = set()
    for order in range(size):
        slots, _ = space.parts((order, 11, 0, 0, 0, 0, *[0] * 4))
        orders.add(tuple(slot.partition for slot in slots))
    assert orders == {("body", "gateway", "diagnosis"), ("body", "diagnosis", "gateway")}


@given(st.randoms())
def test_shares_of_the_cycle_are_kept(random):
    given = read_system(GATEWAY)
    space = Space(given)
    slots, _ = space.parts(space.sample(random))
    cycle_ns = sum(slot.length_ns for slot in slots)
    assert cycle_ns <= given.cycle_ns
    for name in given.partitions:
        had = sum(slot.length_ns for slot in given.slots if slot.partition == name)
        has = sum(slot.length_ns for slot in slots if slot.partition == name)
        assert abs(has - had * cycle_ns / given.cycle_ns) <= 2


@given(st.integers(1, 10**6))
def test_a_share_may_be_a_percentage_or_a_fraction(millionths):
    system = read_system(GATEWAY)
    exact = Fraction(millionths, 10**7)
    as_fraction = f"diagnosis={Decimal(millionths) / 10**7:f}"
    as_percentage = f"diagnosis={Decimal(millionths) / 10**5:f} %"
    assert shares_of([as_fraction], system) == shares_of([as_percentage], system)
    assert shares_of([as_fraction], system) == {"diagnosis": exact}


@given(st.randoms())
def test_only_what_a_partition_can_spare_goes_to_others(random):
    given = read_system(GATEWAY)
    space = Space(given, {"diagnosis": 0.1, "body": 0.35})
    assert space.dimensions[2].size == 1 + 4  # to the gateway alone
    slots, _ = space.parts(space.sample(random))
    cycle_ns = sum(slot.length_ns for slot in slots)
    has = {
        name: sum(slot.length_ns for slot in slots if slot.partition == name) / cycle_ns
        for name in given.partitions
    }
    assert has["diagnosis"] >= 0.1 - 1e-5
    assert has["body"] >= 0.35 - 1e-5
    assert has["gateway"] >= 0.4 - 1e-5


@given(st.randoms())
def test_near_is_mutual_and_one_step(random):
    space = Space(read_system(GATEWAY), {"diagnosis": 0.1})
    choice = space.sample(random)
    near = list(space.near(choice))
    assert len(near) == len(set(near))
    for other in near:
        assert sum(a != b for a, b in zip(choice, other, strict=True)) == 1
        assert all(
            0 <= value < each.size for value, each in zip(other, space.dimensions, strict=True)
        )
        assert choice in space.near(other)


def test_monitors_grow_stricter_and_never_grant_more_than_arrives():
    system = read_system(GATEWAY)
    engine = system.sources[0]
    found = monitors_of(engine, "carry")
    assert found[-1] is None
    vectors = [monitor.distances_ns for monitor in found[:-1]]
    assert (222_000, 444_000, 666_000, 888_000, 10_000_000) in vectors
    assert (2_000_000,) in vectors  # the same rate without bursts
    assert (888_000, 1_776_000, 2_664_000, 3_552_000, 40_000_000) in vectors  # 25 %
    rates = [max(each / (at + 1) for at, each in enumerate(vector)) for vector in vectors]
    assert rates == sorted(rates)
    assert monitors_of(engine, "plain") == (engine.monitor,)
    assert monitors_of(system.sources[2], "carry") == (None,)


def test_arrivals_without_a_distance_start_from_the_monitor():
    source = replace(read_system(GATEWAY).sources[0], monitor=Monitor((1_000,)))
    random = monitors_of(replace(source, arrival=Exponential(1_000_000)), "carry")
    bursts = monitors_of(replace(source, arrival=Periodic(10_000, 50_000)), "carry")
    assert [each.distances_ns[0] for each in random[:4]] == [250, 500, 1_000, 1_250]
    assert random == bursts


# ---- what is asked of the search -----------------------------------------------------------------


def test_results_do_not_depend_on_processes_or_chunks(tmp_path, monkeypatch):
    explore(gateway_plan(1_500), tmp_path / "two", processes=2)
    monkeypatch.setattr(search, "CHUNK", 97)
    monkeypatch.setattr(search, "NEAR_CHUNK", 300)
    explore(gateway_plan(1_500), tmp_path / "one", processes=1)
    explore(gateway_plan(1_500, seed=1), tmp_path / "other", processes=1)
    two, one = all_candidates(tmp_path / "two"), all_candidates(tmp_path / "one")
    assert two.num_rows == 1_501
    assert two.equals(one)
    assert not two.equals(all_candidates(tmp_path / "other"))
    drawn = two.select([name for name in two.column_names if name[:4] in ("slot", "moni")])
    assert len({str(row) for row in drawn.to_pylist()}) > 1_400  # few come out alike
    for name in ("system.toml", "plan.json", "system-1.toml"):
        assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "one" / name).read_bytes()


def test_looking_around_the_best_finds_more_than_chance(tmp_path):
    found = explore(gateway_plan(3_000), tmp_path / "found", processes=2)
    table = all_candidates(tmp_path / "found").to_pylist()
    drawn = [row for row in table[1:1_501] if row["feasible"]]
    best = found.front[0]
    assert best.interference < min(row["interference_share"] for row in drawn)
    assert found.feasible > 4 * len(drawn)


def test_every_system_of_the_front_is_as_told(tmp_path):
    found = explore(gateway_plan(1_500), tmp_path / "found", processes=2)
    assert found.front
    for rank, each in enumerate(found.front, 1):
        system = read_system(tmp_path / "found" / f"system-{rank}.toml")
        assert system == each.system
        bounds = bound(system)
        assert {one.name: one.wcrt_ns for one in bounds.sources} == each.bounds_ns
        values = (each.interference, each.switches_per_s, each.latency)
        assert objectives(system, LIMITS) == values
    assert not (tmp_path / "found" / "system-0.toml").exists()
    assert not (tmp_path / "found" / f"system-{len(found.front) + 1}.toml").exists()


def test_a_fifth_of_the_space_shows_the_whole_front():
    for objectives in (("interference", "switches"), ("interference", "latency")):
        whole, part = (
            explore(Plan(small_system(), BY_HAND_LIMITS, objectives, candidates=most), processes=2)
            for most in (50_000, 1_190)
        )
        assert part.evaluated * 5 <= whole.evaluated == whole.possible
        fronts = [
            [tuple(each.value(name) for name in objectives) for each in found.front]
            for found in (whole, part)
        ]
        assert len(fronts[0]) > 3
        assert fronts[0] == fronts[1]
