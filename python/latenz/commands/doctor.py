"""`latenz doctor`: what this machine can and cannot measure."""

from typing import TYPE_CHECKING, Annotated

import typer

from latenz.commands.on import On, machine_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from latenz.console import Console
    from latenz.doctor import Check, Diagnosis

_STYLE = {"ok": "green", "limited": "yellow", "missing": "red"}


def command(
    on: On = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Say what this machine can and cannot measure, why, and what would change it.

    Looks only; changes nothing. With --on, the machine is another. Ends with 1 if no engine at all
    can measure there.

    Example: latenz doctor
    """
    from latenz.doctor import diagnose
    from latenz.engines import ENGINES
    from latenz.errors import EXIT_GATE_VIOLATED

    with machine_of(on):
        diagnosis = diagnose()
    if json:
        import json as json_module

        typer.echo(json_module.dumps(diagnosis.to_json()))
    else:
        _print(diagnosis)
    able = any(f"({name})" in what for what in diagnosis.can_measure for name in ENGINES)
    return 0 if able else EXIT_GATE_VIOLATED


def print_checks(console: "Console", checks: "Iterable[Check]") -> None:
    """Print checks, each with what follows and the command that changes it."""
    from rich.text import Text

    for check in checks:
        state = (f"{check.state:8} ", _STYLE[check.state])
        console.say(Text.assemble(state, (check.id, "bold"), f": {check.found}"))
        if check.consequence:
            console.say(f"         {check.consequence}")
        if check.fix:
            console.print(Text.assemble("         fix: ", (check.fix, "cyan")), soft_wrap=True)


def _print(diagnosis: "Diagnosis") -> None:
    from rich.text import Text

    from latenz.console import Console

    console = Console(highlight=False)
    print_checks(console, diagnosis.checks)
    console.print("\ncan measure", style="bold")
    for what in diagnosis.can_measure:
        console.say(f"  {what}")
    if diagnosis.cannot_measure:
        console.print("\ncannot measure", style="bold")
    for each in diagnosis.cannot_measure:
        console.say(f"  {each['what']}: {each['why']}")
        if each["fix"]:
            console.print(Text.assemble("    fix: ", (each["fix"], "cyan")), soft_wrap=True)
