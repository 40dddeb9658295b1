"""What a report says of tails: fits with their tests, and in one sentence where there is none."""

from collections.abc import Sequence
from typing import Any

from latenz.report import words
from latenz.report.collect import View
from latenz.statistics.extrapolation import TailFit
from latenz.statistics.mixture import MixedTail
from latenz.statistics.tail import TailRefusal

_REASONS_TOLD = 3


def told_tails(views: Sequence[View]) -> dict[str, Any]:
    """Return a row for each set with a tail to tell, and one sentence about all refusals."""
    rows = [_row(view, view.tail) for view in views if view.tail is not None]
    refused: dict[str, list[str]] = {}
    for row in rows:
        if not row["fits"]:
            refused.setdefault(row["reason"], []).append(row["view"].label)
    many = sum(map(len, refused.values()))
    sentence = ""
    if refused:
        ordered = sorted(refused.items(), key=lambda one: -len(one[1]))
        told = [
            f"{reason} ({labels[0] if len(labels) == 1 else f'{len(labels)} sets'})"
            for reason, labels in ordered[:_REASONS_TOLD]
        ]
        if left := sum(len(labels) for _, labels in ordered[_REASONS_TOLD:]):
            told.append(f"{left} more for reasons of their own, told below")
        sentence = f"No extrapolation for {many} of {len(rows)} sets: {'; '.join(told)}."
    return {"rows": rows, "fitted": [row for row in rows if row["fits"]], "refused": sentence}


def _row(view: View, tail: TailFit | MixedTail | TailRefusal) -> dict[str, Any]:
    """Return what the table of tails says about one set."""
    row: dict[str, Any] = {"view": view, "diagnostics": tail.diagnostics, "fits": {}}
    if isinstance(tail, TailRefusal):
        return {**row, "reason": tail.reason}
    fits = tail.parts if isinstance(tail, MixedTail) else {"": tail}
    return {**row, "fits": fits, "estimates": words.tail_estimates(tail, view.summary.deadlines)}
