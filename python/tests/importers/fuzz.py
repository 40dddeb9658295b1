"""Mutates files of every format and checks that each outcome is a reading or a clear refusal.

    PYTHONPATH=python/tests python python/tests/importers/fuzz.py [--mutations 1000000]
        [--format vcd] [--seed 1]

Each mutation is read in this process under a time guard. Anything but sample sets that keep the
rules of the data model, or one line of `BadInput` with the file's name, ends the run and leaves
the file that caused it behind.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import examples
from mutations import check_refusal, mutate, time_guard

from latenz import importers
from latenz.errors import BadInput
from latenz.model import SampleSet

DATA = Path(__file__).parent.parent / "data" / "importers"
LARGEST_SEED = 2600
OPTIONS = {
    "vcd": {"start": "top.irq", "end": "ack"},
    "ila": {"start": "irq", "end": "ack", "clock_period": "10 ns"},
}
MADE = {
    "vcd": [examples.VCD],
    "ila": [examples.ILA],
    "xenomai": [examples.XENOMAI_HISTOGRAM, examples.XENOMAI_PLOT],
    "rtla": [examples.RTLA_ALL],
    "csv": [examples.CSV, examples.CSV_HISTOGRAM, examples.EXPORTED],
    "oslat": [examples.OSLAT_CORES],
}


def seeds(name: str) -> list[bytes]:
    """Small files of a format: those of real tools, shortened if need be, and made ones."""
    found = [text.encode() for text in MADE.get(name, [])]
    for path in sorted(DATA.iterdir()):
        content = path.read_bytes()
        try:
            known = path.suffix != ".md" and importers.recognise(content[:65536], "") == name
        except BadInput:
            continue
        if known:
            found.append(_shortened(content))
    return found


def _shortened(content: bytes) -> bytes:
    if len(content) <= LARGEST_SEED:
        return content
    if b"\0" in content:
        return content[: 28 * 20]
    lines = content.splitlines(keepends=True)
    while len(lines) > 40:
        del lines[len(lines) // 3 : len(lines) // 3 + max(1, (len(lines) - 40) // 2)]
    return b"".join(lines)


def check(sample_set: SampleSet) -> None:
    """Fail unless a set keeps the rules of the data model."""
    known = sample_set.metadata
    kept = 0
    for batch in sample_set.batches():
        assert batch.schema.names == list(sample_set.columns)
        for column in batch.columns:
            assert str(column.type) == "int64"
            assert column.null_count == 0
        if sample_set.form == "histogram":
            counts = batch.column("count").to_pylist()
            assert min(counts, default=0) >= 0
            assert min(batch.column("width_ns").to_pylist(), default=1) > 0
            kept += sum(counts)
        else:
            kept += batch.num_rows
    printed = known.reported
    if sample_set.form == "histogram" and printed and printed.n is not None:
        assert kept + known.beyond_range == printed.n
    if printed and printed.min_ns is not None and printed.max_ns is not None:
        assert printed.min_ns <= printed.max_ns
    if (
        known.source and "read as csv" not in known.source
    ):  # exported metadata may say anything valid
        assert (known.beyond_range > 0) == (known.beyond_range_from_ns is not None)


def fuzz(name: str, mutations: int, seed: int, folder: Path) -> tuple[int, int]:
    """Read mutations of one format; return how many were read and how many refused."""
    chance = random.Random(f"{name} {seed}")
    sources = seeds(name)
    assert sources, name
    path = folder / f"mutated-{name}"
    read = 0
    for _ in range(mutations):
        content = mutate(chance.choice(sources), sources, chance)
        read += read_one(name, content, name if chance.random() < 0.8 else None, path)
    path.unlink()
    return read, mutations - read


def read_one(name: str, content: bytes, format_name: str | None, path: Path) -> bool:
    """Read one file under the time guard; tell whether it was read, and not refused."""
    path.write_bytes(content)
    try:
        with time_guard():
            for sample_set in importers.read(path, format_name, **OPTIONS.get(name, {})):
                check(sample_set)
    except BadInput as mistake:
        check_refusal(str(mistake), (path.name, "--"))
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", action="append", choices=list(importers.FORMATS))
    arguments = parser.parse_args()
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="latenz-fuzz-", dir=shared if shared.is_dir() else None))
    for name in arguments.format or [n for n in importers.FORMATS if n != "parquet"]:
        began = time.monotonic()
        read, refused = fuzz(name, arguments.mutations, arguments.seed, folder)
        took = time.monotonic() - began
        sys.stdout.write(f"{name}: {read} read, {refused} refused, {took:.0f} s\n")
        sys.stdout.flush()
    folder.rmdir()


if __name__ == "__main__":
    main()
