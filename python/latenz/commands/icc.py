"""`latenz icc`: what happens in channels between processors, seen from outside."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from latenz.icc.watch import Report, Watcher

command = typer.Typer(
    help="Look at shared-memory channels between processors: watch, show.\n\n"
    "Example: latenz icc watch shm:/control",
    no_args_is_help=True,
)

_REGION = typer.Argument(
    help="shm:/NAME, a file, uio:/dev/uioN[:MAP] or mem:ADDRESS+SIZE (0xFFFC0000+64K).",
    show_default=False,
)
_JSON = typer.Option("--json", help="Print JSON: one document a report.")


@command.command()
def watch(
    region: Annotated[str, _REGION],
    once: Annotated[bool, typer.Option("--once", help="One report, and end.")] = False,
    interval: Annotated[str, typer.Option(help="From one report to the next.")] = "1s",
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Show channels, their rates, and who is alive, until Ctrl-C.

    Only reads the memory; nobody in it notices.

    Example: latenz icc watch shm:/control
    """
    from latenz.icc.region import open_region
    from latenz.icc.watch import Watcher

    interval_ns = _interval(interval)
    with open_region(region) as opened:
        watcher = Watcher(opened)
        if once:
            _print(watcher.watch(interval_ns), json)
        elif json or not sys.stdout.isatty():
            while True:
                _print(watcher.watch(interval_ns), json)
        else:
            _watch_live(watcher, interval_ns)


@command.command()
def show(
    region: Annotated[str, _REGION],
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Show what channels carry: fields, their types, and the newest values.

    Example: latenz icc show shm:/control
    """
    from latenz.icc.region import open_region
    from latenz.icc.watch import Watcher

    with open_region(region) as opened:
        report = Watcher(opened).report()
    if json:
        _print(report, json=True)
    else:
        from rich.console import Console

        from latenz.icc.show import table, values

        console = Console()
        if report.unreadable:
            console.print(table(report))
        console.print(values(report))


def _interval(text: str) -> int:
    from latenz.durations import parse_duration
    from latenz.errors import BadInput

    interval_ns = parse_duration(text, "--interval")
    shortest_ns, longest_ns = 10_000_000, 3_600_000_000_000
    if not shortest_ns <= interval_ns <= longest_ns:
        raise BadInput(f"{text!r} is no interval", "--interval", "it is between 10 ms and 1 h")
    return interval_ns


def _print(report: "Report", json: bool) -> None:
    if json:
        import json as json_module

        from latenz.icc.show import to_json

        print(json_module.dumps(to_json(report), allow_nan=False), flush=True)  # noqa: T201
    else:
        from rich.console import Console

        from latenz.icc.show import table

        Console().print(table(report))


def _watch_live(watcher: "Watcher", interval_ns: int) -> None:
    from rich.live import Live

    from latenz.icc.show import table

    with Live(table(watcher.report()), auto_refresh=False) as live:
        while True:
            live.update(table(watcher.watch(interval_ns)), refresh=True)
