"""Real runs of real engines under real loads, also interrupted and killed."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from latenz.cli import main
from latenz.experiment.ordering import interleave
from latenz.provenance import in_words, moment, origins
from latenz.store.run import Run

EXPERIMENT = """\
name = "short"
duration = "1 s"
seed = 11

[stressor.calm]
kind = "none"
settle = "50 ms"

[stressor.busy]
kind = "stress-ng-cpu"
instances = 2
settle = "300 ms"

[[deadline]]
name = "generous"
limit = "10 s"
allowed = "100/s"
"""
IDLE = '[[condition]]\nname = "idle"\nstressor = "calm"\nprobe = "cyclictest"\n'
LOADED = IDLE.replace("idle", "loaded").replace("calm", "busy")


STARTED: list[subprocess.Popen] = []


@pytest.fixture
def place(tmp_path):
    """Everything a run leaves, its programs' temporary folders too, lies below one folder."""
    (tmp_path / "temporary").mkdir()
    yield tmp_path
    while STARTED:  # a test that fails leaves no load of an hour beside all others
        STARTED.pop().kill()


def start(place, text, *options, **changed):
    (place / "short.toml").write_text(text)
    settings = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "text": True,
        "env": {**os.environ, "TMPDIR": str(place / "temporary")},
    }
    command = [sys.executable, "-m", "latenz", "run", "short.toml", "-o", "run", *options]
    STARTED.append(subprocess.Popen(command, cwd=place, **{**settings, **changed}))
    return STARTED[-1]


def run(place, text, *options):
    process = start(place, text, *options)
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def load_processes(place):
    """Return the processes of loads that this test's run started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = (folder / "cwd").resolve().is_relative_to(place / "temporary")
            if is_ours and (folder / "comm").read_text().startswith("stress-ng"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def measuring_processes(place):
    """Return the processes, and their keepers, that record into this test's run."""
    run = str(place / "run").encode()
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if run + b"/" in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def parent_of(process):
    return int(re.search(r"PPid:\s+(\d+)", Path(f"/proc/{process}/status").read_text())[1])


def wait_until(condition, seconds=180.0):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def measuring(place, condition):
    """Whether the engine of a condition has begun to print samples."""
    output = place / "run" / condition / "cyclictest.txt"
    return output.exists() and output.stat().st_size > 8192


def drained(terminal):
    """Read what was written to a terminal, so that its writer goes on."""
    while select.select([terminal], [], [], 0)[0]:
        os.read(terminal, 4096)


def test_idle_and_loaded(place):
    code, out, err = run(place, EXPERIMENT + IDLE + LOADED, "--json")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["status"] == "complete"
    assert document["seed"] == 11
    assert {each["state"] for each in document["conditions"]} == {"measured"}
    cpus = sorted(os.sched_getaffinity(0))
    names = {f"{condition}/cpu{cpu}" for condition in ("idle", "loaded") for cpu in cpus}
    assert {each["name"] for each in document["sample_sets"]} == names
    assert {each["deadlines"][0]["verdict"] for each in document["sample_sets"]} == {"meets"}

    info = Run.open(place / "run").info
    assert [each["condition"] for each in info.conditions] == [
        name for name, _ in interleave(["idle", "loaded"], 1, 11)
    ]
    loaded = next(each for each in info.conditions if each["condition"] == "loaded")
    assert loaded["load"]["stressors"]["cpu"]["bogo-ops"] > 0
    assert loaded["load"]["command"][0] == "stress-ng"
    # Each cycle of each thread took a timer interrupt, nearly always one of its own.
    local_timer = {
        int(cpu): sum(n for name, n in counts.items() if name.startswith(("LOC", "arch_timer")))
        for cpu, counts in loaded["interrupts"].items()
    }
    samples = {each["name"]: each["n"] for each in document["sample_sets"]}
    assert not any(local_timer.values()) or all(
        local_timer[cpu] > samples[f"loaded/cpu{cpu}"] / 2 for cpu in cpus
    )
    assert info.environment["host"]["kernel"]["release"] == os.uname().release
    assert os.uname().nodename not in json.dumps(info.environment).split('"')
    assert not load_processes(place)
    assert not list((place / "temporary").iterdir())


def test_samples_are_those_that_cyclictest_printed(place):
    code, out, _ = run(place, EXPERIMENT + IDLE, "--json")
    assert code == 0
    printed = {}
    for line in (place / "run/idle/cyclictest.txt").read_text().splitlines():
        if match := re.fullmatch(r"\s*(\d+):\s*(\d+):\s*(\d+)", line):
            printed.setdefault(int(match[1]), []).append(int(match[3]))
    summary = json.loads((place / "run/idle/cyclictest.json").read_text())["thread"]
    cpus = sorted(os.sched_getaffinity(0))
    sets = {each["name"]: each for each in json.loads(out)["sample_sets"]}
    for thread, cpu in enumerate(cpus):
        ours = sets[f"idle/cpu{cpu}"]
        expected = sorted(printed[thread])
        if summary[str(thread)]["max"] > expected[-1]:
            expected.append(summary[str(thread)]["max"])
        assert ours["n"] == len(expected)
        assert ours["max_ns"] == expected[-1] == summary[str(thread)]["max"]
        assert ours["quantiles_ns"]["0.5"] == expected[(len(expected) + 1) // 2 - 1]
        assert ours["n"] > 0


@pytest.mark.parametrize("cell", ["1 us", "1 ns"])
def test_histogram_holds_every_cycle(place, cell):
    probe = f'[probe.bounded]\nengine = "cyclictest"\nrecord = "histogram"\ncell = "{cell}"\n'
    text = EXPERIMENT + probe + IDLE.replace('"cyclictest"', '"bounded"')
    code, out, _ = run(place, text, "--json")
    assert code == 0
    threads = json.loads((place / "run/idle/cyclictest.json").read_text())["thread"].values()
    sets = json.loads(out)["sample_sets"]
    unit = 1000 if cell == "1 us" else 1
    assert [each["n"] for each in sets] == [each["cycles"] for each in threads]
    assert [each["max_ns"] for each in sets] == [each["max"] * unit for each in threads]
    in_cells = [sum(each["histogram"].values()) for each in threads]
    assert [each["n"] - each["beyond_range"] for each in sets] == in_cells


def test_what_was_measured_by_the_run_is_not_said_to_be_imported(place):
    """Their samples come through the importer of cyclictest's output, but when is known."""
    code, _, err = run(place, EXPERIMENT + IDLE)
    assert code == 0, err
    [origin] = origins(Run.open(place / "run").sample_sets, Run.open(place / "run").info)
    told = in_words(origin)
    assert origin.source == "this run"
    assert moment(Run.open(place / "run").info.created) == origin.measured
    assert "not known" not in told
    assert "imported" not in told
    assert "does not tell" not in told


def test_oslat(place):
    text = EXPERIMENT + IDLE.replace('"cyclictest"', '"oslat"')
    code, out, err = run(place, text, "--json")
    assert code == 0, err
    sets = json.loads(out)["sample_sets"]
    assert [each["name"] for each in sets] == [
        f"idle/cpu{cpu}" for cpu in sorted(os.sched_getaffinity(0))
    ]
    assert all(each["n"] > 1000 for each in sets)


def test_repetitions_are_interleaved_and_named(place):
    text = EXPERIMENT.replace("seed = 11", "seed = 3\nrepetitions = 2")
    again = IDLE.replace('"idle"', '"again"')
    code, out, err = run(place, text + IDLE + again, "--duration", "300 ms", "--json")
    assert (code, err) == (0, "")
    conditions = json.loads(out)["conditions"]
    assert [(each["condition"], each["repetition"]) for each in conditions] == interleave(
        ["idle", "again"], 2, 3
    )
    folders = {path.name for path in (place / "run").iterdir() if path.is_dir()}
    assert folders == {"idle-r1", "idle-r2", "again-r1", "again-r2"}


@pytest.mark.parametrize(
    ("limit", "allowed", "code", "verdict"),
    [("1 ns", "0", 1, "violates"), ("10 s", "1/h", 3, "not shown")],
)
def test_exit_code_is_the_verdict(place, limit, allowed, code, verdict):
    text = EXPERIMENT.replace('"10 s"\nall', f'"{limit}"\nall').replace("100/s", allowed)
    found, out, _ = run(place, text + IDLE, "--duration", "300 ms")
    assert found == code
    assert verdict in out
    assert "run folder" in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupting_keeps_every_sample(place, number):
    process = start(place, EXPERIMENT + LOADED + IDLE, "--duration", "1 h")
    first = interleave(["loaded", "idle"], 1, 11)[0][0]
    assert wait_until(lambda: measuring(place, first))
    process.send_signal(number)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "Traceback" not in err
    opened = Run.open(place / "run")
    assert opened.info.status == "interrupted"
    assert [each["state"] for each in opened.info.conditions] == ["interrupted"]
    assert [each.metadata.condition for each in opened.sample_sets] == [first] * len(
        os.sched_getaffinity(0)
    )
    assert all(sum(b.num_rows for b in each.batches()) > 50 for each in opened.sample_sets)
    assert not load_processes(place)
    assert not list((place / "temporary").iterdir())


def test_a_lost_terminal_keeps_every_sample(place):
    terminal, inner = pty.openpty()
    process = start(
        place,
        EXPERIMENT + LOADED,
        "--duration",
        "1 h",
        stdin=inner,
        stdout=inner,
        stderr=inner,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(inner)
    assert wait_until(lambda: measuring(place, "loaded") or drained(terminal))
    os.close(terminal)
    assert process.wait(timeout=600) == 130
    opened = Run.open(place / "run")
    assert opened.info.status == "interrupted"
    assert all(sum(b.num_rows for b in each.batches()) > 50 for each in opened.sample_sets)
    assert not load_processes(place)


def test_nohup_measures_on(place):
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    process = start(place, EXPERIMENT + IDLE, **ignoring)
    assert wait_until(lambda: measuring(place, "idle"))
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=600)
    assert process.returncode == 0
    assert Run.open(place / "run").info.status == "complete"


def test_sigkill_leaves_no_load_behind_and_a_readable_run(place):
    process = start(place, EXPERIMENT + LOADED, "--duration", "1 h")
    assert wait_until(lambda: measuring(place, "loaded"))
    assert wait_until(lambda: load_processes(place))
    process.kill()
    process.communicate()
    assert wait_until(lambda: not load_processes(place))
    assert wait_until(lambda: not list((place / "temporary").iterdir()))
    assert Run.open(place / "run").info.status == "running"
    # What the tool itself had measured is there as well.
    assert wait_until(lambda: not measuring_processes(place))
    shown = subprocess.run(
        [sys.executable, "-m", "latenz", "show", place / "run/loaded/cyclictest.json", "--json"],
        capture_output=True,
        text=True,
    )
    assert all(each["n"] > 50 for each in json.loads(shown.stdout)["sample_sets"])


def test_a_load_that_dies_is_told(place):
    process = start(place, EXPERIMENT + LOADED, "--duration", "8 s")
    assert wait_until(lambda: measuring(place, "loaded"))
    loads = load_processes(place)
    [first] = [each for each in loads if parent_of(each) not in loads]
    os.kill(first, signal.SIGKILL)
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert "the load stress-ng-cpu ended" in out
    opened = Run.open(place / "run")
    assert opened.info.conditions[0]["load"]["died_after_ns"] > 0
    assert all("the load" in each.metadata.notes[-1] for each in opened.sample_sets)
    assert not load_processes(place)


def test_what_cannot_be_measured_is_listed_and_the_rest_goes_on(place, refused):
    absent = IDLE.replace('"idle"', '"cobalt"').replace('"cyclictest"', '"xenomai-latency"')
    code, out, err = run(place, EXPERIMENT + absent + IDLE, "--duration", "300 ms")
    assert code == 3, "one condition has shown nothing"
    assert re.fullmatch(r"latenz: idle begins, [0-9.]+ m?s planned\n", err), "a line a measurement"
    assert "cobalt: not measured: this kernel has no Xenomai" in out
    assert f"idle/cpu{min(os.sched_getaffinity(0))}" in out

    code, out, err = refused(EXPERIMENT + absent + IDLE, "--only", "cobalt")
    assert (code, out) == (2, "")
    assert err.startswith("latenz: cobalt: cannot be measured here: this kernel has no Xenomai")
    assert err.count("\n") == 1


def test_a_terminal_shows_condition_and_largest_latency(place):
    (place / "short.toml").write_text(EXPERIMENT + IDLE)
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "latenz", "run", place / "short.toml", "-o", place / "run"]
    process = subprocess.Popen(
        [*command, "--duration", "1 h"],
        env={**os.environ, "COLUMNS": "120", "TERM": "xterm"},
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    wanted = rb"idle: measuring(?s:.*)max [\d.]+ (\xc2\xb5s|ms)"
    asked = False
    try:
        with contextlib.suppress(OSError):  # EIO, once the other side is closed
            while part := os.read(ours, 4096):
                shown += part
                if not asked and re.search(wanted, shown):
                    process.send_signal(signal.SIGINT)
                    asked = True
        assert process.wait(timeout=600) == 130
    finally:
        process.kill()
        os.close(ours)
    assert asked


@pytest.fixture
def refused(place, monkeypatch, capsys):
    """Runs `latenz run` without measuring, in this process; gives code and both outputs."""

    def call(text, *options):
        (place / "short.toml").write_text(text)
        command = ["latenz", "run", place / "short.toml", "-o", place / "run", *options]
        monkeypatch.setattr(sys, "argv", list(map(str, command)))
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return ended.value.code, out, err

    return call


def test_list_and_only(place, refused):
    text = EXPERIMENT + IDLE + LOADED
    assert refused(text, "--list") == (0, "idle\nloaded\n", "")
    assert refused(text, "--list", "--only", "lo*") == (0, "loaded\n", "")
    assert refused(text, "--list", "--only", "lo*", "--only", "idle") == (0, "idle\nloaded\n", "")
    assert not (place / "run").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--only", "idel"], "--only: no condition is named 'idel'; did you mean 'idle'?"),
        (["--only", "idle", "--only", "lodaed"], "--only: no condition is named 'lodaed'"),
        (["--duration", "soon"], "--duration: 'soon' is not a duration"),
        (["--duration", "0"], "--duration: '0' is not positive"),
        (["--bench", "moon"], "--bench: 'moon' is not a bench; choose one of: host"),
    ],
)
def test_wrong_options_are_one_line(refused, options, says):
    code, out, err = refused(EXPERIMENT + IDLE, *options)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_an_old_run_is_never_overwritten(place, refused):
    (place / "run").mkdir()
    (place / "run" / "precious").write_text("data")
    code, _, err = refused(EXPERIMENT + IDLE)
    assert code == 2
    assert "exists and is not empty" in err
    assert (place / "run" / "precious").read_text() == "data"


PROBE = '[probe.own]\nengine = "wakeup"\nperiod = "1 ms"\n'
OWN = PROBE + IDLE.replace('"cyclictest"', '"own"')


def check_activations(place, sets, planned):
    """Fail unless all activations were counted, and none after the end but those of a late one."""
    account = json.loads((place / "run/idle/probe.json").read_text())
    for each, thread in zip(sets, account["threads"], strict=True):
        assert (each["n"], each["missed_periods"]) == (thread["n"], thread["missed"])
        late = sum(worst["missed"] + 1 for worst in thread["worst"] if worst["missed"])
        assert planned <= each["n"] + each["missed_periods"] <= planned + late


def test_own_probe_counts_every_activation(place):
    code, out, err = run(place, EXPERIMENT + OWN, "--json")
    assert (code, err) == (0, "")
    check_activations(place, json.loads(out)["sample_sets"], 1000)
    opened = Run.open(place / "run")
    account = json.loads((place / "run/idle/probe.json").read_text())
    for sample_set, thread in zip(opened.sample_sets, account["threads"], strict=True):
        metadata = sample_set.metadata
        assert metadata.cpu == thread["cpu"]
        assert metadata.worst[0].latency_ns == thread["max_ns"]
        assert metadata.worst[0].context
        assert metadata.tool_version == account["program_version"]
        assert metadata.period_ns == 1_000_000


def test_own_probe_in_bounded_memory(place):
    text = EXPERIMENT + OWN.replace("period", 'record = "histogram"\nperiod')
    _, out, _ = run(place, text, "--json")
    check_activations(place, json.loads(out)["sample_sets"], 1000)
    assert [each.form for each in Run.open(place / "run").sample_sets] == ["histogram"] * len(
        os.sched_getaffinity(0)
    )


def recorded(place):
    journals = list((place / "run").glob("idle/cpu*/samples.journal"))
    return journals and all(each.stat().st_size > 8192 for each in journals)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_own_probe_interrupted_or_orphaned(place, number):
    process = start(place, EXPERIMENT + OWN, "--duration", "1 h")
    assert wait_until(lambda: recorded(place))
    process.send_signal(number)
    process.communicate(timeout=600)
    assert wait_until(lambda: not probes(place))
    status = {"interrupted": 130, "running": -signal.SIGKILL}
    opened = Run.open(place / "run")
    assert process.returncode == status[opened.info.status]
    assert all(sum(b.num_rows for b in each.batches()) > 200 for each in opened.sample_sets)
    assert len(opened.sample_sets) == len(os.sched_getaffinity(0))


def probes(place):
    """Return the probes that record into this test's run."""
    found = []
    for process in measuring_processes(place):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")[0].endswith(b"-wakeup"):
                found.append(process)
    return found


def has_missed(place, least):
    """Whether each thread's account, renewed every second, has so many missed activations."""
    threads = json.loads((place / "run/idle/probe.json").read_text())["threads"]
    return all(each["missed"] >= least for each in threads)


def test_a_stall_is_not_one_sample(place):
    judged = (EXPERIMENT + OWN).replace('"10 s"\nallowed = "100/s"', '"3 ms"\nallowed = "0"')
    process = start(place, judged, "--duration", "1 h", "--json")
    assert wait_until(lambda: recorded(place))
    [probe] = probes(place)
    os.kill(probe, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(probe, signal.SIGCONT)
    assert wait_until(lambda: has_missed(place, 490))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 130
    for each in json.loads(out)["sample_sets"]:
        assert each["missed_periods"] >= 490
        [verdict] = each["deadlines"]
        assert verdict["verdict"] == "violates"
        assert 480 <= verdict["exceeding"] <= each["missed_periods"] + 1
