"""`latenz import`: what another tool measured becomes a run."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from latenz.model import SampleSet, TimeBase

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}


def command(
    file: Annotated[Path, typer.Argument(help="Output of a measuring tool.")],
    output: Annotated[Path, typer.Option("-o", help="Run folder to write; must not exist yet.")],
    format_name: Annotated[
        str | None, typer.Option("--format", help="Format; found out from the content if absent.")
    ] = None,
    time_base: Annotated[
        str | None,
        typer.Option(help="Clock the values were read from: silicon, virtual or simulated."),
    ] = None,
    unit: Annotated[
        str | None, typer.Option(help="Unit of a file that prints none: ns, us, ms or s.")
    ] = None,
    start: Annotated[
        str | None, typer.Option(help="VCD, ILA: signal that starts a latency; SIGNAL:fall too.")
    ] = None,
    end: Annotated[
        str | None, typer.Option(help="VCD, ILA: signal that ends a latency; SIGNAL:fall too.")
    ] = None,
    overlap: Annotated[
        str,
        typer.Option(help="VCD, ILA: a start while one is open is: drop, restart or queue."),
    ] = "drop",
    clock_period: Annotated[
        str | None, typer.Option(help='ILA: period of its clock, such as "10 ns".')
    ] = None,
) -> None:
    """Import what another tool measured into a run folder.

    Formats: cyclictest, oslat and other rt-tests, rtla, ftrace, Xenomai latency, jitterdebugger,
    stress-ng, rteval, hwlatdetect, CSV, VCD, Vivado ILA, Parquet.

    Example: latenz import cyclictest.json -o results/cyclictest
    """
    from latenz import importers
    from latenz.progress import counting

    with counting(f"reading {file.name}", _size(file), counts=False) as progress:
        sample_sets = importers.read(
            file,
            format_name,
            progress,
            time_base=_time_base(time_base),
            unit_ns=_unit(unit),
            start=start,
            end=end,
            overlap=overlap,
            clock_period=clock_period,
        )
        _write(output, sample_sets)
    typer.echo(f"{output}: {len(sample_sets)} sample sets from {file}", err=True)


def _write(output: Path, sample_sets: "list[SampleSet]") -> None:
    """Write a run that appears when it is whole."""
    from latenz.files import appearing_folder
    from latenz.store.run import RunWriter

    with appearing_folder(output) as folder:
        writer = RunWriter(folder, command=sys.argv)
        for sample_set in sample_sets:
            writer.add(sample_set)
        writer.close()


def _time_base(text: str | None) -> "TimeBase | None":
    from latenz.errors import BadInput
    from latenz.model import TimeBase

    known = ("silicon", "virtual", "simulated")
    if text is not None and text not in known:
        raise BadInput(f"{text!r} is no time base", "--time-base", ", ".join(known))
    return TimeBase(text) if text else None


def _unit(text: str | None) -> int | None:
    from latenz.errors import BadInput

    if text is not None and text not in _UNITS:
        raise BadInput(f"{text!r} is no unit", "--unit", ", ".join(_UNITS))
    return _UNITS[text] if text else None


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:
        return None
