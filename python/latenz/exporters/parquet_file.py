"""Parquet: one set as in a run folder, several with a column `sample_set`."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq

from latenz.exporters.csv_file import bundle_batches, bundle_schema
from latenz.importers.bundle import describe
from latenz.importers.parquet import KEY
from latenz.model import SampleSet
from latenz.store.parquet import write_parquet


def write(sample_sets: Sequence[SampleSet], path: Path) -> None:
    """Write the sets one after the other, with their metadata."""
    if len(sample_sets) == 1 and sample_sets[0].form != "summary":
        write_parquet(sample_sets[0], path)
        return
    text = "\n".join(describe(sample_set) for sample_set in sample_sets)
    schema = bundle_schema(sample_sets, named=True).with_metadata({KEY: text.encode()})
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for batch in bundle_batches(sample_sets, schema):
            writer.write_batch(batch)
