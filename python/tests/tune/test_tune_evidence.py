"""Live evidence: on this machine, with threads of ours that it must see; and on a recorded one.

This machine's last CPU is taken for the isolated one: nothing isolates it, so that there is much to
be seen. The recorded one really isolates its CPU 3: README.md in data/tune.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from collected_trees import DATA

from latenz.tune.check import Check
from latenz.tune.context import Context
from latenz.tune.cpus import parse_list
from latenz.tune.evidence import LAYER, evidence, judged, read_state
from latenz.tune.root import Root

CPU = max(os.sched_getaffinity(0))
LONG_NS = 700_000_000
LIMIT_S = 120
IDS = (
    "live-tasks",
    "live-interrupts",
    "live-timer-interrupts",
    "live-idle-states",
    "live-smi",
    "live-steal",
    "live-context-switches",
)

needs_two_cpus = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="needs a CPU to watch and another one to watch from"
)


def context() -> Context:
    return Context.of(Root("/"), cpus=str(CPU))


def by_id(checks: list[Check]) -> dict[str, Check]:
    return {each.id: each for each in checks}


@contextmanager
def loop(*, fifo: bool = False) -> Iterator[int]:
    """Keep the watched CPU busy; give the number of the process."""
    program = f"import os\nos.sched_setaffinity(0, [{CPU}])\n"
    if fifo:
        program += "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))\n"
    program += "print(flush=True)\nwhile True: pass"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def watched_until(judged_so: Callable[[dict[str, Check]], bool]) -> dict[str, Check]:
    """Watch until it is judged so: others' work may hide it for a while."""
    give_up = time.monotonic() + LIMIT_S
    while True:
        found = by_id(evidence(context(), LONG_NS))
        if judged_so(found) or time.monotonic() > give_up:
            return found


@pytest.fixture
def all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the evidence name all that it saw, however many others are there."""
    monkeypatch.setattr("latenz.tune.evidence._MOST_NAMED", 10_000)


def interrupts_of_cpu() -> dict[str, int]:
    """Return the counts of /proc/interrupts in the watched CPU's column, read our own way."""
    first, *rest = Path("/proc/interrupts").read_text("ascii").splitlines()
    column = first.split().index(f"CPU{CPU}")
    rows = [line.split() for line in rest]
    return {
        row[0].rstrip(":"): int(row[column + 1])
        for row in rows
        if len(row) > column + 1 and row[column + 1].isdecimal()
    }


@needs_two_cpus
@pytest.mark.usefixtures("all_named")
def test_a_foreign_busy_loop_is_named() -> None:
    before = interrupts_of_cpu()
    with loop() as pid:
        found = by_id(evidence(context(), LONG_NS))
    after = interrupts_of_cpu()

    assert tuple(found) == IDS
    assert {each.layer for each in found.values()} == {LAYER}
    tasks = found["live-tasks"]
    assert tasks.state == "wrong"
    assert tasks.found is not None
    assert re.search(rf"\({pid}, TS\) on CPU {CPU}: \d+ us", tasks.found)
    assert "host-no-user-tasks-on-iso" in tasks.reason
    # What it counted is no more than what we counted around it.
    counted = re.findall(r"(\w+) \([^)]*\): (\d+)", found["live-interrupts"].found or "")
    assert all(int(count) <= after[id_] - before.get(id_, 0) for id_, count in counted)


@needs_two_cpus
def test_the_tick_of_a_busy_cpu_is_seen() -> None:
    nohz_full = Root("/").read("/sys/devices/system/cpu/nohz_full") or ""
    has_tick = not re.search(r"\d", nohz_full)  # then a busy CPU has it
    with loop():
        found = watched_until(
            lambda each: not has_tick or each["live-timer-interrupts"].state == "wrong"
        )
    timer = found["live-timer-interrupts"]
    if has_tick:
        assert timer.state == "wrong"
        assert "cmdline-nohz-full" in timer.reason
    assert re.fullmatch(rf"CPU {CPU}: \d+ a second", timer.found or "")


@needs_two_cpus
@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to use SCHED_FIFO")
@pytest.mark.usefixtures("all_named")
def test_real_time_work_is_no_foreign_task() -> None:
    with loop(fifo=True) as pid:
        tasks = by_id(evidence(context(), 500_000_000))["live-tasks"]
    if tasks.state == "ok":
        assert f"({pid}, FF)" in (tasks.found or "")
    else:  # somebody else was there, too
        assert f"({pid}, " not in (tasks.found or "")


@needs_two_cpus
def test_it_runs_elsewhere_meanwhile_and_comes_back() -> None:
    before = os.sched_getaffinity(0)
    meanwhile: list[set[int]] = []
    evidence(
        context(),
        3_600_000_000_000,
        stopped=lambda: len(meanwhile) > 1,
        progress=lambda _: meanwhile.append(os.sched_getaffinity(0)),
    )
    assert meanwhile
    assert all(CPU not in cpus for cpus in meanwhile)
    assert os.sched_getaffinity(0) == before


@needs_two_cpus
def test_what_was_seen_until_it_is_stopped_is_kept() -> None:
    calls = []

    def stopped() -> bool:
        calls.append(time.monotonic_ns())
        return len(calls) > 1

    assert tuple(by_id(evidence(context(), 3_600_000_000_000, stopped=stopped))) == IDS


def test_without_isolated_cpus_nothing_is_claimed() -> None:
    nobody = Context(Root("/"), frozenset(), frozenset({0, 1}), "host")
    found = evidence(nobody, 1)
    assert {each.state for each in found} == {"unknown"}
    assert all("--cpus" in each.reason for each in found)


@needs_two_cpus
def test_steal_and_context_switches_say_what_they_cannot_know() -> None:
    found = by_id(evidence(context(), 100_000_000))
    guest = "hypervisor" in (Root("/").read("/proc/cpuinfo") or "")
    assert (found["live-steal"].state == "not applicable") == (not guest)
    counts = Root("/").read("/proc/schedstat") is not None
    assert (found["live-context-switches"].state == "unknown") == (not counts)
    intel = "GenuineIntel" in (Root("/").read("/proc/cpuinfo") or "")
    if not intel:
        assert found["live-smi"].state == "unknown"
        assert "hwlatdetect" in found["live-smi"].reason


@needs_two_cpus
def test_a_task_that_stopped_before_is_not_named() -> None:
    with loop() as pid:
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)  # until it has stopped
        tasks = by_id(evidence(context(), 300_000_000))["live-tasks"]
        assert f"({pid}, " not in (tasks.found or "")


def watching(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "latenz", "tune", "check", "--cpus", str(CPU), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@needs_two_cpus
def test_the_command_adds_what_it_saw_to_the_checks() -> None:
    with watching("--live", "200ms", "--only", "host-thp", "--json") as process:
        output, errors = process.communicate(timeout=LIMIT_S)
    checks = json.loads(output)["checks"]
    assert [each["id"] for each in checks if each["layer"] == LAYER] == list(IDS)
    assert "host-thp" in [each["id"] for each in checks]
    wrong = any(each["state"] == "wrong" for each in checks)
    assert process.returncode == int(wrong)
    assert errors == ""


@needs_two_cpus
def test_interrupted_the_command_tells_what_it_saw() -> None:
    with watching("--live", "1h", "--only", "host-thp", "--json") as process:
        affinity = f"/proc/{process.pid}/status"
        while not _moved(affinity):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    assert {each["id"] for each in json.loads(output)["checks"]} == {*IDS, "host-thp"}
    assert errors == ""


def _moved(status: str) -> bool:
    """Return whether a process has left the CPU that it watches: from then on it watches."""
    text = Path(status).read_text().partition("Cpus_allowed_list:\t")[2].partition("\n")[0]
    return CPU not in parse_list(text)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give two readings each of a machine that isolates CPU 3, and of one that does not."""
    folder = tmp_path_factory.mktemp("live")
    with tarfile.open(DATA / "live.tar.xz") as archive:
        archive.extractall(folder)
    return folder / "live"


def judged_at(folder: Path) -> dict[str, Check]:
    readings = []
    for name in ("before", "after"):
        root = Root(folder / name)
        seconds, _, hundredths = (root.read("/proc/uptime") or "").split()[0].partition(".")
        at_ns = int(seconds) * 10**9 + int(hundredths) * 10**7
        context = Context.of(root, "3")
        readings.append(replace(read_state(context), at_ns=at_ns))
    before, after = readings
    return by_id(judged(context, before, after, seen={}))


def test_a_cpu_that_is_really_isolated(recorded: Path) -> None:
    found = judged_at(recorded / "tuned")
    states = {id_: each.state for id_, each in found.items()}
    assert states == {
        "live-tasks": "ok",
        "live-interrupts": "ok",
        "live-timer-interrupts": "ok",
        "live-idle-states": "not applicable",
        "live-smi": "unknown",
        "live-steal": "ok",
        "live-context-switches": "ok",
    }
    assert found["live-timer-interrupts"].found == "CPU 3: 0 a second"
    assert re.match(r"sh \(\d+, FF\) on CPU 3: ", found["live-tasks"].found or "")


def test_the_same_kernel_without_isolation(recorded: Path) -> None:
    found = judged_at(recorded / "untuned")
    assert found["live-tasks"].state == "wrong"
    assert re.match(r"sh \(\d+, TS\) on CPU 3: ", found["live-tasks"].found or "")
    assert "migration/3" in found["live-tasks"].reason  # named, and accepted
    assert found["live-timer-interrupts"].state == "wrong"


def test_counts_of_the_record_are_the_kernels(recorded: Path) -> None:
    """What is judged is the difference of the two columns, read our own way."""
    counts = []
    for name in ("before", "after"):
        text = (recorded / f"untuned/{name}/proc/interrupts").read_text()
        (row,) = [line.split() for line in text.splitlines() if line.split()[0] == "LOC:"]
        slices = (recorded / f"untuned/{name}/proc/schedstat").read_text()
        (cpu,) = [line.split() for line in slices.splitlines() if line.startswith("cpu3 ")]
        counts.append((int(row[4]), int(cpu[9])))
    (timers, turns) = (after - before for before, after in zip(*counts, strict=True))
    found = judged_at(recorded / "untuned")
    uptimes = [
        float((recorded / f"untuned/{name}/proc/uptime").read_text().split()[0])
        for name in ("before", "after")
    ]
    rate = int(timers / (uptimes[1] - uptimes[0]))
    assert found["live-timer-interrupts"].found == f"CPU 3: {rate} a second"
    assert found["live-context-switches"].found == f"CPU 3: {turns}"


def test_a_task_that_came_and_went_is_counted(recorded: Path, tmp_path: Path) -> None:
    """More turns on the CPU than all threads had: somebody was there whom nobody saw."""
    folder = tmp_path / "untuned"
    shutil.copytree(recorded / "untuned", folder)
    path = folder / "after/proc/schedstat"
    text = path.read_text()
    (row,) = [line for line in text.splitlines() if line.startswith("cpu3 ")]
    fields = row.split()
    fields[9] = str(int(fields[9]) + 500)
    path.write_text(text.replace(row, " ".join(fields)))
    found = judged_at(folder)["live-context-switches"]
    assert found.state == "wrong"
    assert "tasks that ended or moved on" in found.reason


def test_an_idle_cpu_proves_nothing_about_its_tick(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "tuned"
    shutil.copytree(recorded / "tuned", folder)
    before = (folder / "before/proc/stat").read_text()
    (row,) = [line for line in before.splitlines() if line.startswith("cpu3 ")]
    fields = row.split()
    fields[4] = str(int(fields[4]) + 10_000)  # idle
    after = (folder / "after/proc/stat").read_text()
    (old,) = [line for line in after.splitlines() if line.startswith("cpu3 ")]
    (folder / "after/proc/stat").write_text(after.replace(old, " ".join(fields)))
    found = judged_at(folder)["live-timer-interrupts"]
    assert found.state == "unknown"
    assert "idled" in found.reason
