"""Runs the real wake-up probe, briefly; most of it needs root, as measuring does."""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
    return subprocess.run(command(folder, *options), capture_output=True, text=True, timeout=120)


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
    assert process.wait(timeout=60) == 130
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
    assert process.wait(timeout=60) == 128 + number
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
    assert process.wait(timeout=60) == 130
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
    _, message = process.communicate(timeout=60)
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
    assert (told["policy"], told["threads"][0]["pinned"]) == ("deadline", False)
    assert told["threads"][0]["n"] == 200


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
    arguments = command(open_folder / "run", "--count=50", f"--policy={policy}")
    arguments[0] = str(open_folder / "latenz-wakeup")
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]
    done = subprocess.run([*drop, *arguments], capture_output=True, text=True, timeout=120)
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
        ("--policy=rr", "--policy"),
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
