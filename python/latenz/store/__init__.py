"""Where sample sets live: run folders, Parquet files, and journals that are still being written."""

from pathlib import Path

from latenz.errors import BadInput
from latenz.model import SampleSet


def open_sample_sets(path: Path) -> list[SampleSet]:
    """Return the sample sets of a run folder, a Parquet file, a journal, or an importable file.

    Raises:
        BadInput: The path does not exist, may not be read, or holds nothing that can be read.
    """
    from latenz.store.journal import MAGIC as JOURNAL_MAGIC
    from latenz.store.journal import open_journal
    from latenz.store.run import Run

    try:
        if path.is_dir():
            return Run.open(path).sample_sets
        with path.open("rb") as file:
            head = file.read(8)
    except FileNotFoundError:
        raise BadInput(
            "there is no such file or folder",
            str(path),
            "give a run folder, a samples.parquet or a file that `latenz import` reads",
        ) from None
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror})", str(path)) from None
    if head == JOURNAL_MAGIC:
        return [open_journal(path)]
    from latenz import importers

    return importers.read(path)
