"""Writing sample sets for other tools and for Latenz itself, one module for each format.

Each module has `write(sample_sets, path)`. Values are read in batches, so that memory stays
bounded; a file appears only when it is whole. What a format cannot hold is refused or told in the
file, never left out silently.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from latenz.errors import BadInput
from latenz.files import replacing
from latenz.model import SampleSet

FORMATS = {
    "csv": "csv_file",
    "parquet": "parquet_file",
    "hlog": "hlog",
    "cyclictest-json": "cyclictest_json",
    "openmetrics": "openmetrics",
}
"""Format name to module."""


def write(sample_sets: Sequence[SampleSet], format_name: str, path: Path) -> None:
    """Write sample sets to a file, which is replaced as a whole.

    Args:
        sample_sets: The sets; at least one.
        format_name: One of `FORMATS`.
        path: The file.

    Raises:
        BadInput: The format is unknown or cannot hold these sets, or the file cannot be written.
    """
    if format_name not in FORMATS:
        raise BadInput(f"{format_name!r} is not a format", "--to", f"formats: {', '.join(FORMATS)}")
    if not sample_sets:
        raise BadInput("there is no sample set to export")
    module = import_module(f"latenz.exporters.{FORMATS[format_name]}")
    writer: Callable[[Sequence[SampleSet], Path], None] = module.write
    with replacing(path) as partial:
        writer(sample_sets, partial)
