"""Building sample sets from what a tool printed: samples in bounded memory, cells, figures."""

import os
import tempfile
from array import array
from collections.abc import Iterator, Mapping
from typing import IO

import numpy as np
import pyarrow as pa

from latenz.columns import int64_column
from latenz.errors import BadInput
from latenz.files import scratch_place
from latenz.importers.source import INT64_MAX, Fields, Source
from latenz.model import Form, Metadata, SampleSet

BATCH_ROWS = 1 << 18


class Spool:
    """Samples as they are read: the newest in memory, the others in an unnamed temporary file.

    Args:
        columns: The names of the columns, as in `latenz.model`.
    """

    def __init__(self, *columns: str) -> None:
        self.columns = columns
        self.rows = 0
        self._recent = array("q")
        self._file: IO[bytes] | None = None

    def append(self, *row: int) -> None:
        """Add one row; each value must fit in 64 bits."""
        self._recent.extend(row)
        self.rows += 1
        if len(self._recent) >= BATCH_ROWS * len(self.columns):
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=scratch_place())  # noqa: SIM115 - lives as long as the set
            self._recent.tofile(self._file)
            self._file.flush()
            self._recent = array("q")

    def sample_set(self, metadata: Metadata, form: Form = "samples") -> SampleSet:
        """Return what was added as a sample set."""
        return SampleSet(metadata, form, self._batches, self.columns)

    def _batches(self, wanted: list[str]) -> Iterator[pa.RecordBatch]:
        names = [name for name in wanted if name in self.columns]
        for chunk in self._chunks():
            table = np.frombuffer(chunk, dtype=np.int64).reshape(-1, len(self.columns))
            columns = (table[:, self.columns.index(name)] for name in names)
            arrays = [int64_column(column) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, names)

    def _chunks(self) -> Iterator[bytes]:
        size = BATCH_ROWS * len(self.columns) * 8
        offset = 0
        while self._file is not None and (chunk := os.pread(self._file.fileno(), size, offset)):
            offset += len(chunk)
            yield chunk
        if self._recent:
            yield self._recent.tobytes()


def cells_set(metadata: Metadata, cells: Mapping[int, int], width_ns: int) -> SampleSet:
    """Return a histogram with cells of one width: lowest value in nanoseconds to count."""
    if not cells and not metadata.beyond_range:
        return SampleSet.from_columns(metadata)
    lowest = sorted(cells)
    _check_printed(metadata, [value for value in lowest if cells[value]], width_ns)
    return SampleSet.from_columns(
        metadata,
        latency_ns=lowest,
        width_ns=[width_ns] * len(lowest),
        count=[cells[value] for value in lowest],
    )


def _check_printed(metadata: Metadata, lowest: list[int], width_ns: int) -> None:
    """Refuse printed extremes that the cells contradict: figures would be taken from both."""
    printed = metadata.reported
    if printed is None or not lowest:
        return
    where = f"{metadata.source}, {metadata.name}"
    if printed.max_ns is not None and printed.max_ns < lowest[-1]:
        what = f"the maximum {printed.max_ns} ns is below samples at {lowest[-1]} ns"
        raise BadInput(what, where, "the file is damaged")
    if printed.min_ns is not None and printed.min_ns >= lowest[0] + width_ns:
        what = f"the minimum {printed.min_ns} ns is above samples at {lowest[0]} ns"
        raise BadInput(what, where, "the file is damaged")


def json_cells(histogram: Fields, unit_ns: int) -> dict[int, int]:
    """Read a JSON object of value and count as cells, those without samples left out."""
    cells: dict[int, int] = {}
    for key in histogram.values:
        value = histogram.source.whole(key, unit_ns, None, f"the cell {histogram.at(key[:40])}")
        count = histogram.count(key)
        if value in cells:
            raise histogram.bad(key, "stands for a value that another cell has too")
        if count:
            cells[value] = count
    check_total(histogram.source, cells, None, histogram.place)
    return cells


def check_total(source: Source, cells: Mapping[int, int], line: int | None, what: str) -> int:
    """Return the number of samples in the cells; more than 64 bits can count is damage."""
    total = sum(cells.values())
    if total > INT64_MAX:
        raise source.bad(f"{what}: its counts add up to {total}", line, "the file is damaged")
    return total


def split_last_cell(cells: dict[int, int], max_ns: int, width_ns: int) -> tuple[int, int | None]:
    """Take overflow out of a histogram whose last cell absorbs it.

    The last cell's samples are known only to be at or above its lowest value as soon as the
    printed maximum lies beyond the cell.

    Returns:
        How many samples lie beyond the range, and from where on (None if none do).
    """
    if not cells or max_ns < max(cells) + width_ns:
        return 0, None
    lowest = max(cells)
    return cells.pop(lowest), lowest


def beyond_from(cells: Mapping[int, int], limit_ns: int, minimum_ns: int | None) -> int:
    """Return from where on samples beyond a histogram's range are known to lie.

    Its upper limit; or the printed minimum of all samples, if that is higher and no sample lies
    within the histogram.
    """
    return limit_ns if cells else max(limit_ns, minimum_ns or 0)


def check_bounds(
    source: Source, minimum: int | None, maximum: int | None, line: int | None, what: str
) -> None:
    """Refuse a printed minimum above the printed maximum: one of them is damaged."""
    if minimum is not None and maximum is not None and minimum > maximum:
        raise source.bad(
            f"{what}: the minimum {minimum} ns is above the maximum {maximum} ns", line
        )
