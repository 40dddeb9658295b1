"""Whether `latenz attach` names what was planted: a loop of 1 kHz that is made late on purpose.

Each plant runs by itself. Told is on which rank its cause stands among the worst cycles, and, as a
virtual machine's host takes CPUs away on its own account, which rank it has without such gaps
(`smi-like-gap`). One plant, a frequency that rises late, needs hardware with frequencies; it is
found in an emulated trace by the tests.

`python bench/attach_causes.py [PLANT ...]` prints the figures of `run()` as JSON. It needs root,
and control groups of the first version for `quota` and `reclaim`.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
LOOP = ROOT / "python/tests/attach/rhythm.c"
TRIES = 3
NAME = "attach-causes"


class Plant(NamedTuple):
    """What is planted, and what it is called when it is found."""

    told: str
    causes: tuple[str, ...]
    words: str
    kind: str = "absolute"
    work_ns: int = 0
    pinned: bool = True
    group: tuple[str, dict[str, int]] | None = None
    ordinary: bool = False


PLANTS = {
    "inversion": Plant("priority inversion", ("priority-inversion",), "low-holder"),
    "faults": Plant("page faults", ("page-fault",), "page faults"),
    "throttle": Plant("real-time throttling", ("throttled",), "real-time throttling"),
    "softirq": Plant("network load", ("interrupt", "softirq"), "softirqs were handled"),
    "pipe": Plant("a pipe read slowly", ("blocked",), "slow-reader"),
    "hog": Plant("a more urgent hog", ("preempted",), "high-hog"),
    "migration": Plant("migrations", ("migration",), "moved to another", pinned=False),
    "fork": Plant("fork beside", ("fork",), "forker"),
    "reclaim": Plant(
        "memory reclaim",
        ("reclaim",),
        "free memory",
        group=("memory", {"memory.limit_in_bytes": 24 << 20}),
    ),
    "quota": Plant(
        "a control group's quota",
        ("cgroup-quota",),
        "used up its time",
        work_ns=100_000,
        group=("cpu", {"cpu.cfs_period_us": 100_000, "cpu.cfs_quota_us": 3_000}),
        ordinary=True,
    ),
    "clock": Plant("a clock that is set", ("clock-step",), "was set", kind="tai", pinned=False),
    "convoy": Plant("a queue for a lock", ("blocked",), "queued"),
    "disk": Plant("a log on disk", ("disk-output",), "fsync"),
}


class Found(NamedTuple):
    """Where the cause stands in one measurement; 0: nowhere."""

    rank: int
    rank_without_host: int
    sentence: str


@contextmanager
def control_group(plant: Plant) -> Iterator[Path | None]:
    """Make the group that a plant needs; remove it with all that is in it."""
    if plant.group is None:
        yield None
        return
    controller, limits = plant.group
    group = Path(f"/sys/fs/cgroup/{controller}/latenz-causes-{os.getpid()}")
    group.mkdir()
    for name, value in limits.items():
        (group / name).write_text(str(value))
    try:
        yield group / "tasks"
    finally:
        for _ in range(100):
            with suppress(OSError):
                group.rmdir()
                break
            for pid in (group / "tasks").read_text().split():
                with suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.1)


def reset_clock() -> None:
    """Set TAI back to what it was before the plant."""
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import ctypes, struct\n"
            't = bytearray(struct.pack("=I4xqqqi4xq", 0x80, 0, 0, 0, 0, 0) + bytes(208))\n'
            "ctypes.CDLL(None).adjtimex((ctypes.c_char * len(t)).from_buffer(t))\n",
        ],
        check=True,
    )


def attached(pid: int, plant: Plant, run: Path) -> Found:
    """Measure once; return where the plant's cause stands."""
    command = [sys.executable, "-m", "latenz", "attach", str(pid), "--thread", NAME]
    done = subprocess.run(
        [*command, "--duration", "4s", "-o", str(run), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    if not done.stdout:
        return Found(0, 0, done.stderr.strip())
    causes = json.loads(done.stdout)["causes"]

    def rank(among: list[dict[str, str]]) -> int:
        right = (
            number
            for number, each in enumerate(among, 1)
            if each["cause"] in plant.causes and plant.words in each["sentence"]
        )
        return next(right, 0)

    first = rank(causes)
    own = [each for each in causes if each["cause"] != "smi-like-gap"]
    return Found(
        first, rank(own), causes[first - 1]["sentence"] if first else causes[0]["sentence"]
    )


def measured(program: Path, name: str, plant: Plant, folder: Path) -> dict[str, Any]:
    """Run the loop with one plant, and measure it a few times."""
    file = folder / f"file-{name}"
    if name == "reclaim":
        with file.open("wb") as mapped:
            mapped.write(bytes(24 << 20))
            os.fsync(mapped.fileno())
    with control_group(plant) as tasks:
        environment = {**os.environ, "RHYTHM_PLANT": name, "RHYTHM_LOG": str(file)}
        if plant.pinned:
            environment["RHYTHM_CPU"] = str(max(os.sched_getaffinity(0)))
        if plant.ordinary:
            environment["RHYTHM_ORDINARY"] = "1"
        if tasks is not None:
            environment["RHYTHM_GROUP"] = str(tasks)
        stamps = str(folder / "stamps")
        command = [str(program), plant.kind, "1000000", "600000", stamps, str(plant.work_ns)]
        loop = subprocess.Popen(command, env=environment)
        time.sleep(1)
        try:
            found = [
                attached(loop.pid, plant, folder / f"{name}-{number}") for number in range(TRIES)
            ]
        finally:
            loop.kill()
            loop.wait()
            if name == "clock":
                reset_clock()
    best = min(found, key=lambda each: (each.rank == 0, each.rank))
    return {
        "planted": plant.told,
        "ranks": [each.rank for each in found],
        "ranks_without_host": [each.rank_without_host for each in found],
        "sentence": best.sentence,
    }


def run(names: Sequence[str] = tuple(PLANTS)) -> dict[str, object]:
    """Plant each, and tell how often it was named first."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        program = folder / NAME
        subprocess.run(["cc", "-O2", "-o", program, LOOP, "-lpthread"], check=True)
        load = os.getloadavg()[0]
        found = {name: measured(program, name, PLANTS[name], folder) for name in names}

    def often(which: str) -> int:
        return sum(2 * each[which].count(1) > TRIES for each in found.values())

    return {
        "load_average": [load, os.getloadavg()[0]],
        "plants": len(found),
        "named_first": often("ranks"),
        "named_first_without_host": often("ranks_without_host"),
        "of_each": found,
    }


def main() -> None:
    """Print the figures."""
    names = sys.argv[1:] or list(PLANTS)
    if unknown := [each for each in names if each not in PLANTS]:
        raise SystemExit(f"{unknown[0]!r} is not a known plant; choose one of: {', '.join(PLANTS)}")
    print(json.dumps(run(names), indent=1))


if __name__ == "__main__":
    main()
