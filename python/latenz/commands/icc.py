"""`latenz icc`: channels between processors: seen from outside, and tried on an emulated board."""

from pathlib import Path
from typing import Annotated

import typer

command = typer.Typer(
    help="Shared-memory channels between processors: watch, show, try.\n\n"
    "Example: latenz icc watch shm:/control",
    no_args_is_help=True,
)

_REGION = typer.Argument(
    help="shm:/NAME, a file, uio:/dev/uioN[:MAP] or mem:ADDRESS+SIZE (0xFFFD0000+60K).",
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
    from latenz.commands.watching import Printer
    from latenz.durations import parse_interval
    from latenz.icc.region import open_region
    from latenz.icc.show import table, to_json
    from latenz.icc.watch import Watcher

    interval_ns = parse_interval(interval, "--interval")
    with open_region(region) as opened:
        watcher = Watcher(opened)
        printer = Printer(table, to_json, json)
        if once:
            printer.show(watcher.watch(interval_ns))
        else:
            printer.follow(watcher.report, lambda: watcher.watch(interval_ns))


@command.command()
def show(
    region: Annotated[str, _REGION],
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Show what channels carry: fields, their types, and the newest values.

    Example: latenz icc show shm:/control
    """
    from latenz.commands.watching import Printer
    from latenz.icc.region import open_region
    from latenz.icc.show import table, to_json, values
    from latenz.icc.watch import Watcher

    with open_region(region) as opened:
        report = Watcher(opened).report()
    if json:
        Printer(table, to_json, json).show(report)
    else:
        from latenz.console import Console

        console = Console()
        if report.unreadable:
            console.print(table(report))
        console.print(values(report))


@command.command()
def generate(
    description: Annotated[
        Path, typer.Argument(help="Types and channels in TOML.", show_default=False)
    ],
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Folder for the headers.")
    ] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Replace files of others.")] = False,
) -> None:
    """Write headers for C99 and C++20 from one description, so that both sides agree.

    NAME.toml gives NAME.h and NAME.hpp. Programs that include either can be the two sides of a
    channel; one with an older header is refused when they meet, and told the field that differs.

    Example: latenz icc generate icc/examples/robot.toml
    """
    from latenz.files import make_folder, replacing
    from latenz.icc.description import read_description
    from latenz.icc.generate import c_header, cpp_header
    from latenz.outputs import check_outputs

    read = read_description(description)
    headers = {
        output / f"{read.name}.h": c_header(read),
        output / f"{read.name}.hpp": cpp_header(read),
    }
    check_outputs(headers, (description,), force=force)
    make_folder(output)
    for path, text in headers.items():
        with replacing(path) as partial:
            partial.write_text(text)
        typer.echo(path)


@command.command("try")
def try_(
    folder: Annotated[
        Path, typer.Argument(help="Holds a53.cpp and r5.cpp (or .c), each with an int main().")
    ],
) -> None:
    """Compile two programs of yours, and run them on an emulated Cortex-A53 and Cortex-R5.

    Both get 60 KiB of on-chip memory that neither caches, a clock and a console by
    <latenz/board.hpp>. Ends with 0 once both mains have returned 0, with 1 if one did not.

    Example: latenz icc try icc/examples/pair
    """
    import tempfile

    from latenz.boards.setup import ensure_boards
    from latenz.errors import EXIT_GATE_VIOLATED, BadInput
    from latenz.icc.trial import attempt, own_sources, sources_in
    from latenz.progress import counting

    sources_in(folder)
    own_sources()
    if (obstacle := ensure_boards()) is not None:
        raise BadInput(obstacle.reason, "icc try", obstacle.fix)
    with (
        tempfile.TemporaryDirectory(prefix="latenz-") as scratch,
        counting("on the emulated board", None),
    ):
        tried = attempt(folder, Path(scratch))
    for line in tried.lines:
        typer.echo(line)
    if tried.trouble is not None:
        typer.echo(f"latenz: {tried.trouble}", err=True)
        raise typer.Exit(EXIT_GATE_VIOLATED)
