"""Arguments that are a file of the user's, or the name of one that comes with Latenz."""

from pathlib import Path
from typing import Annotated

import typer

from latenz.installation import file_or_shipped


def named_experiment(path: Path | None) -> Path | None:
    """Return the experiment file that an argument names; None if none is given."""
    return None if path is None else file_or_shipped(path, "experiment")


def named_system(path: Path | None) -> Path | None:
    """Return the system file that an argument names; None if none is given."""
    return None if path is None else file_or_shipped(path, "system")


ExperimentFile = Annotated[
    Path,
    typer.Argument(
        help="An experiment file (TOML), or the name of one that comes with Latenz.",
        callback=named_experiment,
    ),
]
SystemFile = Annotated[
    Path,
    typer.Argument(
        help="A system file (TOML), or the name of one that comes with Latenz.",
        callback=named_system,
    ),
]
