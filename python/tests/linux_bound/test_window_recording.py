"""Recording for a bound beside a measurement: with this machine's own tracer, read by a peer."""

import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from traced_kernel import Kernel

from latenz.commands.run import _with_kinds
from latenz.linux_bound.evidence import observations_of
from latenz.traces import ring
from latenz.traces.offers import BOUND_EVENTS, WINDOW_EVENTS, missing_for_bound, open_terms
from latenz.traces.opening import open_trace
from latenz.traces.window_recording import WINDOWS_TRACE, WindowRecording, _kept

_REFUSED = ring.obstacle()
needs_tracer = pytest.mark.skipif(_REFUSED is not None, reason=str(_REFUSED))
TRACEFS = ring.find_tracefs() or Path("/sys/kernel/tracing")
EXPERIMENT = """
name = "traced"
duration = "700 ms"

[probe.wakeup]
engine = "wakeup"

[stressor.none]
kind = "none"

[matrix]
stressor = ["none"]
probe = ["wakeup"]
"""
LIMIT_S = 240


def latenz(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "latenz", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)


def settings_of_the_tracer() -> dict[str, str]:
    files = ("tracing_on", "current_tracer", "trace_clock", "set_event", "tracing_cpumask")
    return {name: (TRACEFS / name).read_text() for name in files}


def peer_counts(path: Path) -> Counter[str]:
    """Count the events of a trace by name, as trace-cmd reads it."""
    printed = subprocess.run(
        ["trace-cmd", "report", "-R", str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
    ).stdout
    rows = (line.partition("] ")[2].split() for line in printed.splitlines())
    return Counter(row[1].rstrip(":") for row in rows if len(row) > 1)


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (["--trace", "quick"], ["--trace=causes", "quick"]),
        (["quick", "--trace"], ["quick", "--trace=causes"]),
        (["quick", "--trace", "--only", "idle"], ["quick", "--trace=causes", "--only", "idle"]),
        (["--trace", "windows", "quick"], ["--trace=windows", "quick"]),
        (["quick", "--trace=windows"], ["quick", "--trace=windows"]),
        (["quick", "--", "--trace"], ["quick", "--", "--trace"]),
        (["quick", "--only", "windows"], ["quick", "--only", "windows"]),
    ],
)
def test_trace_stands_alone_or_before_what_it_is_for(words, made):
    assert _with_kinds(words) == made


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("windows")
    (folder / "traced.toml").write_text(EXPERIMENT)
    before = settings_of_the_tracer()
    done = latenz(
        "run", folder / "traced.toml", "--trace", "windows", "-o", folder / "run", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert settings_of_the_tracer() == before
    [condition] = json.loads(done.stdout)["conditions"]
    return folder / "run", condition


@needs_tracer
def test_a_peer_reads_the_events_of_a_run_that_the_bound_is_told(recorded):
    folder, condition = recorded
    path = folder / condition["windows_trace"]
    assert path.name == WINDOWS_TRACE
    summary = open_trace(path).summary(1)
    assert not summary.losses
    assert summary.clock == "mono"
    known = {each.partition("/")[2] for each in WINDOW_EVENTS}
    assert set(summary.names) <= known
    assert {"sched_switch", "sched_waking", "hrtimer_expire_entry"} <= set(summary.names)
    assert dict(peer_counts(path)) == summary.names


@needs_tracer
def test_a_run_gives_the_bound_or_says_which_term_this_kernel_leaves_open(recorded):
    folder, condition = recorded
    done = latenz("bound", "--linux", folder, "--json")
    assert done.returncode == 3, done.stderr  # C3 and C4 stay open whatever a trace shows
    found = json.loads(done.stdout)
    assert found["longest_seen_ns"] > 0
    [seen, *_] = found["observations"]
    assert seen["wake_ups"] > 300
    assert seen["trace"]["thread_name"].startswith("latenz")
    missing = missing_for_bound(TRACEFS)
    told = " ".join(condition["windows_notes"])
    for event in missing:
        assert event in told
    if any(each.startswith("preemptirq:") for each in missing):
        assert found["bound_ns"] is None
        assert "preemptirq:*" in found["unseen"]["blocking, switching"]
    else:
        assert found["bound_ns"] >= found["longest_seen_ns"]


@needs_tracer
def test_a_ring_that_is_too_small_keeps_the_newest_without_a_gap(tmp_path):
    allowed = os.sched_getaffinity(0)
    cpu = min(allowed)
    made = ring.Ring("small", 256, ("sched/sched_switch",), stacks=False, cpus=frozenset({cpu}))
    try:
        os.sched_setaffinity(0, {cpu})
        made.go_on()
        for number in range(900):
            (made.path / "trace_marker").write_text(f"{number:0900}")
        made.stop()
        gone = ring.counted(made.folders()[cpu], "overrun")
        pages = ring.write_whole(made, tmp_path / "trace.dat")
    finally:
        os.sched_setaffinity(0, allowed)
        made.remove()
    assert gone > 300
    assert [count > 0 for count, _ in pages] == [each == cpu for each in range(len(pages))]
    trace = open_trace(tmp_path / "trace.dat")
    summary = trace.summary()
    assert summary.losses == ()
    assert summary.start_ns == pages[cpu][1]
    printed = subprocess.run(
        ["trace-cmd", "report", str(tmp_path / "trace.dat")],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
    ).stdout
    assert "DROPPED" not in printed
    numbers = [int(word) for word in re.findall(r"\b\d{900}\b", printed)]
    assert numbers == list(range(numbers[0], 900))  # the oldest are gone, none between
    assert 0 < numbers[0] <= gone  # switches were overwritten, too


def test_what_was_overwritten_is_told():
    [told] = _kept([(3, 8_000_000_000), (0, 0)], [12_345, 0], (1_000_000_000, 11_000_000_000))
    assert told == (
        "CPU 0: the last 3 s of 10 s are kept; the 12,345 events before were overwritten"
    )


def test_what_a_ring_lost_is_counted(tmp_path):
    rows = ["entries: 5", "overrun: 7", "commit overrun: 2", "dropped events: 40", "now ts:  1.5"]
    (tmp_path / "stats").write_text("\n".join(rows) + "\n")
    assert ring.lost_in(tmp_path) == 42
    assert ring.counted(tmp_path, "overrun") == 7
    assert ring.counted(tmp_path, "absent") == 0


def test_each_event_that_a_kernel_lacks_opens_its_term(tmp_path):
    for event in BOUND_EVENTS:
        (tmp_path / "events" / event).mkdir(parents=True)
    assert open_terms(tmp_path) == []
    (tmp_path / "events/power/cpu_idle").rmdir()
    (tmp_path / "events/preemptirq/preempt_enable").rmdir()
    assert open_terms(tmp_path) == [
        "blocking on a kernel that preempts (preemptirq:preempt_enable: CONFIG_PREEMPT_TRACER)",
        "idle (power:cpu_idle: CONFIG_FTRACE)",
    ]


def test_the_bound_is_told_of_every_condition_of_a_run(tmp_path):
    """Of traces of a simulated kernel, as text: this machine's kernel has no such events."""
    for number, name in enumerate(("idle", "busy")):
        (tmp_path / name).mkdir()
        text = Kernel(random.Random(number)).run(40)
        (tmp_path / name / WINDOWS_TRACE).write_text(text)
    found = observations_of([tmp_path], "preempt")
    assert [each.name for each in found] == ["busy", "idle"]
    assert all(each.windows.wake_ups >= 39 for each in found)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--on", "local:"), "cannot be traced: the kernel of a target is not traced over a link"),
        (("--trace=elsewhere",), "'elsewhere' is none of them; write --trace or --trace windows"),
    ],
)
def test_what_cannot_be_recorded_is_refused_in_one_line(more, told, tmp_path):
    (tmp_path / "traced.toml").write_text(EXPERIMENT)
    done = latenz(
        "run", tmp_path / "traced.toml", "--trace", "windows", *more, "-o", tmp_path / "run"
    )
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert told in line
    assert not (tmp_path / "run").exists()


@needs_tracer
def test_the_tracer_is_left_as_it_was_whatever_happens():
    before = settings_of_the_tracer()
    recording = WindowRecording(frozenset({0}))
    with recording, suppress(RuntimeError):
        recording.start()
        raise RuntimeError
    assert settings_of_the_tracer() == before
    assert not list(TRACEFS.glob(f"instances/latenz-{os.getpid()}-*"))
