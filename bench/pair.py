"""A million messages between an emulated Cortex-A53 and Cortex-R5, each one checked.

`python bench/pair.py` prints as JSON what each side saw in each memory and direction; `--letters`
makes it fewer. Mailbox and exchange go there and back, ring and latest stream both ways at once.
The first message that is torn, lost, repeated or out of order ends it. Time is virtual (1 ns for
each instruction), and the figures tell how long it took.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Literal

from latenz.boards.pair_firmware import PairTask, carry_out
from latenz.boards.setup import ensure_boards
from latenz.errors import BadInput

TOLD = re.compile(r"(\w+): (\d+) letters, 0 errors, (\d+) us")
SIDES = 2


def checked(
    memory: Literal["ocm", "ddr"], direction: Literal["there", "back"], letters: int
) -> dict[str, Any]:
    """Send all letters through each kind of channel, and return what both sides tell."""
    task = PairTask(kind="check", samples=letters, memory=memory, direction=direction)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        received = carry_out(task, Path(folder), limit_s=3600)
    told = [match.groups() for note in received.notes if (match := TOLD.fullmatch(note))]
    channels: dict[str, Any] = {}
    for name, count, virtual_us in told:
        known = channels.setdefault(name, {"letters": [], "virtual_us": 0})
        known["letters"].append(int(count))
        known["virtual_us"] = max(known["virtual_us"], int(virtual_us))
    if any(len(each["letters"]) != SIDES for each in channels.values()):
        raise BadInput(f"one side did not tell what it saw: {received.notes}", "bench/pair.py")
    return {
        "memory": memory,
        "begins": "Cortex-A53" if direction == "there" else "Cortex-R5",
        "wall_s": round(time.monotonic() - began, 1),
        "channels": channels,
    }


def main() -> None:
    """Check every memory and direction."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--letters", type=int, default=1_000_000)
    letters: int = parser.parse_args().letters
    if obstacle := ensure_boards():
        raise BadInput(str(obstacle), "bench/pair.py")
    found = []
    for memory in ("ocm", "ddr"):
        for direction in ("there", "back"):
            found.append(checked(memory, direction, letters))
    print(json.dumps({"time_base": "virtual", "letters": letters, "runs": found}, indent=2))


if __name__ == "__main__":
    try:
        main()
    except BadInput as mistake:
        sys.exit(str(mistake))
