"""`latenz compare`: what a change did to the latencies, and a gate on it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.commands import Force, level
from latenz.commands.importing import reads_files

if TYPE_CHECKING:
    from latenz.compare import Comparison, Gate, Settings


@reads_files
def command(
    a: Annotated[Path, typer.Argument(help="Run folder or file, such as before a change.")],
    b: Annotated[Path, typer.Argument(help="Run folder or file, such as after it.")],
    fail_if: Annotated[
        str | None,
        typer.Option(help='Exit with 1 if this holds, such as "p99 significantly > +10%".'),
    ] = None,
    paired: Annotated[
        bool,
        typer.Option(
            "--paired/--unpaired",
            help="Whether the i-th repetition of A belongs to the i-th of B, taken in turns.",
        ),
    ] = False,
    confidence: Annotated[
        float,
        typer.Option(
            parser=level, metavar="LEVEL", help="Confidence of the intervals, 0.5 to 0.999."
        ),
    ] = 0.95,
    seed: Annotated[int, typer.Option(hidden=True, help="Kept for scripts; no effect.")] = 1,
    deadline: Annotated[str | None, typer.Option(help='Limit of miss_rate, such as "3ms".')] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a page about it: an HTML file.")
    ] = None,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    *,
    importing: dict[str, Any],
) -> None:
    """Compare two runs: differences and ratios with confidence intervals.

    With --fail-if the exit code is the gate: 0 passed, 1 violated, 3 cannot be told. Without it,
    it is 3 if mean, median or p99 have no interval, and 0 otherwise.

    Example: latenz compare before after --fail-if "p99 significantly > +10%" -o compared.html
    """
    from latenz.compare import Settings, judge
    from latenz.compare.gate import parse
    from latenz.errors import EXIT_NOT_SHOWN
    from latenz.outputs import check_output

    check_output(output, (a, b), force=force)
    if fail_if is not None:
        parse(fail_if)  # a mistake in it is told before the long work
    limit_ns = None if deadline is None else _limit(deadline)
    settings = Settings(confidence=confidence, seed=seed, paired=paired, deadline_ns=limit_ns)
    found = compared((a, b), importing, settings, wanted=not json)
    gate = None if fail_if is None else judge(found, fail_if)
    if output is not None:
        write_page((a, b), importing, (found, gate), output, wanted=not json)
    if json:
        import json as json_module

        document = {
            "a": str(a),
            "b": str(b),
            **found.to_json(),
            "gate": gate and gate.to_json(),
        }
        typer.echo(json_module.dumps(document, ensure_ascii=False, indent=1))
    else:
        from latenz.compare.show import print_comparison

        print_comparison(found, gate)
    if gate is not None:
        raise typer.Exit(gate.exit_code)
    if not found.told:
        raise typer.Exit(EXIT_NOT_SHOWN)


def compared(
    places: tuple[Path, Path],
    importing: dict[str, Any],
    settings: "Settings",
    wanted: bool = True,
) -> "Comparison":
    """Compare two runs or files; `wanted`: show how far it is."""
    from latenz.compare import compare
    from latenz.importers.opening import open_sample_sets
    from latenz.progress import counting

    a, b = (open_sample_sets(path, **importing) for path in places)
    with counting("comparing", None, wanted=wanted) as progress:
        return compare(a, b, settings, progress)


def write_page(
    places: tuple[Path, Path],
    importing: dict[str, Any],
    judged: "tuple[Comparison, Gate | None]",
    output: Path,
    wanted: bool = True,
) -> None:
    """Write the page of a comparison, and say where."""
    from latenz.progress import reading
    from latenz.report import open_sides
    from latenz.report.comparison import write_comparison

    sides = open_sides(*places, **importing)
    with reading(sum(len(each.sample_sets) for each in sides), wanted=wanted) as progress:
        write_comparison(sides, places, *judged, output, progress)
    typer.echo(f"comparison: {output}", err=True)


def _limit(text: str) -> int:
    from latenz.durations import parse_duration
    from latenz.errors import BadInput

    limit_ns = parse_duration(text, "--deadline")
    if limit_ns <= 0:
        raise BadInput(f"{text!r} is not a deadline", "--deadline", "it must be above zero")
    return limit_ns
