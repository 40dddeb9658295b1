"""Messages between an emulated Cortex-A53 and Cortex-R5: icc's channels beside rpmsg over virtio.

`python bench/rpmsg.py` prints what a message takes in instructions that both cores execute one
after the other (virtual time, 1 ns each), there and back divided by two and one way, for each size;
`--json` prints JSON. All in on-chip memory, begun by the Cortex-R5, so that the doorbell can be
measured beside polling: QEMU interrupts the Cortex-A53 only. **Emulated**: no memory takes time, so
this is the work, not the latency on silicon. rpmsg is our own least implementation of its published
layout (`firmware/icc/src/rpmsg_peer.hpp`); NXP's library comes from no package registry.
"""

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from rich.console import Console
from rich.table import Table

from latenz.boards.pair_firmware import PairTask, carry_out
from latenz.boards.setup import ensure_boards
from latenz.errors import BadInput

Channel = Literal["mailbox", "exchange", "ring", "rpmsg"]
Wait = Literal["poll", "doorbell"]
SIZES = (8, 64, 256)
SAMPLES = 200
_HALVES, _WAYS, _RAW = 0, 1, 2  # streams of the firmware


def measure(through: Channel, size: int, wait: Wait, samples: int) -> dict[str, Any]:
    """Return the median instructions of a message through one channel, and of a word beside it."""
    task = PairTask(
        through=through, message_bytes=size, samples=samples, direction="back", wait=wait
    )
    with tempfile.TemporaryDirectory() as folder:
        streams = carry_out(task, Path(folder)).streams
    return {
        "through": through,
        "bytes": size,
        "wait": wait,
        "half_round_trip": statistics.median(streams[_HALVES].latency_ticks) / 2,
        "one_way": statistics.median(streams[_WAYS].latency_ticks),
        "raw": statistics.median(streams[_RAW].latency_ticks) / 2,
    }


def all_cases(samples: int) -> Iterator[dict[str, Any]]:
    """Measure each channel, size and way to wait."""
    for wait in get_args(Wait):
        for size in SIZES:
            for through in get_args(Channel):
                yield measure(through, size, wait, samples)


def run() -> dict[str, Any]:
    """Return all figures, for `make bench`."""
    if obstacle := ensure_boards():
        raise BadInput(str(obstacle), "bench/rpmsg.py")
    return {"time_base": "virtual", "cases": list(all_cases(SAMPLES))}


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    as_json = parser.parse_args().json
    told = run()
    if as_json:
        sys.stdout.write(json.dumps(told, indent=1) + "\n")
        return
    table = Table("through", "bytes", "waits by", "half round trip", "one way", "raw word")
    for case in told["cases"]:
        figures = (case[each] for each in ("half_round_trip", "one_way", "raw"))
        table.add_row(
            case["through"], str(case["bytes"]), case["wait"], *(f"{each:g}" for each in figures)
        )
    Console().print(table, "instructions of both emulated cores, medians")


if __name__ == "__main__":
    try:
        main()
    except BadInput as mistake:
        sys.exit(str(mistake))
