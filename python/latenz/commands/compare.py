"""`latenz compare`: what a change did to the latencies, and a gate on it."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer


def command(
    a: Annotated[Path, typer.Argument(help="Run folder or file, such as before a change.")],
    b: Annotated[Path, typer.Argument(help="Run folder or file, such as after it.")],
    fail_if: Annotated[
        str | None,
        typer.Option(help='Exit with 1 if this holds, such as "p99 significantly > +10%".'),
    ] = None,
    paired: Annotated[
        bool | None,
        typer.Option(
            "--paired/--unpaired",
            help="Resample repetitions, or never; by default where there are enough of them.",
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the intervals, 0.5 to 0.999.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the resampling.")] = 1,
    deadline: Annotated[str | None, typer.Option(help='Limit of miss_rate, such as "3ms".')] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare two runs: differences and ratios with confidence intervals.

    With --fail-if the exit code is the gate: 0 passed, 1 violated, 3 cannot be told.

    Example: latenz compare before after --fail-if "p99 significantly > +10% or max > 3ms"
    """
    # The matrices are small: several threads would mostly wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from latenz.compare import Settings, compare, judge
    from latenz.compare.gate import parse
    from latenz.store import open_sample_sets

    if fail_if is not None:
        parse(fail_if)  # a mistake in it is told before the long work
    limit_ns = None if deadline is None else _limit(deadline)
    settings = Settings(confidence=confidence, seed=seed, paired=paired, deadline_ns=limit_ns)
    with _progress(shown=not json) as progress:
        found = compare(open_sample_sets(a), open_sample_sets(b), settings, progress)
    gate = None if fail_if is None else judge(found, fail_if)
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


def _limit(text: str) -> int:
    from latenz.durations import parse_duration
    from latenz.errors import BadInput

    limit_ns = parse_duration(text, "--deadline")
    if limit_ns <= 0:
        raise BadInput(f"{text!r} is no deadline", "--deadline", "it must be above zero")
    return limit_ns


@contextmanager
def _progress(shown: bool) -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal's standard error how many pairs are done."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(
        console=console, transient=True, disable=not (shown and console.is_terminal)
    ) as bar:
        task = bar.add_task("comparing", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
