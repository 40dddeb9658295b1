"""`latenz explore`: monitors and slots with which all deadlines of a system hold."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latenz.commands.shipped import named_system
from latenz.errors import EXIT_INTERRUPTED, EXIT_NOT_SHOWN, BadInput

if TYPE_CHECKING:
    from latenz.analysis.explore import Plan

_CANDIDATES = 100_000


def command(
    system: Annotated[
        Path | None,
        typer.Argument(
            help="A system file (TOML), or the name of one that comes with Latenz; none with"
            " --resume.",
            callback=named_system,
        ),
    ] = None,
    deadline: Annotated[
        list[str] | None,
        typer.Option(help="A limit for a source, such as can=300us; may be given several times."),
    ] = None,
    objective: Annotated[
        list[str] | None,
        typer.Option(
            help="interference, switches or latency; several make the axes of the Pareto front, "
            "the most important first. (default: interference, switches)"
        ),
    ] = None,
    mode: Annotated[
        str | None, typer.Option(help="plain, paper or carry, instead of the file's.")
    ] = None,
    share: Annotated[
        list[str] | None,
        typer.Option(
            help="The least share of the cycle that a partition needs, such as diagnosis=10%; "
            "what it has beyond may go to others. (default: what it has)"
        ),
    ] = None,
    candidates: Annotated[
        int | None,
        typer.Option(help=f"How many to evaluate at most. (default: {_CANDIDATES})"),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Of the sample where there are more candidates. (default: 0)"),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="A Dask scheduler such as tcp://host:8786, instead of local processes."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", help="Folder for results. (default: results/explore-SYSTEM-TIME)"),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with the exploration of this folder.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Find monitors and slots with which all deadlines hold, at the least cost.

    The exit code is 0 if some candidate meets all deadlines, and 3 if none was found. Interrupted
    by Ctrl-C, it keeps what is finished, ends with 130, and goes on with --resume.

    Example: latenz explore experiments/systems/can-gateway.toml --deadline can-engine=300us
    """
    from latenz.analysis.explore import Space, explore
    from latenz.analysis.explore.plan import load_plan
    from latenz.analysis.explore.show import document, print_exploration
    from latenz.progress import counting

    asked = (system, deadline, objective, mode, share, candidates, seed, output)
    if resume is not None:
        if any(each for each in asked):
            raise BadInput(
                "takes up what was asked before", "--resume", "leave out all but --scheduler"
            )
        plan, folder = load_plan(resume), resume
    elif system is None:
        raise BadInput("no system is named", "SYSTEM", "name a system file, or --resume a folder")
    else:
        plan = _plan(system, deadline, objective, mode, share, candidates, seed)
        folder = output or _default_folder(system)
    try:
        total = min(plan.candidates, Space(plan.system, plan.shares).count)
        with counting("exploring", total, wanted=not json) as progress:
            found = explore(plan, folder, scheduler=scheduler, progress=progress)
    except KeyboardInterrupt:
        typer.echo(f"explore: interrupted; go on with latenz explore --resume {folder}", err=True)
        return EXIT_INTERRUPTED
    if json:
        import json as json_module

        typer.echo(json_module.dumps(document(found, folder), indent=1))
    else:
        print_exploration(found, folder)
    return 0 if found.front else EXIT_NOT_SHOWN


def _plan(
    system: Path,
    deadline: list[str] | None,
    objective: list[str] | None,
    mode: str | None,
    share: list[str] | None,
    candidates: int | None,
    seed: int | None,
) -> "Plan":
    from dataclasses import replace

    from latenz.analysis.explore import Plan
    from latenz.analysis.explore.options import objectives_of, shares_of
    from latenz.analysis.explore.plan import MOST_CANDIDATES
    from latenz.analysis.options import limits_of, mode_of
    from latenz.system import read_system
    from latenz.system.processors import check_one_processor

    if not deadline:
        raise BadInput("no deadline is given", "--deadline", "write for example can=300us")
    if candidates is not None and not 1 <= candidates <= MOST_CANDIDATES:
        remedy = f"give 1 to {MOST_CANDIDATES}"
        raise BadInput(f"{candidates} is not a number of candidates", "--candidates", remedy)
    described = read_system(system)
    check_one_processor(described, str(system))
    described = replace(described, mode=mode_of(mode) or described.mode)
    return Plan(
        described,
        limits_of(deadline, described),
        objectives_of(objective or ["interference", "switches"]),
        _CANDIDATES if candidates is None else candidates,
        seed or 0,
        shares_of(share or [], described),
    )


def _default_folder(system: Path) -> Path:
    from datetime import datetime

    now = datetime.now().astimezone()
    return Path("results") / f"explore-{system.stem}-{now:%Y%m%d-%H%M%S}"
