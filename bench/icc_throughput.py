"""How many messages a second one core hands to another: the ring and the queues used otherwise.

`python bench/icc_throughput.py` prints a table, `--json` the figures of `run()`. All queues in
turns in one process, round after round, since what two CPUs pass to each other changes within
seconds; each figure is the median of the rounds. As real-time threads where that is allowed: a
queue
whose other side is not running measures the scheduler. Every message is checked.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from latenz import environment

SOURCE = Path(__file__).parents[1] / "icc/bench/throughput.cpp"
INCLUDE = Path(__file__).parents[1] / "icc/include"
SHORT_ROUNDS, LONG_ROUNDS, MESSAGES = 3, 15, 200_000
OURS = ("icc-ring", "icc-ring-loans")
BARS = (4, 8, 64, 256)
"""Sizes at which the ring must be at least as fast as every peer."""
_DPDK = Path("/usr/include/dpdk")
PEERS = {  # what each needs: a header that says that it is there, and how it is compiled
    "boost-spsc": (Path("/usr/include/boost/lockfree/spsc_queue.hpp"), ("-DLATENZ_HAS_BOOST",)),
    "readerwriterqueue": (
        Path("/usr/include/readerwriterqueue/readerwriterqueue.h"),
        ("-DLATENZ_HAS_READERWRITERQUEUE",),
    ),
    "rte_ring": (
        _DPDK / "rte_ring.h",
        (
            "-DLATENZ_HAS_DPDK",
            f"-isystem{_DPDK}",
            f"-isystem/usr/include/{os.uname().machine}-linux-gnu/dpdk",
            "-include",
            "rte_config.h",
        ),
    ),
}


def missing() -> list[str]:
    """Return the peers that are not installed."""
    return [peer for peer, (header, _) in PEERS.items() if not header.exists()]


def build(program: Path) -> None:
    """Compile the program with the peers that are there."""
    there = [options for header, options in PEERS.values() if header.exists()]
    command = ["g++", "-std=c++20", "-O3", "-march=native", f"-I{INCLUDE}"]
    command += [option for options in there for option in options]
    command += [str(SOURCE), "-o", str(program), "-pthread"]
    command += [] if "rte_ring" in missing() else ["-lrte_ring", "-lrte_eal"]
    subprocess.run(command, check=True)


def as_real_time() -> list[str]:
    """Return the words before the command that make its threads real-time; none if refused."""
    chrt = ["chrt", "--fifo", "10"]
    allowed = (
        shutil.which("chrt")
        and not subprocess.run([*chrt, "true"], capture_output=True, check=False).returncode
    )
    return chrt if allowed else []


def measure(rounds: int) -> list[dict[str, object]]:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        sys.exit("bench: throughput between two CPUs needs two of them")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "throughput"
        build(program)
        command = [*as_real_time(), str(program), *map(str, cpus), str(rounds), str(MESSAGES)]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in told.splitlines()]


def figures(rounds: int) -> dict[str, object]:
    """Return each case's operations a millisecond, and what they are of the best peer's."""
    rates: dict[tuple[int, int, str], list[float]] = {}
    wrong = 0
    for row in measure(rounds):
        key = (row["bytes"], row["batch"], row["queue"])
        rates.setdefault(key, []).append(row["messages"] * 1e6 / row["taken_ns"])
        wrong += row["wrong"]
    cases = [
        {
            "queue": queue,
            "bytes": size,
            "batch": batch,
            "per_ms": round(statistics.median(rate)),
            "least_per_ms": round(min(rate)),
            "most_per_ms": round(max(rate)),
            "mb_per_s": round(statistics.median(rate) * size / 1000),
        }
        for (size, batch, queue), rate in sorted(rates.items())
    ]
    return {
        "rounds": rounds,
        "messages": MESSAGES,
        "wrong": wrong,
        "real_time": bool(as_real_time()),
        "missing_peers": missing(),
        "machine": environment.machine(),
        "cases": cases,
        "bars": bars(rates),
    }


def bars(rates: dict[tuple[int, int, str], list[float]]) -> list[dict[str, object]]:
    """Return the ring's share of the best peer's rate in the same round, of each size."""
    aims = []
    for size, batch in sorted({(size, batch) for size, batch, _ in rates if size in BARS}):
        peers = {
            q: r for (s, b, q), r in rates.items() if (s, b) == (size, batch) and q not in OURS
        }
        best = max(peers, key=lambda queue: statistics.median(peers[queue]))
        for queue in OURS:
            if (own := rates.get((size, batch, queue))) is not None:
                share = statistics.median(a / b for a, b in zip(own, peers[best], strict=True))
                aim = f"{queue} of {size} B by {batch}, to {best}"
                aims.append({"aim": aim, "share": round(share, 3), "met": share >= 1})
    return aims


def run() -> dict[str, object]:
    return figures(SHORT_ROUNDS)


def show(told: dict[str, object]) -> None:
    console = Console()
    sizes = sorted({case["bytes"] for case in told["cases"]})
    rows = Table("queue", "batch", title="messages a millisecond")
    for size in sizes:
        rows.add_column(f"{size} B", justify="right")
    lines = {(case["batch"], case["queue"]) for case in told["cases"]}
    found = {(c["batch"], c["queue"], c["bytes"]): c["per_ms"] for c in told["cases"]}
    for batch, queue in sorted(lines):
        rows.add_row(queue, str(batch), *(f"{found[batch, queue, size]:,}" for size in sizes))
    console.print(rows)
    for peer in told["missing_peers"]:
        console.print(f"{peer}: not installed, not measured; setup/ensure bench installs it")
    if not told["real_time"]:
        console.print("not as real-time threads: other work's time slices are in these figures")
    aims = Table("aim", "share", "met", title="rate to the best peer's, in the same rounds")
    for aim in told["bars"]:
        aims.add_row(aim["aim"], str(aim["share"]), str(aim["met"]))
    console.print(aims)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=LONG_ROUNDS)
    arguments = parser.parse_args()
    told = figures(arguments.rounds)
    print(json.dumps(told, indent=1)) if arguments.json else show(told)


if __name__ == "__main__":
    main()
