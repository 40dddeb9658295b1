"""`latenz export`: a run for other tools."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from latenz.commands import Force
from latenz.commands.importing import reads_files


@reads_files
def command(
    run: Annotated[Path, typer.Argument(help="Run folder, samples.parquet or importable file.")],
    to: Annotated[
        str,
        typer.Option(help="Format: csv, parquet, hlog, cyclictest-json or openmetrics."),
    ],
    output: Annotated[Path, typer.Option("-o", help="File to write.")],
    force: Force = False,
    *,
    importing: dict[str, Any],
) -> None:
    """Export the sample sets of a run for other tools.

    Example: latenz export results/demo/run --to openmetrics -o latencies.txt
    """
    from rich.text import Text

    from latenz import exporters
    from latenz.console import Console
    from latenz.importers.opening import open_sample_sets
    from latenz.outputs import check_output

    check_output(output, (run,), force=force)
    terminal = sys.stderr.isatty()
    writing = Text(f"writing {output.name}")
    busy = Console(stderr=True).status(writing) if terminal else nullcontext()
    with busy:
        exporters.write(open_sample_sets(run, **importing), to, output)
