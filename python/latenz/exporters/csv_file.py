"""CSV: one row for each sample or cell, times in nanoseconds.

Comment lines at the top hold each set's metadata, so that nothing is lost when Latenz reads the
file again; a reader that knows no comments has to skip the lines that begin with `#`. Several
sets are told apart by the column `sample_set`; a column that a set lacks is empty in its rows.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from latenz.importers.bundle import COLUMNS, describe
from latenz.importers.csv_values import MARK
from latenz.model import SampleSet


def write(sample_sets: Sequence[SampleSet], path: Path) -> None:
    """Write the sets one after the other."""
    named = len(sample_sets) > 1
    schema = bundle_schema(sample_sets, named=named)
    with path.open("wb") as file:
        for sample_set in sample_sets:
            file.write(f"{MARK}{describe(sample_set)}\n".encode())
        file.write((",".join(schema.names) + "\n").encode())
        options = pa_csv.WriteOptions(include_header=False, quoting_style="needed")
        with pa_csv.CSVWriter(file, schema, write_options=options) as writer:
            for batch in bundle_batches(sample_sets, schema):
                writer.write_batch(batch)


def bundle_schema(sample_sets: Sequence[SampleSet], *, named: bool) -> pa.Schema:
    """Return the columns that hold all sets, with the sets' names if they are wanted."""
    has = {column for sample_set in sample_sets for column in sample_set.columns}
    columns = [pa.field(name, pa.int64()) for name in COLUMNS if name in has]
    return pa.schema([pa.field("sample_set", pa.string()), *columns] if named else columns)


def bundle_batches(sample_sets: Sequence[SampleSet], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Give the rows of all sets in the columns of `bundle_schema`."""
    for sample_set in sample_sets:
        for batch in sample_set.batches():
            columns = [_column(batch, name, sample_set.metadata.name) for name in schema.names]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: pa.RecordBatch, name: str, set_name: str) -> pa.Array:
    if name == "sample_set":
        return pa.repeat(set_name, batch.num_rows)
    if name in batch.schema.names:
        return batch.column(name)
    return pa.nulls(batch.num_rows, pa.int64())
