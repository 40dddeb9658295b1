"""`latenz schema`: the JSON Schema of experiment files."""

import typer


def command() -> None:
    """Print the JSON Schema of experiment files, for editors.

    Example: latenz schema > experiments/experiment.schema.json
    """
    import json

    from latenz.experiment.schema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2, ensure_ascii=False))
