"""A CPU isolated by a cpuset partition at run time, and back: wake-ups before, within and after it.

Run alone, as root: .venv/bin/python bench/partition.py [SECONDS]

The load runs everywhere it may, before, within and after alike. Where control group v1 has the
cpusets, they are taken from it for that time. A process of its own, the keeper, puts all back at
the end: the load, the partition, and the mount, also if this program is killed.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from latenz.affinity import unified_groups

LOAD = ["stress-ng", "--cpu", "2", "--fork", "1", "--pipe", "1", "--oom-avoid", "--quiet"]
LATENZ = [sys.executable, "-I", "-m", "latenz"]
ENTRY = "host-cpuset-partition"
EXPERIMENT = """name = "partition"
duration = "{seconds} s"

[matrix]
probe = ["fifo", "other"]

[probe.fifo]
engine = "wakeup"
cpus = "{cpu}"

[probe.other]
engine = "wakeup"
cpus = "{cpu}"
policy = "other"
"""
LOOKS = 20
"""So often is looked where the load runs."""
TRIES = 100
Mount = tuple[str, str, str]
"""Where control group v1 has its cpusets, by which options, and their controllers."""


def text(path: Path | str) -> str:
    """Return what stands in a file of the kernel."""
    return Path(path).read_text().strip()


def groups() -> Path:
    """Return where control group v2 is mounted."""
    return Path(unified_groups(text))


def old_cpusets() -> Mount | None:
    """Return the mount of control group v1 that has the cpusets; None if there is none."""
    for line in text("/proc/self/mounts").splitlines():
        _, place, kind, options, *_ = line.split()
        controllers = [each for each in options.split(",") if each in ("cpuset", "cpu", "cpuacct")]
        if kind == "cgroup" and "cpuset" in controllers:
            return place, options, ",".join(controllers)
    return None


def obstacle() -> str | None:
    """Return why it cannot be done here; None if it can."""
    if os.geteuid() != 0:
        return "it takes root"
    if len(os.sched_getaffinity(0)) < 2:
        return "it takes two CPUs"
    if not (groups() / "cgroup.controllers").exists():
        return "control group v2 is not mounted"
    if (Path("/run/systemd/system")).exists():
        return "systemd runs here: latenz tune apply makes the partition by it"
    mount = old_cpusets()
    if mount and any(path.is_dir() for path in Path(mount[0]).iterdir()):
        return f"somebody has groups in {mount[0]}"
    if mount and mount[2] != "cpuset":
        return f"{mount[0]} has other controllers besides"
    if subprocess.run(
        [*LATENZ, "tune", "status"], capture_output=True, text=True
    ).stdout.strip() != ("nothing is applied"):
        return "tunings are applied on this machine"
    return None


def keep() -> None:
    """Wait until whoever started this ends; then end the load, and put all back.

    Standard input has a line of JSON first: the mount; then one for the process group of the load.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    mount, *loads = map(json.loads, sys.stdin.read().splitlines())
    for load in loads:
        try:
            os.killpg(load, signal.SIGKILL)
        except ProcessLookupError:
            continue
    for _ in range(TRIES):  # one that was killed amid its changes holds the lock a moment longer
        done = subprocess.run([*LATENZ, "tune", "revert"], capture_output=True, text=True)
        if done.returncode == 0:
            break
        time.sleep(0.1)
    if mount:
        mount_again(mount)


def mount_again(mount: Mount) -> None:
    """Give the cpusets back to control group v1; groups that are gone keep them for a moment."""
    place, options, _ = mount
    command = ["mount", "-t", "cgroup", "-o", options, "cgroup", place]
    for _ in range(TRIES):
        if os.path.ismount(place) or subprocess.run(command, capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    sys.exit(f"{place} cannot be mounted again: {' '.join(command)}")


def started_keeper(mount: Mount | None) -> "subprocess.Popen[str]":
    """Start the keeper, which outlives this process and its terminal."""
    keeper = subprocess.Popen(
        [sys.executable, __file__, "--keep"],
        stdin=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    tell(keeper, mount)
    return keeper


def tell(keeper: "subprocess.Popen[str]", what: Any) -> None:
    """Tell the keeper what to put back."""
    assert keeper.stdin
    keeper.stdin.write(json.dumps(what) + "\n")
    keeper.stdin.flush()


def take_cpusets(mount: Mount | None) -> None:
    """Let control group v2 have the cpusets; the kernel hands them over a moment later."""
    if mount:
        subprocess.run(["umount", mount[0]], check=True)
    for _ in range(TRIES):
        if "cpuset" in text(groups() / "cgroup.controllers").split():
            return
        time.sleep(0.1)
    sys.exit("control group v2 does not get the cpusets: another mount of them keeps them")


def measured(cpu: int, seconds: int, group: Path | None) -> dict[str, Any]:
    """Measure wake-ups on a CPU, from within a control group; and how often the load is there."""
    with tempfile.TemporaryDirectory() as folder:
        experiment = Path(folder) / "partition.toml"
        experiment.write_text(EXPERIMENT.format(seconds=seconds, cpu=cpu))

        def enter() -> None:
            if group:
                (group / "cgroup.procs").write_text(str(os.getpid()))

        run = subprocess.Popen(
            [*LATENZ, "run", experiment, "-o", f"{folder}/run"],
            preexec_fn=enter,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        seen = []
        for _ in range(LOOKS):
            seen.append(loads_on(cpu))
            time.sleep(2 * seconds / LOOKS)
        _, errors = run.communicate()
        if run.returncode not in (0, 3):
            sys.exit(f"latenz run: {errors.strip()}")
        shown = subprocess.check_output([*LATENZ, "show", f"{folder}/run", "--json"])
    sets = {
        re.split(r"[/ ]", each["name"])[0]: {
            "n": each["n"],
            "median_ns": each["median_ns"],
            "p99_ns": each["quantiles_ns"].get("0.99"),
            "max_ns": each["max_ns"],
            "missed": each["missed_periods"],
        }
        for each in json.loads(shown)["sample_sets"]
    }
    return {"threads_of_the_load_there": max(seen), **sets}


def loads_on(cpu: int) -> int:
    """Return how many threads of the load run there, or want to."""
    found = 0
    for stat in Path("/proc").glob("[0-9]*/task/[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().rpartition(")")
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, *fields = rest.split()
        found += state == "R" and "(stress-ng" in name and int(fields[35]) == cpu
    return found


def kept() -> dict[str, str]:
    """Return what has to be as before at the end."""
    top = groups()
    names = ("cgroup.controllers", "cgroup.subtree_control", "cpuset.cpus.isolated")
    return {
        "mounts": "\n".join(sorted(text("/proc/self/mounts").splitlines())),
        "groups": " ".join(sorted(path.name for path in top.iterdir() if path.is_dir())),
        **{name: text(top / name) for name in names if (top / name).exists()},
        "own CPUs": str(sorted(os.sched_getaffinity(0))),
        "those of process 1": str(sorted(os.sched_getaffinity(1))),
    }


def run(seconds: int = 5) -> dict[str, Any]:
    """Return figures of before, within and after, and whether all was as before at the end."""
    if why := obstacle():
        sys.exit(f"cannot be done here: {why}")
    mount, was = old_cpusets(), kept()
    cpu = max(os.sched_getaffinity(0))
    options = ["--only", ENTRY, "--include", ENTRY, "--yes"]
    found: dict[str, Any] = {"cpu": cpu, "kernel": os.uname().release, "load": " ".join(LOAD)}
    keeper = started_keeper(mount)
    try:
        take_cpusets(mount)
        load = subprocess.Popen(LOAD, start_new_session=True, stderr=subprocess.DEVNULL)
        tell(keeper, load.pid)
        time.sleep(1)
        found["before"] = measured(cpu, seconds, None)
        apply = [*LATENZ, "tune", "apply", "--cpus", str(cpu), *options]
        subprocess.run(apply, check=True, stdout=subprocess.DEVNULL)
        group = groups() / "latenz.slice"
        found["partition"] = text(group / "cpuset.cpus.partition")
        print(f"partition made: {found['partition']}", file=sys.stderr, flush=True)
        found["within"] = measured(cpu, seconds, group)
        subprocess.run([*LATENZ, "tune", "revert"], check=True, stdout=subprocess.DEVNULL)
        found["after"] = measured(cpu, seconds, None)
    finally:
        keeper.communicate()
    found["as before"] = kept() == was
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["--keep"]:
        keep()
    else:
        print(json.dumps(run(*map(int, sys.argv[1:])), indent=1))
