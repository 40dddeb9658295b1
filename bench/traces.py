"""`latenz explain` on a million events: trace.dat (plain, compressed) and text, time and memory.

The events are those of the recorded life of a virtual machine (python/tests/data/traces), repeated
with their times moved on. trace-cmd, the peer, reads the same file. `python bench/traces.py` prints
the figures of `run()` as JSON.
"""

import json
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
NESTED = ROOT / "python/tests/data/traces/nested-svm.dat"
EVENTS = 1_000_000
PAGE = 4096
ROUNDS = 3


class Measured(NamedTuple):
    seconds: float
    cpu_seconds: float
    largest_rss_bytes: int


def measured(command: list[str]) -> Measured:
    """Run a command that must succeed."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command} failed with code {process.returncode}")
    return Measured(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def trace_cmd(*arguments: str | Path, output: Path | None = None) -> None:
    """Run it; what it prints is never held here, as Linux counts our memory as our children's."""
    command = ["trace-cmd", *map(os.fspath, arguments)]
    with (output or Path(os.devnull)).open("wb") as file:
        subprocess.run(command, check=True, stdout=file, stderr=subprocess.DEVNULL)


def long_file(folder: Path) -> Path:
    """A trace.dat of version 6: the pages of the ring buffer again and again, each round later."""
    once = folder / "once.dat"
    trace_cmd("convert", "-i", NESTED, "-o", once, "--file-version", "6")
    content = bytearray(once.read_bytes())
    table = content.rindex(b"flyrecord\0") + 10
    start, size = struct.unpack_from("<QQ", content, table)
    pages = [content[at : at + PAGE] for at in range(start, start + size, PAGE)]
    stamps = [struct.unpack_from("<Q", page)[0] for page in pages]
    span_ns = stamps[-1] - stamps[0] + 1_000_000_000
    trace_cmd("report", NESTED, output=folder / "once.txt")
    with (folder / "once.txt").open("rb") as printed:
        per_round = sum(1 for _ in printed) - 1
    rounds = -(-EVENTS // per_round)
    struct.pack_into("<Q", content, table + 8, size * rounds)
    long = folder / "long.dat"
    with long.open("wb") as file:
        file.write(content[:start])
        for number in range(rounds):
            for stamp, page in zip(stamps, pages, strict=True):
                file.write(struct.pack("<Q", stamp + number * span_ns))
                file.write(later(page, number * span_ns)[8:])
    once.unlink()
    return long


def later(page: bytes, by_ns: int) -> bytes:
    """Move the absolute times inside a page of the ring buffer (linux/ring_buffer.h)."""
    padding, time_extend, time_stamp = 29, 30, 31
    moved = bytearray(page)
    at, end = 16, 16 + (struct.unpack_from("<Q", page, 8)[0] & 0xFFFFF)
    while at < end:
        word, after = struct.unpack_from("<II", page, at)
        kind, delta = word & 31, word >> 5
        if kind == padding and delta == 0:
            break
        if kind == time_stamp:
            time_ns = delta + (after << 27) + by_ns
            struct.pack_into("<II", moved, at, (time_ns & (1 << 27) - 1) << 5 | kind, time_ns >> 27)
        if kind in (time_extend, time_stamp):
            at += 8
        else:
            at += 4 + (after if kind in (0, padding) else 4 * kind)
    return bytes(moved)


def long_text(folder: Path, trace: Path) -> Path:
    text = folder / "long.txt"
    trace_cmd("report", "-t", trace, output=text)
    return text


def explained(path: Path) -> dict[str, float | int]:
    """The best of some runs: others have work to do on this machine, too."""
    command = [sys.executable, "-m", "latenz", "explain", str(path), "--json"]
    runs = [measured(command) for _ in range(ROUNDS)]
    document = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert document["events"] >= EVENTS, document["events"]
    assert document["truncated_at"] is None
    return {
        "events": document["events"],
        "file_bytes": path.stat().st_size,
        "seconds": round(min(each.seconds for each in runs), 3),
        "largest_rss_bytes": max(each.largest_rss_bytes for each in runs),
    }


def run() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = long_file(folder)
        compressed = folder / "compressed.dat"
        trace_cmd("convert", "-i", plain, "-o", compressed, "--compression", "zstd")
        peer = measured(["trace-cmd", "report", str(plain)])
        return {
            "trace.dat": explained(plain),
            "trace.dat, compressed": explained(compressed),
            "text": explained(long_text(folder, plain)),
            "trace-cmd report of the same": {
                "seconds": round(peer.seconds, 3),
                "largest_rss_bytes": peer.largest_rss_bytes,
            },
        }


if __name__ == "__main__":
    print(json.dumps(run(), indent=1))
