"""Mutates system files and traces and checks that each outcome is a reading or a clear refusal.

    PYTHONPATH=python/tests python python/tests/system/fuzz_systems.py --mutations 100000 [--seed 1]

A system that is read must pass all checks once more; a trace must hold what Python's own CSV
reader finds in it. Anything else but one line of `BadInput` with the file's name ends the run.
"""

import argparse
import csv
import random
import re
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from mutations import check_refusal, mutate, time_guard

from latenz.errors import BadInput
from latenz.system import Monitor, Periodic, Platform, Slot, Source, System, read_system
from latenz.system.trace import read_arrivals

SYSTEMS = [path.read_bytes() for path in sorted(Path("experiments/systems").glob("*.toml"))]
SYSTEMS += [
    b"""\
slot = [{ partition = "P", length = 9 }, { partition = "Q", length = "1 us" }]
[[source]]
name = "s"
partition = "P"
top = 0
bottom = 1
[source.arrival]
kind = "trace"
file = "trace.csv"
length = 1
[source.monitor]
distances = [
  "1 us", # a comment
  2000,
]
""",
    b"""\
slot = [{ partition = "P", length = 9 }, { partition = "Q", length = "1 us" }]
[[source]]
name = "s"
partition = "P"
top = 0
bottom = 1
arrival = { kind = "periodic", period = 7 }
monitor = { distances = [5] }
interrupt = 40
learn = { events = 9, length = 2 }
[[partition]]
name = "Q"
guest = "guests/mine.elf"
memory = "4 MiB"
devices = [{ physical = 0xff110000, size = 0x2000, interrupts = [68, 69] }]
[[partition]]
name = "alone"
guest = "victim"
cpu = 1
on_fault = "restart"
[[shared]]
name = "mailbox"
size = "64 KiB"
partitions = ["P", "alone"]
address = 0x70000000
""",
]
TRACES = [
    b"source,time_ns\na,0\nb,7\na,7\na,120\nlong name,120\nb,9000000000000000000\n",
    b'source,time_ns\r\n"a",0\r\n"b",3\r\n\r\na,5\r\n',
    b"\xef\xbb\xbfsource,time_ns\nb,1\nb,1\nb,1\na,2",
]
NAMED_TRACE = b"source,time_ns\ns,1\nother,1\ns,5\ncan-engine,9\n"
WORD = re.compile(rb'"[^"\n]*"|[\w.-]+')
WORDS = [
    *sorted({word for text in SYSTEMS for word in WORD.findall(text)}),
    *b'0 1 -1 9223372036854775807 [] {} [0] true 1.5 nan 1979-05-27 "" "1" "0" 0xff'.split(),
    *(b"'''a'''", b'"292 years"', b'"0.5 ns"', b'"9e9 s"', b'"trace.csv"', b'"/dev/zero"'),
]
NAMES = ["a", "b", "long name"]
SYSTEM = System(
    Platform(),
    (Slot("P", 1000),),
    tuple(Source(name, "P", 0, 1, Periodic(5), Monitor((5,))) for name in NAMES),
)


def damaged_system(chance: random.Random) -> bytes:
    """Replace some words, so that the file stays TOML, or damage it in any way."""
    content = chance.choice(SYSTEMS)
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        found = chance.choice(list(WORD.finditer(content)))
        content = content[: found.start()] + chance.choice(WORDS) + content[found.end() :]
    return mutate(content, SYSTEMS, chance) if chance.random() < 0.5 else content


def damaged_trace(chance: random.Random) -> bytes:
    return mutate(chance.choice(TRACES), TRACES, chance)


def read_damaged_system(path: Path) -> None:
    system = read_system(path)
    again = replace(
        system,
        platform=replace(system.platform),
        slots=tuple(map(replace, system.slots)),
        sources=tuple(replace(each, arrival=replace(each.arrival)) for each in system.sources),
    )
    assert again == system


def read_damaged_trace(path: Path) -> None:
    arrivals = read_arrivals(path, SYSTEM)
    text = path.read_bytes().decode("utf-8-sig")
    rows = [row for row in csv.reader(re.split(r"[\r\n]+", text)) if row]
    assert rows[0] == ["source", "time_ns"]
    for name, times in zip(NAMES, arrivals, strict=True):
        assert times.dtype == np.int64
        assert times.tolist() == [_integer(row[1]) for row in rows[1:] if row[0] == name]
    assert sum(map(len, arrivals)) == len(rows) - 1
    assert all(np.all(np.diff(times) >= 0) for times in arrivals)


def _integer(text: str) -> int:
    if "x" in text.lower():
        return int(text, 16)
    return int(re.sub(r"(?<!\d)0+(?=\d)", "", text))  # Python refuses thousands of zeros


KINDS = {
    "system": (damaged_system, read_damaged_system, "damaged.toml"),
    "trace": (damaged_trace, read_damaged_trace, "damaged.csv"),
}


def fuzz(kind: str, mutations: int, seed: int, folder: Path) -> tuple[int, int]:
    """Read mutations of one kind; return how many were read and how many refused."""
    chance = random.Random(f"{kind} {seed}")
    damage, _, name = KINDS[kind]
    (folder / "trace.csv").write_bytes(NAMED_TRACE)
    read = 0
    for _ in range(mutations):
        (folder / name).write_bytes(damage(chance))
        read += read_one(kind, folder / name)
    return read, mutations - read


def read_one(kind: str, path: Path) -> bool:
    """Read one file under the time guard; tell whether it was read, and not refused."""
    try:
        with time_guard():
            KINDS[kind][1](path)
    except BadInput as mistake:
        check_refusal(str(mistake), (path.name, "trace.csv"))
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    arguments = parser.parse_args()
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="latenz-fuzz-", dir=shared if shared.is_dir() else None))
    for kind in arguments.kind or KINDS:
        began = time.monotonic()
        read, refused = fuzz(kind, arguments.mutations, arguments.seed, folder)
        took = time.monotonic() - began
        sys.stdout.write(f"{kind}: {read} read, {refused} refused, {took:.0f} s\n")
        sys.stdout.flush()
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()


if __name__ == "__main__":
    main()
