"""`latenz learn`: minimum distances between activations, from recorded traces."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latenz.commands import Force

if TYPE_CHECKING:
    from latenz.analysis.learn import Learned


def command(
    trace: Annotated[
        Path,
        typer.Argument(help="CSV (source,time_ns), BTF, ftrace text, a run or its samples."),
    ],
    length: Annotated[int, typer.Option(help="How many distances to learn: of 2, 3, ... events.")],
    fraction: Annotated[
        str, typer.Option(help="How much of each source's activations to learn from.")
    ] = "0.1",
    allow: Annotated[
        str | None,
        typer.Option(help="Allow this share of the observed load, such as 0.25 or 25%."),
    ] = None,
    at_least: Annotated[
        str | None,
        typer.Option(help='Distances to raise the learned ones to, such as "1ms,5ms".'),
    ] = None,
    source: Annotated[
        list[str] | None, typer.Option(help="Only this source; may be given several times.")
    ] = None,
    event: Annotated[
        str | None,
        typer.Option(
            help="What counts as an activation. BTF: activate; ftrace: irq_handler_entry."
        ),
    ] = None,
    format_name: Annotated[
        str | None,
        typer.Option("--format", help="csv, btf, ftrace, can or samples; found out if absent."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Draw it all in this HTML file.")
    ] = None,
    arrivals_out: Annotated[
        Path | None,
        typer.Option(help="Write the activations as CSV for latenz simulate --arrivals."),
    ] = None,
    force: Force = False,
    system: Annotated[
        bool, typer.Option("--system", help="Print monitors for a system file, and nothing else.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Learn how close a source's activations come, for monitors and arrival models.

    What was observed is a sample, never a bound.

    Example: latenz learn trace.csv --length 5 --fraction 0.1 --allow 0.25
    """
    from latenz.analysis.activations import read_activations
    from latenz.analysis.learn import learn
    from latenz.console import say
    from latenz.outputs import check_outputs
    from latenz.progress import counting

    check_outputs((output, arrivals_out), (trace,), force=force)
    size = trace.stat().st_size if trace.is_file() else None
    with counting(f"reading {trace.name}", size, wanted=not json) as progress:
        recorded = read_activations(
            trace, format_name, event=event, sources=source or (), progress=progress
        )
    learned = learn(
        recorded.times_by_source, length, fraction, allow=allow, at_least=_distances(at_least)
    )
    warnings = (*learned.warnings, *recorded.warnings)
    for warning in warnings:
        say(f"latenz: warning: {warning}", error=True)
    if arrivals_out:
        from latenz.system.writer import write_arrivals

        write_arrivals(recorded.from_zero(), arrivals_out)
    if output:
        from latenz.analysis.learn_page import write_page

        write_page(output, trace.name, learned, warnings)
    _print(learned, warnings, recorded.format, system=system, json=json)


def _print(
    learned: "Learned", warnings: tuple[str, ...], format_name: str, *, system: bool, json: bool
) -> None:
    from latenz.analysis.learn_show import print_learned, system_lines

    if json:
        import json as json_module
        from dataclasses import asdict

        sources = [asdict(source) for source in learned.sources]
        document = {"sources": sources, "format": format_name, "warnings": warnings}
        typer.echo(json_module.dumps(document, indent=1))
    elif system:
        typer.echo(system_lines(learned))
    else:
        print_learned(learned)


def _distances(text: str | None) -> list[int] | None:
    from latenz.durations import parse_duration

    if text is None:
        return None
    return [parse_duration(part.strip(), "--at-least") for part in text.split(",")]
