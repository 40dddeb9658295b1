"""What other tools measured, and runs of ours that come from somebody else."""

import base64
import json
import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from latenz import importers
from latenz.importers.opening import open_sample_sets
from latenz.ip.trace import read_trace
from latenz.statistics import Histogram
from latenz.store.journal import MAGIC
from latenz.store.run import Run
from outcomes import check_samples, require

_TEXTS = [name for name in importers.FORMATS if name not in ("parquet", "mdf", "vcd", "ila")]
_OVERLAPS = ("drop", "restart", "queue")
_HISTOGRAM_COOKIE = 0x1C849314


def imported(path: Path) -> None:
    """Read a file in the format that it is recognised as."""
    for sample_set in importers.read(path):
        check_samples(sample_set)


def forced(path: Path) -> None:
    """Read a file in a format that the user has named; which one depends on the file alone."""
    name = _TEXTS[zlib.crc32(path.read_bytes()) % len(_TEXTS)]
    for sample_set in importers.read(path, name):
        check_samples(sample_set)


def waveform(path: Path) -> None:
    """Read the latencies from one signal to another out of a value change dump."""
    overlap = _OVERLAPS[zlib.crc32(path.read_bytes()) % len(_OVERLAPS)]
    for sample_set in importers.read(path, "vcd", start="top.irq", end="ack", overlap=overlap):
        check_samples(sample_set)


def analyzer(path: Path) -> None:
    """Read them out of what an integrated logic analyzer captured."""
    for sample_set in importers.read(path, "ila", start="irq", end="ack", clock_period="10 ns"):
        check_samples(sample_set)


def edges(path: Path) -> None:
    """Read the edges that are replayed to the IP."""
    trace = read_trace(path, "top.irq", "ack", "queue")
    times = [instant.time for instant in trace.instants]
    require(times == sorted(set(times)), "edges ascend strictly")


def parquet(path: Path) -> None:
    """Read a Parquet file."""
    for sample_set in importers.read(path, "parquet"):
        check_samples(sample_set)


def histogram(path: Path) -> None:
    """Decode a histogram as .hlog files hold it."""
    _decode(path.read_text(encoding="latin-1"))


def packed_histogram(path: Path) -> None:
    """Decode a histogram whose compression and lengths are right, whatever is packed."""
    packed = zlib.compress(path.read_bytes(), 1)
    envelope = struct.pack(">II", _HISTOGRAM_COOKIE, len(packed)) + packed
    _decode(base64.b64encode(envelope).decode())


def _decode(text: str) -> None:
    decoded = Histogram.decode(text, "input")
    require(decoded.n >= 0, "samples are counted")
    if decoded.n:
        require(decoded.quantile_ns("0.5") <= decoded.quantile_ns("1"), "quantiles ascend")
        again = Histogram.decode(decoded.encode(), "input")
        require(again.n == decoded.n, "what is encoded is decoded")


def run_folder(path: Path) -> None:
    """Open a run of which one file is the input, told by its beginning; the others are whole."""
    content = path.read_bytes()
    folder = path.parent / "run"
    samples = folder / "set"
    samples.mkdir(parents=True, exist_ok=True)
    for old in samples.iterdir():
        old.unlink()
    (folder / "run.json").write_text(_RUN)
    if content.startswith(MAGIC):
        (samples / "samples.journal").write_bytes(content)
        (samples / "peaks.journal").write_bytes(content)
    elif content.startswith(b"PAR1"):
        (samples / "samples.parquet").write_bytes(content)
    elif b'"cells"' in content:
        (samples / "histogram.json").write_bytes(content)
    else:
        (folder / "run.json").write_bytes(content)
        pq.write_table(pa.table({"latency_ns": [5, 7, 7000]}), samples / "samples.parquet")
    for sample_set in Run.open(folder).sample_sets:
        check_samples(sample_set)


def sample_file(path: Path) -> None:
    """Open a file as every command does that takes samples."""
    for sample_set in open_sample_sets(path):
        check_samples(sample_set)


_RUN = json.dumps(
    {
        "format": 1,
        "created": "2026-01-01T00:00:00+00:00",
        "sample_sets": [
            {
                "folder": "set",
                "state": "recording",
                "metadata": {"name": "set", "time_base": "silicon"},
            }
        ],
    }
)
