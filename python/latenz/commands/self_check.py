"""`latenz self-check`: whether this installation is whole, and what it can do here."""

from typing import Annotated

import typer


def command(
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Say whether this installation of Latenz is whole, and what it can do on this machine.

    Looks only; changes nothing. Ends with 1 if something of Latenz itself is missing or damaged;
    what the machine lacks is told, and is not a failure. What can be measured: latenz doctor.

    Example: latenz self-check
    """
    from latenz.errors import EXIT_GATE_VIOLATED
    from latenz.self_check import self_check

    found = self_check()
    if json:
        import json as json_module

        typer.echo(json_module.dumps(found.to_json()))
    else:
        from latenz.commands.doctor import print_checks
        from latenz.console import Console

        console = Console(highlight=False)
        console.say(f"latenz {found.version}, {found.kind}: {found.folder}")
        print_checks(console, found.checks)
    return 0 if found.whole else EXIT_GATE_VIOLATED
