"""`latenz check`: how close simulated latencies can come to their bounds."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.commands import Force
from latenz.commands.shipped import SystemFile
from latenz.errors import EXIT_GATE_VIOLATED, EXIT_INTERRUPTED

if TYPE_CHECKING:
    from latenz.analysis import Check
    from latenz.analysis.check import Arrivals


def command(
    system: SystemFile,
    mode: Annotated[
        str | None, typer.Option(help="plain, paper or carry, instead of the file's.")
    ] = None,
    effort: Annotated[
        int | None, typer.Option(help="Simulations for each source and bound. (default: 5000)")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the search: the same finds the same.")] = 0,
    horizon: Annotated[
        str | None,
        typer.Option(help="Give up busy windows that are longer than this. (default: 1s)"),
    ] = None,
    arrivals_out: Annotated[
        Path | None,
        typer.Option(help="Write the worst arrivals to this CSV file, for simulate --arrivals."),
    ] = None,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Look for arrivals that take every source as close to its bound as possible.

    The exit code is 1 if a simulated latency is above its bound. Interrupted by Ctrl-C, it tells
    what was found so far and ends with 130.

    Example: latenz check experiments/systems/can-gateway.toml --arrivals-out worst.csv
    """
    from latenz.analysis.check import (
        EFFORT,
        check,
        check_joinable,
        worst_arrivals,
        write_arrivals,
    )
    from latenz.analysis.options import horizon_of, mode_of
    from latenz.outputs import check_output
    from latenz.progress import counting
    from latenz.system import read_system

    check_output(arrivals_out, (system,), force=force)
    described = read_system(system)
    if arrivals_out:
        check_joinable(described)
    each = EFFORT if effort is None else effort
    total = 2 * each * len(described.sources)
    with counting("searching", total, wanted=not json) as progress:
        found = check(
            described,
            mode_of(mode),
            each,
            seed,
            horizon_ns=horizon_of(horizon),
            progress=progress,
        )
    if arrivals_out:
        write_arrivals(arrivals_out, described, worst_arrivals(described, found))
    if json:
        import json as json_module

        typer.echo(json_module.dumps(_document(found), indent=1))
    else:
        from latenz.analysis.check_show import print_check

        print_check(described, found)
    if not found.holds:
        return EXIT_GATE_VIOLATED
    return 0 if found.complete else EXIT_INTERRUPTED


def _document(found: "Check") -> dict[str, Any]:
    from dataclasses import asdict

    document = asdict(found)
    names = [each.name for each in found.sources]
    for source, entry in zip(found.sources, document["sources"], strict=True):
        entry["arrivals_ns"] = _by_name(found, source.arrivals_ns)
        entry["enforced_arrivals_ns"] = _by_name(found, source.enforced_arrivals_ns)
        from_ns = source.enforced_monitored_from_ns
        entry["enforced_monitored_from_ns"] = from_ns and dict(zip(names, from_ns, strict=True))
        entry["exceeded"] = source.exceeded
    return document | {"holds": found.holds}


def _by_name(found: "Check", arrivals: "Arrivals | None") -> dict[str, list[int]] | None:
    if arrivals is None:
        return None
    return {each.name: list(times) for each, times in zip(found.sources, arrivals, strict=True)}
