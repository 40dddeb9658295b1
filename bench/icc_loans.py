"""How long a message takes that is made and read where it lies, whatever its size.

`python bench/icc_loans.py` prints half of a round trip for each size: through rings with loans in
C++, in turns with a word that both poll; and from Python, icc's loans and those of the package
iceoryx2, in turns. Each side polls on a CPU of its own. Who makes a message writes its number into
it, and who takes it reads that. `--json` prints the figures of `run()`. As real-time programs where
that is allowed, in short turns; a figure is the median of the turns, each of which is a median.
"""

import argparse
import contextlib
import ctypes
import importlib
import importlib.util
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from latenz import environment
from latenz.icc.endpoints import RingReader, RingWriter, load_channels

ROOT = Path(__file__).parents[1]
SIZES = (8, 64, 1024, 4096, 16384, 65536)
TURNS, TRIPS, TRIPS_OF_PYTHON = 9, 1000, 300
MOST_GROWTH = 1.3
"""At most so many times what a message of 8 B takes."""
FLAT = (4096, 65536)
MOST_BESIDE_MEMCPY, COPIED = 1.1, 4096
"""At most so many times what memcpy through as many slots takes, of a message of this size."""

Send = Callable[[int], None]
Receive = Callable[[], int]


def icc(folder: Path, name: str, size: int, first: bool) -> tuple[Send, Receive]:
    """Open this side's ends of a ring in each direction."""
    description = folder / f"{'first' if first else 'second'}_{size}.toml"
    channels = "".join(
        f'[channels.{way}]\nkind = "ring"\npayload = "Message"\nslots = 4\n'
        for way in ("there", "back")
    )
    description.write_text(
        f'[types.Message]\nnumber = "uint32"\nrest = "uint8[{size - 4}]"\n{channels}'
    )
    known = load_channels(description)
    ways = ("there", "back") if first else ("back", "there")
    files = {way: folder / f"{name}-{size}-{way}" for way in ways}
    for file in files.values():
        with file.open("ab") as memory:
            memory.truncate(8 * size + 65536)
    writer = RingWriter.create(known[ways[0]], str(files[ways[0]]))
    reader = RingReader.attach(known[ways[1]], str(files[ways[1]]), timeout_s=30)

    def send(number: int) -> None:
        while (place := writer.try_loan()) is None:
            pass
        place["number"] = number
        writer.publish()

    def receive() -> int:
        while (message := reader.try_take()) is None:
            pass
        number = int(message["number"])
        reader.release()
        return number

    return send, receive


def iceoryx2(folder: Path, name: str, size: int, first: bool) -> tuple[Send, Receive]:
    """Open this side's ends of a service in each direction."""
    import iceoryx2 as iox2

    class Message(ctypes.Structure):
        _fields_ = (("number", ctypes.c_uint32), ("rest", ctypes.c_uint8 * (size - 4)))

    iox2.set_log_level(iox2.LogLevel.Error)
    node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
    services = {
        way: node.service_builder(iox2.ServiceName.new(f"{folder.name}/{name}/{size}/{way}"))
        .publish_subscribe(Message)
        .open_or_create()
        for way in ("there", "back")
    }
    ways = ("there", "back") if first else ("back", "there")
    publisher = services[ways[0]].publisher_builder().create()
    subscriber = services[ways[1]].subscriber_builder().create()
    keep = node

    def send(number: int) -> None:
        sample = publisher.loan_uninit()
        sample.payload().contents.number = number
        sample.assume_init().send()

    def receive() -> int:
        assert keep is not None
        while (sample := subscriber.receive()) is None:
            pass
        number = int(sample.payload().contents.number)
        sample.delete()
        return number

    return send, receive


OURS, PEER = icc, iceoryx2


def real_time(cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))


def answer(
    of: Callable[..., tuple[Send, Receive]], place: tuple[Any, ...], cpu: int, ready: Any
) -> None:
    send, receive = of(*place, first=False)
    ready[1].set()
    ready[0].wait()
    real_time(cpu)
    for _ in range(TRIPS_OF_PYTHON):
        send(receive())


def ask(
    of: Callable[..., tuple[Send, Receive]], place: tuple[Any, ...], cpu: int, told: Any, ready: Any
) -> None:
    send, receive = of(*place, first=True)
    ready[0].set()
    ready[1].wait()
    real_time(cpu)
    took = []
    for number in range(1, TRIPS_OF_PYTHON + 1):
        begin = time.perf_counter_ns()
        send(number)
        wrong = receive() != number
        took.append(time.perf_counter_ns() - begin)
        assert not wrong
    told.put(statistics.median(took) / 2)


def turn_of_python(
    of: Callable[..., tuple[Send, Receive]], folder: Path, name: str, size: int
) -> float:
    """Return half of the median round trip between two new processes."""
    spawn = multiprocessing.get_context("fork")
    told, ready = spawn.Queue(), (spawn.Event(), spawn.Event())
    cpus = sorted(os.sched_getaffinity(0))[:2]
    place = (folder, name, size)
    sides = [
        spawn.Process(target=ask, args=(of, place, cpus[0], told, ready)),
        spawn.Process(target=answer, args=(of, place, cpus[1], ready)),
    ]
    for side in sides:
        side.start()
    half_ns: float = told.get(timeout=30)
    for side in sides:
        side.join()
    return half_ns


def missing() -> list[str]:
    return [] if importlib.util.find_spec("iceoryx2") else ["iceoryx2"]


def in_python(turns: int) -> list[dict[str, Any]]:
    """Return what a message takes from Python to Python, each library's in turns."""
    libraries = (OURS,) if missing() else (OURS, PEER)
    if PEER in libraries:
        importlib.import_module("iceoryx2")  # once, in front of the forks
    rows: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for turn in range(turns):
            for size in SIZES:
                for of in libraries:
                    half_ns = turn_of_python(of, Path(folder), f"turn{turn}", size)
                    rows.setdefault((of.__name__, size), []).append(half_ns)
    return [
        {
            "library": name,
            "bytes": size,
            "ns": round(statistics.median(took)),
            "least_ns": round(min(took)),
        }
        for (name, size), took in rows.items()
    ]


def in_cpp(turns: int) -> list[dict[str, Any]]:
    """Return what a message takes from C++ to C++, and a word beside it."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    rows: dict[int, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "loans"
        command = ["g++", "-std=c++20", "-O3", "-march=native", f"-I{ROOT / 'icc/include'}"]
        source = str(ROOT / "icc/bench/loans.cpp")
        subprocess.run([*command, source, "-o", str(program), "-pthread"], check=True)
        real = ["chrt", "--fifo", "10"]
        if subprocess.run([*real, "true"], capture_output=True).returncode:
            real = []
        words = [*real, str(program), *map(str, cpus), str(turns), str(TRIPS)]
        told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    for row in map(json.loads, told.splitlines()):
        assert row["wrong"] == 0
        rows.setdefault(row["bytes"], []).append(row)
    growth = zip(*rows.values(), strict=True)
    times = [[size["ns"] / turn[0]["ns"] for size in turn] for turn in growth]
    return [
        {
            "bytes": size,
            "ns": statistics.median(each["ns"] for each in found),
            "raw_ns": statistics.median(each["raw_ns"] for each in found),
            "times_8_bytes": round(statistics.median(turn[at] for turn in times), 3),
            "copying_ns": statistics.median(each["copying_ns"] for each in found),
            "copying_to_memcpy": round(
                statistics.median(each["copying_ns"] / each["memcpy_ns"] for each in found), 3
            ),
        }
        for at, (size, found) in enumerate(rows.items())
    ]


def figures(turns: int) -> dict[str, Any]:
    cpp, python = in_cpp(turns), in_python(turns)
    by_library = {(row["library"], row["bytes"]): row["ns"] for row in python}
    bars = [
        {"bar": f"C++, {row['bytes']} B to 8 B", "found": row["times_8_bytes"], "most": MOST_GROWTH}
        for row in cpp
        if row["bytes"] in FLAT
    ]
    bars += [
        {
            "bar": f"C++, copying {row['bytes']} B to memcpy",
            "found": row["copying_to_memcpy"],
            "most": MOST_BESIDE_MEMCPY,
        }
        for row in cpp
        if row["bytes"] == COPIED
    ]
    bars += [
        {
            "bar": f"Python, {size} B to iceoryx2",
            "found": round(by_library["icc", size] / by_library["iceoryx2", size], 3),
            "most": 1,
        }
        for size in SIZES
        if ("iceoryx2", size) in by_library
    ]
    return {
        "machine": environment.machine(),
        "turns": turns,
        "missing_peers": missing(),
        "cpp": cpp,
        "python": python,
        "bars": [{**bar, "met": bar["found"] <= bar["most"]} for bar in bars],
    }


def run() -> dict[str, Any]:
    return figures(3)


def show(told: dict[str, Any]) -> None:
    console = Console()
    for name in ("cpp", "python", "bars"):
        table = Table(*told[name][0], title=name)
        for row in told[name]:
            table.add_row(*map(str, row.values()))
        console.print(table)
    for peer in told["missing_peers"]:
        console.print(f"{peer}: not installed, not measured; install it and flatbuffers by pip")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--turns", type=int, default=TURNS)
    arguments = parser.parse_args()
    told = figures(arguments.turns)
    sys.stdout.write(json.dumps(told, indent=1) + "\n") if arguments.json else show(told)


if __name__ == "__main__":
    main()
