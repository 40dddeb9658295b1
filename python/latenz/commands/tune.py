"""`latenz tune`: what keeps a machine from being real-time, and changing it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latenz.commands import Force, tune_prove, tune_transaction, tune_watchers
from latenz.commands.on import On, machine_at

if TYPE_CHECKING:
    from latenz.tune.check import Check
    from latenz.tune.context import Context

command = typer.Typer(
    help="See what keeps a machine from being real-time; change it, and be able to go back.\n\n"
    "Example: latenz tune check --cpus 4",
    no_args_is_help=True,
)


_CPUS = typer.Option(help="The CPUs for real-time work, as 4 or 2-3 (default: those isolated).")
_PROFILE = typer.Option(help="host, kvm-host or guest, if what the machine seems to be is wrong.")
_ROOT = typer.Option(help="Another machine's files: a folder, or a snapshot's tar.")
_ONLY = typer.Option(help="Only the entry of this id; several times.")
_LIVE = typer.Option(help="Also watch the isolated CPUs for this long, as 5s.")
_PID = typer.Option(min=1, help="Also look at this running program: memory, policy, CPUs, limits.")
_WHY = typer.Option(help="Tell all about the entry of this id: why, risk, source, changes.")


@command.command()
def check(
    cpus: Annotated[str | None, _CPUS] = None,
    profile: Annotated[str | None, _PROFILE] = None,
    root: Annotated[Path, _ROOT] = Path("/"),
    on: On = None,
    only: Annotated[list[str] | None, _ONLY] = None,
    live: Annotated[str | None, _LIVE] = None,
    pid: Annotated[int | None, _PID] = None,
    why: Annotated[str | None, _WHY] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Hold this machine, or another one's files, against the catalogue of real-time settings.

    Changes nothing. The exit code is 1 if something is wrong, but for what would give up security.

    Example: latenz tune check --cpus 4 --live 5s
    """
    from latenz.errors import EXIT_GATE_VIOLATED, EXIT_INTERRUPTED
    from latenz.tune.catalogue import chosen
    from latenz.tune.check import by_effect
    from latenz.tune.check import check as checked
    from latenz.tune.context import Context
    from latenz.tune.root import Root

    entries = chosen((why,), "--why") if why else chosen(tuple(only or ()), "--only")
    with machine_at(root, on):
        opened = Root(root)
        opened.check_machine()
        context = Context.of(opened, cpus, profile)
        interrupted, checks = False, checked(context, entries)
        if pid is not None:
            checks = by_effect([*_of_program(context, pid), *checks])
    if live is not None:
        interrupted, seen = _live(context, live, json)
        checks = by_effect([*seen, *checks])
    _print(checks, context, why, json)
    if interrupted:
        return EXIT_INTERRUPTED
    return EXIT_GATE_VIOLATED if any(each.counts_as_wrong for each in checks) else 0


def _of_program(context: "Context", pid: int) -> "list[Check]":
    from latenz.errors import BadInput
    from latenz.tune.application import application

    if not context.root.live:
        raise BadInput("nothing runs in files", "--pid", "leave out --root or --pid")
    return application(context, pid)


def _live(context: "Context", duration: str, json: bool) -> "tuple[bool, list[Check]]":
    """Watch the isolated CPUs; tell whether that was interrupted, and what was seen."""
    from latenz.durations import parse_interval
    from latenz.errors import BadInput
    from latenz.progress import counting
    from latenz.signals import noticed_signals
    from latenz.tune.evidence import evidence

    duration_ns = parse_interval(duration, "--live")
    if not context.root.live:
        raise BadInput("nothing happens in files", "--live", "leave out --root or --live")
    with (
        noticed_signals() as stopped,
        counting("watching", duration_ns, wanted=not json) as progress,
    ):
        seen = evidence(context, duration_ns, stopped=stopped, progress=progress)
        return stopped(), seen


def _print(checks: "list[Check]", context: "Context", why: str | None, json: bool) -> None:
    from latenz.tune.show import print_checks, print_entry

    if json:
        tune_transaction.print_json(
            {
                "profile": context.profile,
                "isolated": sorted(context.isolated),
                "checks": [each.to_json() for each in checks],
            }
        )
    elif why:
        print_entry(next(each for each in checks if each.id == why), context)
    else:
        print_checks(checks, context)


@command.command()
def snapshot(
    output: Annotated[Path, typer.Argument(help="The tar to write.", show_default=False)],
    root: Annotated[Path, _ROOT] = Path("/"),
    on: On = None,
    force: Force = False,
) -> None:
    """Gather what the checks read from this machine, to check it elsewhere.

    Only that is gathered: no contents of other files, no arguments of programs but QEMU's, and no
    passwords. As root it holds more.

    Example: latenz tune snapshot machine.tar; latenz tune check --root machine.tar --cpus 4
    """
    from latenz.outputs import check_output
    from latenz.progress import counting
    from latenz.terminal import printable
    from latenz.tune.snapshot import condition_count, write_snapshot

    inputs = (root,) if root.is_file() else ()
    check_output(output, inputs, force=force)
    with (
        machine_at(root, on),
        counting("reading", condition_count(), wanted=True) as progress,
    ):
        left_out = write_snapshot(output, root, progress)
    typer.echo(f"snapshot: {output}")
    for path, reason in list(left_out.items())[:_MOST_LEFT_OUT]:
        typer.echo(printable(f"left out: {path}: {reason}"), err=True)
    if len(left_out) > _MOST_LEFT_OUT:
        typer.echo(f"left out: {len(left_out) - _MOST_LEFT_OUT} more", err=True)


_MOST_LEFT_OUT = 10

tune_transaction.add_to(command)
tune_prove.add_to(command)
tune_watchers.add_to(command)
