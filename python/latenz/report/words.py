"""Numbers and findings in words that people read."""

import math
from collections.abc import Sequence

from latenz.durations import format_duration
from latenz.model import Handling
from latenz.report.collect import View
from latenz.statistics import Verdict
from latenz.statistics.extrapolation import Estimate, TailFit
from latenz.statistics.mixture import MixedTail

UNKNOWN = "\N{EN DASH}"
"""Stands where a source does not tell a figure."""

TAIL_CONFIDENCE = 0.95
FARTHEST = 1000
"""A tail is told for times up to so many times as long as was measured."""
TIMES = {"an hour": 3_600 * 10**9, "a day": 86_400 * 10**9, "30 days": 2_592_000 * 10**9}

HANDLED: dict[Handling, str] = {
    "direct": "handled in their own partition's slot",
    "interposed": "interposed in a foreign slot",
    "delayed": "delayed to their own partition's slot",
}

UNITS = (("ns", 1), ("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000))

TIME_BASES = {
    "silicon": "a real clock on real hardware",
    "virtual": "instructions counted by an emulator, not silicon time",
    "simulated": "computed by a simulator from a description of the system or its hardware",
    "published": "printed in a publication, not measured here",
}

EXPLAINED = {
    "meets": "What was seen bounds lateness at or below what the deadline allows.",
    "violates": "What was seen is more lateness than the deadline allows.",
    "not shown": "What was seen shows neither.",
}


def count(number: int | None) -> str:
    """Return a count with separated thousands; a dash where it is not known."""
    return UNKNOWN if number is None else f"{number:,}"


def exact(nanoseconds: float | None) -> str:
    """Return the nanoseconds in full, for those who need every digit."""
    if nanoseconds is None:
        return "the source does not tell"
    return f"{nanoseconds:,} ns"


def duration(nanoseconds: float | None) -> str:
    """Return a duration in the unit people would choose; a dash where it is not known."""
    return UNKNOWN if nanoseconds is None else format_duration(nanoseconds)


def table_unit(nanoseconds: list[float]) -> tuple[str, int]:
    """Return one unit for a whole table, so that its columns compare at a glance."""
    sizes = [abs(value) for value in nanoseconds if value]
    smallest = min(sizes, default=0)
    fitting = [unit for unit in UNITS if smallest >= unit[1]]
    return fitting[-1] if fitting else UNITS[0]


def in_unit(
    nanoseconds: float | None, size: int, resolution_ns: int = 1, finer: bool = False
) -> str:
    """Return a time in a table's unit, with as many decimals as its clock resolves, at most three.

    Args:
        nanoseconds: The time; None: a dash.
        size: Nanoseconds in the unit.
        resolution_ns: Of the clock or the histogram that it comes from.
        finer: An average: one decimal more than single values have.
    """
    if nanoseconds is None:
        return UNKNOWN
    resolved = math.ceil(math.log10(size / resolution_ns)) + (finer and resolution_ns > 1)
    if size > 1:
        return f"{nanoseconds / size:,.{min(max(resolved, 0), 3)}f}"
    if isinstance(nanoseconds, int):
        return f"{nanoseconds:,}"
    return f"{nanoseconds:,.{min(max(resolved, 0), 2) if resolution_ns > 1 else 2}f}"


def percent(probability: float) -> str:
    """Return a confidence level as per cent."""
    return f"{100 * probability:.4g} %"


def one_in(probability: float) -> str:
    """Return a probability as a rate: 1 in so many."""
    if probability >= 0.5:
        return percent(probability)
    return f"1 in {math.floor((1 + 1e-12) / probability):,}"


def tail_estimates(tail: TailFit | MixedTail, verdicts: Sequence[Verdict]) -> list[str]:
    """Say what a fitted tail predicts: levels beyond the data, and each deadline above it."""
    told = [
        f"exceeded once in {count(10 * tail.n)} activations:"
        f" {_level(tail.return_level(10 * tail.n, TAIL_CONFIDENCE))}"
    ]
    for time, time_ns in TIMES.items():
        if 1 < time_ns / (tail.duration_ns or time_ns) <= FARTHEST:
            told.append(f"largest in {time}: {_level(tail.largest_in(time_ns, TAIL_CONFIDENCE))}")
    for verdict in verdicts:
        if verdict.limit_ns > tail.threshold_ns:
            told += _beyond(tail, verdict)
    return told


def _level(level: Estimate) -> str:
    return f"{duration(level.value)} ({duration(level.lower)} to {duration(level.upper)})"


def _beyond(tail: TailFit | MixedTail, verdict: Verdict) -> list[str]:
    """Say how often a deadline is exceeded, by activation and in time."""
    one = tail.exceedance(verdict.limit_ns, TAIL_CONFIDENCE)
    told = [
        f"probability of exceeding {verdict.name}: at most {one.upper:.2g}"
        f" (estimate {one.value:.2g})"
    ]
    if tail.duration_ns is not None:
        hourly = tail.episodes(verdict.limit_ns, TIMES["an hour"], TAIL_CONFIDENCE)
        told.append(
            f"episodes later than {verdict.name} in an hour: at most {hourly.upper:.2g}"
            f" (estimate {hourly.value:.2g})"
        )
    return told


def set_in_words(view: View) -> str:
    """Say the main figures of a set, as the text alternative of plots."""
    summary = view.summary
    known = [
        ("median", summary.median_ns),
        ("99 %", summary.quantiles_ns.get("0.99")),
        ("99.9 %", summary.quantiles_ns.get("0.999")),
        ("mean", summary.mean_ns),
        ("max", summary.max_ns),
    ]
    figures = ", ".join(f"{name} {duration(ns)}" for name, ns in known if ns is not None)
    return f"{view.label}: {figures}"
