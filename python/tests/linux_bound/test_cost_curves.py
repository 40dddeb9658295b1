"""Cost curves in the core and in the bound of Linux, against fixed points written down here.

The core bounds a system with one slot: the longest way of the thread context is a bottom handler,
interrupts are sources whose top handlers have cost curves.
"""

import random
from bisect import bisect_left
from itertools import accumulate

from latenz import _core
from latenz.linux_bound.model import Source, Steps, Terms, bound, interference

HORIZON_NS = 600


def continued(values, horizon, better):
    """Return what vectors of 1, 2, 3, ... imply for more, by trying every last row."""
    found = [0]
    while found[-1] <= horizon:
        n = len(found)
        rows = range(1, min(n, len(values)) + 1)
        found.append(better(found[n - row] + values[row - 1] for row in rows))
    return found


class Interrupt:
    """Distances and sums, at random."""

    def __init__(self, rng):
        longest = rng.randint(0, 20)
        steps = [
            rng.randint(0, rng.choice((longest, longest // 3))) for _ in range(rng.randint(0, 4))
        ]
        self.sums = tuple(accumulate([longest, *steps]))
        length = rng.randint(1, 4)
        self.distances = tuple(sorted(rng.randint(0, 60 * length) for _ in range(length)))
        self.distances = (*self.distances[:-1], self.distances[-1] + 15 * length)
        self.least = continued(self.distances, HORIZON_NS, max)
        self.most = [0]
        for n in range(1, len(self.least) + 2):
            rows = range(1, min(n, len(self.sums)) + 1)
            self.most.append(min(self.most[n - row] + self.sums[row - 1] for row in rows))

    def arrivals(self, window):
        return bisect_left(self.least, window)

    def taken(self, window):
        return self.most[self.arrivals(window)]


def climb(start, own, interrupts):
    """Return the least fixed point above a start, None past the horizon."""
    at = max(start, 1)
    while at <= HORIZON_NS:
        needed = own(at) + sum(each.taken(at) for each in interrupts)
        if needed <= at:
            return at
        at = needed
    return None


def latency(work, interrupts):
    """Return the bound of a queue with one long bottom handler, and one of 1 ns an interrupt."""

    def own(window):
        return work + sum(each.arrivals(window) for each in interrupts)

    busy = climb(1, own, interrupts)
    if busy is None:
        return None
    worst, finish = 0, 1
    offsets = {at for each in interrupts for at in each.least if at < busy} | {0}
    for offset in sorted(offsets):
        before = own(offset + 1)
        finish = climb(finish, lambda _, fixed=before: fixed, interrupts)
        worst = max(worst, finish - offset)
    return worst


def of_the_core(work, interrupts):
    def source(top, bottom, distances, sums):
        arrivals = _core.DistanceVector(distances)
        curve = sums and _core.CostCurve(sums)
        return _core.Source(0, top, bottom, arrivals, None, False, curve)

    sources = [source(0, work, (10**9,), None)]
    sources += [source(each.sums[0], 1, each.distances, each.sums) for each in interrupts]
    system = _core.System([(0, 10**9)], _core.Costs(0, 0, 0, 0, 0), sources)
    return _core.bound(system, _core.Mode.plain, HORIZON_NS).queues[0][4]


def test_ten_thousand_models_have_the_bound_of_an_independent_fixed_point():
    rng = random.Random(1)
    bounded = below_the_flat_one = 0
    for _ in range(10_000):
        interrupts = [Interrupt(rng) for _ in range(rng.randint(1, 3))]
        work = rng.randint(1, 120)
        found = of_the_core(work, interrupts)
        assert found == latency(work, interrupts), (work, [vars(each) for each in interrupts])

        told = [Source("", 9, x.sums[0], Steps(), x.distances, x.sums) for x in interrupts]
        curves = bound(Terms(work), interference(Steps(), told, "curves"), horizon=HORIZON_NS)
        expected = climb(1, lambda _, fixed=work: fixed, interrupts)
        assert curves.bound_ns == expected
        flat = bound(Terms(work), interference(Steps(), told, "wcet"), horizon=HORIZON_NS)
        assert flat.bound_ns is None or expected <= flat.bound_ns
        bounded += found is not None
        below_the_flat_one += expected is not None and expected != flat.bound_ns
    assert bounded > 7_000
    assert below_the_flat_one > 3_000


def test_sums_of_joined_runs_do_not_decrease():
    """A shorter vector of one run says nothing of more executions; they take no less than fewer."""
    source = Source("", 9, 50, Steps(), (10,), (50, 100, 60))
    assert [source.longest_sum(count) for count in range(5)] == [0, 50, 100, 100, 150]


def test_vectors_that_no_recorder_wrote_are_taken():
    source = Source("", 3, 7, Steps(), tuple(range(1, 100)), ())
    assert source.longest_sum(3) == 21
    assert source.begins(50) == 50
    assert Source("", 3, 7, Steps(), (0, 0), (7,)).begins(1) > 1000
