"""`latenz explain HOST GUEST` on a million events of two files: time and memory of the command.

The traces are generated (python/tests/traces/two_sides.py): a guest's thread woken each
millisecond, its host beside it, once as trace.dat with the offset that trace-cmd writes, once
without, so that the clocks are joined by exits, and once as text. `python bench/trace_join.py`
prints the figures of `run()` as JSON.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "python/tests/traces"))

from traces import ROUNDS, measured  # noqa: E402
from two_sides import (  # noqa: E402
    GUEST_ID,
    VCPU,
    World,
    guest_options,
    host_options,
    write_dat,
    write_text,
)

EVENTS = 1_000_000
CYCLES = 9_000
OFFSET_NS = 77_000_000_000


def joined(host: Path, guest: Path) -> dict[str, object]:
    """Explain both; the best of some runs, as others have work to do on this machine, too."""
    command = [sys.executable, "-m", "latenz", "explain", str(host), str(guest), "--json"]
    runs = [measured(command) for _ in range(ROUNDS)]
    done = subprocess.run(command, check=True, capture_output=True)
    document = json.loads(done.stdout)
    [found] = document["guests"]
    events = document["events"] + found["events"]
    assert events >= EVENTS, events
    return {
        "events": events,
        "file_bytes": host.stat().st_size + guest.stat().st_size,
        "clock": found["clock"],
        "error_ns": found["error_ns"],
        "seconds": round(min(each.seconds for each in runs), 3),
        "cpu_seconds": round(min(each.cpu_seconds for each in runs), 3),
        "largest_rss_bytes": max(each.largest_rss_bytes for each in runs),
    }


def make(folder: Path) -> None:
    """Write the traces, in a process of its own: Linux counts our memory as our children's."""
    world = World(1, OFFSET_NS).run("vcpu-preempted", CYCLES)

    def earlier(t_ns: int) -> int:
        return t_ns - OFFSET_NS

    told = host_options(("vm", GUEST_ID, {0: VCPU[1]}))
    shift = guest_options([(0, OFFSET_NS, 1, 0)])
    write_dat(world.host, folder / "told-host.dat", options=told)
    write_dat(world.guest, folder / "told-guest.dat", earlier, shift)
    write_dat(world.host, folder / "host.dat")
    write_dat(world.guest, folder / "guest.dat", earlier)
    write_text(world.host, folder / "host.txt")
    write_text(world.guest, folder / "guest.txt", OFFSET_NS)


def run() -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, __file__, name], check=True)
        return {
            "trace.dat, offset told": joined(folder / "told-host.dat", folder / "told-guest.dat"),
            "trace.dat, by exits": joined(folder / "host.dat", folder / "guest.dat"),
            "text, by exits": joined(folder / "host.txt", folder / "guest.txt"),
        }


if __name__ == "__main__":
    if len(sys.argv) > 1:
        make(Path(sys.argv[1]))
    else:
        print(json.dumps(run(), indent=1))
