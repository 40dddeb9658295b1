"""`latenz tune plan|apply|status|revert`: changing a machine, and going back."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.commands.on import On, machine_at
from latenz.errors import EXIT_GATE_VIOLATED, EXIT_INTERRUPTED, BadInput

if TYPE_CHECKING:
    from latenz.tune.places import Place
    from latenz.tune.plan import Plan
    from latenz.tune.transaction import Transaction

CPUS = typer.Option(help="CPUs to isolate, such as 4 or 2-3 (default: those isolated already).")
PROFILE = typer.Option(help="host, kvm-host or guest (default: what the machine looks like).")
ROOT = typer.Option(help="The tree of another machine; nothing is run there.")
INCLUDE = typer.Option(
    help="Also this entry, which gives something up (see offers); several times."
)
ONLY = typer.Option(help="This entry and no others; several times.")
SKIP = typer.Option(help="Not this entry; several times.")
JSON = typer.Option("--json", help="Print one JSON document.")
_ALL = Path("/")


def add_to(application: typer.Typer) -> None:
    """Add the commands to `latenz tune`."""
    for command in (plan, apply, status, revert):
        application.command()(command)


def plan(
    cpus: Annotated[str | None, CPUS] = None,
    profile: Annotated[str | None, PROFILE] = None,
    root: Annotated[Path, ROOT] = _ALL,
    include: Annotated[list[str] | None, INCLUDE] = None,
    only: Annotated[list[str] | None, ONLY] = None,
    skip: Annotated[list[str] | None, SKIP] = None,
    on: On = None,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Show what would be changed so that the checks are right; change nothing.

    --root also takes a snapshot's tar.

    Example: latenz tune plan --cpus 2-3 --skip host-thermald-off
    """
    from latenz.tune.places import Place
    from latenz.tune.plan_show import plan_document, print_plan
    from latenz.tune.transaction import STATE

    with machine_at(root, on):
        found = _planned(cpus, profile, root, include, only, skip)
        is_tuned = found.root.is_folder(STATE)
        revert_it = Place(root).command("revert") if root.is_dir() else "latenz tune revert"
    if json:
        print_json(plan_document(found))
    else:
        print_plan(found)
    if is_tuned:
        typer.echo(f"this is on top of what is applied already; {revert_it} first", err=True)
    return 0


def apply(
    cpus: Annotated[str | None, CPUS] = None,
    profile: Annotated[str | None, PROFILE] = None,
    root: Annotated[Path, ROOT] = _ALL,
    include: Annotated[list[str] | None, INCLUDE] = None,
    only: Annotated[list[str] | None, ONLY] = None,
    skip: Annotated[list[str] | None, SKIP] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    on: On = None,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Show the plan, ask, and carry it out; finish what an interrupted apply began.

    All is noted before anything is changed, so that `latenz tune revert` can restore it whatever
    happens. What the kernel refuses is told. Ends with 130 if interrupted.

    Example: latenz tune apply --cpus 2-3
    """
    from latenz.tune.applying import unfinished
    from latenz.tune.places import Place
    from latenz.tune.plan_show import plan_document, print_plan, status_document

    with machine_at(root, on):
        place = Place(root)
        need_root(place)
        interrupted = unfinished(place) if _readable(place) else None
        found = None if interrupted else _planned(cpus, profile, root, include, only, skip)
        if not json and found:
            print_plan(found)
        elif not json:
            typer.echo("an interrupted apply is finished as it was planned then")
        if found and not found.changes:
            if json:
                print_json({"plan": plan_document(found)} | status_document(None, at_work=False))
            return 0
        if not (yes or agrees("Apply this? [y/N] ", "tune apply", json)):
            typer.echo("nothing is changed")
            return 0
        total = len(found.changes if found else interrupted.changes if interrupted else ())
        return _carried_out(place, found, total, json)


def _carried_out(place: "Place", found: "Plan | None", total: int, json: bool) -> int:
    from latenz.progress import counting
    from latenz.signals import noticed_signals
    from latenz.tune.applying import apply as apply_changes
    from latenz.tune.plan_show import plan_document, print_applied, status_document

    document = {"plan": plan_document(found) if found else None}  # of values as they are now
    changes, isolated, profile = (
        (found.changes, found.isolated, found.profile) if found else ((), "", "")
    )
    with noticed_signals() as stopped:  # until it is told what was changed
        with (
            place.answers_until(stopped),
            counting("applying", total, wanted=not json) as progress,
        ):
            transaction = apply_changes(place, changes, isolated, profile, stopped, progress)
        if json:
            print_json(document | status_document(transaction, at_work=False))
        else:
            print_applied(transaction)
        sys.stdout.flush()
    return 0 if transaction.phase == "applied" else EXIT_INTERRUPTED


def status(
    root: Annotated[Path, ROOT] = _ALL,
    on: On = None,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Tell what is applied, how far an interrupted apply or revert came, and what changed since.

    Ends with 1 if something is half done, or not as it was applied.

    Example: latenz tune status
    """
    from latenz.tune.places import Place
    from latenz.tune.plan_show import is_intact, print_status, status_document
    from latenz.tune.transaction import is_busy

    with machine_at(root, on):
        place = Place(root)
        at_work = is_busy(place)
        transaction = _readable(place)
        if json:
            print_json(status_document(transaction, at_work))
        else:
            print_status(transaction, at_work)
        return 0 if is_intact(transaction) else EXIT_GATE_VIOLATED


def revert(
    root: Annotated[Path, ROOT] = _ALL,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite what somebody changed since.")
    ] = False,
    on: On = None,
    json: Annotated[bool, JSON] = False,
) -> int:
    """Restore every file and value as it was before apply, also an interrupted one.

    Ends with 1 if the machine did not take something back, which is named; with 130 if interrupted:
    run it again then.

    Example: latenz tune revert
    """
    from latenz.progress import counting
    from latenz.signals import noticed_signals
    from latenz.tune.applying import refused_of
    from latenz.tune.applying import revert as revert_changes
    from latenz.tune.lasting_boot import made_since
    from latenz.tune.places import Place
    from latenz.tune.plan_show import print_reverted, revert_document

    with machine_at(root, on):
        place = Place(root)
        need_root(place)
        transaction = _readable(place)
        total = len(transaction.changes) if transaction else None
        entries = made_since(transaction) if transaction else []
        with noticed_signals() as stopped:  # until it is told what was taken back
            with (
                place.answers_until(stopped),
                counting("reverting", total, wanted=not json) as progress,
            ):
                results = revert_changes(place, force, stopped, progress)
            for path in entries:
                typer.echo(
                    f"{path} was made since, with what was added: edit its options", err=True
                )
            if json:
                print_json(revert_document(results))
            else:
                print_reverted(place, results)
            sys.stdout.flush()
    if results is None:
        return EXIT_INTERRUPTED
    return EXIT_GATE_VIOLATED if refused_of(results) else 0


def _planned(
    cpus: str | None,
    profile: str | None,
    root: Path,
    include: list[str] | None,
    only: list[str] | None,
    skip: list[str] | None,
) -> "Plan":
    from latenz.tune.catalogue import load
    from latenz.tune.check import check
    from latenz.tune.context import Context
    from latenz.tune.plan import Choice, plan
    from latenz.tune.root import Root

    choice = Choice(tuple(include or ()), tuple(only or ()), tuple(skip or ()))
    opened = Root(root)
    opened.check_machine()
    context = Context.of(opened, cpus, profile)
    return plan(context, check(context, load()), choice)


def _readable(place: "Place") -> "Transaction | None":
    """Return the transaction of a machine, if we may look.

    Raises:
        BadInput: We may not.
    """
    from latenz.tune.transaction import STATE, find

    try:
        return find(place)
    except PermissionError:
        where = str(place.at(STATE))
        raise BadInput("cannot be read", where, "only its owner can: use sudo") from None


def need_root(place: "Place") -> None:
    """Refuse to change this machine as somebody else.

    Raises:
        BadInput: We are not root.
    """
    if not place.is_ours_to_change():
        here = place.name == "/"
        remedy = "run it with sudo" if here else "log in as root, or add ?sudo to the URL"
        where = "tune" if here else place.name
        raise BadInput("only root can change this machine", where, remedy)


def agrees(question: str, where: str, json: bool) -> bool:
    """Ask the user; return the answer.

    Raises:
        BadInput: There is nobody to ask.
    """
    if json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("nobody can be asked here", where, "add --yes")
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def print_json(document: dict[str, Any]) -> None:
    """Print a document on standard output."""
    import json

    typer.echo(json.dumps(document, indent=1))
