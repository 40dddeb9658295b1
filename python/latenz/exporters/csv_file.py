"""CSV: one row for each sample or cell, times in nanoseconds.

The first row of each set holds its metadata in the column `latenz_metadata`, so that nothing is
lost when Latenz reads the file again. Several sets are told apart by the column `sample_set`; a
column that a set lacks is empty in its rows. A set without values is a row with metadata only.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from latenz.importers.bundle import COLUMNS, describe
from latenz.importers.csv_values import DESCRIPTION
from latenz.model import SampleSet


def write(sample_sets: Sequence[SampleSet], path: Path) -> None:
    """Write the sets one after the other."""
    values = bundle_schema(sample_sets, named=len(sample_sets) > 1)
    schema = values.append(pa.field(DESCRIPTION, pa.string()))
    with path.open("wb") as file:
        file.write((",".join(schema.names) + "\n").encode())
        options = pa_csv.WriteOptions(include_header=False, quoting_style="needed")
        with pa_csv.CSVWriter(file, schema, write_options=options) as writer:
            for sample_set in sample_sets:
                for batch in _with_description(sample_set, values):
                    writer.write_batch(batch)


def _with_description(sample_set: SampleSet, values: pa.Schema) -> Iterator[pa.RecordBatch]:
    described = False
    for batch in bundle_batches([sample_set], values):
        if batch.num_rows:
            text = [] if described else [describe(sample_set)]
            described = True
            rest = pa.nulls(batch.num_rows - len(text), pa.string())
            column = pa.concat_arrays([pa.array(text, pa.string()), rest])
            yield batch.append_column(DESCRIPTION, column)
    if not described:
        empty: dict[str, list[str | None]] = {name: [None] for name in values.names}
        empty |= {"sample_set": [sample_set.metadata.name]} if "sample_set" in empty else {}
        batch = pa.RecordBatch.from_pydict(empty, schema=values)
        description = pa.array([describe(sample_set)])
        yield (
            batch.append_column(DESCRIPTION, description)
            if values.names
            else pa.RecordBatch.from_arrays([description], [DESCRIPTION])
        )


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
