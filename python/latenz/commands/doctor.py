"""`latenz doctor`: what this machine can and cannot measure."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from latenz.doctor import Diagnosis

_STYLE = {"ok": "green", "limited": "yellow", "missing": "red"}


def command(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Say what this machine can and cannot measure, why, and what would change it.

    Looks only; changes nothing. Ends with 1 if no engine at all can measure here.

    Example: latenz doctor
    """
    from latenz.doctor import diagnose
    from latenz.engines import ENGINES
    from latenz.errors import EXIT_GATE_VIOLATED

    diagnosis = diagnose()
    if json:
        import json as json_module

        typer.echo(json_module.dumps(diagnosis.to_json()))
    else:
        _print(diagnosis)
    able = any(f"({name})" in what for what in diagnosis.can_measure for name in ENGINES)
    return 0 if able else EXIT_GATE_VIOLATED


def _print(diagnosis: "Diagnosis") -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False, soft_wrap=True)
    for check in diagnosis.checks:
        style = _STYLE[check.state]
        console.print(f"[{style}]{check.state:8}[/] [bold]{check.id}[/]: {escape(check.found)}")
        if check.consequence:
            console.print(f"         {escape(check.consequence)}")
        if check.fix:
            console.print(f"         fix: [cyan]{escape(check.fix)}[/]")
    console.print("\n[bold]can measure[/]")
    for what in diagnosis.can_measure:
        console.print(f"  {escape(what)}")
    if diagnosis.cannot_measure:
        console.print("\n[bold]cannot measure[/]")
    for each in diagnosis.cannot_measure:
        console.print(f"  {escape(each['what'])}: {escape(each['why'])}")
        if each["fix"]:
            console.print(f"    fix: [cyan]{escape(each['fix'])}[/]")
