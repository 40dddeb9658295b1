"""What commands that judge by deadlines share: their options, and what they end with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from latenz.errors import EXIT_GATE_VIOLATED, EXIT_NOT_SHOWN, BadInput

if TYPE_CHECKING:
    from latenz.model import Deadline
    from latenz.statistics import Summary

Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--deadline", help='A limit and how much lateness it allows, such as "3ms@1/h"; several.'
    ),
]
Globs = Annotated[
    list[str] | None,
    typer.Option("--for", help="Sample sets that it judges, as 'can0*'; once, or once for each."),
]
AcceptEmulated = Annotated[
    bool,
    typer.Option(
        "--accept-emulated", help="Let a deadline that is met in emulated time only count as met."
    ),
]


def asked_deadlines(limits: list[str] | None, globs: list[str] | None) -> "list[Deadline]":
    """Return the deadlines that were asked for, each with the sample sets that it judges.

    Raises:
        BadInput: One is none, or it cannot be told which sets a deadline is for.
    """
    from latenz.deadlines import parse_deadline

    found = [parse_deadline(text) for text in limits or []]
    if not globs:
        return found
    if len(globs) not in (1, len(found)) or not found:
        what = f"{len(globs)} patterns for {len(found)} deadlines"
        raise BadInput(what, "--for", "give one for all deadlines, or one with each --deadline")
    patterns = globs * len(found) if len(globs) == 1 else globs
    return [
        each.model_copy(update={"sets": sets}) for each, sets in zip(found, patterns, strict=True)
    ]


def check_matched(asked: "Sequence[Deadline]", names: Sequence[str]) -> None:
    """Refuse a deadline that judges none of the sample sets.

    Raises:
        BadInput: There is one.
    """
    for each in asked:
        if names and not any(each.judges(name) for name in names):
            known = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            raise BadInput(f"no sample set is called {each.sets!r}", "--for", f"there are: {known}")


def exit_code(
    summaries: "Sequence[Summary]", asked: set[str] | None = None, accept_emulated: bool = False
) -> int:
    """Return the exit code for deadlines.

    Args:
        summaries: The sample sets with their verdicts.
        asked: Names of the deadlines that count; None: all do.
        accept_emulated: Whether what is met in emulated or simulated time counts as met.
    """
    from latenz.statistics.joint import jointly

    if asked and not summaries:
        return EXIT_NOT_SHOWN
    counted = [
        verdict
        for summary in summaries
        for verdict in summary.deadlines
        if asked is None or verdict.name in asked
    ]
    joint = jointly(counted, accept_emulated)
    codes = {"violates": EXIT_GATE_VIOLATED, "not shown": EXIT_NOT_SHOWN, "meets": 0}
    return codes[joint.verdict] if joint else 0
