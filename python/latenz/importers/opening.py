"""Opening sample sets, wherever they are: runs of ours, folders of our probe, files of others."""

from pathlib import Path
from typing import Any

from latenz.errors import BadInput
from latenz.importers import read
from latenz.importers.probe import account_in
from latenz.model import SampleSet
from latenz.store.run import Run


def check_nothing_said(run: Path, importing: dict[str, Any]) -> None:
    """Refuse what the user says of a measurement for a run, which tells that itself.

    Raises:
        BadInput: Something was said.
    """
    said = [name for name in ("machine", "measured", "note") if name in importing]
    if said:
        what = f"is a run, which keeps what it says of its measurement: no --{said[0]}"
        raise BadInput(what, str(run), "give it with `latenz import`")


def open_sample_sets(path: Path, **importing: Any) -> list[SampleSet]:
    """Return the sample sets of a run folder, a folder of our probe, or an importable file.

    Args:
        path: Where they are.
        importing: What an importable file cannot tell, as `latenz.importers.read` takes it.

    Raises:
        BadInput: The path does not exist, may not be read, or holds nothing that can be read.
    """
    try:
        if path.is_dir() and (account_in(path) is None or (path / "run.json").exists()):
            check_nothing_said(path, importing)
            return Run.open(path).sample_sets
        path.stat()
    except FileNotFoundError:
        raise BadInput(
            "there is no such file or folder",
            str(path),
            "give a run folder, a samples.parquet or what `latenz import` reads",
        ) from None
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    return read(path, **importing)
