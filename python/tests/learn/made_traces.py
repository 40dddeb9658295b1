"""The same activations written in every format that is read, and a slow second learner."""

import csv
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from latenz.model import Metadata, SampleSet, TimeBase
from latenz.store.parquet import write_parquet

Times = npt.NDArray[np.int64]


def least_spans(times: Times, length: int) -> tuple[int, ...]:
    """The least span of q = 2 .. length + 1 consecutive activations, over all windows."""
    return tuple(
        int(min(times[i + back] - times[i] for i in range(len(times) - back)))
        for back in range(1, min(length, len(times) - 1) + 1)
    )


def merged(times_by_source: dict[str, Times]) -> list[tuple[int, str]]:
    return sorted(
        (int(time), name) for name, times in times_by_source.items() for time in times.tolist()
    )


def write_csv(path: Path, times_by_source: dict[str, Times]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["source", "time_ns"])
        writer.writerows((name, time) for time, name in merged(times_by_source))


def write_rows_as_parquet(path: Path, times_by_source: dict[str, Times]) -> None:
    rows = merged(times_by_source)
    names, times = [name for _, name in rows], [time for time, _ in rows]
    pq.write_table(pa.table({"source": names, "time_ns": pa.array(times, pa.int64())}), path)


def write_btf(path: Path, times_by_source: dict[str, Times]) -> None:
    lines = ["#version 2.2.0", "#creator made", "# made", "#timeScale ns"]
    for number, (time, name) in enumerate(merged(times_by_source)):
        lines.append(f"{time},Stimulus,{number},T,{name},{number},activate")
        lines.append(f"{time},Core,0,T,{name},{number},start")
        lines.append(f"{time},Core,0,T,{name},{number},terminate")
    path.write_text("\n".join(lines) + "\n")


def write_ftrace(path: Path, times_by_source: dict[str, Times]) -> None:
    """Names must look like `can (irq 3)`."""
    lines = ["# tracer: nop", "#", "#   TASK-PID  CPU#  |||||  TIMESTAMP  FUNCTION"]
    for time, name in merged(times_by_source):
        handler, _, irq = name.removesuffix(")").partition(" (irq ")
        stamp = f"{time // 10**9}.{time % 10**9:09}"
        cpu = int(irq) % 2
        head = f"    some task-12  [{cpu:03}] d.h1. {stamp}"
        lines.append(f"{head}: irq_handler_entry: irq={irq} name={handler}")
        lines.append(f"{head}: irq_handler_exit: irq={irq} ret=handled")
    path.write_text("\n".join(lines) + "\n")


def write_samples(path: Path, name: str, times: Times) -> None:
    metadata = Metadata(name=name, time_base=TimeBase.SILICON)
    sample_set = SampleSet.from_columns(
        metadata, latency_ns=np.arange(len(times)), t_ns=times, missed=np.zeros(len(times), int)
    )
    write_parquet(sample_set, path)
