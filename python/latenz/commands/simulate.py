"""`latenz simulate`: interrupt latencies of a system, simulated to the nanosecond."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.commands import Force
from latenz.commands.shipped import SystemFile
from latenz.errors import EXIT_INTERRUPTED

if TYPE_CHECKING:
    from latenz.analysis import Simulation, Simulator


def command(
    system: SystemFile,
    mode: Annotated[
        str | None, typer.Option(help="plain, paper or carry, instead of the file's.")
    ] = None,
    arrivals: Annotated[
        Path | None,
        typer.Option(help="Arrival times, a CSV file with the columns source and time_ns."),
    ] = None,
    irqs: Annotated[
        int | None,
        typer.Option(
            help="How many interrupts to draw, on each processor with slots. (default: 10000)"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the drawn arrivals.")] = 0,
    latency_from: Annotated[
        str | None, typer.Option(help="arrival or top (the top handler's start).")
    ] = None,
    records: Annotated[
        Path | None, typer.Option(help="Write every interrupt to this Parquet file.")
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the schedule into this SVG file.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(help="Write the schedule for Perfetto or Chrome's trace viewer."),
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(help="What to draw or trace, such as 10ms..30ms. (default: two cycles)"),
    ] = None,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> int:
    """Simulate interrupts and tell their latencies.

    Interrupted by Ctrl-C, it tells what was simulated so far and ends with 130.

    Example: latenz simulate experiments/systems/beckert2014.toml --mode carry --irqs 15000 --seed 1
    """
    from latenz.analysis import Simulator
    from latenz.analysis.options import arrivals_of, latency_from_of, mode_of, window_of
    from latenz.analysis.records import run_and_record
    from latenz.analysis.simulators import simulator_of
    from latenz.outputs import check_outputs
    from latenz.system import read_system

    check_outputs((records, picture, trace), (system, arrivals), force=force)
    described = read_system(system)
    times, most = arrivals_of(described, arrivals, irqs)
    drawn = bool(picture or trace or window)
    part = window_of(window, described) if drawn else (0, 0)
    options: dict[str, Any] = {
        "mode": mode_of(mode),
        "arrivals": times,
        "irqs": most,
        "seed": seed,
        "latency_from": latency_from_of(latency_from),
    }
    if picture or trace:  # of one processor, as `window_of` has it
        _draw(Simulator(described, **options, watch="segments"), part, picture, trace)
    simulator = simulator_of(described, **options, watch="irqs" if records else "figures")
    known = times is not None or isinstance(simulator, Simulator)  # how many there will be
    run_and_record(simulator, records, most if known else None, wanted=not json)
    outcome = simulator.outcome()
    if json:
        _print_json(outcome)
    else:
        from latenz.analysis.show import print_simulation

        print_simulation(outcome)
    return 0 if outcome.complete else EXIT_INTERRUPTED


def _draw(
    simulator: "Simulator", part: tuple[int, int], picture: Path | None, trace: Path | None
) -> None:
    from latenz.analysis.timeline import schedule_picture, timeline, write_trace
    from latenz.files import replacing

    shown = timeline(simulator, *part)
    if picture:
        drawn = schedule_picture(shown)
        with replacing(picture) as partial:
            partial.write_text(drawn, encoding="utf-8")
    if trace:
        write_trace(shown, trace)


def _print_json(outcome: "Simulation") -> None:
    import json as json_module
    from dataclasses import asdict

    document = asdict(outcome)
    typer.echo(json_module.dumps(document, indent=1))
