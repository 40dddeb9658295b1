"""Running programs measured as they are, held against their own stamps."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from latenz.engines.attach import missing_rights
from latenz.store.run import Run

from .conftest import MS, Rhythm

pytestmark = pytest.mark.skipif(missing_rights() is not None, reason="watching needs root")
Start = Callable[..., Rhythm]
EXACT = {
    "absolute": "hrtimer_wakeup",
    "realtime": "hrtimer_wakeup",
    "timerfd": "timerfd_tmrproc",
    "epoll": "timerfd_tmrproc",
    "signal": "posix_timer_fn",
}
LIMIT_S = 120


def attach(*arguments: object, code: int | None = None) -> dict[str, Any]:
    done = latenz("attach", *arguments, "--json")
    assert code is None or done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def latenz(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "latenz", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)


def columns(run: Path, name: str) -> dict[str, npt.NDArray[np.int64]]:
    (found,) = (each for each in Run.open(run).sample_sets if each.metadata.name == name)
    batches = list(found.batches())
    return {
        column: np.concatenate([batch.column(column).to_numpy() for batch in batches])
        for column in found.columns
    }


@pytest.mark.parametrize("kind", EXACT)
def test_cycles_are_those_that_the_program_stamped(
    kind: str, start_rhythm: Start, tmp_path: Path
) -> None:
    program = start_rhythm(kind, work_ns=20_000)
    told = attach(program.pid, "--duration", "1500 ms", "-o", tmp_path / "run")
    stamps = program.stamps()
    (thread,) = told["threads"]
    assert thread["period_ns"] == MS
    assert EXACT[kind] in thread["due_from"]
    found = columns(tmp_path / "run", "rhythm/rhythm")
    shares = ("timer_late_ns", "ready_ns", "execution_ns", "blocked_ns")
    assert (found["response_ns"] == sum(found[name] for name in shares)).all()
    assert min(int(found[name].min()) for name in shares) >= 0
    assert (found["latency_ns"] >= found["timer_late_ns"]).all()
    assert (found["latency_ns"] <= found["response_ns"]).all()

    # the kernel's clock for the time of day is read a little apart from the program's
    apart_ns = 20_000 if kind == "realtime" else 0
    nearest = np.abs(found["t_ns"][:, None] - stamps[None, :, 0]).argmin(axis=1)
    off_ns = np.abs(stamps[nearest, 0] - found["t_ns"])
    same = off_ns <= apart_ns
    # after an overrun, one read of a timer stands for several expirations
    assert same.mean() > 0.95
    _, woke, done = stamps[nearest[same]].T
    ran = found["t_ns"][same] + found["latency_ns"][same]
    slept = found["t_ns"][same] + found["response_ns"][same]
    assert (ran <= woke + apart_ns).all()
    alone = found["missed"][same] == 0  # else the stamps may be of the one that came after
    assert (done <= slept + apart_ns)[alone].all()
    assert (found["execution_ns"][same] >= 0.9 * (done - woke)).mean() > 0.9

    grid = (int(found["t_ns"].max()) - int(found["t_ns"].min())) // MS + 1
    assert thread["n"] == len(found["t_ns"])
    assert abs(thread["n"] + thread["missed"] + thread["partial"] - grid) <= 1 + thread["partial"]


def test_a_hand_over_is_measured_from_the_waking(start_rhythm: Start, tmp_path: Path) -> None:
    program = start_rhythm("futex")
    told = attach(program.pid, "--duration", "1500 ms", "-o", tmp_path / "run")
    program.stamps()
    threads = {each["comm"]: each for each in told["threads"]}
    assert set(threads) == {"rhythm", "taker"}
    assert threads["taker"]["due_from"] == (
        f"its waking by rhythm ({threads['rhythm']['tid']}), asleep in futex"
    )
    assert abs(threads["taker"]["period_ns"] - MS) < MS // 10
    names = {each["name"] for each in told["sample_sets"]}
    assert names == {"rhythm/rhythm", "rhythm/taker"}


@pytest.mark.skipif(shutil.which("cyclictest") is None, reason="cyclictest is not installed")
def test_a_real_program_is_found_without_options_and_agrees(tmp_path: Path) -> None:
    """What cyclictest measures ends later than the switch to it, and it measures for longer."""
    told_by_itself = tmp_path / "cyclictest.json"
    cpu = str(max(os.sched_getaffinity(0)))
    options = ["-q", "-m", "-t1", "-p80", "-i1500", "-a", cpu, f"--json={told_by_itself}"]
    program = subprocess.Popen(["cyclictest", *options], stdout=subprocess.DEVNULL)
    try:
        told = attach(program.pid, "--duration", "1500 ms", "-o", tmp_path / "run")
    finally:
        program.send_signal(signal.SIGINT)
        program.wait(LIMIT_S)
    (thread,) = told["threads"]
    assert thread["period_ns"] == 1_500_000
    assert thread["scheduler"] == "SCHED_FIFO 80"
    assert thread["due_from"].startswith("the expiry of its own timer (hrtimer_wakeup)")
    (own,) = json.loads(told_by_itself.read_text())["thread"].values()
    found = columns(tmp_path / "run", f"cyclictest/{thread['folder']}")
    assert found["latency_ns"].max() // 1000 <= own["max"]
    states = {each["id"]: each["state"] for each in told["findings"]}
    assert states["app-memory-locked"] == states["app-real-time-policy"] == "ok"


def test_a_deadline_thread_has_the_period_that_it_asked_for(
    start_rhythm: Start, tmp_path: Path
) -> None:
    program = start_rhythm("deadline")
    time.sleep(0.2)
    if program.process.poll() is not None:
        pytest.skip("this machine gives no SCHED_DEADLINE")
    told = attach(program.pid, "--duration", "1500 ms", "-o", tmp_path / "run")
    program.stamps()
    (thread,) = told["threads"]
    assert thread["period_ns"] == MS
    assert thread["due_from"] == "the period of its SCHED_DEADLINE reservation"
    assert thread["scheduler"] == "SCHED_DEADLINE"


def test_a_drifting_loop_is_told(start_rhythm: Start, tmp_path: Path) -> None:
    program = start_rhythm("relative", work_ns=100_000)
    told = attach(program.pid, "--duration", "1500 ms", "-o", tmp_path / "run")
    program.stamps()
    states = {each["id"]: each for each in told["findings"]}
    assert states["app-absolute-sleep"]["state"] == "wrong"
    assert "relative" in states["app-absolute-sleep"]["found"]
    assert told["threads"][0]["period_ns"] > MS + 100_000
    assert "no grid" in " ".join(told["sample_sets"][0]["notes"])


def test_findings_are_those_of_the_program(start_rhythm: Start, tmp_path: Path) -> None:
    locked = start_rhythm("absolute", RHYTHM_LOCKED="1")
    told = attach(locked.pid, "--duration", "500 ms", "-o", tmp_path / "locked")
    states = {each["id"]: each["state"] for each in told["findings"]}
    assert states["app-memory-locked"] == "ok"
    assert states["app-real-time-policy"] == "ok"
    assert states["app-clock"] == "ok"
    assert states["app-absolute-sleep"] == "ok"
    assert states["app-output-in-loop"] == "ok"
    locked.stamps()

    of_day = start_rhythm("realtime", RHYTHM_LOUD="1", RHYTHM_ORDINARY="1")
    told = attach(of_day.pid, "--duration", "500 ms", "-o", tmp_path / "of-day")
    found = {each["id"]: each for each in told["findings"]}
    assert found["app-memory-locked"]["state"] == "wrong"
    assert found["app-real-time-policy"]["found"] == "SCHED_OTHER"
    assert found["app-clock"]["found"] == "CLOCK_REALTIME"
    assert found["app-output-in-loop"]["state"] == "wrong"
    assert found["app-output-in-loop"]["found"].startswith("write ")
    assert all(each["layer"] == "application" for each in told["findings"])
    assert all(each["remedy"] for each in told["findings"] if each["state"] == "wrong")


def test_a_run_is_as_every_other(start_rhythm: Start, tmp_path: Path) -> None:
    program = start_rhythm("absolute")
    run = tmp_path / "run"
    limits = ("--deadline", "never=10s", "--deadline", "1ns@0")
    told = attach(program.pid, "--duration", "400 ms", *limits, "-o", run, code=1)
    verdicts = {each["name"]: each["verdict"] for each in told["sample_sets"][0]["deadlines"]}
    assert verdicts == {"never": "not shown", "1ns": "violates"}

    shown = json.loads(latenz("show", run, "--json").stdout)
    assert shown["sample_sets"][0]["n"] == told["sample_sets"][0]["n"]
    sql = "SELECT count(*), min(response_ns - latency_ns) FROM samples WHERE execution_ns > 0"
    assert latenz("query", sql, run).returncode == 0
    assert latenz("compare", run, run).returncode == 0
    assert latenz("report", run, "-o", tmp_path / "report.html").returncode == 0
    page = (tmp_path / "report.html").read_text()
    assert "app-cpu-mask" in page
    assert "due from" in page
    assert latenz("export", run, "--to", "csv", "-o", tmp_path / "all.csv").returncode == 0
    head, _ = (tmp_path / "all.csv").read_text().splitlines()[:2]
    assert {"t_ns", "latency_ns", "response_ns", "execution_ns"} <= set(head.split(","))
    assert latenz("import", tmp_path / "all.csv", "-o", tmp_path / "again").returncode == 0
    assert (columns(tmp_path / "again", "rhythm/rhythm")["blocked_ns"] >= 0).all()


def test_ctrl_c_keeps_every_cycle(start_rhythm: Start, tmp_path: Path) -> None:
    program = start_rhythm("absolute")
    command = [sys.executable, "-m", "latenz", "attach", str(program.pid), "--duration", "1h"]
    process = subprocess.Popen(
        [*command, "-o", str(tmp_path / "run"), "--json"], stdout=subprocess.PIPE
    )
    journal = tmp_path / "run/rhythm/rhythm/samples.journal"
    for _ in range(LIMIT_S * 10):
        if journal.exists() and journal.stat().st_size > 64_000:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130
    told = json.loads(output)
    assert told["status"] == "interrupted"
    assert told["sample_sets"][0]["n"] >= 500


def test_a_run_is_readable_after_a_kill(start_rhythm: Start, tmp_path: Path) -> None:
    program = start_rhythm("absolute")
    command = [sys.executable, "-m", "latenz", "attach", str(program.pid), "--duration", "1h"]
    process = subprocess.Popen([*command, "-o", str(tmp_path / "run")], stdout=subprocess.DEVNULL)
    run = tmp_path / "run/run.json"
    for _ in range(LIMIT_S * 10):
        if run.exists() and "rhythm/rhythm" in run.read_text():
            break
        time.sleep(0.1)
    time.sleep(0.5)
    process.kill()
    process.wait()
    found = columns(tmp_path / "run", "rhythm/rhythm")
    assert len(found["t_ns"]) > 10


def test_an_experiment_starts_and_ends_the_program(rhythm_program: Path, tmp_path: Path) -> None:
    stamps = tmp_path / "stamps"
    (tmp_path / "mine.toml").write_text(
        f"""name = "mine"
duration = "500 ms"
repetitions = 2

[probe.loop]
engine = "attach"
command = ["{rhythm_program}", "absolute", "1000000", "60000", "{stamps}"]
thread = "rhy*"

[matrix]
probe = ["loop"]
""",
        encoding="utf-8",
    )
    run = ("run", tmp_path / "mine.toml", "-o", tmp_path / "run", "--json")
    done = latenz(*run, "--start-programs")
    assert done.returncode == 0, done.stderr
    names = [each["name"] for each in json.loads(done.stdout)["sample_sets"]]
    assert names == ["idle-r1/rhythm", "idle-r2/rhythm"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("999999999",), "there is no process or thread 999999999"),
        (("no-such-program",), "no process or thread is called 'no-such-program'"),
        ((), "names nothing to measure"),
        (("1", "--unit", "x"), "names two things to measure"),
        (("--unit", "no-such-unit"), "no running unit no-such-unit.service"),
        (("--unit", "../../etc"), "is not a unit"),
        (("",), "is empty"),
        (("1", "--duration", "-1s"), "is not positive"),
        (("1", "--deadline", "50"), "has no unit"),
        (("1", "--deadline", "1us", "--deadline", "1us"), "two deadlines are named"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(
    arguments: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    done = latenz("attach", *arguments, "-o", tmp_path / "run")
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_what_is_not_periodic_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    sleeper = subprocess.Popen(["sleep", "600"])
    done = latenz("attach", sleeper.pid, "-o", tmp_path / "run")
    sleeper.kill()
    sleeper.wait()
    assert done.returncode == 2
    assert "none of 1 threads wakes up periodically" in done.stderr
    assert "sleep (" in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_name_of_several_processes_is_refused() -> None:
    both = [subprocess.Popen(["sleep", "20"]) for _ in range(2)]
    done = latenz("attach", "sleep")
    for each in both:
        each.kill()
        each.wait()
    assert done.returncode == 2
    assert "processes are called 'sleep'" in done.stderr
    assert str(both[0].pid) in done.stderr


def test_who_is_not_root_is_told_the_right_that_is_missing(tmp_path: Path) -> None:
    nobody = 65534

    def become_nobody() -> None:
        os.setgroups([])
        os.setgid(nobody)
        os.setuid(nobody)

    environment = {**os.environ, "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "latenz", "attach", "1"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        cwd="/",
        env=environment,
        preexec_fn=become_nobody,
    )
    assert done.returncode == 2, done.stderr
    assert "CAP_BPF and CAP_PERFMON are missing; run as root" in done.stderr


@pytest.mark.parametrize(
    ("plant", "cause", "words"),
    [
        ("pipe", "blocked", "blocked in write to a pipe that slow-reader ("),
        ("inversion", "priority-inversion", "which low-holder ("),
        ("faults", "page-fault", "16384 page faults"),
        ("hog", "preempted", "while high-hog ("),
        ("pause", "own-pause", "asleep in its own clock_nanosleep"),
        ("work", "own-execution", "more on the CPU than its usual"),
    ],
)
def test_what_was_planted_is_named_first(
    plant: str, cause: str, words: str, start_rhythm: Start, tmp_path: Path
) -> None:
    cpu = str(max(os.sched_getaffinity(0)))
    program = start_rhythm("absolute", RHYTHM_PLANT=plant, RHYTHM_CPU=cpu)
    assert_named(program, cause, words, tmp_path)


def assert_named(program: Rhythm, cause: str, words: str, folder: Path) -> None:
    named: list[str] = []
    for attempt in range(4):  # what else goes on in a busy machine may be later still
        if cause in named[:5]:
            break
        run = folder / f"run{attempt}"
        told = attach(program.pid, "--thread", "rhythm", "--duration", "2s", "-o", run)
        named = [each["cause"] for each in told["causes"]]
    assert cause in named[:5]
    sentence = next(each["sentence"] for each in told["causes"] if each["cause"] == cause)
    assert words in sentence


@pytest.mark.long
@pytest.mark.parametrize(
    ("plant", "cause", "words"),
    [
        ("softirq", "interrupt", "interrupts and softirqs were handled on its CPU"),
        ("fork", "fork", "of them to copy memory shared since forker ("),
        ("migration", "migration", "while it moved to another one"),
        ("disk", "disk-output", "blocked in fsync of "),
        ("convoy", "blocked", "which queued ("),
        ("throttle", "throttled", "real-time throttling"),
    ],
)
def test_what_goes_on_beside_is_named_first(
    plant: str, cause: str, words: str, start_rhythm: Start, tmp_path: Path
) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if plant == "migration" and not {0, 1} <= set(cpus):
        pytest.skip("it moves between CPUs 0 and 1")
    place = {} if plant == "migration" else {"RHYTHM_CPU": str(cpus[-1])}
    program = start_rhythm(
        "absolute", RHYTHM_PLANT=plant, RHYTHM_LOG=str(tmp_path / "log"), **place
    )
    assert_named(program, cause, words, tmp_path)


@pytest.fixture
def control_group() -> Iterator[Callable[[str, dict[str, int]], Path]]:
    """Make a control group of the first version; give the file that takes its threads."""
    made: list[Path] = []

    def make(controller: str, limits: dict[str, int]) -> Path:
        group = Path(f"/sys/fs/cgroup/{controller}/latenz-test-{os.getpid()}")
        try:
            group.mkdir()
        except OSError:
            pytest.skip(f"no control groups of the first version for {controller} can be made")
        made.append(group)
        for name, value in limits.items():
            (group / name).write_text(str(value))
        return group / "tasks"

    yield make
    for each in made:
        for _ in range(100):
            with suppress(OSError):
                each.rmdir()
                break
            for pid in (each / "tasks").read_text().split():
                with suppress(OSError):
                    os.kill(int(pid), signal.SIGKILL)
            time.sleep(0.1)


@pytest.mark.long
def test_a_quota_that_is_used_up_is_named_first(
    control_group: Callable[..., Path], start_rhythm: Start, tmp_path: Path
) -> None:
    limits = {"cpu.cfs_period_us": 100_000, "cpu.cfs_quota_us": 3_000}
    tasks = control_group("cpu", limits)
    program = start_rhythm(
        "absolute", work_ns=100_000, RHYTHM_ORDINARY="1", RHYTHM_GROUP=str(tasks)
    )
    assert_named(program, "cgroup-quota", "its control group had used up its time", tmp_path)


@pytest.mark.long
def test_memory_that_is_short_is_named_first(
    control_group: Callable[..., Path], start_rhythm: Start, tmp_path: Path
) -> None:
    tasks = control_group("memory", {"memory.limit_in_bytes": 24 << 20})
    file = tmp_path / "mapped"
    with file.open("wb") as mapped:
        mapped.write(bytes(24 << 20))
        os.fsync(mapped.fileno())
    program = start_rhythm(
        "absolute",
        RHYTHM_PLANT="reclaim",
        RHYTHM_GROUP=str(tasks),
        RHYTHM_LOG=str(file),
        RHYTHM_CPU=str(max(os.sched_getaffinity(0))),
    )
    assert_named(program, "reclaim", "looking for free memory itself", tmp_path)


@pytest.mark.long
def test_a_clock_that_is_set_is_named_first(start_rhythm: Start, tmp_path: Path) -> None:
    program = start_rhythm("tai", RHYTHM_PLANT="clock")
    try:
        assert_named(program, "clock-step", "the clock of its timer was set", tmp_path)
    finally:
        program.process.kill()
        program.process.wait()
        subprocess.run(
            [sys.executable, "-c", RESET_TAI], check=True, capture_output=True, timeout=LIMIT_S
        )


RESET_TAI = """
import ctypes, struct
timex = bytearray(struct.pack("=I4xqqqi4xq", 0x80, 0, 0, 0, 0, 0) + bytes(208))
ctypes.CDLL(None).adjtimex((ctypes.c_char * len(timex)).from_buffer(timex))
"""
