"""Runs the real wake-up probe, briefly; most of it needs root, as measuring does."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from latenz.affinity import enterable_cpus
from latenz.idle import requested_us
from latenz.measuring.wakeup_account import WakeupAccount
from latenz.programs import probe_program
from latenz.statistics import summarize
from latenz.store.journal import Journal, Records, open_journal
from latenz.store.run import _RecordedHistogram

MS = 1_000_000
SECOND = 1000 * MS
CPU = min(os.sched_getaffinity(0))

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="real-time scheduling needs root")


def command(folder: Path, *options: str) -> list[str]:
    chosen = {name.split("=")[0] for name in options}
    defaults = [f"--output={folder}", f"--cpus={CPU}", f"--warm-up={10 * MS}"]
    kept = [each for each in defaults if each.split("=")[0] not in chosen]
    return [str(probe_program("latenz-wakeup")), *kept, *options]


def measure(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(folder, *options), capture_output=True, text=True, timeout=600)


def account(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "probe.json").read_bytes())
    return found


def records(folder: Path) -> Records:
    journal = Journal(folder / "samples.journal")
    frames = list(journal.frames())
    assert journal.damaged_bytes == 0
    return np.concatenate(frames) if frames else np.empty(0, dtype=[("t_ns", "i8")])


def wait_until(condition: Callable[[], object]) -> None:
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


def recorded(folder: Path) -> list[int]:
    """Return when the last sample of each frame that is on disk so far was due."""
    journal = folder / f"cpu{CPU}" / "samples.journal"
    if not journal.exists() or journal.stat().st_size <= 32:
        return []
    return [int(frame["t_ns"][-1]) for frame in Journal(journal).frames()]


def histogram(folder: Path) -> _RecordedHistogram | None:
    """Return what is on disk so far."""
    path = folder / f"cpu{CPU}" / "histogram.json"
    return _RecordedHistogram.model_validate_json(path.read_bytes()) if path.exists() else None


def missed_of(folder: Path) -> int:
    """Count by brute force the due times that are absent between the first and the last."""
    due_ns = set(records(folder)["t_ns"].tolist())
    period_ns = Journal(folder / "samples.journal").period_ns
    return sum(due not in due_ns for due in range(min(due_ns), max(due_ns), period_ns))


def measure_from(shell: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Measure from a place in which not all can be had."""
    arguments = [*shell.split(), *command(folder, *options)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=600)


@needs_root
@pytest.mark.parametrize("clock", ["monotonic", "realtime"])
def test_every_sample_is_kept_and_accounted_for(tmp_path: Path, clock: str) -> None:
    done = measure(tmp_path, "--count=300", "--cpus=" + f"{CPU},{CPU}", f"--clock={clock}")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    told = account(tmp_path)
    assert (told["status"], told["clock"], told["policy"]) == ("complete", clock, "fifo")
    for thread, folder in zip(told["threads"], (f"cpu{CPU}", f"cpu{CPU}-2"), strict=True):
        kept = records(tmp_path / folder)
        assert len(kept) == thread["n"] == thread["kept"] == 300
        assert thread["lost"] == 0
        assert thread["missed"] == missed_of(tmp_path / folder)
        assert thread["min_ns"] == kept["latency_ns"].min() > 0
        assert thread["max_ns"] == kept["latency_ns"].max()
        assert not np.any(np.diff(kept["t_ns"]) % MS)


@needs_root
def test_the_worst_samples_are_the_worst_and_have_context(tmp_path: Path) -> None:
    assert measure(tmp_path, "--count=1000", "--worst=7").returncode == 0
    told = account(tmp_path)
    worst = told["threads"][0]["worst"]
    kept = records(tmp_path / f"cpu{CPU}")
    assert [each["latency_ns"] for each in worst] == sorted(kept["latency_ns"])[:-8:-1]
    by_due = dict(zip(kept["t_ns"].tolist(), kept["latency_ns"].tolist(), strict=True))
    for each in worst:
        assert by_due[each["t_ns"]] == each["latency_ns"]
        context = each["context"]
        assert context["cpu"] == CPU
        assert context["window_ns"] > 0
        if told["context"] == "exact":
            assert context["exact_ns"] >= each["latency_ns"]
            assert ":" in context["ran_before"]
    if told["context"] == "exact":
        # Away from the thread and back to it. Not of all: none happens if it is due again before
        # it can sleep, and a virtual machine's kernel was seen not to report one of 170.
        assert max(each["context"]["context_switches"] for each in worst) >= 2


@needs_root
def test_context_without_kernel_counters_names_the_interrupts_of_a_window(tmp_path: Path) -> None:
    assert measure(tmp_path, "--count=500", "--context=window").returncode == 0
    told = account(tmp_path)
    assert told["context"] == "window"
    assert "ran_before" not in told["threads"][0]["worst"][0]["context"]
    assert told["threads"][0]["worst"][0]["context"]["window_interrupts"]


@needs_root
def test_a_stall_counts_every_missed_activation(tmp_path: Path) -> None:
    began = time.monotonic()
    process = subprocess.Popen(command(tmp_path))
    wait_until(lambda: recorded(tmp_path))
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    process.send_signal(signal.SIGCONT)
    wait_until(lambda: account(tmp_path)["threads"][0]["missed"] >= 480)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=600) == 130
    lasted_ns = int((time.monotonic() - began) * SECOND)
    thread = account(tmp_path)["threads"][0]
    assert thread["missed"] == missed_of(tmp_path / f"cpu{CPU}")
    longest = thread["worst"][0]
    assert longest["missed"] == longest["latency_ns"] // MS
    assert 480 <= longest["missed"] <= lasted_ns // MS
    summary = summarize(open_journal(tmp_path / f"cpu{CPU}" / "samples.journal"))
    assert summary.missed_periods == thread["missed"]


@needs_root
def test_killed_at_random_moments_it_keeps_what_it_records_every_200_ms(tmp_path: Path) -> None:
    seconds = random.Random(1998)
    for attempt in range(6):
        folder = tmp_path / str(attempt)
        process = subprocess.Popen(command(folder, f"--interval={MS // 2}"))
        wait_until(lambda: len(recorded(folder)) >= 4)  # noqa: B023 - called at once
        time.sleep(seconds.uniform(0, 0.5))
        before = recorded(folder)
        process.kill()
        process.wait()
        after = recorded(folder)
        assert after[: len(before)] == before
        # Whoever writes may be held up, but not each time.
        assert min(np.diff(after)) < 200 * MS
        assert account(folder)["status"] == "running"


@needs_root
def test_a_histogram_holds_what_the_samples_would(tmp_path: Path) -> None:
    done = measure(tmp_path, "--keep=histogram", f"--duration={2 * SECOND}")
    assert done.returncode == 0
    folder = tmp_path / f"cpu{CPU}"
    thread = account(tmp_path)["threads"][0]
    told = _RecordedHistogram.model_validate_json((folder / "histogram.json").read_bytes())
    assert told.n == sum(count for _, _, count in told.cells) == thread["n"]
    # A late one at the end shows in the one after it what was skipped between them.
    late = sum(each["missed"] + 1 for each in thread["worst"] if each["missed"])
    assert 2000 <= told.n + told.missed <= 2000 + late
    assert (told.min_ns, told.max_ns, told.missed) == (
        thread["min_ns"],
        thread["max_ns"],
        thread["missed"],
    )
    lowest = sum(low * count for low, _, count in told.cells)
    highest = sum((low + width - 1) * count for low, width, count in told.cells)
    assert lowest <= told.sum_ns <= highest
    peaks = np.concatenate(list(Journal(folder / "peaks.journal").frames()))
    assert peaks["latency_ns"].max() == told.max_ns
    assert told.max_t_ns in peaks["t_ns"]
    assert len(np.unique(peaks["t_ns"] // SECOND)) == len(peaks) >= 2
    assert not (folder / "samples.journal").exists()


@needs_root
def test_a_histogram_survives_a_kill(tmp_path: Path) -> None:
    process = subprocess.Popen(command(tmp_path, "--keep=histogram"))
    wait_until(lambda: (told := histogram(tmp_path)) and told.n + told.missed > 900)
    process.kill()
    process.wait()
    told = histogram(tmp_path)
    assert told
    assert told.n + told.missed > 900


@needs_root
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_at_once_with_every_sample(tmp_path: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(command(tmp_path))
    wait_until(lambda: recorded(tmp_path))
    process.send_signal(number)
    assert process.wait(timeout=600) == 128 + number
    told = account(tmp_path)
    assert told["status"] == "interrupted"
    kept = records(tmp_path / f"cpu{CPU}")
    assert len(kept) == told["threads"][0]["n"]


@needs_root
def test_a_signal_ends_a_thread_that_sleeps_for_an_hour(tmp_path: Path) -> None:
    process = subprocess.Popen(command(tmp_path, f"--interval={3600 * SECOND}"))
    wait_until((tmp_path / "probe.json").exists)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=600) == 130
    assert account(tmp_path)["threads"][0]["max_ns"] is None


@needs_root
def test_progress_lines_are_json(tmp_path: Path) -> None:
    total_ns = 3600 * SECOND
    options = command(tmp_path, f"--duration={total_ns}", "--progress")
    with subprocess.Popen(options, stderr=subprocess.PIPE) as process:
        assert process.stderr
        lines: list[dict[str, int]] = []
        while len(lines) < 3 or not lines[-1]["max_ns"]:
            lines.append(json.loads(process.stderr.readline()))
        process.send_signal(signal.SIGINT)
    assert {line["total_ns"] for line in lines} == {total_ns}
    assert [line["n"] for line in lines] == sorted(line["n"] for line in lines)
    assert lines[-1]["max_ns"] > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)]
    if subprocess.run(mounting, capture_output=True).returncode != 0:
        pytest.skip("this container may not mount a small disk")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@needs_root
@pytest.mark.parametrize("keep", ["samples", "histogram"])
def test_a_full_disk_ends_it_with_all_before_readable(small_disk: Path, keep: str) -> None:
    options = (f"--interval={MS // 20}", f"--duration={20 * SECOND}", f"--keep={keep}")
    process = subprocess.Popen(command(small_disk / "run", *options), stderr=subprocess.PIPE)
    run = small_disk / "run"
    wait_until(lambda: recorded(run) or ((told := histogram(run)) and told.n))
    with (small_disk / "filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)) == 4096:
                pass
        except OSError:
            pass
    _, message = process.communicate(timeout=600)
    assert process.returncode == 4
    assert b"No space left on device" in message
    told = account(small_disk / "run")
    assert told["status"] == "disk full"
    kept = told["threads"][0]["kept"]
    assert 0 < kept <= told["threads"][0]["n"]
    if keep == "samples":
        assert len(records(small_disk / "run" / f"cpu{CPU}")) == kept
    else:
        text = (small_disk / "run" / f"cpu{CPU}" / "histogram.json").read_bytes()
        assert 0 < _RecordedHistogram.model_validate_json(text).n <= kept


@pytest.fixture
def trace_instance() -> Iterator[Path]:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    mounted = [Path(place) for _, place, kind, *_ in mounts if kind == "tracefs"]
    own = Path("/sys/kernel/tracing")
    if not mounted:
        mounting = ["mount", "-t", "tracefs", "tracefs", str(own)]
        if subprocess.run(mounting, capture_output=True).returncode != 0:
            pytest.skip("no tracefs here")
    instance = (mounted or [own])[0] / "instances" / f"latenz-test-{os.getpid()}"
    instance.mkdir()
    yield instance
    instance.rmdir()
    if not mounted:
        subprocess.run(["umount", str(own)], check=True)


@needs_root
def test_the_threshold_stops_the_trace_and_marks_the_place(
    tmp_path: Path, trace_instance: Path
) -> None:
    (trace_instance / "tracing_on").write_text("1")
    done = measure(tmp_path, "--break-above=0", f"--trace-instance={trace_instance.name}")
    assert done.returncode == 1
    assert (trace_instance / "tracing_on").read_text().strip() == "0"
    told = account(tmp_path)
    assert told["status"] == "threshold"
    first_ns = told["threads"][0]["max_ns"]
    assert f"CPU {CPU} woke {first_ns} ns late" in (trace_instance / "trace").read_text()
    assert records(tmp_path / f"cpu{CPU}")["latency_ns"].tolist() == [first_ns]


@needs_root
def test_a_missing_trace_instance_is_told_before_anything_is_written(tmp_path: Path) -> None:
    done = measure(tmp_path / "run", "--break-above=0", "--trace-instance=absent")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "tracefs" in done.stderr or "instances/absent does not exist" in done.stderr
    assert not (tmp_path / "run").exists()


@needs_root
def test_deadline_policy_runs_without_a_cpu_of_its_own(tmp_path: Path) -> None:
    done = measure(tmp_path, "--policy=deadline", "--count=200")
    if done.returncode == 2:
        assert done.stderr.startswith("latenz-wakeup: --policy deadline: ")
        pytest.skip(done.stderr)
    told = account(tmp_path)
    thread = told["threads"][0]
    assert (told["policy"], thread["pinned"], thread["cpu"]) == ("deadline", False, None)
    assert thread["folder"] == "thread0"
    assert sum(thread["ran_on"].values()) == thread["n"] == 200
    assert {str(each["context"]["cpu"]) for each in thread["worst"]} <= set(thread["ran_on"])
    assert Journal(tmp_path / "thread0" / "samples.journal").cpu is None


@needs_root
def test_deadline_policy_runs_from_a_shell_that_is_bound_to_a_cpu(tmp_path: Path) -> None:
    done = measure_from(f"taskset -c {CPU}", tmp_path, "--policy=deadline", "--count=20")
    if "have no time left" in done.stderr:
        pytest.skip(done.stderr)
    assert (done.returncode, done.stderr) == (0, "")


@needs_root
@pytest.mark.parametrize(("policy", "number"), [("rr", 2), ("batch", 3), ("idle", 5), ("fifo", 1)])
def test_threads_have_the_policy_that_is_asked_for(
    tmp_path: Path, policy: str, number: int
) -> None:
    process = subprocess.Popen(command(tmp_path, f"--policy={policy}"))
    wait_until(lambda: recorded(tmp_path))
    policies = [
        os.sched_getscheduler(int(task.name))
        for task in Path(f"/proc/{process.pid}/task").iterdir()
    ]
    process.send_signal(signal.SIGINT)
    process.wait(timeout=600)
    assert number in policies
    assert account(tmp_path)["priority"] == (80 if policy in ("fifo", "rr") else None)


needs_two_cpus = pytest.mark.skipif(
    len(enterable_cpus()) < 2, reason="there is no other CPU that could be left out"
)


@needs_root
@needs_two_cpus
def test_cpus_outside_of_the_inherited_mask_are_measured(tmp_path: Path) -> None:
    other = max(enterable_cpus())
    for name, options in (("named", [f"--cpus={other}"]), ("all", ["--cpus=0,1"])):
        done = measure_from(f"taskset -c {CPU}", tmp_path / name, "--count=20", *options)
        assert (done.returncode, done.stderr) == (0, "")
        threads = account(tmp_path / name)["threads"]
        assert threads[-1]["ran_on"] == {str(other): 20}
    program = str(probe_program("latenz-wakeup"))
    by_default = ["taskset", "-c", str(CPU), program, f"--output={tmp_path / 'd'}", "--count=5"]
    assert subprocess.run(by_default, timeout=600).returncode == 0
    assert {each["cpu"] for each in account(tmp_path / "d")["threads"]} == enterable_cpus()


@needs_root
@needs_two_cpus
def test_a_cpu_that_a_cpuset_forbids_is_told(tmp_path: Path, small_cpuset: Path) -> None:
    other = max(enterable_cpus())
    arguments = command(tmp_path / "run", f"--cpus={other}", "--count=5")
    inside = ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(small_cpuset), *arguments]
    done = subprocess.run(inside, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert f"CPU {other} cannot be entered" in done.stderr
    assert f"choose of {CPU}" in done.stderr


@needs_root
@needs_two_cpus
def test_a_thread_that_is_moved_off_its_cpu_is_told(tmp_path: Path) -> None:
    process = subprocess.Popen(command(tmp_path))
    wait_until(lambda: recorded(tmp_path))
    other = max(enterable_cpus() - {CPU})
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        os.sched_setaffinity(int(task.name), {other})
    wait_until(lambda: str(other) in account(tmp_path)["threads"][0]["ran_on"])
    process.send_signal(signal.SIGINT)
    process.wait(timeout=600)
    thread = account(tmp_path)["threads"][0]
    assert thread["cpu"] == CPU
    assert set(thread["ran_on"]) == {str(CPU), str(other)}
    assert sum(thread["ran_on"].values()) == thread["n"]
    told = WakeupAccount.of(tmp_path).metadata(f"cpu{CPU}")
    assert told["ran_on"] == {int(cpu): n for cpu, n in thread["ran_on"].items()}
    assert any(f"moved off CPU {CPU}" in note for note in told["notes"])


def latenz_json(*arguments: object) -> dict[str, Any]:
    words = [sys.executable, "-m", "latenz", *map(str, arguments), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1, 3), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@needs_root
@needs_two_cpus
def test_what_is_shown_of_a_moved_thread_says_so(tmp_path: Path) -> None:
    process = subprocess.Popen(command(tmp_path / "moved"))
    wait_until(lambda: recorded(tmp_path / "moved"))
    other = max(enterable_cpus() - {CPU})
    moving = ["taskset", "--all-tasks", "-p", "-c", str(other), str(process.pid)]
    subprocess.run(moving, check=True, capture_output=True)
    wait_until(lambda: str(other) in account(tmp_path / "moved")["threads"][0]["ran_on"])
    process.send_signal(signal.SIGINT)
    process.wait(timeout=600)
    measure(tmp_path / "stayed", "--count=50")
    ran_on = account(tmp_path / "moved")["threads"][0]["ran_on"]
    moved, samples = ran_on[str(other)], sum(ran_on.values())
    told = (
        f"{moved:,} of {samples:,} samples were taken on other processors than CPU {CPU}, where"
        " others had moved the thread, so this is not about that CPU alone."
    )
    places = tmp_path / "moved", tmp_path / "stayed"
    for place, expected in zip(places, (moved, 0), strict=True):
        [shown] = latenz_json("show", place, "--deadline", "1 s@0.5")["sample_sets"]
        assert shown["elsewhere"] == expected
        assert shown["deadlines"][0]["sentence"].endswith(told) == bool(expected)
        assert any(f"moved off CPU {CPU}" in note for note in shown["notes"]) == bool(expected)
    [pair] = latenz_json("compare", *places)["pairs"]
    assert f"A: cpu{CPU}: {told}" in pair["notes"]
    assert not any(note.startswith("B: ") for note in pair["notes"])
    page = tmp_path / "report.html"
    words = [sys.executable, "-m", "latenz", "report", *map(str, places), "-o", str(page)]
    reported = subprocess.run([*words, "--deadline", "1 s@0.5"], capture_output=True, timeout=600)
    assert reported.returncode in (0, 3)  # both together are too few samples on some runs
    text = page.read_text(encoding="utf-8")
    assert text.count(told) == 1
    assert f'data-key="elsewhere" data-count="{moved}"' in text


@needs_root
@pytest.mark.parametrize("threads", [1, 3])
def test_a_duration_ends_however_late_activations_are(tmp_path: Path, threads: int) -> None:
    wanted = 200 * MS // 10_000
    cpus = ",".join([str(CPU)] * threads)
    done = measure(tmp_path, f"--cpus={cpus}", "--interval=10000", f"--duration={200 * MS}")
    assert done.returncode == 0
    for thread, folder in zip(
        account(tmp_path)["threads"],
        sorted(path for path in tmp_path.iterdir() if path.is_dir()),
        strict=True,
    ):
        kept = records(folder)
        first_ns = kept["t_ns"][0]
        # At most one is due after the end: that which tells what was missed before it.
        assert sum(kept["t_ns"] >= first_ns + 200 * MS) <= 1
        assert thread["n"] + thread["missed"] >= wanted


@needs_root
def test_a_step_of_the_time_of_day_is_told(tmp_path: Path) -> None:
    process = subprocess.Popen(command(tmp_path))
    wait_until(lambda: recorded(tmp_path))
    step_s = 0.004
    try:
        time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME) + step_s)
    except PermissionError:
        process.kill()
        process.wait()
        pytest.skip("this container may not set the clock")
    try:
        wait_until(lambda: account(tmp_path)["clock_steps"] == 1)
    finally:
        time.clock_settime(time.CLOCK_REALTIME, time.clock_gettime(time.CLOCK_REALTIME) - step_s)
        process.send_signal(signal.SIGINT)
        process.wait(timeout=600)
    told = WakeupAccount.of(tmp_path)
    assert told.suspended_ns == 0
    assert any("the time of day was set" in note for note in told.clock_notes())


@needs_root
def test_idle_states_are_left_alone_unless_asked_for(tmp_path: Path) -> None:
    for option, told in (([], ("off", None)), (["--dma-latency=20000"], ("held", 20_000))):
        folder = tmp_path / str(len(option))
        assert measure(folder, "--count=5", *option).returncode == 0
        found = account(folder)
        assert (found["dma_latency"], found["dma_latency_ns"]) == told


@needs_root
def test_what_is_held_is_what_the_kernel_goes_by(tmp_path: Path) -> None:
    process = subprocess.Popen(command(tmp_path, "--dma-latency=7000"))
    wait_until(lambda: recorded(tmp_path))
    held_us = requested_us()
    process.send_signal(signal.SIGINT)
    process.wait(timeout=600)
    assert held_us is not None
    assert held_us <= 7


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that an unprivileged user may write in; pytest's own are for its user only."""
    folder = Path(tempfile.mkdtemp(prefix="latenz-test-"))
    shutil.copy(probe_program("latenz-wakeup"), folder)
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@needs_root
@pytest.mark.parametrize("policy", ["fifo", "deadline", "other"])
def test_without_privilege_it_refuses_or_says_what_it_lacks(open_folder: Path, policy: str) -> None:
    arguments = command(open_folder / "run", "--count=50", f"--policy={policy}", "--dma-latency=0")
    arguments[0] = str(open_folder / "latenz-wakeup")
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    done = subprocess.run([*drop, *arguments], capture_output=True, text=True, timeout=600)
    if policy == "other":
        assert done.returncode == 0, done.stderr
        told = account(open_folder / "run")
        assert (told["policy"], told["priority"]) == ("other", None)
        assert told["context"] == "window"
        assert told["dma_latency"] in ("denied", "absent")
        return
    assert done.returncode == 2
    assert done.stderr.splitlines() == [done.stderr.strip()]
    assert "not permitted; run as root" in done.stderr
    assert not (open_folder / "run").exists()


def system_calls_filtered(arguments: list[str]) -> list[str]:
    """Return a command under a seccomp filter that refuses sched_setscheduler."""
    number = {"x86_64": 144, "aarch64": 119}[os.uname().machine]
    script = f"""
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, {number}), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
program = b"".join(struct.pack("HBBI", *each) for each in code)
held = ctypes.create_string_buffer(program)
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(held)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, filter, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
    return [sys.executable, "-c", script, *arguments]


def _refusals(empty_group: Path | None) -> dict[str, tuple[list[str], str]]:
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    return {
        "a user": (nobody, "run as root"),
        "a user with a limit": (["prlimit", "--rtprio=50", *nobody], "rtprio is 50"),
        "a container": (
            ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice"],
            "CAP_SYS_NICE",
        ),
        "a user namespace": (["unshare", "--user", "--map-root-user"], "user namespace"),
        "a control group": (
            ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(empty_group)],
            "RT_GROUP_SCHED",
        ),
        "a filter": ([], "seccomp"),
    }


@needs_root
@pytest.mark.parametrize("why", list(_refusals(None)))
def test_a_refusal_tells_its_own_cause_in_both_languages(
    open_folder: Path, empty_group: Path | None, why: str
) -> None:
    if why == "a control group" and empty_group is None:
        pytest.skip("this kernel has no RT_GROUP_SCHED, or its groups are not to be had")
    shell, told = _refusals(empty_group)[why]
    arguments = command(open_folder / "run", "--count=5")
    arguments[0] = str(open_folder / "latenz-wakeup")
    filtered = system_calls_filtered if why == "a filter" else list
    done = subprocess.run(
        [*shell, *filtered(arguments)], capture_output=True, text=True, timeout=600
    )
    if done.stderr.startswith("prlimit: "):
        pytest.skip("this container may not raise limits")
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert len(done.stderr.splitlines()) == 1
    if "setpriv" in shell and "--reuid=65534" in shell:
        return  # that user may not read the checkout
    script = (
        "import os; from latenz.obstacle import forbidden_priority; "
        "print(forbidden_priority(os.SCHED_FIFO, 80))"
    )
    python = filtered([sys.executable, "-c", script])
    answer = subprocess.run([*shell, *python], capture_output=True, text=True, timeout=600)
    assert told in answer.stdout, answer.stderr


@pytest.fixture
def empty_group() -> Iterator[Path | None]:
    """A control group without real-time time; None where there is none to be had."""
    top = Path("/sys/fs/cgroup/cpu")
    group = top / f"latenz-test-{os.getpid()}"
    if not (top / "cpu.rt_runtime_us").exists():
        yield None
        return
    try:
        group.mkdir()
    except OSError:
        yield None
        return
    yield group / "cgroup.procs"
    group.rmdir()


@needs_root
def test_a_recording_is_never_overwritten(tmp_path: Path) -> None:
    assert measure(tmp_path, "--count=5").returncode == 0
    before = (tmp_path / "probe.json").read_bytes()
    done = measure(tmp_path, "--count=5")
    assert done.returncode == 2
    assert done.stderr.endswith("holds a recording already; name another folder\n")
    assert (tmp_path / "probe.json").read_bytes() == before


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("--interval=1ms", "--interval"),
        ("--cpus=9999", "--cpus"),
        ("--cpus=", "--cpus"),
        ("--policy=round", "--policy"),
        ("--unknown", "--unknown"),
        ("--output=/proc/nowhere", "/proc/nowhere"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_2(tmp_path: Path, option: str, place: str) -> None:
    options = {"--policy": "--policy=other", option.split("=")[0]: option}
    done = measure(tmp_path / "run", "--count=1", *options.values())
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("latenz-wakeup: ")
    assert place in done.stderr


def test_help_lists_every_exit_code(tmp_path: Path) -> None:
    done = measure(tmp_path, "--help")
    assert done.returncode == 0
    assert "Exit code: 0 complete" in done.stdout
    assert measure(tmp_path, "--version").stdout.startswith("latenz-wakeup ")
