"""Applying a gate to a comparison."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from latenz.compare.estimate import fewest_repetitions
from latenz.compare.gate import Clause, Expression, Figure, Truth, parse
from latenz.compare.result import Comparison, Effect, Pair
from latenz.durations import format_duration
from latenz.errors import EXIT_GATE_VIOLATED, EXIT_NOT_SHOWN


@dataclass(frozen=True)
class Gate:
    """What an expression of `--fail-if` says of a comparison.

    Attributes:
        expression: The text that was given.
        violated: Whether it holds for at least one pair; None if that cannot be told.
        reasons: Why, pair by pair.
        statements: Intervals that were judged; they hold together at the confidence asked for.
        confidence: Confidence of each of them, so that they do (Bonferroni); None without any.
        violating: Places in the comparison's pairs of those for which it holds.
    """

    expression: str
    violated: bool | None
    reasons: tuple[str, ...]
    statements: int = 0
    confidence: float | None = None
    violating: tuple[int, ...] = ()

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0 passed, 1 violated, 3 cannot be told."""
        if self.violated is None:
            return EXIT_NOT_SHOWN
        return EXIT_GATE_VIOLATED if self.violated else 0

    @property
    def outcome(self) -> str:
        """The outcome in words."""
        return {True: "violated", False: "passed", None: "cannot be told"}[self.violated]

    @property
    def together(self) -> str | None:
        """Say at which confidence its intervals are; None if it asks for one at most."""
        if self.statements < 2:
            return None
        return f"{self.statements} intervals, each at {self.confidence:.6g}: all hold together"

    def to_json(self) -> dict[str, Any]:
        """Return the gate as plain values for JSON."""
        return {
            "expression": self.expression,
            "violated": bool(self.violated),
            "shown": self.violated is not None,
            "reasons": list(self.reasons),
            "statements": self.statements,
            "confidence_of_each": self.confidence,
        }


def judge(comparison: Comparison, text: str) -> Gate:
    """Apply an expression to every pair.

    One pair for which it holds violates the gate. A set of A without counterpart in B, or nothing
    to compare at all, cannot be shown to pass.

    Many intervals of 95 % would exclude the truth somewhere by chance. Those that the expression
    asks for are therefore taken at a confidence at which all of them hold together. Whether any
    of them violates the gate comes out the same by Holm's procedure, whose first step this is.

    Raises:
        BadInput: The expression does not follow the grammar.
    """
    expression = parse(text)
    asked = {clause.statistic for clause in expression.clauses() if clause.significantly}
    statements = sum(
        interval_of(pair, name).contrast is not None for pair in comparison.pairs for name in asked
    )
    confidence = 1 - (1 - comparison.settings.confidence) / max(statements, 1)
    truths: list[Truth] = [None] * len(comparison.unmatched_a)
    reasons = [f"{name}: has no counterpart in B" for name in comparison.unmatched_a]
    if not comparison.pairs:
        truths.append(None)
        reasons.append("no sample sets match")
    violating = []
    for place, pair in enumerate(comparison.pairs):
        figures = {name: _figure(pair, name, confidence) for name in pair.statistics}
        truth = expression.holds(figures)
        truths.append(truth)
        if truth is True:
            violating.append(place)
        if truth is not False:
            reasons += [f"{pair.name}: {reason}" for reason in _reasons(expression, figures, truth)]
    violated = True if True in truths else None if None in truths else False
    sure = confidence if statements else None
    return Gate(text, violated, tuple(reasons), statements, sure, tuple(violating))


def interval_of(pair: Pair, name: str) -> Effect:
    """Return where a statistic's interval comes from: the largest latency has that of blocks."""
    effect = pair.statistics[name]
    return pair.statistics["block_max"] if name == "max" and effect.low is None else effect


def _figure(pair: Pair, name: str, confidence: float) -> Figure:
    """Return what a gate sees of a statistic."""
    effect, shown = interval_of(pair, name), pair.statistics[name]
    ends = (effect.low, effect.high)
    if effect.contrast is not None:
        ends = effect.contrast.difference(confidence) or (None, None)
    unknown = None if shown.alike else shown.why_no_interval
    return Figure(shown.a, shown.b, *ends, unknown, _without(effect, confidence))


def _without(effect: Effect, confidence: float) -> str:
    """Say why there is no interval, and what would give one."""
    if effect.why_no_interval is not None:
        needed = f"; {effect.needed}" if effect.needed else ""
        return effect.why_no_interval + needed
    paired = effect.basis == "paired repetitions"
    repetitions = fewest_repetitions(1 - confidence, paired)
    return f"so many statements hold together from {repetitions} repetitions of each side on"


def _reasons(expression: Expression, figures: Mapping[str, Figure], truth: Truth) -> list[str]:
    """Say what each condition found that has the same outcome as the whole."""
    return [
        f"{clause.text}: {_found(clause, figures[clause.statistic])}"
        for clause in expression.clauses()
        if clause.holds(figures) is truth
    ]


def _found(clause: Clause, figure: Figure) -> str:
    if figure.unknown:
        return figure.unknown
    if figure.b is None or (clause.kind != "value" and figure.a is None):
        return "the values are not known"
    if clause.kind == "value" or figure.a is None:
        return f"it is {_amount(clause, figure.b)}"
    change = figure.b - figure.a
    found = f"from {_amount(clause, figure.a)} to {_amount(clause, figure.b)}"
    if figure.a:
        found += f", {100 * change / abs(figure.a):+.3g} %"
    if not clause.significantly:
        return found
    if figure.low is None or figure.high is None:
        return f"{found}, without an interval: {figure.why_none}"
    return f"{found}, interval {_amount(clause, figure.low)} to {_amount(clause, figure.high)}"


def _amount(clause: Clause, value: float) -> str:
    return f"{value:.4g}" if clause.statistic == "miss_rate" else format_duration(value)
