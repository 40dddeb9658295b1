"""Kills one of two processes that talk by a channel, again and again, and watches the other one.

`python bench/icc_kill.py --kills 10000` prints its figures as JSON, one object for each kind of
channel and each side that is killed; the kills are shared out evenly. Half of the victims are
killed once messages pass again, a quarter at a random time after their start, and a quarter before
a random access to the shared memory. Every rule is checked: `torn`, `twice`, `stale`, `lost`,
`untold` and `unexpected` are zero, or this fails. How far a call overran its deadline
(`excess_..._ns`) is the machine's scheduling as well; nothing asserts it.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "build/host/icc/latenz-icc-kill"
DEFAULT_KILLS = 2000


def built() -> Path:
    for command in (
        ["cmake", "--preset", "host"],
        ["cmake", "--build", "--preset", "host", "--target", PROGRAM.name],
    ):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return PROGRAM


def run(kills: int = DEFAULT_KILLS, seed: int = 1) -> dict[str, object]:
    """Kill that often in all."""
    command = [built(), "--kills", str(kills), "--seed", str(seed)]
    started = time.monotonic()
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    took_s = time.monotonic() - started
    if finished.returncode != 0:
        raise SystemExit(f"a rule was broken:\n{finished.stdout}")
    scenarios = json.loads(finished.stdout)
    return {
        "kills": sum(each["kills"] for each in scenarios),
        "seed": seed,
        "took_s": round(took_s, 1),
        "scenarios": scenarios,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=DEFAULT_KILLS)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(json.dumps(run(arguments.kills, arguments.seed), indent=1))
