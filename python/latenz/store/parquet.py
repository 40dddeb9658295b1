"""Sample sets in Parquet files, with their metadata inside, read and written in bounded memory."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from latenz.errors import BadInput, first_mistake
from latenz.files import replacing
from latenz.model import CYCLE_COLUMNS, Form, Metadata, SampleSet, TimeBase

KEY = b"latenz"
ROW_GROUP = 1 << 20
_KNOWN = ("latency_ns", "t_ns", "missed", "handling", *CYCLE_COLUMNS, "width_ns", "count")
DAMAGES = (OSError, UnicodeDecodeError, pa.ArrowException)
"""What reading a file raises that is not a sound Parquet file."""
_NO_TIME_BASE = "the file states no time base; taken for silicon"


def write_parquet(sample_set: SampleSet, path: Path) -> int:
    """Write a set's values and metadata; return how many rows.

    The file appears only when it is whole; a failure leaves nothing behind.
    """
    schema = pa.schema(
        [pa.field(name, pa.int64(), nullable=False) for name in sample_set.columns],
        metadata={KEY: sample_set.metadata.model_dump_json().encode()},
    )
    rows = 0
    with (
        replacing(path, renewable=False) as partial,
        pq.ParquetWriter(
            partial,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=False,
            # smaller than plain values, and faster to read
            column_encoding=dict.fromkeys(sample_set.columns, "DELTA_BINARY_PACKED"),
            write_page_checksum=True,
        ) as writer,
    ):
        for batch in sample_set.batches():
            arrays = [batch.column(name) for name in sample_set.columns]
            table = pa.Table.from_arrays(arrays, schema=schema)
            writer.write_table(table, row_group_size=ROW_GROUP)
            rows += len(batch)
    return rows


def reason(error: Exception) -> str:
    """Return in a few words what an error of pyarrow says."""
    return (str(error).splitlines() or ["no reason is given"])[0][:200]


def read_schema(path: Path) -> pa.Schema:
    """Return the schema of a Parquet file, its names known to be text.

    Raises:
        BadInput: The file is not a Parquet file.
    """
    try:
        schema = pq.read_schema(path)
        _ = schema.names  # damaged names are met only where they are read
    except DAMAGES as error:
        raise BadInput(f"is not a whole Parquet file ({reason(error)})", str(path)) from None
    return schema


def open_parquet(path: Path, metadata: Metadata | None = None) -> SampleSet:
    """Open a Parquet file with a column `latency_ns`; metadata is taken from it unless given.

    Raises:
        BadInput: The file is not a Parquet file, or its columns are not those of a sample set.
    """
    schema = read_schema(path)
    columns = tuple(name for name in _KNOWN if name in schema.names)
    _check_columns(path, schema, columns)
    form: Form = "histogram" if "count" in columns else "samples"

    def batches(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        chosen = [name for name in wanted if name in columns]
        try:
            file = pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)
            for batch in file.iter_batches(batch_size=ROW_GROUP, columns=chosen):
                yield _as_int64(path, batch.select(chosen))
        except DAMAGES as error:
            raise BadInput(f"is damaged ({reason(error)})", str(path)) from None

    opened = SampleSet(metadata or _metadata(path, schema), form, batches, columns)
    opened.path = path
    return opened


def _check_columns(path: Path, schema: pa.Schema, columns: tuple[str, ...]) -> None:
    folded = [name.casefold() for name in schema.names]
    if len(set(folded)) < len(folded):
        raise BadInput("has two columns of one name", str(path), "names differ by more than case")
    if "count" in columns and "width_ns" not in columns:
        raise BadInput("has a column count without width_ns", str(path), "a histogram needs both")
    if "latency_ns" not in columns:
        raise BadInput(
            "has no column latency_ns", str(path), f"columns are: {', '.join(schema.names)[:200]}"
        )
    for name in columns:
        if not pa.types.is_integer(schema.field(name).type):
            raise BadInput(
                f"column {name} is {schema.field(name).type}", str(path), "it must hold integers"
            )


def _as_int64(path: Path, batch: pa.RecordBatch) -> pa.RecordBatch:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if column.null_count:
            raise BadInput(f"column {name} has empty cells", str(path), "each row needs a value")
    if all(field.type == pa.int64() for field in batch.schema):
        return batch
    return batch.cast(pa.schema([(name, pa.int64()) for name in batch.schema.names]))


def _metadata(path: Path, schema: pa.Schema) -> Metadata:
    text = (schema.metadata or {}).get(KEY)
    if text is None:
        return Metadata(
            name=path.stem,
            time_base=TimeBase.SILICON,
            source=str(path),
            notes=(_NO_TIME_BASE,),
        )
    try:
        return Metadata.model_validate_json(text)
    except ValidationError as error:
        raise BadInput(f"its metadata {first_mistake(error)}", str(path)) from None
