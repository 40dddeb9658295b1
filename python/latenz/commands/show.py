"""`latenz show`: what a run, a Parquet file or another tool's output says, in the terminal."""

from pathlib import Path
from typing import Annotated, Any

import typer

from latenz.commands import Confidence, judging
from latenz.commands.importing import reads_files
from latenz.terminal import printable_line


@reads_files
def command(
    path: Annotated[Path, typer.Argument(help="Run folder, samples.parquet or importable file.")],
    deadline: judging.Limits = None,
    for_: judging.Globs = None,
    confidence: Confidence = 0.95,
    accept_emulated: judging.AcceptEmulated = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    *,
    importing: dict[str, Any],
) -> None:
    """Show what was measured, and judge it by deadlines.

    With --deadline the exit code tells the verdict: 0 meets, 1 violates, 3 not shown;
    what is met in emulated time only is not shown.

    Example: latenz show results/demo/run --deadline 3ms
    """
    from latenz.importers.opening import open_sample_sets
    from latenz.provenance import origins
    from latenz.robot_account import controls
    from latenz.statistics import summarize
    from latenz.statistics.joint import joint_json
    from latenz.store.run import info_of

    asked = judging.asked_deadlines(deadline, for_)
    sample_sets = open_sample_sets(path, **importing)
    judging.check_matched(asked, [each.metadata.name for each in sample_sets])
    summaries = [summarize(sample_set, asked, confidence) for sample_set in sample_sets]
    robots = controls(path, [each.metadata.name for each in sample_sets])
    known = origins(sample_sets, info_of(path))
    if json:
        import json as json_module

        document: dict[str, object] = {
            "sample_sets": [summary.to_json() for summary in summaries],
            **joint_json(summaries, accept_emulated),
            "provenance": [each.to_json() for each in known],
        }
        if robots:
            document["control"] = [control.to_json(name) for name, control in robots]
        typer.echo(json_module.dumps(document, indent=1))
    else:
        from latenz.show import print_controls, print_origins, print_summaries
        from latenz.store.run import unfinished

        if missing := unfinished(path):
            typer.echo(printable_line(missing))
        print_origins(known)
        print_summaries(summaries)
        print_controls(robots)
        if not summaries:
            typer.echo("no sample sets: nothing was measured")
    names = {limit.name for limit in asked}
    raise typer.Exit(judging.exit_code(summaries, names, accept_emulated))
