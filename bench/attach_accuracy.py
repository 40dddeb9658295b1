"""What `latenz attach` says of a loop, held against the loop's own stamps.

Loops of five kinds read the clock first thing in each cycle. What lies between the kernel's switch
to the thread, as attach has it, and that reading is its median plus what else comes in between.
Told is how much of it is within 2 and 5 us of the median, whether due times are exactly those of
the program, whether every cycle is accounted for, the period's error, and how much memory
latenz-attach had soon after its start and in the end.

    python bench/attach_accuracy.py             # 100,000 cycles at 4 kHz of each kind, 3 minutes
    python bench/attach_accuracy.py --long      # 1,000,000 cycles at 1 kHz of each, 90 minutes
    python bench/attach_accuracy.py --kinds epoll,futex

prints the figures of `run()` as JSON. It needs root. What else the machine does is in the figures:
the load is told beside them.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from latenz.store.run import Run

ROOT = Path(__file__).parents[1]
LOOP = ROOT / "python/tests/attach/rhythm.c"
KINDS = {
    "absolute": "clock_nanosleep",
    "epoll": "timerfd and epoll",
    "signal": "POSIX timer and signal",
    "futex": "futex hand-over",
    "deadline": "SCHED_DEADLINE",
}
HAS_DUE = ("absolute", "epoll", "signal")
"""Kinds whose stamps tell when a cycle was due."""
BESIDE_NS = 120_000_000_000
"""For which the loop may go on before and after it is measured."""
Column = npt.NDArray[np.int64]


def columns(run: Path, name: str) -> dict[str, Column]:
    """Return the columns of a sample set."""
    (found,) = (each for each in Run.open(run).sample_sets if each.metadata.name == name)
    batches = list(found.batches())
    return {
        column: np.concatenate([batch.column(column).to_numpy() for batch in batches])
        for column in found.columns
    }


def memory_kib(folder: Path) -> int:
    """Return what latenz-attach holds that writes into this folder; 0 if there is none."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if words[0].endswith(b"latenz-attach") and f"--output={folder}".encode() in words:
                status = (path.parent / "status").read_text()
                return int(status.partition("RssAnon:")[2].split()[0])
    return 0


def watched(process: subprocess.Popen[bytes], condition: Path) -> list[int]:
    """Wait for the end; return the memory of latenz-attach, every two seconds."""
    found = []
    while process.poll() is None:
        time.sleep(2)
        found.append(memory_kib(condition))
    return [each for each in found if each]


def shares(own_ns: Column) -> dict[str, float | int]:
    """Return how the program's readings lie around their median."""
    median = int(np.median(own_ns))
    apart = np.abs(own_ns - median)
    return {
        "median_ns": median,
        "p99_ns": int(np.percentile(own_ns, 99)),
        "within_2_us": round(float((apart <= 2000).mean()), 5),
        "within_5_us": round(float((apart <= 5000).mean()), 5),
    }


def measured(
    program: Path, kind: str, cycles: int, period_ns: int, folder: Path
) -> dict[str, object]:
    """Measure one loop over its whole life."""
    stamps_file, run = folder / f"stamps-{kind}", folder / kind
    place = {} if kind == "deadline" else {"RHYTHM_CPU": str(max(os.sched_getaffinity(0)))}
    whole = cycles + BESIDE_NS // period_ns
    loop = subprocess.Popen(
        [program, kind, str(period_ns), str(whole), stamps_file],
        env={**os.environ, "RHYTHM_LOCKED": "1", **place},
    )
    load = os.getloadavg()[0]
    command = [sys.executable, "-m", "latenz", "attach", str(loop.pid)]
    command += ["--duration", f"{cycles * period_ns} ns"]
    answer_file = folder / f"{kind}.json"
    with answer_file.open("wb") as stdout:
        attach = subprocess.Popen([*command, "-o", str(run), "--json"], stdout=stdout)
        memory = watched(attach, run / program.name)
    loop.send_signal(signal.SIGUSR1)
    loop.wait()
    if not answer_file.stat().st_size:
        raise SystemExit(f"{kind}: attach said why it ended")
    told = json.loads(answer_file.read_text())
    name = "taker" if kind == "futex" else program.name
    thread = next(each for each in told["threads"] if each["comm"] == name)
    found = columns(run, f"{program.name}/{name}")
    due, woke, _ = np.fromfile(stamps_file, dtype="<i8").reshape(-1, 3).T
    ran = found["t_ns"] + found["latency_ns"]
    following = np.searchsorted(woke, ran)
    inside = following < len(woke)
    own_ns = woke[following[inside]] - ran[inside]
    own_ns = own_ns[own_ns < period_ns]
    parts = ("timer_late_ns", "ready_ns", "execution_ns", "blocked_ns")
    parted = [found[part] for part in parts]
    answer: dict[str, object] = {
        "waits_by": KINDS[kind],
        "asked": cycles,
        "n": thread["n"],
        "missed": thread["missed"],
        "partial": thread["partial"],
        "lost_events": told["lost"],
        "matched": len(own_ns),
        **shares(own_ns),
        "sum_is_response": bool(np.array_equal(np.sum(parted, axis=0), found["response_ns"])),
        "load_average": load,
        "memory_kib": [memory[min(2, len(memory) - 1)], memory[-1]] if memory else None,
    }
    if kind in HAS_DUE:
        answer["due_exact"] = round(float(np.isin(found["t_ns"], due).mean()), 6)
    if kind != "futex":
        span = int(found["t_ns"].max() - found["t_ns"].min())
        grid = round(span / period_ns) + 1
        answer["unaccounted"] = grid - thread["n"] - thread["missed"] - thread["partial"]
        answer["period_error"] = abs(thread["period_ns"] - period_ns) / period_ns
    return answer


def run(
    kinds: Sequence[str] = tuple(KINDS), cycles: int = 100_000, period_ns: int = 250_000
) -> dict[str, object]:
    """Measure each kind, one after the other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = folder / "attach-accuracy"[:15]
        subprocess.run(["cc", "-O2", "-o", program, LOOP, "-lpthread"], check=True)
        return {kind: measured(program, kind, cycles, period_ns, folder) for kind in kinds}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--long", action="store_true", help="1,000,000 cycles at 1 kHz of each")
    parser.add_argument("--kinds", default=",".join(KINDS), help="such as epoll,futex")
    asked = parser.parse_args()
    kinds = asked.kinds.split(",")
    if unknown := [each for each in kinds if each not in KINDS]:
        parser.error(f"{unknown[0]!r} is not a known kind; choose one of: {', '.join(KINDS)}")
    found = run(kinds, 1_000_000, 1_000_000) if asked.long else run(kinds)
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
