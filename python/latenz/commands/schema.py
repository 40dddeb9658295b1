"""`latenz schema`: the JSON Schemas of experiment and system files."""

from typing import Annotated

import typer

from latenz.errors import BadInput, closest

KINDS = ("experiment", "system")


def command(
    kind: Annotated[str, typer.Argument(help=f"What files: {' or '.join(KINDS)}.")] = KINDS[0],
) -> None:
    """Print the JSON Schema of experiment or system files, for editors.

    Example: latenz schema system > experiments/systems/system.schema.json
    """
    import json

    if kind == "experiment":
        from latenz.experiment.schema import json_schema
    elif kind == "system":
        from latenz.system.schema import json_schema
    else:
        raise BadInput(f"{kind!r} files have no schema", "schema", closest(kind, KINDS))
    typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
