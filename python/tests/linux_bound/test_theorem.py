"""The theorem against simulated schedules, and against the bounds that were published before."""

import random
from itertools import accumulate

import pytest
from schedules import Idle, Schedule, Sections, Simulation, Switch, drawn

from latenz.linux_bound.model import (
    INTERRUPTS,
    Source,
    Steps,
    Terms,
    bound,
    interference,
    least_fixed_point,
)


def held(units, arrival):
    """Return how long an arrival is held in a section, by the definition."""
    taken = arrival
    while taken < len(units) and units[taken][0]:
        taken += 1
    if taken == len(units) or not units[taken][1]:
        return taken - arrival
    ends = (at + 1 for at in range(taken, len(units)) if units[at][2] and not units[at][0])
    return next(ends, len(units)) - arrival


def terms_of(schedule: Schedule) -> Terms:
    """Return the longest windows of a schedule; its threads' time is that of the program."""
    blocking = switching = idle_in = idle_out = idle_direct = 0
    before, masked = schedule.scheduler
    scheduler = before + masked
    for part in schedule.parts:
        if isinstance(part, Sections):
            longest = max(held(part.units, at) for at in range(len(part.units)))
            blocking = max(blocking, longest)
            continue
        scheduler = max(scheduler, part.before + part.masked)
        if isinstance(part, Switch):
            switching = max(switching, part.masked + part.after)
        else:
            way_in = part.masked + part.looking + part.masked_before_sleep
            idle_in = max(idle_in, way_in, part.again + part.masked_before_sleep)
            idle_out = max(idle_out, part.out)
            idle_direct = max(idle_direct, part.masked + part.looking + part.out)
    return Terms(blocking, switching, idle_in, idle_out, idle_direct, scheduler)


def all_windows(executions):
    """Return the steps of every window, by brute force."""
    pairs = []
    for first, (begin, _) in enumerate(executions):
        for last in range(first, len(executions)):
            total = sum(own for _, own in executions[first : last + 1])
            pairs.append((executions[last][0] - begin, total))
    return Steps.of(pairs)


def as_source(executions) -> Source:
    begins = [begin for begin, _ in executions]
    owns = [own for _, own in executions]
    n = len(executions)
    distances = tuple(min(begins[i + q] - begins[i] for i in range(n - q)) for q in range(1, n))
    sums = tuple(max(sum(owns[i : i + q]) for i in range(n - q + 1)) for q in range(1, n + 1))
    return Source("all", n, max(owns), all_windows(executions), distances, sums)


@pytest.mark.parametrize(
    ("block", "schedules"),
    [(0, 5000), *(pytest.param(block, 10_000, marks=pytest.mark.long) for block in range(1, 11))],
)
def test_no_random_schedule_is_above_the_bound(block, schedules):
    """In the long test 100,000 of them."""
    rng = random.Random(block)
    woken = 0
    for _ in range(schedules):
        schedule = drawn(rng)
        run = Simulation(schedule).simulate()
        if run.latency is None:
            continue
        woken += 1
        terms = terms_of(schedule)
        source = as_source(run.executions)
        for kind in INTERRUPTS:
            taken = interference(source.steps, [source], kind)
            found = bound(terms, taken, horizon=5000).bound_ns
            assert found is None or run.latency <= found, (terms, found, run, schedule)
            assert found is not None or kind != "joint"
    assert woken > 0.8 * schedules


def test_a_bound_without_the_idle_thread_is_exceeded():
    """Counterexample 2: leaving idle, interrupts masked, is in no term of the published bound."""
    idle = Idle(0, 10, 1, 100, 1, 1)
    schedule = Schedule([idle], [(11, 5)], 0, (0, 10))
    run = Simulation(schedule).simulate()
    published = 10 + 10 + 5
    assert run.latency > published
    found = bound(terms_of(schedule), all_windows(run.executions)).bound_ns
    assert run.latency <= found


@pytest.mark.parametrize(("times", "reached"), [(2, 50), (6, 130)])
def test_interrupts_of_the_interrupts_own_time_count(times, reached):
    """Counterexample 1: rtsl adds what fits into its interference-free latency, once."""
    requests = [(21 * number, 20) for number in range(times)]
    section = Sections([(False, True, False)] * 9 + [(False, True, True)])
    schedule = Schedule([section], requests, 0, (0, 0))
    run = Simulation(schedule).simulate()
    windows = all_windows([(21 * number, 20) for number in range(times)])
    free = 10
    rtsl = free + windows(free)
    assert rtsl == 30
    assert run.latency == reached
    assert bound(terms_of(schedule), windows).bound_ns == reached


def test_a_section_to_the_enabling_is_not_a_section_to_the_point():
    """Counterexample 3: enabled, but nobody looks; then the next section begins."""
    units = [(False, True, False)] * 10 + [(False, False, False)] + [(False, True, False)] * 10
    chain = Sections([*units, (False, False, True)])
    schedule = Schedule([chain], [(0, 1)], 0, (0, 10))
    run = Simulation(schedule).simulate()
    published = 10 + 1 + 10 + 1  # POID + PAIE + PSD + the interrupt
    assert run.latency > published
    assert bound(terms_of(schedule), all_windows(run.executions)).bound_ns == run.latency


def test_the_row_of_interrupts_at_arrival_counts():
    """A window that begins at the arrival misses what was executing then."""
    requests = [(0, 50), (1, 5)]
    schedule = Schedule([Sections([(False, False, True)] * 3)], requests, 1, (0, 4))
    run = Simulation(schedule).simulate()
    after_arrival = all_windows([(1, 5)])
    assert run.latency > bound(terms_of(schedule), after_arrival).bound_ns
    assert run.latency <= bound(terms_of(schedule), all_windows(run.executions)).bound_ns


def fixed_point_by_trial(work, taken, most=100_000):
    return next((x for x in range(max(work, 1), most) if x >= work + taken(x)), None)


def test_the_fixed_point_is_the_least():
    rng = random.Random(3)
    for _ in range(300):
        gaps = [rng.randint(1, 60) for _ in range(rng.randint(1, 12))]
        begins = list(accumulate(gaps))
        windows = all_windows([(begin, rng.randint(1, 20)) for begin in begins])
        work = rng.randint(1, 80)
        assert least_fixed_point(work, windows) == fixed_point_by_trial(work, windows)


def test_every_model_of_interrupts_bounds_the_joint_windows():
    rng = random.Random(4)
    for _ in range(200):
        executions, at = [], 0
        for _ in range(rng.randint(2, 12)):
            at += rng.randint(15, 60)
            executions.append((at, rng.randint(1, 15)))
        source = as_source(executions)
        for length in (1, 7, 50, 111, 400):
            joint = source.steps(length)
            curves = source.longest_sum(source.begins(length))
            wcet = source.longest * source.begins(length)
            assert joint <= curves <= wcet


def test_beyond_the_horizon_a_window_is_made_of_several():
    exact = Steps.of([(0, 5), (100, 8), (190, 14)])
    short = Steps.of([(0, 5), (100, 8)], 150)
    for length in range(1, 1000):
        assert short(length) >= exact(min(length, 150))
        assert short(length) == (length // 150) * 8 + short(length % 150 or 150) * bool(
            length % 150
        )


def test_interrupts_that_take_all_leave_no_bound():
    assert bound(Terms(blocking=1), lambda length: 2 * length).bound_ns is None
