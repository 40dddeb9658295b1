"""`latenz tune prove`: which settings really help this machine, measured one after the other."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.commands.tune_transaction import (
    CPUS,
    INCLUDE,
    JSON,
    ONLY,
    PROFILE,
    ROOT,
    SKIP,
    agrees,
    need_root,
    print_json,
)
from latenz.errors import EXIT_GATE_VIOLATED, EXIT_INTERRUPTED, EXIT_NOT_SHOWN, BadInput

if TYPE_CHECKING:
    from latenz.experiment.schema import Experiment
    from latenz.tune.places import Place
    from latenz.tune.plan import Plan
    from latenz.tune.proof import Record, Wanted
    from latenz.tune.proving import Prover

_EXPERIMENT = typer.Argument(help="What to measure: an experiment file (TOML).", show_default=False)
_OUTPUT = typer.Option(
    "-o", "--output", help="New folder for runs and record (default: results/proof-<time>)."
)
_CONDITION = typer.Option(help="Measure only conditions that match, such as 'idle*'.")
_DURATION = typer.Option(help="Measure each condition this long instead, such as 30s.")
_FIGURE = typer.Option(help="What is to become smaller: p99 (default), p99.9, max, mean, ...")
_RESTART = typer.Option("--restart", help="Also try what needs a restart: last, together.")
_KEEP = typer.Option("--keep", help="At the end, apply what was shown to help, to stay.")
_RESUME = typer.Option("--resume", help="Go on after a restart, a kill, or Ctrl-C (with -o).")
_YES = typer.Option("--yes", help="Do not ask.")


def add_to(application: typer.Typer) -> None:
    """Add the command to `latenz tune`."""
    application.command()(prove)


def prove(
    experiment: Annotated[Path | None, _EXPERIMENT] = None,
    output: Annotated[Path | None, _OUTPUT] = None,
    cpus: Annotated[str | None, CPUS] = None,
    profile: Annotated[str | None, PROFILE] = None,
    root: Annotated[Path, ROOT] = Path("/"),
    include: Annotated[list[str] | None, INCLUDE] = None,
    only: Annotated[list[str] | None, ONLY] = None,
    skip: Annotated[list[str] | None, SKIP] = None,
    condition: Annotated[str | None, _CONDITION] = None,
    duration: Annotated[str | None, _DURATION] = None,
    figure: Annotated[str | None, _FIGURE] = None,
    restart: Annotated[bool, _RESTART] = False,
    keep: Annotated[bool, _KEEP] = False,
    resume: Annotated[bool, _RESUME] = False,
    yes: Annotated[bool, _YES] = False,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Try the settings of a plan one after the other, and tell which of them really help.

    Each is measured with and without, in turns, on top of what helped before it. At the end the
    machine is as before, unless you keep what helps. Ends with 0 if something was shown to help, or
    all not to; 1 if what helps does harm together; 3 if nothing could be shown; 130 if interrupted.

    Example: sudo latenz tune prove experiments/quick.toml --condition idle-wakeup --cpus 2-3
    """
    from latenz.tune.places import Place
    from latenz.tune.transaction import locked

    place = Place(root)
    need_root(place)
    given = (cpus, profile, include, only, skip, condition, duration, figure)
    if not (yes or resume):
        _need_terminal(json)
    with locked(place):
        if resume:
            _refuse_with_resume(experiment, given, restart)
            return _resumed(place, output, keep, yes, json)
        wanted, read = _wanted(experiment, given, restart)
        return _begun(place, wanted, read, output, keep, yes, json)


def _need_terminal(json: bool) -> None:
    """Refuse at once what would end in a question that nobody answers."""
    if json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("nobody can be asked here", "latenz tune prove", "add --yes")


def _refuse_with_resume(experiment: Path | None, given: Sequence[Any], restart: bool) -> None:
    if experiment is not None or any(given) or restart:
        what = "what is tried and measured was settled when the proof began"
        raise BadInput(what, "--resume", "give only -o, --root, --keep, --yes or --json with it")


def _wanted(path: Path | None, given: Sequence[Any], restart: bool) -> "tuple[Wanted, Experiment]":
    """Read the experiment, and check what was asked for."""
    from latenz.durations import parse_duration
    from latenz.errors import closest
    from latenz.experiment.schema import Experiment
    from latenz.tune.proof import FIGURES, Wanted, digest_of

    if path is None:
        raise BadInput("no experiment is given", "latenz tune prove", "name a TOML file")
    cpus, profile, include, only, skip, condition, duration, figure = given
    if figure not in (None, *FIGURES):
        raise BadInput(f"{figure!r} is no figure", "--figure", closest(figure, FIGURES))
    duration_ns = None if duration is None else parse_duration(duration, "--duration")
    if duration_ns is not None and duration_ns <= 0:
        raise BadInput(f"{duration!r} is not positive", "--duration", 'write for example "30 s"')
    read = Experiment.read(path)
    return Wanted(
        experiment=str(path.absolute()),
        digest=digest_of(path),
        condition=condition,
        duration_ns=duration_ns,
        cpus=cpus,
        profile=profile,
        include=tuple(include or ()),
        only=tuple(only or ()),
        skip=tuple(skip or ()),
        figure=figure or "p99",
        restart=restart,
    ), read


def _begun(
    place: "Place",
    wanted: "Wanted",
    experiment: "Experiment",
    output: Path | None,
    keep: bool,
    yes: bool,
    json: bool,
) -> int:
    """Look what there is to be tried, measure the machine as it is, ask, and try."""
    from latenz.tune.proof import groups_of
    from latenz.tune.proof_show import how_long, print_intention
    from latenz.tune.proving import checked, measurable, nothing_applied, planned

    nothing_applied(place)
    conditions = measurable(experiment, wanted.condition, wanted.duration_ns)
    found = planned(place, wanted)
    groups, later = groups_of(found, checked(place, wanted))
    if not json:
        print_intention(found, groups, later, restart=wanted.restart)
    if not groups and not (wanted.restart and later):
        return _print_nothing("nothing to try", later, json)
    folder = output or _default_folder(experiment.file.name)
    prover = _prover(place, folder, found, experiment, conditions, json)
    _need_empty(prover.folder, folder)
    with prover.at_work():
        noted = prover.before(wanted, groups, later)
    if noted is None:
        _print_nothing("interrupted", later, json)
        return EXIT_INTERRUPTED
    question = f"{how_long(noted, prover.tests(noted), prover.once_ns)} Try? [y/N] "
    if not yes and not agrees(question, "latenz tune prove", json):
        typer.echo("nothing is changed")
        return 0
    noted.save(prover.folder)
    with prover.at_work():
        noted = prover.go_on(noted)
    return _ended(prover, noted, keep, yes, json)


def _resumed(place: "Place", output: Path | None, keep: bool, yes: bool, json: bool) -> int:
    """Go on where a proof was ended by a restart, a kill, or the user."""
    from latenz.experiment.schema import Experiment
    from latenz.tune.proof import digest_of
    from latenz.tune.proving import measurable, planned, returned

    folder, noted = returned(place, output)
    wanted = noted.wanted
    path = Path(wanted.experiment)
    experiment = Experiment.read(path)
    if digest_of(path) != wanted.digest:
        raise BadInput("was changed since the proof began", str(path), "begin another one")
    conditions = measurable(experiment, wanted.condition, wanted.duration_ns)
    found = planned(place, wanted)
    prover = _prover(place, folder, found, experiment, conditions, json)
    with prover.at_work():
        noted = prover.after_restart(noted) if noted.waiting else prover.go_on(noted)
    return _ended(prover, noted, keep, yes, json)


def _prover(
    place: "Place",
    folder: Path,
    found: "Plan",
    experiment: "Experiment",
    conditions: Sequence[Any],
    json: bool,
) -> "Prover":
    from latenz.tune.proof_show import Telling
    from latenz.tune.proving import Prover

    return Prover(place, folder, found, experiment, conditions, Telling(wanted=not json))


def _need_empty(path: Path, called: Path) -> None:
    if any(path.iterdir()):
        raise BadInput("exists and is not empty", str(called), "name a new folder with -o")


def _default_folder(experiment: str) -> Path:
    from datetime import datetime

    now = datetime.now().astimezone()
    return Path("results") / f"proof-{experiment}-{now:%Y%m%d-%H%M%S}"


def _print_nothing(state: str, later: Sequence[str], json: bool) -> int:
    """Print why nothing was tried, and return the exit code of what is no mistake."""
    if json:
        known: dict[str, Any] = {"proof": None, "state": state, "trials": [], "together": None}
        print_json(known | {"after_restart": list(later), "helping": [], "kept": False})
    elif state == "interrupted":
        typer.echo("Nothing was changed.")
    else:
        typer.echo("There is nothing to be tried while the machine runs.")
    return 0


def _ended(prover: "Prover", noted: "Record", keep: bool, yes: bool, json: bool) -> int:
    """Show what was found; keep it, if that is wanted."""
    from latenz.tune.plan_show import print_applied
    from latenz.tune.proof_show import print_proof, proof_document

    if not json:
        print_proof(noted, prover.name)
    does_harm = noted.together is not None and noted.together.outcome in ("harms", "mixed")
    worth_it = noted.state == "ended" and bool(noted.helping) and not does_harm
    if worth_it and not (keep or yes or json) and sys.stdin.isatty():
        keep = agrees("Keep what helps? [y/N] ", "latenz tune prove", json)
    transaction = prover.keep(noted) if worth_it and keep else None
    if json:
        print_json(proof_document(noted, prover.name, kept=transaction is not None))
    elif transaction is not None:
        print_applied(transaction)
        made = {entry for change in transaction.changes for entry in change.entries}
        for entry in noted.helping:
            if entry not in made:  # the restart has brought it, and it is in effect until the next
                typer.echo(f"{entry}: after the next restart: latenz tune apply --only {entry}")
    else:
        typer.echo(_what_is_left(noted, prover.name))
    return _exit_code(noted)


def _what_is_left(noted: "Record", folder: str) -> str:
    go_on = "sudo latenz tune prove --resume"
    if noted.state == "waiting for a restart":
        return (
            "What needs a restart is applied now. Restart the machine, then measure it:"
            f" {go_on}. latenz tune revert takes it back instead."
        )
    if noted.waiting:
        return f"What was restarted for is still applied: {go_on}, or latenz tune revert"
    if noted.state == "interrupted":
        return f"The machine is as before. To go on: {go_on} -o {folder}"
    restarted = any(each.entries == noted.later for each in noted.trials) and noted.later
    more = " but what was started with: restart it once more." if restarted else "."
    return f"The machine is as before{more}"


def _exit_code(noted: "Record") -> int:
    if noted.state == "interrupted":
        return EXIT_INTERRUPTED
    if noted.state == "waiting for a restart":
        return EXIT_NOT_SHOWN
    if noted.together and noted.together.outcome in ("harms", "mixed"):
        return EXIT_GATE_VIOLATED
    if noted.helping:
        return EXIT_NOT_SHOWN if noted.together and noted.together.outcome != "helps" else 0
    told = ("harms", "mixed", "refused")
    return 0 if all(each.outcome in told for each in noted.trials) else EXIT_NOT_SHOWN
