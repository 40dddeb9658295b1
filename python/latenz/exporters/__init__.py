"""Writing sample sets for other tools and for Latenz itself, one module for each format.

Each module has `write(sample_sets, path)`. Values are read in batches, so that memory stays
bounded; a file appears only when it is whole. What a format cannot hold is refused or told in the
file, never left out silently.
"""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path

from latenz.errors import BadInput
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
        raise BadInput(f"{format_name!r} is no format", "--to", f"formats: {', '.join(FORMATS)}")
    if not sample_sets:
        raise BadInput("there is no sample set to export")
    module = import_module(f"latenz.exporters.{FORMATS[format_name]}")
    writer: Callable[[Sequence[SampleSet], Path], None] = module.write
    with _replacing(path) as partial:
        writer(sample_sets, partial)


@contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Give a new file beside a path that takes its place when it is whole."""
    partial = None
    try:
        if path.is_dir():
            raise BadInput("is a folder", str(path), "name a file with -o")
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        os.close(descriptor)
        partial = Path(name)
        yield partial
        partial.chmod(0o666 & ~_umask())
        partial.replace(path)
    except OSError as error:
        raise BadInput(f"cannot be written ({error.strerror or error})", str(path)) from None
    finally:
        if partial is not None:
            with suppress(OSError):
                partial.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
