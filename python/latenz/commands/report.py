"""`latenz report`: everything about some runs in one HTML file that needs no network."""

from pathlib import Path
from typing import Annotated

import typer


def command(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, samples.parquet or importable files.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")],
    deadline: Annotated[
        list[str] | None,
        typer.Option(help='A limit to judge by, such as "3ms"; may be given several times.'),
    ] = None,
    confidence: Annotated[
        float, typer.Option(help="Of the upper bound on the exceedance probability.")
    ] = 0.95,
) -> None:
    """Write a report: verdicts, tables, plots and provenance in one self-contained HTML file.

    Example: latenz report results/demo/run -o report.html
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from latenz.commands.show import asked_deadline
    from latenz.report import open_runs, write_report

    asked = [asked_deadline(text) for text in deadline or []]
    opened = open_runs(runs)
    with Progress(
        TextColumn("reading {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not Console(stderr=True).is_terminal,
    ) as bar:
        task = bar.add_task("", total=sum(len(run.sample_sets) for run in opened), completed=-1)
        write_report(
            opened,
            output,
            asked,
            confidence,
            lambda label: bar.update(task, description=label, advance=1),
        )
    typer.echo(f"report: {output}", err=True)
