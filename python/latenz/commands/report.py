"""`latenz report`: everything about some runs in one HTML file that needs no network."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.commands import Confidence, Force, judging
from latenz.commands.importing import reads_files
from latenz.errors import EXIT_GATE_VIOLATED

if TYPE_CHECKING:
    from latenz.model import Metadata
    from latenz.report.bounds import Model
    from latenz.report.collect import View


@reads_files
def command(
    runs: Annotated[
        list[Path], typer.Argument(help="Run folders, samples.parquet or importable files.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The HTML file to write.")],
    deadline: judging.Limits = None,
    for_: judging.Globs = None,
    confidence: Confidence = 0.95,
    title: Annotated[
        str | None, typer.Option(help="What the page is called; the runs' titles if absent.")
    ] = None,
    system: Annotated[
        Path | None,
        typer.Option(help="A system file: bound and search of each source beside what was seen."),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Two runs: first of all what differs in the second one."),
    ] = False,
    accept_emulated: judging.AcceptEmulated = False,
    force: Force = False,
    *,
    importing: dict[str, Any],
) -> None:
    """Write a report: verdicts, tables, plots and provenance in one self-contained HTML file.

    With --deadline the exit code tells the verdict: 0 meets, 1 violates, 3 not shown;
    what is met in emulated time only is not shown. With --system it is 1, too, if something was
    seen later than its source's bound. With --compare the page is that of latenz compare, and so
    is the exit code.

    Example: latenz report results/demo/run -o report.html
    """
    from latenz.outputs import check_output
    from latenz.progress import reading
    from latenz.report import open_runs, write_report
    from latenz.statistics.joint import jointly

    check_output(output, runs if system is None else [*runs, system], force=force)
    if compare:
        judged = {"--deadline": deadline, "--for": for_, "--title": title, "--system": system}
        _compare(runs, output, confidence, importing, [name for name in judged if judged[name]])
        return
    asked = judging.asked_deadlines(deadline, for_)
    opened = open_runs(runs, **importing)
    sets = [each.metadata for run in opened for each in run.sample_sets]
    judging.check_matched(asked, [each.name for each in sets])
    model = None if system is None else _model(system, sets)
    with reading(sum(len(run.sample_sets) for run in opened)) as progress:
        views = write_report(opened, output, asked, confidence, progress, title, model)
    summaries = [view.summary for view in views if not view.published]
    if joint := jointly([verdict for each in summaries for verdict in each.deadlines]):
        typer.echo(joint.sentence, err=True)
    typer.echo(f"report: {output}", err=True)
    if model is not None and _told_broken(model, views):
        raise typer.Exit(EXIT_GATE_VIOLATED)
    raise typer.Exit(judging.exit_code(summaries, {limit.name for limit in asked}, accept_emulated))


def _compare(
    runs: list[Path], output: Path, confidence: float, importing: dict[str, Any], more: list[str]
) -> None:
    """Write the page of a comparison; `more`: options that it has no place for.

    Raises:
        BadInput: There are not two runs, or there are such options, or a run is damaged.
    """
    from latenz.commands.compare import compared, write_page
    from latenz.compare import Settings
    from latenz.errors import EXIT_NOT_SHOWN, BadInput

    if len(runs) != 2:
        raise BadInput(f"takes two runs, not {len(runs)}", "--compare", "name A and B")
    if more:
        raise BadInput(f"does not go with {more[0]}", "--compare", "leave one of them out")
    a, b = runs
    found = compared((a, b), importing, Settings(confidence=confidence))
    write_page((a, b), importing, (found, None), output)
    if not found.told:
        raise typer.Exit(EXIT_NOT_SHOWN)


def _model(system: Path, sets: "Sequence[Metadata]") -> "Model":
    """Bound the sources of a system file, and search for their worst."""
    from latenz.progress import counting
    from latenz.report.bounds import model_of

    with counting("searching", None) as progress:
        return model_of(system, sets, progress)


def _told_broken(model: "Model", views: "Sequence[View]") -> bool:
    """Say which sources were seen later than their bounds; tell whether there are any."""
    from latenz.durations import format_duration
    from latenz.report.bounds import beside

    broken = [row for row in beside(model, views) if row.broken]
    for row in broken:
        seen, bound = (format_duration(ns or 0) for ns in (row.seen_ns, row.found.wcrt_ns))
        typer.echo(f"{row.label}: {seen} seen, above its bound of {bound}", err=True)
    return bool(broken)
