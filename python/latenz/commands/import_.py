"""`latenz import`: what another tool measured becomes a run."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenz.commands.importing import reads_files

if TYPE_CHECKING:
    from latenz.model import SampleSet


@reads_files
def command(
    file: Annotated[Path, typer.Argument(help="Output of a measuring tool.")],
    output: Annotated[Path, typer.Option("-o", help="Run folder to write; must not exist yet.")],
    title: Annotated[
        str | None, typer.Option(help="How reports call the run; the folder's name if absent.")
    ] = None,
    *,
    importing: dict[str, Any],
) -> None:
    """Import what another tool measured into a run folder.

    Formats: cyclictest, oslat and other rt-tests, rtla, ftrace, Xenomai latency, jitterdebugger,
    stress-ng, rteval, hwlatdetect, CSV, VCD, Vivado ILA, Parquet.

    Example: latenz import cyclictest.json -o results/cyclictest
    """
    from latenz import importers
    from latenz.progress import counting

    with counting(f"reading {file.name}", _size(file), counts=False) as progress:
        sample_sets = importers.read(file, progress=progress, **importing)
        _write(output, sample_sets, title)
    sets = "1 sample set" if len(sample_sets) == 1 else f"{len(sample_sets)} sample sets"
    typer.echo(f"{output}: {sets} from {file}", err=True)


def _write(output: Path, sample_sets: "list[SampleSet]", title: str | None) -> None:
    """Write a run that appears when it is whole."""
    from latenz.files import appearing_folder
    from latenz.store.run import RunWriter

    with appearing_folder(output) as folder:
        writer = RunWriter(folder, command=sys.argv, title=title)
        for sample_set in sample_sets:
            writer.add(sample_set)
        writer.close()


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:
        return None
