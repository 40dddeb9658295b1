"""Parquet files with sample sets: one set as Latenz stores it, or several as it exports them."""

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from latenz.importers.bundle import Described, described
from latenz.importers.source import Source
from latenz.model import SampleSet
from latenz.store.parquet import DAMAGES, open_parquet, read_schema, reason

NAME = "parquet"
KEY = b"latenz_sample_sets"
"""Parquet metadata key of the sets' descriptions, one line each."""
_BATCH_ROWS = 1 << 18


def matches(head: bytes) -> bool:
    """Tell whether a file that begins like this is a Parquet file."""
    return head.startswith(b"PAR1")


def read(source: Source) -> list[SampleSet]:
    """Open the sets of a Parquet file; values are read when they are asked for."""
    schema = read_schema(source.path)
    text = (schema.metadata or {}).get(KEY)
    if text is None:
        opened = open_parquet(source.path)
        time_base = source.options.time_base
        return [opened.with_metadata(time_base=time_base) if time_base else opened]
    lines = text.decode("utf-8", errors="replace").splitlines()
    descriptions = [described(source, line, None) for line in lines]
    for one in descriptions:
        if missing := [name for name in one.columns if name not in schema.names]:
            raise source.bad(f"the column {missing[0]} is missing")
    if "sample_set" not in schema.names:
        raise source.bad("the column sample_set is missing")
    return [
        SampleSet(one.metadata, one.form, _batches(source, one), one.columns)
        for one in descriptions
    ]


def _batches(source: Source, one: Described) -> Callable[[list[str]], Iterator[pa.RecordBatch]]:
    def batches(wanted: list[str]) -> Iterator[pa.RecordBatch]:
        from pyarrow import compute  # a tenth of a second, which no other format needs

        names = [name for name in wanted if name in one.columns]
        if not names:
            return
        try:
            file = pq.ParquetFile(source.path, page_checksum_verification=True)
            for batch in file.iter_batches(_BATCH_ROWS, columns=["sample_set", *names]):
                own = batch.filter(compute.equal(batch.column("sample_set"), one.metadata.name))
                if any(own.column(name).null_count for name in names):
                    raise source.bad(f"a row of {one.metadata.name} has an empty cell")
                if own.num_rows:
                    yield own.select(names)
        except DAMAGES as error:
            raise source.bad(f"is damaged ({reason(error)})") from None

    return batches
