"""Kills one of two processes that talk by a channel, again and again, and watches the other one.

`python bench/icc_kill.py --kills 10000` prints its figures as JSON, one object for each way to use
the library (awake, or asleep by futexes or eventfds; in C++ or in C), each kind of channel and each
side that is killed; the kills are shared out evenly. `--way kill-futex --channel pool` kills only
there. Half of the victims are killed once messages pass again, a quarter at a random time after
their start, and a quarter before a random access to the shared memory; of those that sleep, most
are killed asleep. Every rule is checked: `torn`, `twice`, `stale`, `lost`, `leaked` (blocks of a
pool), `untold` and `unexpected` are zero, or this fails. How far a call overran its deadline
(`excess_..._ns`) is the machine's scheduling as well; nothing asserts it.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAMS = ROOT / "build/host/icc"
WAYS = ("kill", "kill-futex", "kill-eventfd", "kill-c", "kill-c-futex", "kill-c-eventfd")
DEFAULT_KILLS = 2000


def build(ways: tuple[str, ...]) -> None:
    for command in (
        ["cmake", "--preset", "host"],
        [
            "cmake",
            "--build",
            "--preset",
            "host",
            "--target",
            *(f"latenz-icc-{each}" for each in ways),
        ],
    ):
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def scenarios(way: str, kills: int, seed: int, channel: str | None) -> list[dict[str, object]]:
    """What became of that many kills in one way."""
    command = [str(PROGRAMS / f"latenz-icc-{way}"), "--kills", str(kills), "--seed", str(seed)]
    command += ["--channel", channel] if channel else []
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if finished.returncode == 2:
        raise SystemExit(2)  # it has said why
    if finished.returncode != 0:
        raise SystemExit(f"a rule was broken in {way}:\n{finished.stdout}")
    return [{"way": way, **each} for each in json.loads(finished.stdout)]


def run(
    kills: int = DEFAULT_KILLS,
    seed: int = 1,
    ways: tuple[str, ...] = WAYS,
    channel: str | None = None,
) -> dict[str, object]:
    """Kill that often in all."""
    build(ways)
    started = time.monotonic()
    share = -(-kills // len(ways))
    done = [each for way in ways for each in scenarios(way, share, seed, channel)]
    return {
        "kills": sum(int(str(each["kills"])) for each in done),
        "seed": seed,
        "took_s": round(time.monotonic() - started, 1),
        "scenarios": done,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=DEFAULT_KILLS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--way", choices=WAYS, action="append", help="may be repeated; default: all"
    )
    parser.add_argument("--channel", help="mailbox, exchange, latest, ring or pool; default: all")
    given = parser.parse_args()
    ways = tuple(given.way) if given.way else WAYS
    print(json.dumps(run(given.kills, given.seed, ways, given.channel), indent=1))
