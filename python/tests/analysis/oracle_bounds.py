"""Slow bounds written down as they are stated, to hold the fast ones against.

Shares no code with Latenz. All times are integer nanoseconds; windows are half open, eta(dt) counts
the arrivals in [t, t + dt). A system is the plain dictionary of
`data/beckert2014/counterexamples.json`. A bound is None if a busy window exceeds the horizon.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

HORIZON_NS = 1_000_000_000

# --- arrivals -----------------------------------------------------------------------------------


@cache
def closed_distance(vector: tuple[int, ...], events: int) -> int:
    """The greatest distance of `events` events that `vector` = delta(2), delta(3), ... enforces.

    n events span at least what the vector says of them, what fewer of them span, and what two
    groups that share one event span together.
    """
    if events <= 1:
        return 0
    candidates = [closed_distance(vector, events - 1)]
    if events - 2 < len(vector):
        candidates.append(vector[events - 2])
    candidates += [
        closed_distance(vector, left) + closed_distance(vector, events + 1 - left)
        for left in range(2, events // 2 + 2)
        if left < events
    ]
    return max(candidates)


def distance(model: Mapping[str, Any], events: int) -> int:
    """delta-minus of an event model: the least distance between the first and last of `events`."""
    if events <= 1:
        return 0
    if model["type"] == "delta":
        vector = tuple(model["vector"])
        for shorter in range(2, events, 200):  # keeps the recursion shallow
            closed_distance(vector, shorter)
        return closed_distance(vector, events)
    gaps = events - 1
    return max(gaps * model["period"] - model["jitter"], gaps * model["dmin"], 0)


def monitor_model(source: Mapping[str, Any]) -> dict[str, Any]:
    """What a source's monitor lets pass, as an event model."""
    return {"type": "delta", "vector": source["monitor"]}


def arrivals_within(model: Mapping[str, Any], window_ns: int) -> int:
    """eta-plus: the most events in a half-open window, by trying one more until it does not fit."""
    if window_ns <= 0:
        return 0
    events = 1
    while distance(model, events + 1) < window_ns:
        events += 1
    return events


def rate(model: Mapping[str, Any]) -> Fraction:
    """Events per nanosecond in the long run."""
    if model["type"] == "pjd":
        return Fraction(1, max(model["period"], model["dmin"]))
    # repeating the entry that spaces events most is what closing a vector comes to
    return 1 / max(Fraction(entry, gaps) for gaps, entry in enumerate(model["vector"], start=1))


def conforms(source: Mapping[str, Any]) -> bool:
    """Whether the source's own arrivals can never be refused by its monitor."""
    if source["monitor"] is None:
        return False
    return all(
        distance(source["model"], events) >= entry
        for events, entry in enumerate(source["monitor"], start=2)
    )


# --- slots --------------------------------------------------------------------------------------


def blocked_stretches(system: Mapping[str, Any], partition: str) -> list[tuple[int, int]]:
    """When the queue of `partition` cannot run in one cycle, other interrupts aside.

    Foreign slots, and in its own slots the switches; a switch longer than its slot runs on.
    """
    busy_until_ns = 0
    stretches: list[tuple[int, int]] = []
    for _warm_up in range(3):  # the third cycle knows what the second leaves behind
        busy_until_ns -= cycle(system) if stretches else 0
        stretches = []
        start_ns = 0
        for slot in system["slots"]:
            end_ns = start_ns + slot["length"]
            busy_until_ns = max(busy_until_ns, start_ns) + system["c_switch"]
            until_ns = end_ns if slot["partition"] != partition else min(busy_until_ns, end_ns)
            if until_ns > start_ns:
                stretches.append((start_ns, until_ns))
            start_ns = end_ns
    return stretches


def cycle(system: Mapping[str, Any]) -> int:
    return sum(slot["length"] for slot in system["slots"])


def blocked_from(
    stretches: Sequence[tuple[int, int]], cycle_ns: int, start_ns: int, window_ns: int
) -> int:
    """How much of [start, start + window) lies in the stretches, repeated every cycle."""
    end_ns = start_ns + window_ns
    total_ns = 0
    for first, last in stretches:
        whole, rest = divmod(window_ns, cycle_ns)
        total_ns += whole * (last - first)
        # what is left of the window is shorter than a cycle and meets at most two repetitions
        rest_start = end_ns - rest
        shift = rest_start // cycle_ns * cycle_ns
        for base in (shift, shift + cycle_ns):
            overlap = min(end_ns, base + last) - max(rest_start, base + first)
            total_ns += max(0, overlap)
    return total_ns


def blocked(system: Mapping[str, Any], partition: str, window_ns: int) -> int:
    """The most time a window of that length can lose to other slots and to switches.

    Only windows that start with a stretch are tried: from inside a stretch, moving the window to
    its start gains there at least what is lost at the end; from outside, moving to the next loses
    nothing.
    """
    stretches = blocked_stretches(system, partition)
    cycle_ns = cycle(system)
    return max(
        (blocked_from(stretches, cycle_ns, first, window_ns) for first, _ in stretches), default=0
    )


def blocked_at_any_alignment(system: Mapping[str, Any], partition: str, window_ns: int) -> int:
    """The same, trying every nanosecond of the cycle, one nanosecond at a time."""
    cycle_ns = cycle(system)
    is_blocked = [False] * cycle_ns
    for first, last in blocked_stretches(system, partition):
        is_blocked[first:last] = [True] * (last - first)
    return max(
        sum(is_blocked[(start + offset) % cycle_ns] for offset in range(window_ns))
        for start in range(cycle_ns)
    )


def switches_within(system: Mapping[str, Any], window_ns: int) -> int:
    """S: the most slot switches in a half-open window."""
    starts, start_ns = [], 0
    for slot in system["slots"]:
        starts.append(start_ns)
        start_ns += slot["length"]
    most = 0
    for first in range(len(starts)):
        inside, index = 0, first
        while index // len(starts) * start_ns + starts[index % len(starts)] - starts[first] < (
            window_ns
        ):
            inside, index = inside + 1, index + 1
        most = max(most, inside)
    return most


# --- the sound bound ----------------------------------------------------------------------------


def overhead(system: Mapping[str, Any]) -> int:
    """What an interposed job costs beside the bottom handler, Eq. (13)."""
    return system["c_sched"] + 2 * system["c_ctx"]


@cache
def closed_sum(sums: tuple[int, ...], executions: int) -> int:
    """The most that so many consecutive executions take: as given, or in two rows."""
    if executions == 0:
        return 0
    given = [sums[executions - 1]] if executions <= len(sums) else []
    rows = [
        closed_sum(sums, row) + closed_sum(sums, executions - row)
        for row in range(1, executions // 2 + 1)
    ]
    return min(given + rows)


def tops_of(source: Mapping[str, Any], executions: int) -> int:
    """The most that so many consecutive top handlers take: gamma, or C_TH each."""
    if "sums" not in source:
        return int(executions * source["c_th"])
    for fewer in range(0, executions, 200):  # keeps the recursion shallow
        closed_sum(source["sums"], fewer)
    return closed_sum(source["sums"], executions)


def tops_within(
    system: Mapping[str, Any], source: Mapping[str, Any], mode: str, window_ns: int
) -> int:
    """The most that top handlers in a window take, with what the monitor adds to each."""
    monitored = source["monitor"] is not None and mode != "plain"
    executions = arrivals_within(source["model"], window_ns)
    return tops_of(source, executions) + executions * system["c_mon"] * monitored


def top_cost(system: Mapping[str, Any], source: Mapping[str, Any], mode: str) -> Fraction:
    """What a top handler takes in the long run: of a curve, what the best of its rows takes."""
    monitored = source["monitor"] is not None and mode != "plain"
    rows = range(1, len(source.get("sums", (0,))) + 1)
    return min(Fraction(tops_of(source, row), row) for row in rows) + system["c_mon"] * monitored


def interposed_within(
    source: Mapping[str, Any], mode: str, window_ns: int, own_bound_ns: int
) -> int:
    """G: the most interposed jobs of a source in a window, those carried into it included."""
    if source["monitor"] is None or mode == "plain":
        return 0
    carried_ns = own_bound_ns if mode == "carry" else 0
    return min(
        arrivals_within(source["model"], window_ns + carried_ns),
        arrivals_within(monitor_model(source), window_ns + carried_ns),
    )


def least_fixed_point(demand: Callable[[int], int], start_ns: int, horizon_ns: int) -> int | None:
    """The least F >= start with demand(F) = F, by the plain climb; None past the horizon."""
    window_ns = start_ns
    while window_ns <= horizon_ns:
        needed_ns = demand(window_ns)
        if needed_ns <= window_ns:
            return window_ns
        window_ns = needed_ns
    return None


def worst_over_offsets(
    own: Sequence[Mapping[str, Any]],
    own_demand: Callable[[int], int],
    other_demand: Callable[[int], int],
    horizon_ns: int,
) -> int | None:
    """Max over offsets A of F - A, where F = own_demand(A + 1) + other_demand(F).

    A are the steps of the own sources' delta-minus below the length of the busy window.
    """
    busy_ns = least_fixed_point(
        lambda window: own_demand(window) + other_demand(window), 1, horizon_ns
    )
    if busy_ns is None:
        return None
    offsets = set()
    for source in own:
        events = 1
        while distance(source["model"], events) < busy_ns:
            offsets.add(distance(source["model"], events))
            events += 1
    worst_ns = 0
    for offset in sorted(offsets):
        own_ns = own_demand(offset + 1)
        finish_ns = least_fixed_point(
            lambda window, own_ns=own_ns: own_ns + other_demand(window), 1, horizon_ns
        )
        assert finish_ns is not None, "no longer than the busy window"
        worst_ns = max(worst_ns, finish_ns - offset)
    return worst_ns


def overloaded(system: Mapping[str, Any], partition: str, mode: str, as_conforming: bool) -> bool:
    """Whether the long-run demand exceeds the processor, so that no busy window ever ends."""
    share = Fraction(0)
    for source in system["sources"]:
        share += rate(source["model"]) * top_cost(system, source, mode)
        own = source["partition"] == partition
        jobs = Fraction(0)
        if source["monitor"] is not None and mode != "plain":
            jobs = min(rate(source["model"]), rate(monitor_model(source)))
        if own:
            share += rate(source["model"]) * source["c_bh"] + jobs * overhead(system)
        else:
            share += jobs * (source["c_bh"] + overhead(system))
    if as_conforming:
        share += Fraction(system["c_switch"] * len(system["slots"]), cycle(system))
    else:
        if system["c_switch"] * len(system["slots"]) > cycle(system):
            return True
        lost = sum(last - first for first, last in blocked_stretches(system, partition))
        share += Fraction(lost, cycle(system))
    return share > 1


def partition_bound(
    system: Mapping[str, Any],
    partition: str,
    mode: str,
    bounds: Mapping[str, int | None],
    horizon_ns: int,
    tight: bool,
) -> int | None:
    """The bound of every source of one partition, given those of the other partitions."""
    own = [source for source in system["sources"] if source["partition"] == partition]
    others = [source for source in system["sources"] if source["partition"] != partition]
    interposing = [source for source in others if source["monitor"] is not None]
    known = mode != "carry" or all(bounds[source["name"]] is not None for source in interposing)

    def tops(window: int) -> int:
        return sum(tops_within(system, source, mode, window) for source in system["sources"])

    def interposed_by_others(window: int, carried: bool) -> int:
        return sum(
            interposed_within(source, mode, window, (bounds[source["name"]] or 0) * carried)
            * (source["c_bh"] + overhead(system))
            for source in others
        )

    def own_overhead(window: int) -> int:
        return sum(interposed_within(source, mode, window, 0) for source in own) * overhead(system)

    def bottoms(window: int) -> int:
        return sum(arrivals_within(source["model"], window) * source["c_bh"] for source in own)

    def bottoms_as_jobs(window: int) -> int:
        return sum(
            arrivals_within(source["model"], window) * (source["c_bh"] + overhead(system))
            for source in own
        )

    candidates = []
    if (known or tight) and not overloaded(system, partition, mode, as_conforming=False):
        candidates.append(
            worst_over_offsets(
                own,
                bottoms,
                lambda window: (
                    tops(window)
                    + interposed_by_others(window, carried=not tight)
                    + own_overhead(window)
                    + blocked(system, partition, window)
                ),
                horizon_ns,
            )
        )
    all_conform = known and mode == "carry" and all(conforms(source) for source in own)
    if all_conform and not overloaded(system, partition, mode, as_conforming=True):
        candidates.append(
            worst_over_offsets(
                own,
                bottoms_as_jobs,
                lambda window: (
                    tops(window)
                    + interposed_by_others(window, carried=True)
                    + switches_within(system, window) * system["c_switch"]
                ),
                horizon_ns,
            )
        )
    return min((bound for bound in candidates if bound is not None), default=None)


def sound_bounds(
    system: Mapping[str, Any], mode: str, horizon_ns: int = HORIZON_NS, tight: bool = False
) -> dict[str, int | None]:
    """The worst-case latency of every source, arrival to end of the bottom handler.

    In mode carry a source's jobs may start late, by up to its own bound: those bounds are raised
    from zero until nothing changes.

    `tight` leaves that delay out wherever blocked time is charged. An accepted interrupt of another
    partition is without a job only in slots of that partition, which are blocked time: a busy
    window extended back over such slots holds the arrival of every interrupt whose job it holds.
    """
    bounds: dict[str, int | None] = {source["name"]: 0 for source in system["sources"]}
    while True:
        raised = {
            source["name"]: partition_bound(
                system, source["partition"], mode, bounds, horizon_ns, tight
            )
            for source in system["sources"]
        }
        if raised == bounds:
            return bounds
        bounds = raised


def interference_promise(
    system: Mapping[str, Any], mode: str, window_ns: int, bounds: Mapping[str, int | None]
) -> int | None:
    """The most a partition can lose in a window to top handlers, interposed jobs and switches."""
    total_ns = switches_within(system, window_ns) * system["c_switch"]
    for source in system["sources"]:
        monitored = source["monitor"] is not None
        if mode == "carry" and monitored and bounds[source["name"]] is None:
            return None
        jobs = interposed_within(source, mode, window_ns, bounds[source["name"]] or 0)
        total_ns += tops_within(system, source, mode, window_ns)
        total_ns += jobs * (source["c_bh"] + overhead(system))
    return total_ns


# --- whatever other partitions do -----------------------------------------------------------------


def masked_within(system: Mapping[str, Any], source: Mapping[str, Any], window_ns: int) -> int:
    """R7: between two maskings lie a slot's start and a top handler."""
    tops = arrivals_within(source["model"], window_ns)
    return system.get("c_lim", 0) * (min(tops, switches_within(system, window_ns)) + 1)


def granted_within(source: Mapping[str, Any], mode: str, window_ns: int) -> int:
    """The most a monitor accepts in a window, whatever arrives."""
    if source["monitor"] is None or mode == "plain":
        return 0
    return arrivals_within(monitor_model(source), window_ns)


def rows_and_gaps(system: Mapping[str, Any], partition: str) -> tuple[int, int | None]:
    """The longest row of a partition's slots and the shortest time between two of them."""
    owners = [slot["partition"] == partition for slot in system["slots"]]
    if all(owners):
        return 0, None
    first = next(i for i in range(len(owners)) if owners[i] and not owners[i - 1])
    rows, gaps = [], []
    for step in range(len(owners)):
        at = (first + step) % len(owners)
        lengths = rows if owners[at] else gaps
        if owners[at] != owners[at - 1]:
            lengths.append(0)
        lengths[-1] += system["slots"][at]["length"]
    return max(rows), min(gaps)


def enforced_deferral(
    system: Mapping[str, Any], mode: str, horizon_ns: int
) -> dict[str, int] | None:
    """By source: row + I, where I is long enough for the jobs that it defers itself; or None."""
    if mode != "carry":
        return {source["name"]: 0 for source in system["sources"]}
    rows = {
        source["name"]: rows_and_gaps(system, source["partition"]) for source in system["sources"]
    }

    def server(window: int) -> int:
        total = switches_within(system, window) * system["c_switch"]
        for source in system["sources"]:
            row_ns, gap_ns = rows[source["name"]]
            total += tops_within(system, source, mode, window)
            total += masked_within(system, source, window)
            if source["monitor"] is not None:
                if gap_ns is not None and window >= gap_ns:
                    return horizon_ns + 1
                jobs = granted_within(source, mode, window + row_ns + window)
                total += jobs * (source["c_bh"] + overhead(system))
        return total

    busy_ns = least_fixed_point(server, 1, horizon_ns)
    return busy_ns and {name: row_ns + busy_ns for name, (row_ns, _) in rows.items()}


def enforced_bounds(
    system: Mapping[str, Any], mode: str, horizon_ns: int = HORIZON_NS
) -> dict[str, int | None]:
    """The worst-case latency of every source, whatever sources of other partitions do."""
    deferral = enforced_deferral(system, mode, horizon_ns)
    return {
        source["name"]: enforced_bound(system, source["partition"], mode, deferral, horizon_ns)
        for source in system["sources"]
    }


def enforced_bound(
    system: Mapping[str, Any],
    partition: str,
    mode: str,
    deferral: Mapping[str, int] | None,
    horizon_ns: int,
) -> int | None:
    """The bound of every source of one partition."""
    own = [source for source in system["sources"] if source["partition"] == partition]
    others = [source for source in system["sources"] if source["partition"] != partition]

    def of_others(window: int, carried: Mapping[str, int]) -> int:
        total = sum(tops_within(system, source, mode, window) for source in system["sources"])
        for source in others:
            reach = window + carried.get(source["name"], 0)
            jobs = granted_within(source, mode, reach)
            total += masked_within(system, source, window)
            total += jobs * (source["c_bh"] + overhead(system))
        return total

    def own_overhead(window: int) -> int:
        return sum(interposed_within(source, mode, window, 0) for source in own) * overhead(system)

    def bottoms(window: int, extra_ns: int) -> int:
        return sum(
            arrivals_within(source["model"], window) * (source["c_bh"] + extra_ns) for source in own
        )

    def in_slots(window: int) -> int:
        return of_others(window, {}) + own_overhead(window) + blocked(system, partition, window)

    candidates = [worst_over_offsets(own, lambda window: bottoms(window, 0), in_slots, horizon_ns)]
    interposing = any(source["monitor"] is not None for source in others)
    if mode == "carry" and all(map(conforms, own)) and (deferral or not interposing):
        candidates.append(
            worst_over_offsets(
                own,
                lambda window: bottoms(window, overhead(system)),
                lambda window: (
                    of_others(window, deferral or {})
                    + switches_within(system, window) * system["c_switch"]
                ),
                horizon_ns,
            )
        )
    return min((bound for bound in candidates if bound is not None), default=None)


# --- the equations as printed -------------------------------------------------------------------


def worst_as_printed(
    source: Mapping[str, Any], busy_time: Callable[[int, int], int], horizon_ns: int
) -> int | None:
    """Eqs. (4) and (12): max of W(q) - delta(q) over q, W(q) by its iteration from zero."""
    worst_ns, previous_ns, q = 0, 0, 1
    while distance(source["model"], q) <= previous_ns:
        fixed = least_fixed_point(lambda window, q=q: busy_time(q, window), 1, horizon_ns)
        if fixed is None:
            return None
        worst_ns = max(worst_ns, fixed - distance(source["model"], q))
        previous_ns, q = fixed, q + 1
    return worst_ns


def equation_11(
    system: Mapping[str, Any], source: Mapping[str, Any], horizon_ns: int = HORIZON_NS
) -> int | None:
    """Eqs. (11), (12) as printed; T_i is all slots of the partition, switches are nowhere."""
    cycle_ns = cycle(system)
    own_ns = sum(s["length"] for s in system["slots"] if s["partition"] == source["partition"])
    others = [other for other in system["sources"] if other is not source]

    def busy_time(q: int, window: int) -> int:
        return (
            q * source["c_bh"]
            + arrivals_within(source["model"], window) * source["c_th"]
            + -(-window // cycle_ns) * (cycle_ns - own_ns)
            + sum(arrivals_within(o["model"], window) * o["c_th"] for o in others)
        )

    return worst_as_printed(source, busy_time, horizon_ns)


def equation_16(
    system: Mapping[str, Any], source: Mapping[str, Any], horizon_ns: int = HORIZON_NS
) -> int | None:
    """Eqs. (16), (12) as printed, whether the source has a monitor or not."""
    others = [other for other in system["sources"] if other is not source]

    def busy_time(q: int, window: int) -> int:
        return (
            q * (source["c_bh"] + overhead(system))
            + arrivals_within(source["model"], window) * (source["c_th"] + system["c_mon"])
            + sum(arrivals_within(o["model"], window) * o["c_th"] for o in others)
        )

    return worst_as_printed(source, busy_time, horizon_ns)
