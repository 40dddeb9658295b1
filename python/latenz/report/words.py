"""Numbers and findings in words that people read."""

import math
from collections.abc import Sequence

from latenz.durations import format_duration
from latenz.model import Handling
from latenz.report.collect import View
from latenz.statistics import Verdict
from latenz.statistics.tail import TailFit

UNKNOWN = "\N{EN DASH}"
"""Stands where a source does not tell a figure."""

TAIL_CONFIDENCE = 0.95

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
    "meets": "No activation exceeded the limit, and there were enough of them to bound how often"
    " one may.",
    "violates": "At least one activation exceeded the limit.",
    "not shown": "The evidence neither violates the limit nor suffices to say that it is met.",
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


def in_unit(nanoseconds: float | None, size: int) -> str:
    """Return a time in a table's unit: three decimals; in ns, two for what is not whole."""
    if nanoseconds is None:
        return UNKNOWN
    if size > 1:
        return f"{nanoseconds / size:,.3f}"
    return f"{nanoseconds:,}" if isinstance(nanoseconds, int) else f"{nanoseconds:,.2f}"


def percent(probability: float) -> str:
    """Return a confidence level as per cent."""
    return f"{100 * probability:.4g} %"


def one_in(probability: float) -> str:
    """Return a probability as a rate: 1 in so many."""
    if probability >= 0.5:
        return percent(probability)
    return f"1 in {math.floor((1 + 1e-12) / probability):,}"


def verdict_sentence(verdict: Verdict, missed: int | None) -> str:
    """Say in one or two sentences what a verdict rests on."""
    limit = format_duration(verdict.limit_ns)
    trials = count(verdict.trials) if verdict.trials else "an unknown number of"
    longest = (
        f" (the longest took {duration(verdict.max_ns)})" if verdict.max_ns is not None else ""
    )
    if verdict.verdict == "violates":
        skipped = (
            f" {count(missed)} were skipped because the one before was late;"
            " they count by how long they waited."
            if missed
            else ""
        )
        exceeding = count(verdict.exceeding)
        return f"{exceeding} of {trials} activations exceeded {limit}{longest}.{skipped}"
    seen = f"None of {trials} activations is known to have exceeded {limit}{longest}."
    if not verdict.undecided:
        seen = f"None of {trials} activations exceeded {limit}{longest}."
    if verdict.verdict == "meets":
        return (
            f"{seen} With {percent(verdict.confidence)} confidence at most"
            f" {one_in(verdict.exceedance_upper)} does; {one_in(verdict.allowed)} is allowed."
        )
    return f"{seen} {_missing_evidence(verdict)}"


def _missing_evidence(verdict: Verdict) -> str:
    if not verdict.trials:
        return "The source does not say how many activations there were, so nothing is bounded."
    if verdict.undecided:
        return (
            f"For {count(verdict.undecided)} of them the recorded value does not tell on which"
            " side of the limit they were."
        )
    needed = math.ceil(math.log1p(-verdict.confidence) / math.log1p(-verdict.allowed))
    return (
        f"That only bounds the exceedance to {one_in(verdict.exceedance_upper)} with"
        f" {percent(verdict.confidence)} confidence; to show {one_in(verdict.allowed)} takes"
        f" {count(needed)} activations without a single exceedance."
    )


def tail_estimates(tail: TailFit, verdicts: Sequence[Verdict]) -> list[str]:
    """Say what a fitted tail foretells: a level beyond the data, and each deadline above it."""
    level = tail.return_level(10 * tail.n, TAIL_CONFIDENCE)
    told = [
        f"exceeded once in {count(10 * tail.n)} activations:"
        f" {duration(level.value)} ({duration(level.lower)} to {duration(level.upper)})"
    ]
    for verdict in verdicts:
        if verdict.limit_ns > tail.threshold_ns:
            found = tail.exceedance(verdict.limit_ns, TAIL_CONFIDENCE)
            told.append(
                f"probability of exceeding {verdict.name}: at most {found.upper:.2g}"
                f" (estimate {found.value:.2g})"
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
