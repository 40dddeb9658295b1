"""Searching for arrivals that take latencies as close to their bounds as possible.

What is found was simulated, so it is reachable: it says how tight a bound is, and a latency above
its bound would show that the bound is wrong. The search is core/include/latenz/adversary.hpp;
docs/check.md tells how it goes about.
"""

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np

from latenz import _core
from latenz.analysis.bound import HORIZON_NS, Verdict, bound
from latenz.analysis.native import MODES, core_system, event_model
from latenz.analysis.simulate import Simulator
from latenz.errors import BadInput
from latenz.files import replacing
from latenz.system import Mode, System
from latenz.system.processors import parts, shared_processors
from latenz.system.trace import COLUMNS

EachT = TypeVar("EachT")

EFFORT = 5000
"""Simulations for each source and each of its two bounds unless told otherwise."""

MOST_EFFORT = 10**9

Arrivals = tuple[tuple[int, ...], ...]
"""Times in nanoseconds, ascending, of each source in the order of the system."""

_STEP = 500  # simulations, or events of one, between two looks at how far it is
_TO_SIMPLIFY = 2000  # simulations for each source


@dataclass(frozen=True, slots=True)
class CheckedSource:
    """One source's bound and the highest latency that was found.

    Attributes:
        name: The source.
        verdict: Of its bound: `bounded`, `unbounded` or `past horizon`.
        wcrt_ns: The bound if all sources keep their event models; None if not bounded.
        highest_ns: The highest simulated latency; None if nothing was searched, as without a bound.
        ratio: `highest_ns / wcrt_ns`.
        arrivals_ns: The arrivals of all sources that lead to it, from the first TDMA cycle on and
            without those that are not needed; or None.
        reason: Why there is no bound.
        enforced_reason: Why there is no enforced bound.
        verdicts: Of its bound in every mode.
        enforced_ns: The bound whatever sources of other partitions do; None if not bounded.
        enforced_highest_ns: The highest latency while these break their models; None if nothing
            was searched.
        enforced_arrivals_ns: The arrivals of all sources that lead to it; or None.
        enforced_monitored_from_ns: When the monitor of each source had learned by then; 0 from the
            start on; or None.
    """

    name: str
    verdict: Verdict
    wcrt_ns: int | None
    highest_ns: int | None
    ratio: float | None
    arrivals_ns: Arrivals | None
    reason: str | None
    enforced_reason: str | None
    verdicts: dict[Mode, Verdict]
    enforced_ns: int | None
    enforced_highest_ns: int | None
    enforced_arrivals_ns: Arrivals | None
    enforced_monitored_from_ns: tuple[int, ...] | None

    @property
    def exceeded(self) -> bool:
        """Whether one of the bounds was shown to be wrong."""
        pairs = ((self.highest_ns, self.wcrt_ns), (self.enforced_highest_ns, self.enforced_ns))
        return any(
            found_ns is not None and bound_ns is not None and found_ns > bound_ns
            for found_ns, bound_ns in pairs
        )


@dataclass(frozen=True, slots=True)
class Check:
    """What a search found in one mode.

    Attributes:
        mode: How interrupts in foreign slots are handled.
        effort: How many simulations each source was given for each of its two bounds.
        seed: The same seed and effort find the same.
        sources: In the order of the system.
        complete: False if it was interrupted: what had been found by then.
    """

    mode: Mode
    effort: int
    seed: int
    sources: tuple[CheckedSource, ...]
    complete: bool

    @property
    def holds(self) -> bool:
        """Whether no simulated latency is above its bound."""
        return not any(source.exceeded for source in self.sources)

    def of(self, source: str) -> CheckedSource:
        """Return what was found for a source by its name."""
        return next(each for each in self.sources if each.name == source)


def check(
    system: System,
    mode: Mode | None = None,
    effort: int = EFFORT,
    seed: int = 0,
    *,
    horizon_ns: int = HORIZON_NS,
    progress: Callable[[int], None] = lambda _: None,
) -> Check:
    """Look for arrivals that take every source's latency close to its bounds.

    First all sources keep their event models, then those of other partitions break them: they come
    as densely as their monitors grant, or more densely than their models allow, and rule R7 masks
    them; monitors that learn have learned whenever that is worst. Interrupted by Ctrl-C, it returns
    what was found so far.

    Args:
        system: What to search.
        mode: Instead of the system's own.
        effort: Simulations for each source and each of its two bounds; a search ends earlier once
            the bound is reached.
        seed: Of the search.
        horizon_ns: Busy windows beyond it are given up: no bound, no search.
        progress: Is told how many simulations of twice `effort` for each source have been dealt
            with.

    Raises:
        BadInput: The effort is not 1 .. 10^9, or the seed is not 0 .. 2^64 - 1.
    """
    if not 0 < effort <= MOST_EFFORT:
        raise BadInput(f"{effort} is not a number of simulations", "effort", "give 1 to 1000000000")
    if not 0 <= seed < 2**64:
        raise BadInput(f"{seed} is not a seed", "seed", "give 0 to 2^64 - 1")
    mode = mode or system.mode
    if len(shared_processors(system)) > 1:
        return _of_processors(system, mode, effort, seed, horizon_ns, progress)
    core, count = core_system(system), len(system.sources)
    lawful, hostile = (
        _core.Adversary(core, MODES[mode], horizon_ns, seed, breaking) for breaking in (False, True)
    )
    complete = _search(lawful, count, effort, progress) and _search(
        hostile, count, effort, lambda done: progress(count * effort + done)
    )
    sources = _checked(system, mode, horizon_ns, lawful, hostile)
    return Check(mode, effort, seed, sources, complete)


def _of_processors(
    system: System,
    mode: Mode,
    effort: int,
    seed: int,
    horizon_ns: int,
    progress: Callable[[int], None],
) -> Check:
    """Search each processor by itself; arrivals of other processors' sources are empty."""
    found: dict[int, CheckedSource] = {}
    complete, before = True, 0

    def told(earlier: int, done: int) -> None:
        progress(earlier + done)

    for part in parts(system):
        if part.system is None:
            continue
        each = check(
            part.system,
            mode,
            effort if complete else 1,
            seed,
            horizon_ns=horizon_ns,
            progress=partial(told, before),
        )
        complete = complete and each.complete
        before += 2 * effort * len(part.sources)
        for number, source in zip(part.sources, each.sources, strict=True):
            found[number] = _spread(source, part.sources, len(system.sources))
    sources = tuple(found[number] for number in range(len(system.sources)))
    return Check(mode, effort, seed, sources, complete)


def _spread(source: CheckedSource, numbers: tuple[int, ...], count: int) -> CheckedSource:
    """Return what was found on a processor with a stream for every source of the system."""

    def spread(arrivals: Arrivals | None) -> Arrivals | None:
        if arrivals is None:
            return None
        own = dict(zip(numbers, arrivals, strict=True))
        return tuple(own.get(number, ()) for number in range(count))

    from_ns = source.enforced_monitored_from_ns
    own_from_ns = dict(zip(numbers, from_ns or (), strict=False))
    return replace(
        source,
        arrivals_ns=spread(source.arrivals_ns),
        enforced_arrivals_ns=spread(source.enforced_arrivals_ns),
        enforced_monitored_from_ns=from_ns and tuple(own_from_ns.get(x, 0) for x in range(count)),
    )


def _search(
    adversary: _core.Adversary, sources: int, effort: int, progress: Callable[[int], None]
) -> bool:
    try:
        for target in range(sources):
            adversary.begin(target, effort)
            while not adversary.go_on(_STEP):
                progress((target + 1) * effort - adversary.left)
            progress((target + 1) * effort)
        for target in range(sources):
            adversary.simplify(target, _TO_SIMPLIFY)
    except KeyboardInterrupt:
        return False
    return True


def _checked(
    system: System,
    mode: Mode,
    horizon_ns: int,
    lawful: _core.Adversary,
    hostile: _core.Adversary,
) -> tuple[CheckedSource, ...]:
    bounds = {each: bound(system, each, horizon_ns=horizon_ns) for each in MODES}
    checked = []
    for number, source in enumerate(bounds[mode].sources):
        verdicts = {each: bounds[each].sources[number].verdict for each in bounds}
        highest_ns, arrivals_ns = _found(lawful, number, source.wcrt_ns)
        enforced_highest_ns, enforced_arrivals_ns = _found(hostile, number, source.enforced_ns)
        from_ns = None
        if enforced_arrivals_ns is not None:
            from_ns = tuple(hostile.monitored_from_ns(number))
        checked.append(
            CheckedSource(
                source.name,
                source.verdict,
                source.wcrt_ns,
                highest_ns,
                highest_ns / source.wcrt_ns if source.wcrt_ns and highest_ns is not None else None,
                arrivals_ns,
                source.reason,
                source.enforced_reason,
                verdicts,
                source.enforced_ns,
                enforced_highest_ns,
                enforced_arrivals_ns,
                from_ns,
            )
        )
    return tuple(checked)


def _found(
    adversary: _core.Adversary, number: int, bound_ns: int | None
) -> tuple[int | None, Arrivals | None]:
    """Return the highest latency of a source with a bound, and the arrivals that lead to it."""
    highest_ns = adversary.highest_ns(number)
    if bound_ns is None or highest_ns is None:
        return None, None
    return highest_ns, tuple(map(tuple, adversary.arrivals_ns(number)))


def check_joinable(system: System) -> None:
    """Refuse systems whose worst arrivals cannot be one stream.

    A cost curve counts executions, not time: what the top handlers of one pattern took leaves less
    to those of the next, however much later that comes.

    Raises:
        BadInput: A source has `top_sums`.
    """
    for source in system.sources:
        if source.top_sums_ns is not None:
            raise BadInput(
                f"{source.name} has top_sums, which remember the patterns before the worst one",
                "--arrivals-out",
                "leave it out; --json has the arrivals of each source",
            )


def worst_arrivals(system: System, found: Check) -> Arrivals:
    """Return one stream for each source in which every source fares as badly as was found.

    The patterns of the sources follow each other, each from the start of a TDMA cycle on and after
    the last one has been served, so far apart that the streams stay legal and that monitors do not
    remember it.

    Raises:
        BadInput: As `check_joinable`.
    """
    check_joinable(system)
    if len(shared_processors(system)) > 1:
        return _worst_of_processors(system, found)
    patterns = list(
        dict.fromkeys(each.arrivals_ns for each in found.sources if each.arrivals_ns is not None)
    )
    pause_ns = _pause_ns(system, patterns)
    streams: list[list[int]] = [[] for _ in system.sources]
    start_ns = 0
    for pattern in patterns:
        for stream, times in zip(streams, pattern, strict=True):
            stream.extend(start_ns + time_ns for time_ns in times)
        last_ns = max(times[-1] for times in pattern if times)
        end_ns = max(last_ns + pause_ns, _served_ns(system, found, pattern, last_ns))
        cycles = end_ns // system.cycle_ns + 1
        start_ns += cycles * system.cycle_ns
    return tuple(map(tuple, streams))


def _worst_of_processors(system: System, found: Check) -> Arrivals:
    """Return the streams of each processor, whose times count from its own first cycle on."""
    streams: dict[int, tuple[int, ...]] = {}
    for part in parts(system):
        if part.system is None:
            continue
        sources = tuple(
            replace(each, arrivals_ns=each.arrivals_ns and _of(each.arrivals_ns, part.sources))
            for each in _of(found.sources, part.sources)
        )
        own = worst_arrivals(part.system, replace(found, sources=sources))
        streams |= dict(zip(part.sources, own, strict=True))
    return tuple(streams[number] for number in range(len(system.sources)))


def _of(every: tuple[EachT, ...], numbers: tuple[int, ...]) -> tuple[EachT, ...]:
    return tuple(every[number] for number in numbers)


def _served_ns(system: System, found: Check, pattern: Arrivals, last_ns: int) -> int:
    """Return when a pattern has been served, but for sources without a bound: they may never be."""
    longest_ns = max(each.wcrt_ns or 0 for each in found.sources)
    arrivals = [np.array(times, np.int64) for times in pattern]
    simulator = Simulator(system, found.mode, arrivals=arrivals)
    while not simulator.run(_STEP) and simulator.now_ns <= last_ns + longest_ns:
        pass
    return simulator.now_ns


def _pause_ns(system: System, patterns: Sequence[Arrivals]) -> int:
    """Return a time without arrivals that no event model and no monitor looks across.

    Any of a source's events need at most the delta-minus of the number of all of them, and a
    monitor looks back as far as its longest distance.
    """
    pauses_ns = [0]
    for number, source in enumerate(system.sources):
        model = event_model(source.arrival)
        if not isinstance(model, _core.Unlimited):
            pauses_ns.append(model.delta(sum(len(pattern[number]) for pattern in patterns)))
        if source.monitor is not None:
            pauses_ns.append(max(source.monitor.distances_ns))
    return max(pauses_ns)


def write_arrivals(path: Path, system: System, arrivals: Arrivals) -> None:
    """Write streams as a CSV file that `latenz simulate --arrivals` takes.

    Raises:
        BadInput: The file cannot be written, or a time does not fit in 64 bits.
    """
    rows = sorted((time_ns, number) for number, times in enumerate(arrivals) for time_ns in times)
    if rows and rows[-1][0] >= 2**63:
        raise BadInput("the arrivals last longer than 2^63 ns", str(path), "check fewer sources")
    with replacing(path) as partial, partial.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows((system.sources[number].name, time_ns) for time_ns, number in rows)
