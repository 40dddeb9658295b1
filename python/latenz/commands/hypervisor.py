"""`latenz hypervisor`: systems booted under Latenz's own hypervisor."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.commands import Force
from latenz.commands.shipped import SystemFile
from latenz.errors import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from latenz.hypervisor.build import Built
    from latenz.hypervisor.results import Measured
    from latenz.hypervisor.run import Boot
    from latenz.store.run import RunWriter

command = typer.Typer(
    help="Boot systems under Latenz's own hypervisor: build, run, watch, costs, trace.\n\n"
    "Example: latenz hypervisor run experiments/systems/can-gateway.toml --irqs 2000",
    no_args_is_help=True,
)

_Mode = Annotated[str | None, typer.Option(help="plain, paper or carry, instead of the file's.")]
_Arrivals = Annotated[
    Path | None,
    typer.Option(help="Arrival times, a CSV file with the columns source and time_ns."),
]
_Irqs = Annotated[
    int | None,
    typer.Option(help="How many interrupts to draw from the arrival models. (default: 10000)"),
]
_Seed = Annotated[int, typer.Option(min=0, help="Seed of the drawn arrivals.")]
_Bench = Annotated[str, typer.Option(help="virt, virt-gicv3, zcu102 or raspi4b.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@command.command()
def build(
    system: SystemFile,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The image: ELF, or NAME.img for U-Boot's booti."),
    ],
    bench: _Bench = "virt",
    mode: _Mode = None,
    arrivals: _Arrivals = None,
    irqs: _Irqs = None,
    seed: _Seed = 0,
    force: Force = False,
    json: _Json = False,
) -> None:
    """Make a bootable image of a system: hypervisor, configuration, guests, interrupts.

    Systems without a bound are refused, with the reason. An image for zcu102 or raspi4b runs on
    the emulated board and on the real one.

    Example: latenz hypervisor build experiments/systems/can-gateway.toml -o gateway.elf
    """
    from latenz.outputs import check_output

    _check_bench(bench)
    check_output(output, (system, arrivals), force=force)
    built = _built(system, mode, arrivals, irqs, seed)
    built.write(output, bench)
    if json:
        regions = [
            {"name": each.name, "begin": each.begin, "size": each.size} for each in built.regions
        ]
        _print_json({"image": str(output), "irqs": len(built.arrivals), "regions": regions})
        return
    for each in built.regions:
        typer.echo(f"{each.begin:#x} to {each.end - 1:#x}  {each.name}")
    typer.echo(f"{output}: {len(built.arrivals)} interrupts, mode {built.mode}")


@command.command()
def run(
    system: SystemFile,
    bench: _Bench = "virt",
    mode: _Mode = None,
    arrivals: _Arrivals = None,
    irqs: _Irqs = None,
    seed: _Seed = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="New run folder for samples and trace.")
    ] = None,
    records: Annotated[
        Path | None, typer.Option(help="Write every interrupt to this Parquet file.")
    ] = None,
    force: Force = False,
    json: _Json = False,
) -> int:
    """Boot a system and tell the latencies of its interrupts, as `latenz simulate` does.

    The same file, options and seed have the same interrupts arrive at the same times. Interrupted
    by Ctrl-C, it tells what the board has told so far and ends with 130.

    Example: latenz hypervisor run experiments/systems/can-gateway.toml --irqs 2000 -o results/hv
    """
    from latenz.outputs import check_output

    _check_bench(bench)
    check_output(records, (system, arrivals), force=force)
    built = _built(system, mode, arrivals, irqs, seed)
    _warn(built)
    writer = _writer(output, bench)
    brought, stopped = _boot(built, bench, writer, wanted=not json)
    measured = brought.measured
    if writer:
        from latenz.hypervisor.store import keep

        keep(writer, system.stem, built, brought, bench)
    if records:
        from latenz.analysis.records import irq_file

        with irq_file(built.system, measured.outcome.latency_from, records) as write:
            write(measured.irqs)
    if json:
        _print_json(_document(measured, bench))
    else:
        from latenz.hypervisor.show import print_run

        print_run(measured, bench)
    return EXIT_INTERRUPTED if stopped else 0


@command.command()
def watch(
    system: SystemFile,
    bench: _Bench = "virt",
    mode: _Mode = None,
    arrivals: _Arrivals = None,
    irqs: _Irqs = None,
    seed: _Seed = 0,
    json: Annotated[bool, typer.Option("--json", help="Print a JSON document a second.")] = False,
) -> int:
    """Boot a system and show what goes on: slots, interrupts, time lost in slots, health.

    The run ends when its interrupts are over, or by Ctrl-C. Nothing of it changes by being watched:
    the trace is read from the emulated board's memory.

    Example: latenz hypervisor watch experiments/systems/can-gateway.toml --irqs 100000
    """
    from latenz.hypervisor.show import in_words
    from latenz.hypervisor.watch import RECORDS
    from latenz.hypervisor.watch import watch as watch_run
    from latenz.signals import noticed_signals

    _check_bench(bench)
    built = _built(system, mode, arrivals, irqs, seed, records=RECORDS)
    _warn(built)
    with noticed_signals() as stopped:
        told = watch_run(built, bench, stopped=stopped, json=json)
    if told is None:
        return EXIT_INTERRUPTED
    if not json:
        for each in told.partitions:
            if each.faults:
                typer.echo(in_words(each))
        typer.echo(f"the run is over: {told.cycles:,} cycles")
    return 0


@command.command()
def costs(
    system: SystemFile,
    bench: _Bench = "virt",
    mode: _Mode = None,
    arrivals: _Arrivals = None,
    irqs: _Irqs = None,
    seed: _Seed = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the system with these costs to this file."),
    ] = None,
    force: Force = False,
    json: _Json = False,
) -> int:
    """Boot a system and tell what the hypervisor's own work took at most.

    It is booted as it is, and again with hostile guests in the place of one on each processor: what
    those make the hypervisor do holds up the others, whose bounds have to know it. With -o it
    writes the system file with these costs, the largest of all processors: bounds and simulations
    of that one hold against what the hypervisor measures.

    Example: latenz hypervisor costs experiments/systems/can-gateway.toml -o measured.toml
    """
    from latenz.outputs import check_output

    _check_bench(bench)
    check_output(output, (system, arrivals), force=force)
    built = _built(system, mode, arrivals, irqs, seed)
    _warn(built)
    brought, stopped = _boot(built, bench, None, wanted=not json)
    measured = brought.measured
    if measured.costs is None or measured.sections is None:
        typer.echo("latenz: stopped before the costs were told", err=True)
        return EXIT_INTERRUPTED
    from latenz.hypervisor.attacked import places_of_hostile
    from latenz.hypervisor.costs import with_costs

    told_of = ", ".join(places_of_hostile(built.system))
    measured, stopped = _beside_hostile(built, bench, measured, wanted=not json)
    assert measured.costs is not None and measured.sections is not None  # noqa: S101, PT018 - as above
    changed, missing = with_costs(built.system, measured.costs, measured.sections)
    for each in missing:
        typer.echo(f"latenz: warning: the run shows no {each}; the file's own is kept", err=True)
    if output:
        from latenz.system import write_system

        told = f"Costs measured by latenz hypervisor costs {system.name} on {bench}, virtual time."
        told += f" Also with hostile guests for {told_of}."
        write_system(changed, output, told)
    if json:
        own = {"file": output and str(output), "hostile_in": told_of}
        _print_json({**_document(measured, bench), **own})
    else:
        from latenz.hypervisor.show import print_costs

        print_costs(measured, bench)
        typer.echo(f"also measured with hostile guests in the place of {told_of}'s")
    return EXIT_INTERRUPTED if stopped else 0


@command.command()
def trace(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder of latenz hypervisor run -o.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The JSON file.")],
    window: Annotated[
        str | None, typer.Option(help="What to write, such as 10ms..30ms. (default: everything)")
    ] = None,
    force: Force = False,
) -> None:
    """Write what the hypervisor did for Perfetto or Chrome's trace viewer.

    Example: latenz hypervisor trace results/hv -o hv.json --window 0ms..100ms
    """
    from latenz.analysis.options import window_of
    from latenz.hypervisor.schedule import export_trace
    from latenz.hypervisor.store import stored
    from latenz.outputs import check_output

    check_output(output, (folder,), force=force)
    system, measured = stored(folder)
    export_trace(system, measured, output, window_of(window, system) if window else None)


def _built(
    system: Path,
    mode: str | None,
    arrivals: Path | None,
    irqs: int | None,
    seed: int,
    *,
    records: int | None = None,
) -> "Built":
    from latenz.analysis.options import mode_of
    from latenz.hypervisor.build import build as build_image
    from latenz.hypervisor.run import ensure_built
    from latenz.hypervisor.stamps import without_limit

    ensure_built()
    chosen = mode_of(mode)
    built = build_image(system, chosen, listed=arrivals, irqs=irqs, seed=seed, records=records)
    for name in without_limit(built.stamped):
        told = "nothing limits its device (R7), and no bound holds beside it"
        typer.echo(f"latenz: warning: {name}: {told}; give it a minimum distance", err=True)
    return built


def _check_bench(bench: str) -> None:
    from latenz.hypervisor.run import environment_for

    environment_for(bench)


def _warn(built: "Built") -> None:
    if built.processors > 1:
        told = (
            "an emulator's processors share its clock: latencies and costs have the others' turns"
        )
        typer.echo(f"latenz: warning: {told} in them", err=True)


def _writer(folder: Path | None, bench: str) -> "RunWriter | None":
    from latenz.hypervisor.store import new_run

    return new_run(folder, bench) if folder else None


def _boot(
    built: "Built", bench: str, writer: "RunWriter | None", *, wanted: bool
) -> "tuple[Boot, bool]":
    """Return what a boot brought, and whether it was stopped by a signal.

    Raises:
        typer.Exit: It was stopped before it brought anything.
    """
    from threading import Event

    from latenz.errors import BadInput
    from latenz.hypervisor.results import off_the_grid
    from latenz.hypervisor.run import boot
    from latenz.progress import counting
    from latenz.signals import stopped_by_signals

    asked = Event()
    label = f"{bench}: {len(built.arrivals):,} interrupts; records received"
    try:
        with stopped_by_signals(asked.set), counting(label, None, wanted=wanted) as progress:
            folder = writer.folder if writer else None
            brought = boot(built, bench, folder, stopped=asked.is_set, report=progress)
    except BadInput as mistake:
        if writer:
            writer.close("interrupted" if asked.is_set() else "failed")
        if not asked.is_set():
            raise
        typer.echo(f"latenz: {mistake}", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    run = brought.measured
    for note in off_the_grid(built.system, run):
        typer.echo(f"latenz: warning: {note}", err=True)
    return brought, asked.is_set()


def _beside_hostile(
    built: "Built", bench: str, measured: "Measured", *, wanted: bool
) -> "tuple[Measured, bool]":
    """Boot the system with each of the hostile guests as well.

    Args:
        built: The system with its own guests.
        bench: Where it is booted.
        measured: What it showed beside its own guests.
        wanted: Whether progress is shown.

    Returns:
        That with the worst costs of all boots, and whether it was stopped before the last.

    Raises:
        BadInput: A boot failed beside a hostile guest, or did not end.
    """
    from latenz.errors import BadInput
    from latenz.hypervisor.attacked import ATTACKS, attacked, places_of_hostile
    from latenz.hypervisor.build import build_system
    from latenz.hypervisor.results import worst_of

    stopped = False
    for attack in ATTACKS:
        with attacked(built.system, attack) as system:
            image = build_system(system, built.mode, built.arrivals)
        try:
            brought, stopped = _boot(image, bench, None, wanted=wanted)
        except BadInput as mistake:
            place = ", ".join(places_of_hostile(built.system))
            told = f"with the hostile guest {attack} in place of {place}: {mistake.what}"
            fix = f"guests that wait for {place} must say that they are ready before they do"
            raise BadInput(told, bench, mistake.remedy or fix) from None
        if stopped or brought.measured.costs is None:
            return measured, True
        measured = worst_of(measured, brought.measured)
    return measured, stopped


def _document(measured: "Measured", bench: str) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        **asdict(measured.outcome),
        "costs_ns": measured.costs and measured.costs.to_json(),
        "time_base": "virtual",
        "bench": bench,
        "top_ns": measured.costs and measured.costs.top,
        "sections_ns": measured.sections and asdict(measured.sections),
        "processors": [
            {
                "processor": each.processor,
                "costs_ns": each.costs and each.costs.to_json(),
                "top_ns": each.costs and each.costs.top,
                "sections_ns": each.sections and asdict(each.sections),
            }
            for each in measured.processors
        ],
        "counted": measured.statistics.model_dump(),
    }


def _print_json(document: dict[str, Any]) -> None:
    import json as json_module

    typer.echo(json_module.dumps(document, indent=1))
