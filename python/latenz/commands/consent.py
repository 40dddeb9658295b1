"""What commands that carry out experiments share: no program of a file starts without a word."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from latenz.errors import BadInput

if TYPE_CHECKING:
    from latenz.measuring.condition import Condition

StartPrograms = Annotated[
    bool,
    typer.Option(
        "--start-programs",
        help="Start the programs, and measure the targets, that the experiment file names.",
    ),
]


def require_consent(conditions: "Sequence[Condition]", given: bool) -> None:
    """Refuse an experiment that starts what it chose itself, unless the user said so.

    That is a program, or Latenz' own on a machine that it names: the user's keys lead there.

    Raises:
        BadInput: It names one, and `given` is false.
    """
    targets = list(dict.fromkeys(each.target_url for each in conditions if each.target))
    if targets and not given:
        what = f"the experiment would measure other machines: {', '.join(targets)}"
        raise BadInput(what, conditions[0].name, "add --start-programs if you want that")
    named = [(each.name, each.engine.started) for each in conditions if each.engine.started]
    if named and not given:
        name, program = named[0]
        more = f" (and {len(named) - 1} more)" if len(named) > 1 else ""
        what = f"the experiment would start a program: {shlex.join(program)}"
        raise BadInput(what + more, name, "add --start-programs if you want that")
