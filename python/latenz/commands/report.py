"""`latenz report`: everything about some runs in one HTML file that needs no network."""

from pathlib import Path
from typing import Annotated, Any

import typer

from latenz.commands import Force, judging
from latenz.commands.importing import reads_files


@reads_files
def command(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, samples.parquet or importable files.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")],
    deadline: judging.Limits = None,
    for_: judging.Globs = None,
    confidence: Annotated[float, typer.Option(help="Of the bounds on lateness, one-sided.")] = 0.95,
    title: Annotated[
        str | None, typer.Option(help="What the page is called; the runs' titles if absent.")
    ] = None,
    accept_emulated: judging.AcceptEmulated = False,
    force: Force = False,
    *,
    importing: dict[str, Any],
) -> None:
    """Write a report: verdicts, tables, plots and provenance in one self-contained HTML file.

    With --deadline the exit code tells the verdict: 0 meets, 1 violates, 3 not shown;
    what is met in emulated time only is not shown.

    Example: latenz report results/demo/run -o report.html
    """
    from latenz.outputs import check_output
    from latenz.progress import reading
    from latenz.report import open_runs, write_report
    from latenz.statistics.joint import jointly

    check_output(output, runs, force=force)
    asked = judging.asked_deadlines(deadline, for_)
    opened = open_runs(runs, **importing)
    names = [each.metadata.name for run in opened for each in run.sample_sets]
    judging.check_matched(asked, names)
    with reading(sum(len(run.sample_sets) for run in opened)) as progress:
        views = write_report(opened, output, asked, confidence, progress, title)
    summaries = [view.summary for view in views if not view.published]
    if joint := jointly([verdict for each in summaries for verdict in each.deadlines]):
        typer.echo(joint.sentence, err=True)
    typer.echo(f"report: {output}", err=True)
    raise typer.Exit(judging.exit_code(summaries, {limit.name for limit in asked}, accept_emulated))
