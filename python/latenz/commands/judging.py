"""What commands that judge by deadlines end with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from latenz.errors import EXIT_GATE_VIOLATED, EXIT_NOT_SHOWN

if TYPE_CHECKING:
    from latenz.statistics import Summary


def exit_code(summaries: "Sequence[Summary]", asked: set[str]) -> int:
    """Return the exit code for the deadlines that were asked for on the command line."""
    verdicts = {
        verdict.verdict
        for summary in summaries
        for verdict in summary.deadlines
        if verdict.name in asked
    }
    if "violates" in verdicts:
        return EXIT_GATE_VIOLATED
    unknown = "not shown" in verdicts or (asked and not summaries)
    return EXIT_NOT_SHOWN if unknown else 0
