"""`latenz coherence`: what caches of silicon could do to a program, found without a board."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from latenz.errors import EXIT_GATE_VIOLATED, EXIT_INTERRUPTED, BadInput, closest

if TYPE_CHECKING:
    from latenz.coherence import Checked
    from latenz.coherence.machine import Caches


def command(
    image: Annotated[Path, typer.Argument(help="A bare-metal program (ELF) or an arm64 Image.")],
    bench: Annotated[str, typer.Option(help="virt, virt-gicv3 or zcu102.")] = "virt",
    cpus: Annotated[int, typer.Option(min=1, max=4, help="How many Cortex-A53 there are.")] = 1,
    el: Annotated[
        int, typer.Option(min=1, max=2, help="The exception level at which the image is entered.")
    ] = 2,
    caches: Annotated[
        str,
        typer.Option(help="At entry: stale, a boot loader's copies of any line; or empty."),
    ] = "stale",
    symbols: Annotated[
        list[str] | None,
        typer.Option(
            help="An ELF file with names, as FILE or, for code of one exception level, FILE@LEVEL; "
            "several times. (default: the image's own)"
        ),
    ] = None,
    r5: Annotated[
        Path | None, typer.Option(help="A program for the first Cortex-R5 of zcu102.")
    ] = None,
    initrd: Annotated[Path | None, typer.Option(help="Initial file system of a Linux.")] = None,
    append: Annotated[str | None, typer.Option(help="Command line of a Linux.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Seconds until the board is off.")] = 60,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Run a program in the emulator and tell what may read old data on silicon with caches.

    It models which lines may be dirty or stale in the caches, and reports each place that reads
    without the maintenance it would need. The exit code is 1 if there is one. Interrupted by
    Ctrl-C, it tells what was found so far and ends with 130.

    Example: latenz coherence gateway.elf --bench zcu102
    """
    from latenz.coherence import Machine, check
    from latenz.signals import noticed_signals

    machine = Machine(image, bench, cpus, el, _caches(caches), initrd, append, r5, limit)
    with noticed_signals() as stopped:
        checked = check(machine, tuple(map(_symbols, symbols or ())), stopped=stopped)
    if json:
        _print_json(checked)
    else:
        from latenz.coherence.show import print_checked

        print_checked(checked)
    if stopped():
        return EXIT_INTERRUPTED
    return EXIT_GATE_VIOLATED if checked.places else 0


def _caches(text: str) -> "Caches":
    from latenz.coherence.machine import Caches

    for each in get_args(Caches):
        if each == text:
            return each  # type: ignore[no-any-return]
    raise BadInput(
        f"{text!r} is not a state of caches", "--caches", closest(text, get_args(Caches))
    )


def _symbols(text: str) -> tuple[Path, int | None]:
    name, at, level = text.rpartition("@")
    if not at:
        return Path(text), None
    if level not in ("0", "1", "2", "3"):
        raise BadInput(f"{level!r} is not an exception level", "--symbols", "give FILE or FILE@2")
    return Path(name), int(level)


def _print_json(checked: "Checked") -> None:
    import json as json_module
    from dataclasses import asdict

    document = {
        "places": [asdict(each) for each in checked.places],
        "notes": list(checked.notes),
        "accesses": checked.accesses,
        "time_base": "virtual",
    }
    typer.echo(json_module.dumps(document, indent=1))
