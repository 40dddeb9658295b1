"""Reading what other tools wrote: one module for each format, recognised by content.

Each module has a `NAME`, `matches(head)`, which looks at the first 64 KiB of a file, and
`read(source)`, which gives the sample sets or raises `BadInput` with file and line. Values are
those the tool printed, exactly; what a tool left out, cut off or rounded stands in `beyond_range`,
`resolution_ns` and the notes of the set's metadata.
"""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from latenz import extensions
from latenz.errors import BadInput, first_mistake
from latenz.importers.compressed import is_compressed, unpacked
from latenz.importers.source import HEAD_BYTES, Options, Source
from latenz.magic import other_use
from latenz.model import SampleSet

FORMATS = {
    "latenz-wakeup": "probe",
    "parquet": "parquet",
    "mdf": "mdf",
    "vcd": "vcd",
    "ila": "ila",
    "cyclictest": "cyclictest",
    "oslat": "oslat",
    "rtla": "rtla",
    "ftrace": "ftrace",
    "xenomai": "xenomai",
    "jitterdebugger": "jitterdebugger",
    "stress-ng": "stress_ng",
    "rt-tests": "rt_tests",
    "rteval": "rteval",
    "hwlatdetect": "hwlatdetect",
    "levels": "levels",
    "csv": "csv_values",
}
"""Format name to module, in the order in which they are tried."""
_READ_LATER = ("latenz-wakeup", "parquet")
"""Formats whose values are read from the file whenever they are asked for."""


def read(
    path: Path,
    format_name: str | None = None,
    progress: Callable[[int], None] | None = None,
    **options: Any,
) -> list[SampleSet]:
    """Read the sample sets of a file.

    Args:
        path: The file, or a folder of our probe.
        format_name: One of `FORMATS`; found out from the content, if None.
        progress: Called now and then with the number of bytes read so far.
        options: What the file cannot tell; see `latenz.importers.source.Options`.

    Raises:
        BadInput: The file cannot be read, is of no known format, is damaged, or holds no sample.
    """
    from latenz.importers.probe import account_in

    try:
        path = account_in(path) or path
        if path.exists() and not path.is_file():
            raise BadInput("is not a regular file", str(path), "save the output in a file first")
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if is_compressed(head):
            return _read_packed(path, format_name, progress, options)
        name = format_name or recognise(head, str(path))
        if name not in (known := format_names()):
            raise BadInput(f"{name!r} is not a format", "--format", f"formats: {', '.join(known)}")
        source = Source(path, name, Options(**options), progress)
        sets: list[SampleSet] = _module(name).read(source)
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror or error})", str(path)) from None
    except ValidationError as error:  # a number that no tool prints
        raise BadInput(first_mistake(error), str(path)) from None
    return [source.with_said(each) for each in _with_samples(source, sets)]


def _read_packed(
    path: Path,
    format_name: str | None,
    progress: Callable[[int], None] | None,
    options: dict[str, Any],
) -> list[SampleSet]:
    """Read a compressed file of a format whose values are taken while it is read."""
    with unpacked(path) as plain:
        with plain.open("rb") as file:
            head = file.read(HEAD_BYTES)
        name = format_name or recognise(head, str(path))
        if is_compressed(head) or name in _READ_LATER:
            raise BadInput("what is in it has to be unpacked first", str(path))
        return read(plain, name, progress, **options)


def recognise(head: bytes, where: str) -> str:
    """Return the name of the format of a file that begins like this."""
    for name in (known := format_names()):
        if _module(name).matches(head):
            return name
    if not head.strip():
        raise BadInput("the file is empty", where)
    formats = f"formats: {', '.join(known)}; CSV needs a header with a unit, such as latency_us"
    raise BadInput(
        "the content is of no format that Latenz reads", where, other_use(head) or formats
    )


def format_names() -> list[str]:
    """Return the names of all formats in the order in which they are tried.

    Those of others' packages come before CSV, which takes whatever has a header with a unit.
    """
    others = [each.name for each in extensions.added("latenz.importers")]
    own = [name for name in FORMATS if name != "csv"]
    return [*own, *(name for name in others if name not in FORMATS), "csv"]


def _module(name: str) -> Any:
    if name in FORMATS:
        return import_module(f"latenz.importers.{FORMATS[name]}")
    others = extensions.added("latenz.importers")
    return extensions.loaded(next(each for each in others if each.name == name))


def _with_samples(source: Source, sets: list[SampleSet]) -> list[SampleSet]:
    """Leave out sets without samples, and say so in the others."""
    filled = [sample_set for sample_set in sets if not _is_empty(sample_set)]
    if not filled:
        raise source.bad("holds no samples")
    names = [sample_set.metadata.name for sample_set in filled]
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise source.bad(f"two sample sets are named {twice}", remedy="import one output at a time")
    if len(filled) == len(sets):
        return filled
    left_out = [s.metadata.name for s in sets if _is_empty(s)]
    note = f"no samples in {', '.join(left_out[:10])}{', ...' if len(left_out) > 10 else ''}"
    return [s.with_metadata(notes=(*s.metadata.notes, note)) for s in filled]


def _is_empty(sample_set: SampleSet) -> bool:
    metadata = sample_set.metadata
    if sample_set.form == "summary":
        return metadata.reported is None or metadata.reported.n == 0
    if metadata.beyond_range:
        return False
    return not any(batch.num_rows for batch in sample_set.batches("latency_ns"))
