"""Random systems and legal arrivals that aim at the edges of slots, for property tests.

Everything follows from the `random.Random` given: a failing seed replays. Systems and arrivals are
the plain dictionaries of `data/beckert2014/counterexamples.json`.
"""

from itertools import accumulate
from random import Random
from typing import Any

import oracle_bounds as oracle

MODES = ("plain", "paper", "carry")


def tiny_system(rng: Random) -> dict[str, Any]:
    """Slots of 2 to 12 ns, costs of 0 to 3 ns: edges everywhere."""
    return _system(
        rng,
        lengths=lambda: rng.randint(2, 12),
        cost=lambda: rng.choice((0, 0, 1, 1, 2, 3)),
        bottom=lambda: rng.randint(1, 3),
    )


def microsecond_system(rng: Random) -> dict[str, Any]:
    """Slots of 100 us to 6 ms, costs of about those of the publication."""
    return _system(
        rng,
        lengths=lambda: rng.choice((100, 250, 1000, 1000, 2000, 6000)) * 1000,
        cost=lambda: rng.choice((0, 640, 1_000, 4_385, 5_000, 25_000, 50_000)),
        bottom=lambda: rng.choice((1_000, 15_000, 40_000, 70_000, 300_000)),
    )


def _system(rng: Random, lengths: Any, cost: Any, bottom: Any) -> dict[str, Any]:
    partitions = [f"P{number}" for number in range(1, rng.randint(1, 4) + 1)]
    owners = partitions + rng.choices(partitions, k=rng.choice((0, 0, 0, 1, 2)))
    rng.shuffle(owners)
    slots = [{"partition": owner, "length": lengths()} for owner in owners]
    shortest = min(slot["length"] for slot in slots)
    cycle = sum(slot["length"] for slot in slots)
    c_mon, c_sched, c_ctx = (cost() for _ in range(3))
    count = rng.randint(1, 4)
    sources = []
    for number in range(count):
        top, bottom_ns = cost(), bottom()
        # seldom enough that most systems are not overloaded
        per_event = top + c_mon + bottom_ns + c_sched + 2 * c_ctx
        least_period = per_event * count * rng.choice((1, 2, 3))
        sources.append(
            {
                "name": f"s{number}",
                "partition": rng.choice(partitions),
                "c_th": top,
                "c_bh": bottom_ns,
                "model": _model(rng, max(least_period, cycle // 4)),
                "monitor": None,
            }
        )
    for source in sources:
        if rng.random() < 0.65:
            source["monitor"] = _monitor(rng, source["model"])
    return {
        "slots": slots,
        "c_switch": min(cost(), shortest - 1),
        "c_mon": c_mon,
        "c_sched": c_sched,
        "c_ctx": c_ctx,
        "sources": sources,
    }


def _model(rng: Random, period: int) -> dict[str, Any]:
    period = rng.randint(period, 5 * period)
    if rng.random() < 0.6:
        jitter = rng.choice((0, 0, rng.randint(0, period), rng.randint(0, 3 * period)))
        least = rng.choice((0, 1, rng.randint(0, period)))
        return {"type": "pjd", "period": period, "jitter": jitter, "dmin": least}
    gaps = [rng.randint(0, period) for _ in range(rng.randint(0, 2))]
    return {"type": "delta", "vector": list(accumulate([*sorted(gaps), period]))}


def _monitor(rng: Random, model: dict[str, Any]) -> list[int]:
    """Passing everything, something looser or tighter than the source, or something unrelated."""
    length = rng.randint(1, 3)
    vector = [oracle.distance(model, events) for events in range(2, length + 2)]
    kind = rng.random()
    if kind < 0.2:
        vector = [entry * rng.randint(1, 4) for entry in vector]
    elif kind < 0.35:
        vector = [entry - entry // rng.randint(2, 9) for entry in vector]
    elif kind < 0.5:
        scale = oracle.distance(model, 5) + 4
        vector = [rng.randint(1, scale) for _ in vector]
    # the last entry bounds the rate and may not be zero; the others keep the order of a vector
    vector[-1] = max(vector[-1], oracle.distance(model, 9) // 8, 1)
    return list(accumulate(vector, max))


def with_curves(rng: Random, system: dict[str, Any]) -> dict[str, Any]:
    """The same, in which top handlers of most sources take some more and have cost curves."""
    sources = []
    for source in system["sources"]:
        if rng.random() < 0.8:
            longest = source["c_th"] + rng.randint(0, source["c_th"] + 3)
            most = rng.choice((longest, longest // 3))
            steps = [rng.randint(0, most) for _ in range(rng.randint(0, 4))]
            sums = tuple(accumulate([longest, *steps]))
            sources.append(source | {"c_th": longest, "sums": sums})
        else:
            sources.append(source)
    return system | {"sources": sources}


def tops_by_curve(rng: Random, sums: tuple[int, ...], executions: int) -> list[int]:
    """Execution times of which no q in a row take more than gamma(q).

    Most are as long as those before permit; some first ones are short, so that the long ones come
    later, and some are short in between.
    """
    start, eager = rng.choice((0, 0, rng.randint(0, executions))), rng.choice((1.0, 0.8))
    tops: list[int] = []
    for at in range(executions):
        most = min(
            oracle.closed_sum(sums, row) - sum(tops[len(tops) - row + 1 :])
            for row in range(1, min(at + 1, len(sums)) + 1)
        )
        tops.append(most if at >= start and rng.random() < eager else rng.randint(0, most // 2))
    return tops


def random_arrivals(rng: Random, system: dict[str, Any], most: int = 10) -> dict[str, list[int]]:
    """Legal arrivals: close to slot edges and to each other, or as early as their model allows."""
    edges = [0, *accumulate(slot["length"] for slot in system["slots"])]
    cycle = edges[-1]
    common = cycle * rng.randint(0, 2) + rng.choice(edges) + rng.randint(-2, 2)
    together = rng.random() < 0.6
    arrivals = {}
    for source in system["sources"]:
        eager = rng.choice((0.0, 0.5, 0.9, 1.0))
        times: list[int] = []
        for _ in range(rng.randint(0 if together else 1, most)):
            earliest = _earliest(source["model"], times)
            if not times and together:
                wish = common + rng.choice((-1, 0, 0, 0, 1))
            elif times and rng.random() < eager:
                wish = earliest
            else:
                wish = _aim(rng, edges, cycle, earliest, system, source)
            times.append(max(0, earliest, wish))
        arrivals[source["name"]] = times
    return arrivals


def _earliest(model: dict[str, Any], times: list[int]) -> int:
    """The first instant at which one more arrival is legal."""
    return max(
        (
            earlier + oracle.distance(model, events)
            for events, earlier in enumerate(reversed(times), start=2)
        ),
        default=0,
    )


def _aim(
    rng: Random,
    edges: list[int],
    cycle: int,
    earliest: int,
    system: dict[str, Any],
    source: dict[str, Any],
) -> int:
    """Some edge from `earliest` on, or so little before it that work is cut there."""
    edge = earliest // cycle * cycle + cycle * rng.randint(0, 1) + rng.choice(edges)
    before = rng.choice((0, 0, source["c_th"], source["c_th"] + source["c_bh"], system["c_mon"]))
    return edge - before + rng.randint(-1, 1)
