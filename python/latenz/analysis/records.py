"""Simulations that last: progress, interruption, and every interrupt in a Parquet file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from pathlib import Path
from threading import Event

import numpy as np

from latenz.analysis.simulate import HANDLINGS, Irqs, simulated_irqs
from latenz.analysis.simulators import AnySimulator
from latenz.files import replacing
from latenz.progress import counting
from latenz.signals import stopped_by_signals
from latenz.system import LatencyFrom, System


def run_and_record(
    simulator: AnySimulator, path: Path | None, irqs: int | None, wanted: bool
) -> None:
    """Run a simulator to its end, or until SIGINT or SIGTERM; `Simulator.complete` tells which.

    Args:
        simulator: It watches interrupts if a path is given.
        path: A Parquet file for every interrupt, in the order of their ends, one
            processor after the other: source, handling,
            arrival_ns, top_start_ns, end_ns, latency_ns.
        irqs: How many there are, for the progress bar.
        wanted: Whether a terminal gets a progress bar.

    Raises:
        BadInput: The file cannot be written.
    """
    described = (simulator.system, simulator.latency_from)
    writing = irq_file(*described, path) if path else nullcontext(lambda _: None)
    asked = Event()
    with (
        stopped_by_signals(asked.set),
        counting("simulating", irqs, wanted=wanted) as progress,
        writing as write,
    ):
        for batch in simulated_irqs(simulator):
            write(batch)
            progress(simulator.served)
            if asked.is_set():
                break


@contextmanager
def irq_file(
    system: System, latency_from: LatencyFrom, path: Path
) -> Iterator[Callable[[Irqs], None]]:
    """Give a function that writes interrupts to a Parquet file; its columns see above."""
    import pyarrow as pa
    from pyarrow import parquet

    names = pa.array([source.name for source in system.sources], pa.string())
    handlings = pa.array(HANDLINGS, pa.string())

    def table(irqs: Irqs) -> pa.Table:
        begin_ns = irqs.top_start_ns if latency_from == "top" else irqs.arrival_ns
        return pa.table(
            {
                "source": pa.DictionaryArray.from_arrays(irqs.source.astype("int32"), names),
                "handling": pa.DictionaryArray.from_arrays(irqs.handling.astype("int8"), handlings),
                "arrival_ns": irqs.arrival_ns,
                "top_start_ns": irqs.top_start_ns,
                "end_ns": irqs.end_ns,
                "latency_ns": irqs.end_ns - begin_ns,
            }
        )

    schema = table(Irqs(*(np.empty(0, np.int64) for _ in fields(Irqs)))).schema
    words = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    times = [name for name in schema.names if name not in words]
    with (
        replacing(path) as partial,
        parquet.ParquetWriter(
            partial,
            schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=words,
            # half the size, and written in half the time
            column_encoding=dict.fromkeys(times, "DELTA_BINARY_PACKED"),
        ) as writer,
    ):
        yield lambda irqs: writer.write_table(table(irqs))
