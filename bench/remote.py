"""Whether targets of `--on` are treated as promised: emulated machines with busybox and dropbear.

`python bench/remote.py begin` tells how long it takes from the command to the first sample;
`cuts` pulls the cable for a minute again and again, and counts what is missing; `kills` kills one
of all who take part at a random moment, and looks for what is left on the target; `power` cuts the
target's power after each system call of `latenz tune apply`, reverts, and compares every byte;
`alike` measures this machine by turns over a link and without one, and tests whether the largest
latencies of each second differ.
Each prints its figures as JSON, and fails if anything is left or missing; how old the newest lost
sample was (200 ms are promised on a quiet machine) is told. Times are those of an emulator.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from latenz.errors import OutOfReach
from latenz.machine import measuring
from latenz.remote import TargetUrl, opened
from latenz.remote.url import SSH_COMMAND
from latenz.store.run import Run

sys.path.insert(0, str(Path(__file__).parents[1] / "python/tests/remote"))
sys.path.insert(0, str(Path(__file__).parents[1] / "python/tests/tune"))
from emulated_targets import OWN, EmulatedTarget, emulated
from remote_targets import after_call
from trees_at_random import apply_all, changes_below, make_tree, revert_all

PERIOD_MS = 10
EXPERIMENT = """name = "remote"
duration = "{duration_s} s"
[probe.cyclic]
engine = "wakeup"
period = "{period_ms} ms"
[[condition]]
name = "it"
probe = "cyclic"
stressor = "{load}"
"""
_HEADER_BYTES = 32  # of a journal
_HERE = Path("/")


class Victim(NamedTuple):
    """Who is killed, and how the run must end."""

    kill: Callable[[EmulatedTarget, "subprocess.Popen[str]"], None]
    goes_on: bool = False


def _there(pattern: str) -> Callable[[EmulatedTarget, "subprocess.Popen[str]"], None]:
    """Return what kills the agent's processes on the target whose words match."""
    command = (
        "for p in /proc/[0-9]*; do readlink $p/exe | grep -q latenz || continue;"
        f" tr '\\0' ' ' <$p/cmdline | grep -Eq '{pattern}' && kill -9 ${{p#/proc/}}; done"
    )

    def kill(target: EmulatedTarget, _: "subprocess.Popen[str]") -> None:
        target.run(command)

    return kill


def _kill_latenz(_: EmulatedTarget, asked: "subprocess.Popen[str]") -> None:
    asked.kill()


def _interrupt(_: EmulatedTarget, asked: "subprocess.Popen[str]") -> None:
    asked.send_signal(signal.SIGINT)


def _kill_ssh(_: EmulatedTarget, asked: "subprocess.Popen[str]") -> None:
    """Kill the ssh clients among what was started."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            marked = f"{MARK}={asked.args[-1]}".encode() in (process / "environ").read_bytes()  # type: ignore[index]
        except OSError:
            continue
        if marked and words[0].endswith(b"ssh"):
            os.kill(int(process.name), signal.SIGKILL)


MARK = "LATENZ_BENCH_MARK"
VICTIMS = {
    "latenz": Victim(_kill_latenz),
    "Ctrl-C": Victim(_interrupt),
    "ssh": Victim(_kill_ssh, goes_on=True),
    "link": Victim(_there("^[^ ]+ link"), goes_on=True),
    "keeper": Victim(_there("^[^ ]+ keeper")),
    "all": Victim(_there(".")),
    "reboot": Victim(lambda target, _: target.cut_power()),
}


@contextmanager
def targets(architecture: str = "arm64", **options: Any) -> Iterator[tuple[EmulatedTarget, Path]]:
    """Start a target; give it with a folder for what is measured."""
    with tempfile.TemporaryDirectory(prefix="latenz-remote-") as name:
        folder = Path(name)
        with emulated(folder / "machine", architecture, **options) as target:  # type: ignore[arg-type]
            os.environ[SSH_COMMAND] = target.ssh
            yield target, folder


def asked(
    target: EmulatedTarget, folder: Path, duration_s: float, load: str = "none"
) -> "subprocess.Popen[str]":
    """Start `latenz run` on the target; its last word is the run's folder."""
    experiment = folder / "experiment.toml"
    experiment.write_text(EXPERIMENT.format(duration_s=duration_s, load=load, period_ms=PERIOD_MS))
    run = folder / f"run-{time.monotonic_ns()}"
    return subprocess.Popen(
        [sys.executable, "-m", "latenz", "run", experiment, "--on", target.url, "-o", run],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: str(run)},
        start_new_session=True,
    )


def first_sample_s(target: EmulatedTarget, folder: Path) -> float:
    """Return how long it takes from the command until the first sample is here."""
    began_s = time.monotonic()
    process = asked(target, folder, 3)
    run = Path(process.args[-1])  # type: ignore[index]
    while not _arrived(run):
        if process.poll() is not None:
            raise SystemExit(f"no sample arrived: {process.communicate()[1]}")
        time.sleep(0.005)
    took_s = time.monotonic() - began_s
    _, errors = process.communicate()
    if process.returncode not in (0, 3):
        raise SystemExit(errors)
    return took_s


def begin(architecture: str = "arm64", times: int = 5) -> dict[str, Any]:
    """Measure how long the first sample takes; the first time is told apart."""
    with targets(architecture) as (target, folder):
        took_s = [round(first_sample_s(target, folder), 2) for _ in range(times)]
    return {"architecture": architecture, "first_sample_s": took_s, "most_s": 5}


def counted(run: Path) -> dict[str, int]:
    """Hold what is here against the probe's own account: each activation sampled or counted."""
    told = json.loads((run / "it/probe.json").read_text())
    found = {each.metadata.name: each for each in Run.open(run).sample_sets}
    sums = {"samples": 0, "missed": 0}
    for thread in told["threads"]:
        sample_set = found[f"it/{thread['folder']}"]
        columns = [batch.to_pydict() for batch in sample_set.batches("t_ns", "missed")]
        due_ns = [t for each in columns for t in each["t_ns"]]
        missed = sum(m for each in columns for m in each["missed"])
        activations = (due_ns[-1] - due_ns[0]) // told["interval_ns"] + 1
        if len(due_ns) != thread["n"] or len(due_ns) + missed != activations:
            raise SystemExit(
                f"{thread['folder']}: {len(due_ns)} samples and {missed} missed of {activations}"
                f" activations; the probe counted {thread['n']} and {thread['missed']}"
            )
        sums["samples"] += len(due_ns)
        sums["missed"] += missed
    return sums


def cuts(times: int = 100, cut_s: float = 60, seed: int = 1) -> dict[str, Any]:
    """Pull the cable so often, after 2 to 10 s each, and see that nothing is missing at the end."""
    chance = random.Random(seed)
    waits_s = [chance.uniform(2, 10) for _ in range(times)]
    duration_s = round(sum(waits_s) + times * (cut_s + 15))
    with targets() as (target, folder):
        process = asked(target, folder, duration_s)
        run = Path(process.args[-1])  # type: ignore[index]
        for count, wait_s in enumerate(waits_s):
            arrived = _arrived(run)
            while _arrived(run) <= arrived:  # it is connected again
                if process.poll() is not None:
                    raise SystemExit(f"ended after {count} cuts: {process.communicate()[1]}")
                time.sleep(0.1)
            time.sleep(wait_s)
            target.cut_link()
            time.sleep(cut_s)
            target.mend_link()
            print(f"cuts: {count + 1} of {times}", file=sys.stderr, flush=True)
        _, errors = process.communicate()
        if process.returncode not in (0, 3):
            raise SystemExit(errors)
        link = json.loads((run / "run.json").read_text())["conditions"][0]["link"]
        return {
            "cuts": link["cuts"],
            "longest_cut_s": link["longest_cut_s"],
            **counted(run),
            "left": sorted(target.left()),
        }


def _arrived(run: Path) -> int:
    """Return how many bytes of samples are here."""
    journals = run.glob("it/cpu*/samples.journal")
    return sum(max(0, path.stat().st_size - _HEADER_BYTES) for path in journals)


def kills(times: int = 200, seed: int = 1) -> dict[str, Any]:
    """Kill so often; see that nothing is left there, and that what was sampled is here."""
    chance = random.Random(seed)
    figures: dict[str, dict[str, Any]] = {name: {"kills": 0} for name in VICTIMS}
    with targets() as (target, folder):
        for count in range(times):
            name = list(VICTIMS)[count % len(VICTIMS)]
            lost_ms = killed_once(target, folder, VICTIMS[name], chance.uniform(0, 8))
            figures[name]["kills"] += 1
            if lost_ms is not None:
                figures[name].setdefault("newest_lost_ms", []).append(round(lost_ms))
            print(f"kills: {count + 1} of {times}: {name}", file=sys.stderr, flush=True)
    return figures


def killed_once(
    target: EmulatedTarget, folder: Path, victim: Victim, wait_s: float
) -> float | None:
    """Kill one after a while; return how much of what was sampled is missing, None if all came."""
    process = asked(target, folder, 6, "spin")
    run = Path(process.args[-1])  # type: ignore[index]
    time.sleep(wait_s)
    up_ms = float(target.run("cat /proc/uptime").stdout.split()[0]) * 1000
    arrived = _arrived(run)
    victim.kill(target, process)
    _, errors = process.communicate(timeout=300)
    if "Traceback" in errors:
        raise SystemExit(errors)
    target.wait()
    deadline_s = time.monotonic() + 150
    while left := target.left():
        if time.monotonic() > deadline_s:
            raise SystemExit(f"is left on the target: {sorted(left)}")
        time.sleep(0.5)
    if not arrived:
        return None
    newest_ms = newest(run) / 1e6
    if victim.goes_on:
        if process.returncode not in (0, 3):
            raise SystemExit(f"it did not go on: {errors}")
        counted(run)
        return None
    return max(0.0, up_ms - newest_ms)


def newest(run: Path) -> int:
    """Return when the last activation that all CPUs have here was due, by the target's clock."""
    return min(
        max(t for batch in each.batches("t_ns") for t in batch.to_pydict()["t_ns"])
        for each in Run.open(run).sample_sets
    )


def power(every: int = 1, first: int = 1) -> dict[str, Any]:
    """Cut the power after each n-th system call that changes the target, and take all back."""
    with tempfile.TemporaryDirectory(prefix="latenz-tree-") as name:
        tree = Path(name) / "root"
        make_tree(tree, random.Random(7))
        for own in OWN:
            (tree / own).mkdir(exist_ok=True)
        changes = changes_below(tree, 1, OWN)[:6]
        with targets(tree=tree) as (target, _):
            before = content(target)
            count, tried = first, 0
            while cut_at(target, changes, count):
                if (after := content(target)) != before:
                    lines = set(after.splitlines()) ^ set(before.splitlines())
                    raise SystemExit(f"after call {count} it differs: {sorted(lines)}")
                print(f"power: cut after call {count}, reverted", file=sys.stderr, flush=True)
                count, tried = count + every, tried + 1
    return {"power_cuts": tried, "calls": count - 1, "differences": 0}


def cut_at(target: EmulatedTarget, changes: list[Any], count: int) -> bool:
    """Cut the power after a system call of applying, then revert; return whether it came to it."""
    url = TargetUrl.parse(target.url)
    cut = False
    try:
        with opened(url) as machine, measuring(machine):
            after_call(machine, count, target.cut_power)
            apply_all(_HERE, changes)
    except OutOfReach:
        cut = True
    target.wait()
    with opened(url) as machine, measuring(machine):
        revert_all(_HERE)
    target.run("sync")
    return cut


def alike(pairs: int = 10, seconds: int = 30, seed: int = 1) -> dict[str, Any]:
    """Measure this machine by turns with and without a link; test each pair, and pairs of alike."""
    from scipy.stats import mannwhitneyu

    chance = random.Random(seed)
    found: dict[str, list[float]] = {"with a link": [], "both without": []}
    with tempfile.TemporaryDirectory(prefix="latenz-remote-") as name:
        folder = Path(name)
        for count in range(pairs):
            for what, over_link in (("with a link", True), ("both without", False)):
                sides = [("--on", "local:") if over_link else (), ()]
                chance.shuffle(sides)
                maxima = [largest_of_each_second(folder, seconds, words) for words in sides]
                found[what].append(round(float(mannwhitneyu(*maxima).pvalue), 3))
            print(f"alike: {count + 1} of {pairs}", file=sys.stderr, flush=True)
    return {
        "seconds": seconds,
        **{f"p_value, {what}": values for what, values in found.items()},
        **{f"above_0.05, {what}": sum(p > 0.05 for p in v) for what, v in found.items()},
    }


def largest_of_each_second(folder: Path, seconds: int, words: tuple[str, ...]) -> list[int]:
    """Measure this machine; return the largest latency of each second and CPU, in ns."""
    experiment = folder / "experiment.toml"
    experiment.write_text(EXPERIMENT.format(duration_s=seconds, load="none", period_ms=1))
    run = folder / f"run-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "latenz", "run", experiment, *words, "-o", run]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr)
    largest: dict[tuple[str, int], int] = {}
    for sample_set in Run.open(run).sample_sets:
        for batch in sample_set.batches("t_ns", "latency_ns"):
            columns = batch.to_pydict()
            for t_ns, latency_ns in zip(columns["t_ns"], columns["latency_ns"], strict=True):
                block = (sample_set.metadata.name, t_ns // 10**9)
                largest[block] = max(largest.get(block, 0), latency_ns)
    return list(largest.values())


def content(target: EmulatedTarget) -> str:
    """Return every path of the target's disk with its kind, mode, owner and content."""
    folders = " ".join(f"/{name}" for name in OWN)
    told = target.run(
        f"find {folders} -exec stat -c '%n %F %a %u %g' {{}} \\; | sort;"
        f" find {folders} -type f | sort | xargs -n 50 sha256sum;"
        f" find {folders} -type l | sort | while read l; do echo $l $(readlink $l); done"
    )
    if told.returncode != 0 or not told.stdout:
        raise SystemExit(told.stderr)
    return told.stdout


def run() -> dict[str, Any]:
    """Try each a little."""
    return {
        "begin": begin(),
        "cuts": cuts(2, 10),
        "kills": kills(len(VICTIMS)),
        "power": power(every=25),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("alike", "begin", "cuts", "kills", "power"))
    parser.add_argument("--times", type=int)
    parser.add_argument("--every", type=int, default=1, help="power: after each n-th call")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--architecture", default="arm64", choices=("arm64", "armhf"))
    given = parser.parse_args()
    told = {
        "alike": lambda: alike(given.times or 10, seed=given.seed),
        "begin": lambda: begin(given.architecture, given.times or 5),
        "cuts": lambda: cuts(given.times or 100, seed=given.seed),
        "kills": lambda: kills(given.times or 200, seed=given.seed),
        "power": lambda: power(given.every),
    }[given.what]()
    print(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
