"""Recorded arrivals: CSV with the header `source,time_ns`, or Parquet with these two columns.

Rows are sorted by time, which counts nanoseconds from the start of the first TDMA cycle. Files are
read in large pieces; only when something is wrong are they read again line by line, to name it.
"""

import csv
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from latenz.columns import as_numpy
from latenz.errors import BadInput, closest, shown
from latenz.system.fields import LONGEST_NS
from latenz.system.model import System

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("source", "time_ns")
Times: TypeAlias = npt.NDArray[np.int64]
_Others: TypeAlias = Literal["refused", "left out", "taken"]  # sources that were not asked for
_HEADER = ",".join(COLUMNS)
_REMEDY = f"give {_HEADER}"
_PIECE = 1 << 22
_LONGEST_LINE = 1 << 16
_INTEGER = re.compile(r"-?[0-9]{1,30}")
_USUAL_ROW = re.compile(rb'([^",\r\n]{1,300}|"[^",\r\n]{1,300}"),([0-9]{1,18})\r?\n')
_PARQUET = b"PAR1"


def read_arrivals(path: Path, system: System) -> list[Times]:
    """Read the arrivals of a system's sources.

    Returns:
        The times of each source in nanoseconds, ascending, in the order of the system's sources.

    Raises:
        BadInput: The file cannot be read, is not sorted, or names a source that the system does
            not have; the place is file and line, or row.
    """
    if not is_trace(path):
        raise BadInput("there is no such file", str(path), f"give a CSV file with {_HEADER}")
    names = [source.name for source in system.sources]
    return list(_read(path, names, "refused").values())


def read_times(path: Path, names: Iterable[str] | None = None) -> dict[str, Times]:
    """Read the arrivals of some sources, whatever others the file may hold, or of all.

    Raises:
        BadInput: As `read_arrivals`.
    """
    return _read(path, [], "taken") if names is None else _read(path, list(names), "left out")


def is_trace(path: Path) -> bool:
    """Tell whether there is a regular file; pipes and devices cannot be read twice."""
    try:
        return path.is_file()
    except OSError:
        return False


def _read(path: Path, names: list[str], others: _Others) -> dict[str, Times]:
    import pyarrow as pa

    try:
        with path.open("rb") as file:
            parquet = file.read(len(_PARQUET)) == _PARQUET
        if parquet:
            return _collect(path, _parquet_pieces(path), names, others)
        pieces = _csv_pieces(path) if _has_rows(path) else iter(())
        try:
            return _collect(path, pieces, names, others)
        except (BadInput, pa.ArrowException) as error:
            known = dict.fromkeys(names) if others == "refused" else None
            _find_mistake(path, known)
            reason = " ".join(str(error).split())[:200]
            raise BadInput(f"is not readable CSV ({reason})", str(path), _REMEDY) from None
    except OSError as error:
        raise BadInput(f"cannot be read ({error.strerror or error})", str(path)) from None


def _csv_pieces(path: Path) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    types = {"source": pa.dictionary(pa.int32(), pa.string()), "time_ns": pa.int64()}
    reader = arrow_csv.open_csv(
        path,
        read_options=arrow_csv.ReadOptions(block_size=_PIECE),
        convert_options=arrow_csv.ConvertOptions(column_types=types, null_values=[]),
    )
    with reader:
        yield from reader


def _parquet_pieces(path: Path) -> "Iterator[pa.RecordBatch]":
    import pyarrow as pa
    import pyarrow.parquet as pq

    from latenz.store.parquet import DAMAGES, reason

    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        for name, wanted in zip(COLUMNS, ("text", "integers"), strict=True):
            if name not in file.schema_arrow.names:
                raise BadInput(f"the column {name} is missing", str(path), f"give {_HEADER}")
            kind = file.schema_arrow.field(name).type
            fits = pa.types.is_integer(kind) if name == "time_ns" else _is_text(kind)
            if not fits:
                raise BadInput(f"the column {name} holds {kind}", str(path), f"give {wanted}")
        for batch in file.iter_batches(columns=list(COLUMNS)):
            source = batch.column("source").cast(pa.string()).dictionary_encode()
            times = batch.column("time_ns").cast(pa.int64())
            yield pa.RecordBatch.from_arrays([source, times], names=list(COLUMNS))
    except DAMAGES as error:
        raise BadInput(f"is not a sound Parquet file ({reason(error)})", str(path)) from None


def _is_text(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(plain) or pa.types.is_large_string(plain))


def _collect(
    path: Path, pieces: "Iterator[pa.RecordBatch]", names: list[str], others: _Others
) -> dict[str, Times]:
    """Sort the rows of all pieces by source."""
    found: dict[str, list[Times]] = {name: [] for name in names}
    rows, last = 0, 0
    for piece in pieces:
        source, times = piece.column("source"), piece.column("time_ns")
        if source.null_count or times.null_count:
            raise BadInput("has empty cells", f"{path}: row {rows + 1} or later")
        values = as_numpy(times)
        if not values.size:
            continue
        _check_sorted(path, values, last, rows)
        _share(path, source, values, found, others)
        rows, last = rows + len(values), int(values[-1])
    empty = np.empty(0, np.int64)
    return {name: np.concatenate([empty, *parts]) for name, parts in found.items()}


def _check_sorted(path: Path, times: Times, last: int, rows: int) -> None:
    if times[0] < 0:
        raise _negative(int(times[0]), f"{path}: row {rows + 1}")
    before = np.concatenate([[last], times[:-1]])
    if (backwards := np.flatnonzero(times < before)).size:
        at = int(backwards[0])
        raise _unsorted(int(before[at]), int(times[at]), f"{path}: row {rows + at + 1}")


def _share(
    path: Path,
    source: "pa.DictionaryArray",
    times: Times,
    found: dict[str, list[Times]],
    others: _Others,
) -> None:
    """Give each source its times of one piece."""
    try:
        present = source.dictionary.to_pylist()
    except UnicodeDecodeError:
        raise BadInput("holds names that are not text in UTF-8", str(path)) from None
    if others == "taken":
        for name in present:
            found.setdefault(name, [])
    if others == "refused" and (unknown := [name for name in present if name not in found]):
        raise _unknown(unknown[0], found, str(path))
    codes = as_numpy(source.indices)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(present)))
    for name, part in zip(present, np.split(times[order], ends[:-1]), strict=True):
        if name in found:
            found[name].append(part)


def _has_rows(path: Path) -> bool:
    """Check the header of a CSV file, and tell whether anything follows it."""
    lines = (line.rstrip(b"\r\n") for _, line in _lines(path))
    first = next(lines, b"").removeprefix(b"\xef\xbb\xbf")
    if first not in (b"source,time_ns", b'"source","time_ns"'):
        remedy = f"the first line of a CSV trace is {_HEADER}"
        raise BadInput("is not a trace of arrivals", f"{path}:1", remedy)
    return any(lines)


def _find_mistake(path: Path, known: dict[str, None] | None) -> None:
    """Raise the line of what the fast reader did not like."""
    last = 0
    names = {name.encode() for name in known or ()}
    for number, line in _lines(path):
        usual = _USUAL_ROW.fullmatch(line)
        if usual and int(usual[2]) >= last and (known is None or usual[1].strip(b'"') in names):
            last = int(usual[2])
        elif number > 1 and line.strip(b"\r\n"):
            last = _check_row(line, known, last, f"{path}:{number}")


def _check_row(line: bytes, known: dict[str, None] | None, last: int, where: str) -> int:
    """Return the time of a row of CSV, or raise what is wrong with it."""
    try:
        text = line.rstrip(b"\r\n").decode("utf-8")
        cells = next(csv.reader([text], strict=True), [])
    except UnicodeDecodeError:
        raise BadInput("is not text in UTF-8", where, _REMEDY) from None
    except csv.Error as mistake:
        raise BadInput(f"is not readable CSV ({mistake})", where, _REMEDY) from None
    if len(line) >= _LONGEST_LINE or len(cells) != len(COLUMNS):
        raise BadInput(f"{shown(text)} is not an arrival", where, _REMEDY)
    name, time = cells[0], cells[1].strip()
    if known is not None and name not in known:
        raise _unknown(name, known, where)
    if not _INTEGER.fullmatch(time) or int(time) > LONGEST_NS:
        remedy = "give an integer of 64 bits, nanoseconds"
        raise BadInput(f"{shown(time)} is not a time", where, remedy)
    if int(time) < 0:
        raise _negative(int(time), where)
    if int(time) < last:
        raise _unsorted(last, int(time), where)
    return int(time)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        number = 1
        while line := file.readline(_LONGEST_LINE):
            yield number, line
            number += 1


def _unsorted(before: int, after: int, where: str) -> BadInput:
    return BadInput(f"{after} ns comes after {before} ns", where, "sort the rows by time")


def _negative(time: int, where: str) -> BadInput:
    return BadInput(
        f"{time} ns is negative", where, "times count from the start of the first TDMA cycle"
    )


def _unknown(name: str, known: Iterable[str], where: str) -> BadInput:
    return BadInput(f"{shown(name)} is not a source of the system", where, closest(name, known))
