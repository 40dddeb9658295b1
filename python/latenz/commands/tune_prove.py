"""`latenz tune prove`: which settings really help this machine, measured one after the other."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.commands.consent import StartPrograms, require_consent
from latenz.commands.on import On, machine_at
from latenz.commands.shipped import named_experiment
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
    from latenz.measuring.condition import Condition
    from latenz.proving.proof import Record, Wanted
    from latenz.proving.prover import Prover
    from latenz.tune.places import Place
    from latenz.tune.plan import Plan
    from latenz.tune.transaction import Transaction

    Nothing = tuple[Wanted, Plan, list[tuple[str, ...]], tuple[str, ...]]
    """What was wanted, the plan of it, what could be tried now, and what after a restart."""

_EXPERIMENT = typer.Argument(
    help="What to measure: an experiment file (TOML), or the name of one that comes with Latenz.",
    callback=named_experiment,
    show_default=False,
)
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
    start_programs: StartPrograms = False,
    yes: Annotated[bool, _YES] = False,
    on: On = None,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Try the settings of a plan one after the other, and tell which of them really help.

    Each is measured with and without, in turns, on top of what helped before it. At the end the
    machine is as before, unless you keep what helps. Ends with 0 if something was shown to help, or
    all not to; 1 if what helps does harm together, or the machine did not take something back;
    3 if nothing could be shown; 130 if interrupted.

    Example: sudo latenz tune prove experiments/quick.toml --condition idle-wakeup --cpus 2-3
    """
    from latenz.proving.prover import measurable, nothing_applied
    from latenz.tune.applying import in_reach
    from latenz.tune.places import Place
    from latenz.tune.transaction import locked

    given = (cpus, profile, include, only, skip, condition, duration, figure)
    with machine_at(root, on):
        place = Place(root)
        need_root(place)
        if not (yes or resume):
            _need_terminal(json)
        with in_reach(place), locked(place):
            if resume:
                _refuse_with_resume(experiment, given, restart or start_programs)
                return _resumed(place, output, keep, yes, json)
            wanted, read = _wanted(experiment, given, restart)
            nothing_applied(place)
            conditions = measurable(read, wanted.condition, wanted.duration_ns)
            require_consent(conditions, start_programs)
            return _begun(place, wanted, read, conditions, output, keep, yes, json)


def _need_terminal(json: bool) -> None:
    """Refuse at once what would end in a question that nobody answers."""
    if json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("nobody can be asked here", "tune prove", "add --yes")


def _refuse_with_resume(experiment: Path | None, given: Sequence[Any], restart: bool) -> None:
    if experiment is not None or any(given) or restart:
        what = "what is tried and measured was settled when the proof began"
        raise BadInput(what, "--resume", "give only -o, --root, --keep, --yes or --json with it")


def _wanted(path: Path | None, given: Sequence[Any], restart: bool) -> "tuple[Wanted, Experiment]":
    """Read the experiment, and check what was asked for."""
    from latenz.durations import parse_duration
    from latenz.errors import closest
    from latenz.experiment.schema import Experiment
    from latenz.proving.proof import FIGURES, Wanted, digest_of

    if path is None:
        raise BadInput("no experiment is given", "tune prove", "name a TOML file")
    cpus, profile, include, only, skip, condition, duration, figure = given
    if figure not in (None, *FIGURES):
        raise BadInput(f"{figure!r} is not a figure", "--figure", closest(figure, FIGURES))
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
    conditions: "Sequence[Condition]",
    output: Path | None,
    keep: bool,
    yes: bool,
    json: bool,
) -> int:
    """Look what there is to be tried, measure the machine as it is, ask, and try."""
    from latenz.proving.proof import groups_of
    from latenz.proving.prover import checked, planned
    from latenz.proving.show import print_intention

    found = planned(place, wanted)
    groups, later = groups_of(found, checked(place, wanted))
    if not json:
        print_intention(found, groups, later, restart=wanted.restart)
    nothing = wanted, found, groups, later
    if not groups and not (wanted.restart and later):
        text = "There is nothing to be tried while the machine runs."
        return _print_nothing("nothing to try", text, nothing, json)
    folder = output or _default_folder(experiment.file.name)
    prover = _prover(place, folder, found, experiment, conditions, json)
    _need_empty(prover.folder, folder)
    noted = _before(prover, wanted, groups, later)
    agreed = noted and (yes or _agrees(_question(prover, noted), json))
    if noted is None or agreed is None:
        text = f"Nothing was changed; what was measured is in {prover.name}/before"
        _print_nothing("interrupted", text, nothing, json)
        return EXIT_INTERRUPTED
    if not agreed:
        prover.withdraw()
        typer.echo("nothing is changed")
        return 0
    noted.save(prover.folder)
    with prover.at_work():
        noted = prover.go_on(noted)
    return _ended(prover, noted, keep, yes, json)


def _before(
    prover: "Prover",
    wanted: "Wanted",
    groups: Sequence[tuple[str, ...]],
    later: tuple[str, ...],
) -> "Record | None":
    """Measure the machine as it is; None if a signal came. Nothing is left of what fails."""
    try:
        with prover.at_work():
            return prover.before(wanted, groups, later)
    except BadInput:
        prover.withdraw()
        raise


def _question(prover: "Prover", noted: "Record") -> str:
    from latenz.proving.show import how_long

    return f"{how_long(noted, prover.tests(noted), prover.once_ns)} Try? [y/N] "


def _agrees(question: str, json: bool) -> bool | None:
    """Ask the user; return the answer, None for Ctrl-C."""
    try:
        return agrees(question, "tune prove", json)
    except KeyboardInterrupt:
        typer.echo()
        return None


def _resumed(place: "Place", output: Path | None, keep: bool, yes: bool, json: bool) -> int:
    """Go on where a proof was ended by a restart, a kill, or the user."""
    from latenz.experiment.schema import Experiment
    from latenz.proving.proof import digest_of
    from latenz.proving.prover import measurable, planned, returned

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
    from latenz.proving.prover import Prover
    from latenz.proving.show import Telling

    return Prover(place, folder, found, experiment, conditions, Telling(wanted=not json))


def _need_empty(path: Path, called: Path) -> None:
    if any(path.iterdir()):
        raise BadInput("exists and is not empty", str(called), "name a new folder with -o")


def _default_folder(experiment: str) -> Path:
    from datetime import datetime

    now = datetime.now().astimezone()
    return Path("results") / f"proof-{experiment}-{now:%Y%m%d-%H%M%S}"


def _print_nothing(state: str, text: str, nothing: "Nothing", json: bool) -> int:
    """Print why nothing was tried, and return the exit code of what is not a mistake."""
    from latenz.proving.show import nothing_document

    if json:
        print_json(nothing_document(*nothing, state))
    else:
        typer.echo(text)
    return 0


def _ended(prover: "Prover", noted: "Record", keep: bool, yes: bool, json: bool) -> int:
    """Show what was found; keep it, if that is wanted."""
    from latenz.proving.show import print_proof, proof_document
    from latenz.signals import noticed_signals

    if not json:
        print_proof(noted, prover.name)
    wanted: bool | None = None if prover.watch.stopped else keep
    if wanted is False and noted.worth_keeping and not (yes or json) and sys.stdin.isatty():
        wanted = _agrees("Keep what helps? [y/N] ", json)
    transaction = None
    if wanted and noted.worth_keeping:
        with noticed_signals() as stopped:
            transaction = prover.keep(noted, stopped)
    if json:
        applied = None if transaction is None else transaction.phase
        print_json(proof_document(noted, prover.name, applied))
    elif transaction is not None:
        _print_kept(transaction, noted)
    else:
        typer.echo(_what_is_left(noted, prover.name, prover.place))
    is_whole = transaction is None or transaction.phase == "applied"
    return _exit_code(noted, interrupted=wanted is None or not is_whole)


def _print_kept(transaction: "Transaction", noted: "Record") -> None:
    from latenz.tune.plan_show import print_applied

    print_applied(transaction)
    made = {entry for change in transaction.changes for entry in change.entries}
    for entry in noted.helping:
        if entry not in made:  # the restart has brought it, and it is in effect until the next
            typer.echo(f"{entry}: after the next restart: latenz tune apply --only {entry}")


def _what_is_left(noted: "Record", folder: str, place: "Place") -> str:
    go_on = _command(place, "prove --resume")
    revert = _command(place, "revert")
    if noted.state == "waiting for a restart":
        return (
            "What needs a restart is applied now. Restart the machine, then measure it:"
            f" {go_on}. {revert} takes it back instead."
        )
    if noted.waiting:
        return f"What was restarted for is still applied: {go_on}, or {revert}"
    state = "The machine is as before"
    if noted.not_restored:
        state = f"Set by hand what is not as before: {'; '.join(noted.not_restored)}"
    if noted.state == "interrupted":
        return f"{state}. To go on: {go_on} -o {folder}"
    restarted = any(each.entries == noted.later for each in noted.trials) and noted.later
    more = " but what was started with: restart it once more." if restarted else "."
    return f"{state}{more}{_how_to_keep(noted, place) if noted.worth_keeping else ''}"


def _how_to_keep(noted: "Record", place: "Place") -> str:
    """Return the command that keeps what helps, after a proof that has ended."""
    from shlex import join

    given = ["--cpus", noted.isolated, "--profile", noted.profile]
    for entry in noted.helping:
        given += ["--only", entry]
    return f"\nTo keep what helps: {_command(place, 'apply')} {join(given)}"


def _command(place: "Place", verb: str) -> str:
    """Return what to type for the same machine."""
    return place.command(verb) if place.name != "/" else f"sudo {place.command(verb)}"


def _exit_code(noted: "Record", *, interrupted: bool) -> int:
    if noted.not_restored:
        return EXIT_GATE_VIOLATED
    if interrupted or noted.state == "interrupted":
        return EXIT_INTERRUPTED
    if noted.state == "waiting for a restart":
        return EXIT_NOT_SHOWN
    if noted.together and noted.together.outcome in ("harms", "mixed"):
        return EXIT_GATE_VIOLATED
    if noted.helping:
        return EXIT_NOT_SHOWN if noted.together and noted.together.outcome != "helps" else 0
    outcomes = {each.outcome for each in noted.trials}
    is_told = outcomes <= {"harms", "mixed", "refused"} and outcomes != {"refused"}
    return 0 if outcomes and is_told else EXIT_NOT_SHOWN
