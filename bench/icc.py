"""Every channel of latenz::icc and its peers, as a multiple of the raw cache-line limit beside it.

`python bench/icc.py` prints a table, `--json` the figures of `run()`. Two processes on two CPUs;
half of a round trip each. Every case is measured in short blocks in turns with the raw limit, and
all cases in turns with each other, since a machine's raw limit changes within seconds.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from latenz import environment
from latenz.engines.intercore import ACCOUNT_FILE, ASLEEP, PEERS, IntercoreAccount
from latenz.programs import probe_program
from latenz.store.journal import Journal

CHANNELS = ("exchange", "mailbox", "latest", "ring")
SIZES = (8, 64, 256, 1024, 4096)
SHORT_SAMPLES, SHORT_PASSES = 2_000, 2
LONG_SAMPLES, LONG_PASSES = 20_000, 5
BARS = (("exchange", 8, 1.1), ("mailbox", 8, 1.5), ("exchange", 64, 1.4))
"""Channel, size, and the multiple of the raw limit that it must stay within."""
AHEAD = (8, 64, 256)
"""Sizes at which the best channel must be ahead of every peer."""

Case = tuple[str, int]


class Measured:
    """What the passes of one case showed."""

    def __init__(self) -> None:
        self.latency_ns: list[np.ndarray] = []
        self.rounds: list[tuple[float, float]] = []
        self.damaged = 0

    def figures(self) -> dict[str, object]:
        """Return the case's row."""
        latency_ns = np.concatenate(self.latency_ns)
        median, p99, p999 = np.percentile(latency_ns, [50, 99, 99.9])
        ratios = [case / raw for raw, case in self.rounds]
        low, *_, high = statistics.quantiles(ratios, n=10)
        return {
            "n": len(latency_ns),
            "median_ns": int(median),
            "p99_ns": int(p99),
            "p99_9_ns": int(p999),
            "max_ns": int(latency_ns.max()),
            "worst_index": int(latency_ns.argmax()),
            "raw_median_ns": round(statistics.median(raw for raw, _ in self.rounds), 1),
            "ratio": round(statistics.median(ratios), 3),
            "ratio_p10": round(low, 3),
            "ratio_p90": round(high, 3),
            "damaged": self.damaged,
        }


def measure(case: Case, samples: int, wait: str, found: Measured) -> None:
    through, size = case
    with tempfile.TemporaryDirectory() as folder:
        command = [str(probe_program("latenz-intercore")), f"--output={folder}"]
        sent = (
            ["--through=raw"] if through == "raw" else [f"--through={through}", f"--bytes={size}"]
        )
        subprocess.run([*command, *sent, f"--samples={samples}", f"--wait={wait}"], check=True)
        account = IntercoreAccount.read(Path(folder) / ACCOUNT_FILE)
        frames = Journal(Path(folder) / "half-round-trip" / "samples.journal").frames()
        found.latency_ns += [frame["latency_ns"].copy() for frame in frames]
    found.rounds += account.rounds
    found.damaged += account.damaged


def peers() -> tuple[str, ...]:
    """Return the peers that the probe was built with."""
    found = []
    for peer in PEERS:
        with tempfile.TemporaryDirectory() as folder:
            command = [str(probe_program("latenz-intercore")), f"--output={folder}", "--samples=1"]
            tried = subprocess.run([*command, f"--through={peer}"], check=False)
        if tried.returncode == 0:
            found.append(peer)
    return tuple(found)


def table(samples: int, passes: int, wait: str) -> dict[Case, dict[str, object]]:
    through = (*CHANNELS, *peers())
    cases = [("raw", 0), *((each, size) for size in SIZES for each in through)]
    found = {case: Measured() for case in cases}
    for number in range(passes):
        for case in cases:
            print(
                f"bench: icc, pass {number + 1} of {passes}, {case[0]} {case[1]}", file=sys.stderr
            )
            # Those that sleep in the kernel take 100 times as long and need no such precision.
            fewer = samples // 10 if case[0] in ASLEEP else samples
            measure(case, fewer, wait, found[case])
    return {case: each.figures() for case, each in found.items()}


def bars(rows: dict[Case, dict[str, object]]) -> list[dict[str, object]]:
    """Return each aim with what was measured."""
    aims: list[dict[str, object]] = [
        {"aim": f"{through} of {size} B", "at_most": most, "ratio": rows[through, size]["ratio"]}
        for through, size, most in BARS
    ]
    for size in AHEAD:
        there = [peer for peer in PEERS if (peer, size) in rows]
        best_peer = min(there, key=lambda peer: rows[peer, size]["ratio"])
        best = min(CHANNELS, key=lambda channel: rows[channel, size]["ratio"])
        aims.append(
            {
                "aim": f"{best} ahead of {best_peer}, {size} B",
                "at_most": rows[best_peer, size]["ratio"],
                "ratio": rows[best, size]["ratio"],
            }
        )
    return [{**aim, "met": aim["ratio"] <= aim["at_most"]} for aim in aims]


def figures(samples: int, passes: int, wait: str) -> dict[str, object]:
    rows = table(samples, passes, wait)
    return {
        "samples": samples,
        "passes": passes,
        "processes": 2,
        "wait": wait,
        "machine": environment.machine(),
        "cases": [{"through": key[0], "bytes": key[1], **row} for key, row in rows.items()],
        "bars": bars(rows),
    }


def run() -> dict[str, object]:
    return figures(SHORT_SAMPLES, SHORT_PASSES, "pause")


def show(told: dict[str, object]) -> None:
    rows = Table("through", title="half a round trip between two processes, ns")
    columns = ("bytes", "median_ns", "p99_ns", "p99_9_ns", "max_ns", "worst_index", "ratio")
    for column in columns:
        rows.add_column(column.removesuffix("_ns").replace("_", " "), justify="right")
    for case in told["cases"]:
        rows.add_row(case["through"], *(f"{case[column]:,}" for column in columns))
    aims = Table("aim", "at most", "ratio", "met", title="multiples of the raw limit")
    for aim in told["bars"]:
        aims.add_row(aim["aim"], *(str(aim[k]) for k in ("at_most", "ratio", "met")))
    console = Console()
    console.print(rows)
    console.print(aims)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--samples", type=int, default=LONG_SAMPLES, help="of a case in a pass")
    parser.add_argument("--passes", type=int, default=LONG_PASSES)
    parser.add_argument("--wait", choices=["pause", "spin"], default="pause")
    arguments = parser.parse_args()
    told = figures(arguments.samples, arguments.passes, arguments.wait)
    print(json.dumps(told, indent=1)) if arguments.json else show(told)


if __name__ == "__main__":
    main()
