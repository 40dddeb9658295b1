"""Mutates traces of every format and checks that each outcome is a reading or a clear refusal.

    PYTHONPATH=python/tests python python/tests/learn/fuzz_traces.py --mutations 100000 [--seed 1]

What is read must be ascending times of printable names, no more of them than the file has lines,
and what is learned from them must be the least spans. Anything else but one line of `BadInput`
with the file's name ends the run and leaves the file behind.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from made_traces import least_spans
from mutations import check_refusal, mutate, time_guard

from latenz.analysis.activations import FORMATS, read_activations
from latenz.analysis.learn import learn
from latenz.errors import BadInput

DATA = Path(__file__).parent.parent / "data" / "learn"
SHORTENED = 2600
SEEDS = {
    "csv": [
        b"source,time_ns\na,0\nb,7\na,7\na,120\nlong name,120\nb,9000000000000000000\n",
        b'source,time_ns\r\n"a",0\r\n"b",3\r\n\r\na,5\r\n',
    ],
    "btf": [path.read_bytes() for path in sorted(DATA.glob("*.btf"))],
    "ftrace": [path.read_bytes()[:SHORTENED] for path in sorted(DATA.glob("*.txt"))],
    "samples": [
        b"t_ns,latency_us\n0,5\n7,3\n7,4\n1000000,9\n",
        b"t_us,latency_ns,missed\n1,5,0\n2,6,1\n",
    ],
}
EVENTS = {
    "btf": [None, None, "start", "trigger"],
    "ftrace": [None, None, "sched_wakeup", "sched_switch", "hrtimer_expire_entry"],
}


def read_damaged(path: Path, format_name: str | None, event: str | None) -> None:
    """Read a file and fail unless what it gives keeps the rules."""
    recorded = read_activations(path, format_name, event=event)
    assert recorded.format in FORMATS
    assert recorded.times_by_source
    for name, times in recorded.times_by_source.items():
        assert times.dtype == np.int64
        assert times.size
        assert times[0] >= 0
        assert np.all(np.diff(times) >= 0)
        assert recorded.format in ("csv", "samples") or (name.isprintable() and len(name) <= 100)
    lines = len(path.read_bytes().replace(b"\r", b"\n").splitlines())
    most = max if recorded.format == "samples" else sum  # a line may hold a value of several sets
    assert most(map(len, recorded.times_by_source.values())) <= lines
    assert all("\n" not in each for each in recorded.warnings)
    learned = learn(recorded.times_by_source, 3, 1, allow="0.5")
    for source in learned.sources:
        times = recorded.times_by_source[source.name]
        assert source.observed_ns == least_spans(times, 3)


def fuzz(kind: str, mutations: int, seed: int, folder: Path) -> tuple[int, int]:
    """Read mutations of one format; return how many were read and how many refused."""
    chance = random.Random(f"{kind} {seed}")
    path = folder / f"damaged-{kind}"
    read = 0
    for _ in range(mutations):
        path.write_bytes(mutate(chance.choice(SEEDS[kind]), SEEDS[kind], chance))
        format_name = kind if chance.random() < 0.5 else None
        event = chance.choice(EVENTS[kind]) if kind in EVENTS and format_name else None
        read += read_one(path, format_name, event)
    path.unlink()
    return read, mutations - read


def read_one(path: Path, format_name: str | None, event: str | None) -> bool:
    """Read one file under the time guard; tell whether it was read, and not refused."""
    try:
        with time_guard():
            read_damaged(path, format_name, event)
    except BadInput as mistake:
        check_refusal(str(mistake), (path.name, "--fraction", "--allow"))
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", action="append", choices=list(SEEDS))
    arguments = parser.parse_args()
    shared = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="latenz-fuzz-", dir=shared if shared.is_dir() else None))
    for kind in arguments.format or SEEDS:
        began = time.monotonic()
        read, refused = fuzz(kind, arguments.mutations, arguments.seed, folder)
        took = time.monotonic() - began
        sys.stdout.write(f"{kind}: {read} read, {refused} refused, {took:.0f} s\n")
        sys.stdout.flush()
    folder.rmdir()


if __name__ == "__main__":
    main()
