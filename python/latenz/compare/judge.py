"""Applying a gate to a comparison."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from latenz.compare.gate import Clause, Expression, Figure, Truth, parse
from latenz.compare.result import Comparison
from latenz.durations import format_duration
from latenz.errors import EXIT_GATE_VIOLATED, EXIT_NOT_SHOWN


@dataclass(frozen=True)
class Gate:
    """What an expression of `--fail-if` says of a comparison.

    Attributes:
        expression: The text that was given.
        violated: Whether it holds for at least one pair; None if that cannot be told.
        reasons: Why, pair by pair.
    """

    expression: str
    violated: bool | None
    reasons: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0 passed, 1 violated, 3 cannot be told."""
        if self.violated is None:
            return EXIT_NOT_SHOWN
        return EXIT_GATE_VIOLATED if self.violated else 0

    def to_json(self) -> dict[str, Any]:
        """Return the gate as plain values for JSON."""
        return {
            "expression": self.expression,
            "violated": bool(self.violated),
            "shown": self.violated is not None,
            "reasons": list(self.reasons),
        }


def judge(comparison: Comparison, text: str) -> Gate:
    """Apply an expression to every pair.

    One pair for which it holds violates the gate. A set of A without counterpart in B, or nothing
    to compare at all, cannot be shown to pass.

    Raises:
        BadInput: The expression does not follow the grammar.
    """
    expression = parse(text)
    truths: list[Truth] = [None] * len(comparison.unmatched_a)
    reasons = [f"{name}: has no counterpart in B" for name in comparison.unmatched_a]
    if not comparison.pairs:
        truths.append(None)
        reasons.append("no sample sets match")
    for pair in comparison.pairs:
        figures = pair.figures()
        truth = expression.holds(figures)
        truths.append(truth)
        if truth is not False:
            reasons += [f"{pair.name}: {reason}" for reason in _reasons(expression, figures, truth)]
    violated = True if True in truths else None if None in truths else False
    return Gate(text, violated, tuple(reasons))


def _reasons(expression: Expression, figures: Mapping[str, Figure], truth: Truth) -> list[str]:
    """Say what each condition found that has the same outcome as the whole."""
    return [
        f"{clause.text}: {_found(clause, figures[clause.statistic])}"
        for clause in expression.clauses()
        if clause.holds(figures) is truth
    ]


def _found(clause: Clause, figure: Figure) -> str:
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
        return f"{found}, without an interval"
    return f"{found}, interval {_amount(clause, figure.low)} to {_amount(clause, figure.high)}"


def _amount(clause: Clause, value: float) -> str:
    return f"{value:.4g}" if clause.statistic == "miss_rate" else format_duration(value)
