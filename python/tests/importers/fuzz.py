"""Mutates files of every format and checks that each outcome is a reading or a clear refusal.

    python python/tests/importers/fuzz.py --mutations 1000000 [--format vcd] [--seed 1]

Each mutation is read in this process under a time guard. Anything but sample sets that keep the
rules of the data model, or one line of `BadInput` with the file's name, ends the run and leaves
the file that caused it behind.
"""

import argparse
import random
import re
import signal
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType

import examples

from latenz import importers
from latenz.errors import BadInput
from latenz.model import SampleSet

DATA = Path(__file__).parent.parent / "data" / "importers"
SECONDS = 2.0
"""Longest processor time one small file may take."""
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
TOKENS = [
    *(b"0 1 -1 9 1e999999 1e-999999 -0 +5 .5 5. nan inf NaN Infinity null true 0x10 1_0".split()),
    *(b"18446744073709551615 9223372036854775807 9223372036854775808 -9223372036854775808".split()),
    b"9" * 40,
    b"9" * 5000,
    "٣".encode(),
    "²".encode(),
    b"\0",
    b"\xff\xfe",
    b"\x1b[2;37;40m",
    b"\r",
    b"\n",
    b"\n\n",
    b'"',
    b"{",
    b"}" * 50,
    b"[" * 3000,
    b":",
    b",",
    b"#",
    b"|",
    b"$end",
    b"$comment",
    b"T: 0 ",
    b" " * 3000,
    b"\n" * 3000,
    b"a" * 300,
    b"=1+1",
    b"../../../etc/passwd",
]
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


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


def mutate(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    """Damage a file in one to four ways."""
    for _ in range(chance.choice((1, 1, 1, 2, 3, 4))):
        content = _MUTATIONS[chance.randrange(len(_MUTATIONS))](content, others, chance)
    return content[:100_000]


def _place(content: bytes, chance: random.Random) -> tuple[int, int]:
    begin = chance.randrange(len(content) + 1)
    return begin, min(len(content), begin + chance.choice((1, 1, 2, 5, 30, 200)))


def _flip(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    if not content:
        return b"\0"
    at = chance.randrange(len(content))
    return content[:at] + bytes([content[at] ^ 1 << chance.randrange(8)]) + content[at + 1 :]


def _cut(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    begin, end = _place(content, chance)
    return content[:begin] + content[end:]


def _truncate(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _repeat(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    begin, end = _place(content, chance)
    return content[:end] + content[begin:end] * chance.choice((1, 1, 2, 50)) + content[end:]


def _insert(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    begin, _ = _place(content, chance)
    return content[:begin] + chance.choice(TOKENS) + content[begin:]


def _number(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    numbers = list(NUMBER.finditer(content))
    if not numbers:
        return content
    found = chance.choice(numbers)
    new = chance.choice(TOKENS) if chance.random() < 0.6 else b"%d" % chance.randrange(1 << 20)
    return content[: found.start()] + new + content[found.end() :]


def _swap_lines(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if len(lines) > 1:
        one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def _splice(content: bytes, others: list[bytes], chance: random.Random) -> bytes:
    other = chance.choice(others)
    begin, _ = _place(content, chance)
    from_other, _ = _place(other, chance)
    return content[:begin] + other[from_other:]


_MUTATIONS = (
    _flip,
    _flip,
    _cut,
    _truncate,
    _repeat,
    _insert,
    _number,
    _number,
    _swap_lines,
    _splice,
)


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


class TooSlowError(Exception):
    """A file took longer than the time guard allows."""


def _alarm(number: int, frame: FrameType | None) -> None:
    raise TooSlowError


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
    signal.signal(signal.SIGPROF, _alarm)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        for sample_set in importers.read(path, format_name, **OPTIONS.get(name, {})):
            check(sample_set)
    except BadInput as mistake:
        refusal = str(mistake)
        if "\n" in refusal or not (path.name in refusal or "--" in refusal):
            raise RuntimeError(f"unclear: {refusal}") from mistake
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
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
