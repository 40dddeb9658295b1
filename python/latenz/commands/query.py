"""`latenz query`: SQL over any number of runs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from latenz.commands.importing import reads_files


@reads_files
def command(
    sql: Annotated[str, typer.Argument(help="SQL on the tables `samples` and `sample_sets`.")],
    runs: Annotated[list[Path], typer.Argument(help="Run folders, Parquet or importable files.")],
    allow_files: Annotated[
        bool,
        typer.Option("--allow-files", help="Let the SQL read and write other files, too."),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    *,
    importing: dict[str, Any],
) -> None:
    """Ask any number of runs by SQL.

    A query reads the runs that are named and nothing else.

    Example: latenz query "SELECT name, max(latency_ns) FROM samples GROUP BY name" results/demo/run
    """
    from latenz.sql import query

    names, rows = query(sql, runs, allow_files, **importing)
    if json:
        import json as json_module

        document = {"columns": names, "rows": rows}
        typer.echo(json_module.dumps(document, default=str))
        return
    from rich.table import Table
    from rich.text import Text

    from latenz.console import Console

    table = Table(*names)
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    Console().print(table)
