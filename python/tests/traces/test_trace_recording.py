"""Recording while measuring: what is kept, that peers read it, and the tracer is left alone."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import planting
import pytest

from latenz.doctor import diagnose
from latenz.errors import BadInput
from latenz.model import Metadata, SampleSet, TimeBase, WorstSample
from latenz.store.run import RunWriter
from latenz.traces import ring
from latenz.traces.explaining import explain, explain_in, explain_late
from latenz.traces.join import Late, latest
from latenz.traces.opening import open_trace
from latenz.traces.recording import Recording
from latenz.traces.runs import of_run

_REFUSED = ring.obstacle()
pytestmark = pytest.mark.skipif(_REFUSED is not None, reason=str(_REFUSED))
TRACEFS = ring.find_tracefs() or Path("/sys/kernel/tracing")
DATA = Path(__file__).parents[1] / "data/traces"
LIMIT_S = 240
"""How long a short run may take on a busy machine, with explaining what it recorded."""
_EXPERIMENT = """
name = "traced"
duration = "{duration}"

[probe.wakeup]
engine = "wakeup"

[stressor.none]
kind = "none"

[matrix]
stressor = ["none"]
probe = ["wakeup"]
"""


def _settings_of_the_tracer() -> dict[str, str]:
    """What others see of the tracer: of its top instance."""
    files = ("tracing_on", "current_tracer", "trace_clock", "set_event", "buffer_size_kb")
    return {name: (TRACEFS / name).read_text() for name in files}


def _own_instances(pid: int) -> list[str]:
    return [each.name for each in TRACEFS.glob(f"instances/latenz-{pid}-*")]


def _started(folder: Path, duration: str, *options: str) -> "subprocess.Popen[str]":
    path = folder / "traced.toml"
    path.write_text(_EXPERIMENT.format(duration=duration))
    command = [
        sys.executable,
        "-m",
        "latenz",
        "run",
        str(path),
        "-o",
        str(folder / "run"),
        "--json",
    ]
    return subprocess.Popen(
        [*command, *options], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _until_recording(process: "subprocess.Popen[str]", folder: Path) -> None:
    """Wait until samples were taken while the ring was on."""
    give_up = time.monotonic() + LIMIT_S
    while time.monotonic() < give_up and process.poll() is None:
        if list(folder.glob("run/idle/probe.json")) and _own_instances(process.pid):
            return
        time.sleep(0.05)
    pytest.fail("nothing is recorded")


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A traced run, and its account of its only condition."""
    folder = tmp_path_factory.mktemp("traced")
    before = _settings_of_the_tracer()
    process = _started(folder, "1500 ms", "--trace")
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    assert _settings_of_the_tracer() == before
    assert not _own_instances(process.pid)
    (condition,) = json.loads(out)["conditions"]
    return folder / "run", condition


def test_a_stack_tells_what_was_interrupted_wherever_a_real_time_thread_is_woken(
    traced: tuple[Path, dict[str, Any]],
) -> None:
    folder, condition = traced
    trace = open_trace(folder / condition["traces"][0])
    summary = trace.summary()
    events = list(trace.events([(summary.start_ns, summary.end_ns)]))
    stacks = [str(each.fields["stack"]) for each in events if each.name == "kernel_stack"]
    woken = [
        each
        for each in events
        if each.name == "sched_waking" and int(each.fields.get("prio", 120)) < 100
    ]
    assert woken
    assert len(stacks) > len(woken) / 2  # the kernel leaves some out
    frames = [name for stack in stacks for name in stack.split(";")]
    named = [name for name in frames if not name.startswith("0x")]
    assert len(named) > 0.9 * len(frames)
    assert {"hrtimer_wakeup", "try_to_wake_up"} & set(named)


def test_the_worst_samples_of_a_traced_run_have_causes(
    traced: tuple[Path, dict[str, Any]],
) -> None:
    folder, condition = traced
    causes = condition["causes"]
    assert causes
    stored = json.loads((folder / "run.json").read_text())["conditions"][0]
    assert stored["causes"] == causes
    for each in causes:
        assert sum(share["share_ns"] for share in each["shares"]) == each["latency_ns"]
    sets = json.loads((folder / "run.json").read_text())["sample_sets"]
    worst = [
        (each["latency_ns"], each["t_ns"]) for one in sets for each in one["metadata"]["worst"]
    ]
    traces = [open_trace(folder / name).summary() for name in condition["traces"]]
    recorded = [  # one that lasts from one ring into the next is in neither as a whole
        (latency_ns, t_ns)
        for latency_ns, t_ns in sorted(worst, reverse=True)[:10]
        if any(each.start_ns <= t_ns and t_ns + latency_ns <= each.end_ns for each in traces)
    ]
    assert [(each["latency_ns"], each["t_ns"]) for each in causes] == recorded


def test_a_peer_reads_the_same_from_the_stored_traces(
    traced: tuple[Path, dict[str, Any]],
) -> None:
    folder, condition = traced
    for name in condition["traces"]:
        printed = subprocess.run(
            ["trace-cmd", "report", "-t", str(folder / name)],
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT_S,
        ).stdout.splitlines()
        # "CPU 1 is empty", "CPU:1 [EVENTS DROPPED]" where a ring began anew, and rows of stacks
        others = ("cpus=", "CPU ", "CPU:", "=> ")
        events = [line for line in printed if line and not line.startswith(others)]
        summary = open_trace(folder / name).summary()
        assert summary.clock == "mono"
        assert summary.events == len(events) > 0
        assert any("function=hrtimer_wakeup" in line for line in events)


def test_the_threads_of_the_worst_samples_come_in_within_them(
    traced: tuple[Path, dict[str, Any]],
) -> None:
    """Of most: one that was stopped just before its sleep does not sleep, as it is due already."""
    folder, condition = traced
    woken = [
        any(
            event.cpu == worst["cpu"]
            and event.name == "sched_waking"
            and event.fields["comm"] == "latenz-wakeup"
            for name in condition["traces"]
            for event in open_trace(folder / name).events(
                [(worst["t_ns"], worst["t_ns"] + worst["latency_ns"])]
            )
        )
        for worst in condition["causes"]
    ]
    assert sum(woken) > len(woken) / 2


def test_a_run_folder_is_explained_again_as_it_was(traced: tuple[Path, dict[str, Any]]) -> None:
    folder, condition = traced
    ((label, trace, found),) = of_run(folder)
    assert label == "idle"
    assert trace == folder / condition["traces"][0]
    again = json.loads(json.dumps([cause.to_json() for cause in found.causes]))
    assert again == condition["causes"]


def test_as_many_causes_of_a_run_are_told_as_asked_for(
    traced: tuple[Path, dict[str, Any]],
) -> None:
    folder, condition = traced
    command = [sys.executable, "-m", "latenz", "explain", str(folder), "--worst", "1", "--json"]
    printed = subprocess.run(command, capture_output=True, check=True, timeout=LIMIT_S).stdout
    [told] = json.loads(printed)["conditions"]
    assert told["causes"] == condition["causes"][:1]


def test_samples_given_to_explain_are_found_by_their_times(
    traced: tuple[Path, dict[str, Any]],
) -> None:
    folder, condition = traced
    found = explain(open_trace(folder / condition["traces"][0]), 3, samples=folder)
    times = {(each["t_ns"], each["latency_ns"]) for each in condition["causes"]}
    assert {(each.t_ns, each.latency_ns) for each in found.causes} <= times


def test_an_interrupted_run_leaves_nothing_in_the_tracer(tmp_path: Path) -> None:
    before = _settings_of_the_tracer()
    process = _started(tmp_path, "60 s", "--trace")
    _until_recording(process, tmp_path)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, err
    assert not _own_instances(process.pid)
    assert _settings_of_the_tracer() == before
    assert json.loads(out)["conditions"][0]["traces"]


def test_what_a_killed_run_leaves_is_named_and_removed_by_the_next(tmp_path: Path) -> None:
    process = _started(tmp_path, "60 s", "--trace")
    _until_recording(process, tmp_path)
    process.kill()
    process.wait(timeout=LIMIT_S)
    left = _own_instances(process.pid)
    assert len(left) == 3
    assert set(left) <= {each.name for each in ring.leftovers()}
    (check,) = (each for each in diagnose().checks if each.id == "left-traces")
    assert all(name in check.found and name in check.fix for name in left)
    with Recording() as recording:
        recording.start()
        recording.stop()
    assert not _own_instances(process.pid)
    assert not _own_instances(os.getpid())


def test_instances_of_living_processes_are_left_alone() -> None:
    living = ring.Ring("test", 64)
    others = TRACEFS / "instances" / f"latenz-other-{os.getpid()}"
    others.mkdir()
    try:
        found = ring.leftovers()
        assert living.path not in found
        assert others not in found
    finally:
        others.rmdir()
        living.remove()


def test_what_follows_pages_that_were_left_out_is_joined_by_no_reader(tmp_path: Path) -> None:
    allowed = os.sched_getaffinity(0)
    cpu = min(allowed)
    made = ring.Ring("pages", 4096)
    try:
        os.sched_setaffinity(0, {cpu})
        made.go_on()
        for number in range(300):
            (made.path / "trace_marker").write_text(f"{number:0900}")
        made.stop()
        of_cpu = made.pages()[cpu]
        ends = [(page.t_ns, page.t_ns) for page in (of_cpu[0], of_cpu[-1])]
        kept = ring.around(of_cpu, ends, 0)
        assert 2 < len(kept) < len(of_cpu)
        ring.write_trace(made, [[]] * cpu + [kept], tmp_path / "trace.dat")
        whole = ring.around(of_cpu, [(of_cpu[0].t_ns, of_cpu[-1].t_ns)], 0)
        ring.write_trace(made, [[]] * cpu + [whole], tmp_path / "whole.dat")
    finally:
        os.sched_setaffinity(0, allowed)
        made.remove()
    assert open_trace(tmp_path / "whole.dat").summary().losses == ()
    (loss,) = open_trace(tmp_path / "trace.dat").summary().losses
    assert loss.cpu == cpu
    assert loss.start_ns < loss.end_ns == kept[-2].t_ns  # the last but one reaches up to the last
    printed = subprocess.run(
        ["trace-cmd", "report", str(tmp_path / "trace.dat")],
        capture_output=True,
        text=True,
        check=True,
        timeout=LIMIT_S,
    ).stdout
    assert printed.count(f"CPU:{cpu} [EVENTS DROPPED]") == 1


def test_who_is_not_root_is_told_so() -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setresuid(65534, 65534, 65534)
        os.write(write, str(ring.obstacle()).encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as told:
        assert told.read() == "the kernel's tracer may not be used (fix: run as root)"


def test_other_benches_are_refused_in_one_line(tmp_path: Path) -> None:
    experiment = Path(__file__).parents[3] / "experiments/beckert2014-ecu.toml"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "latenz",
            "run",
            str(experiment),
            "--trace",
            "-o",
            str(tmp_path / "r"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "cannot be traced: the bench simulation records no traces" in done.stderr


def _sample_at(due_us: int, latency_us: int) -> SampleSet:
    metadata = Metadata(name="idle/cpu1", time_base=TimeBase.SILICON, cpu=1)
    return SampleSet.from_columns(
        metadata, t_ns=[due_us * 1000, 0], latency_ns=[latency_us * 1000, 1]
    )


def _worst_of(trace: planting.Trace) -> tuple[int, int]:
    """When the thread was due in its worst cycle, and how late it came, by the text itself."""
    due_us = 1_000_000_000 + 1000 * (planting.WORST_CYCLE + 1)
    came = min(
        t_us for t_us, _, line in trace.lines if "next_comm=rt" in line and t_us > due_us + 100
    )
    return due_us, came - due_us


def test_samples_are_joined_with_a_trace_of_the_same_clock(tmp_path: Path) -> None:
    trace = planting.trace_with("preempted", 11)
    due_us, latency_us = _worst_of(trace)
    opened = open_trace(trace.write(tmp_path / "trace.txt"))
    found = explain_late(opened, latest([_sample_at(due_us, latency_us)], 1))
    assert [each.first.cause for each in found.causes] == ["preempted"]
    assert found.causes[0].latency_ns == latency_us * 1000
    outside = explain_late(opened, [Late(1000, 5, 1, "idle/cpu1")])
    assert outside.causes == ()
    assert outside.notes == ("1 of the 1 worst samples are not in the trace",)


def test_a_trace_whose_times_were_moved_is_not_joined(tmp_path: Path) -> None:
    """As by trace-cmd record --ts-offset: an option that trace-cmd report obeys, too."""
    content = (DATA / "planted/preempted.dat").read_bytes()
    offset = b"5000000000\0"
    option = (7).to_bytes(2, "little") + len(offset).to_bytes(4, "little") + offset
    options = content.index(b"options  \0") + 10
    data = 49152  # where the pages of CPU 0 begin; zeros are before it
    assert not any(content[data - len(option) : data])
    path = tmp_path / "moved.dat"
    path.write_bytes(
        content[:options] + option + content[options : data - len(option)] + content[data:]
    )
    before = open_trace(DATA / "planted/preempted.dat").summary()
    moved = open_trace(path).summary()
    assert moved.start_ns == before.start_ns + 5_000_000_000
    first, told = (
        subprocess.run(
            ["trace-cmd", "report", "-t", each], capture_output=True, text=True, check=True
        ).stdout.splitlines()[1]
        for each in (DATA / "planted/preempted.dat", path)
    )
    assert told.split(": ")[1:] == first.split(": ")[1:]
    assert told != first
    late = Late(1_000_000, moved.start_ns + 1_000_000, 1, "idle")
    found = explain_late(open_trace(path), [late])
    assert found.causes == ()
    assert "its clock is mono, moved by 5000000000 ns, 5 s away from" in found.notes[0]


def test_samples_of_a_thread_that_may_run_anywhere_get_no_causes_but_a_note(tmp_path: Path) -> None:
    trace = planting.trace_with("preempted", 11)
    due_us, latency_us = _worst_of(trace)
    path = trace.write(tmp_path / "trace.txt")
    anywhere = _sample_at(due_us, latency_us).with_metadata(cpu=None)
    late = latest([anywhere], 1)
    found = explain_late(open_trace(path), late)
    assert found.causes == ()
    assert found.notes == (
        "1 of the 1 worst samples do not tell their CPU: keep what measures on one (cpus = [1])",
    )
    assert explain_in([path], late) == found  # what others waited for is not told in their place


def test_samples_of_a_guest_are_not_looked_for_in_the_trace_of_its_host(tmp_path: Path) -> None:
    """Its clock began when it booted: what it calls 1000 s is another moment."""
    trace = planting.trace_with("preempted", 11)
    due_us, latency_us = _worst_of(trace)
    path = trace.write(tmp_path / "trace.txt")
    guest = _sample_at(due_us, latency_us).with_metadata(bench="vm")
    assert latest([guest], 10) == []
    run = RunWriter(tmp_path / "run", command=["test"], environment={})
    run.add(guest)
    stored = tmp_path / "run" / "vm" / "trace.txt"
    stored.parent.mkdir()
    path.rename(stored)
    account = {"condition": "vm", "sample_sets": ["idle/cpu1"], "traces": ["vm/trace.txt"]}
    run.info.conditions.append(account)
    run.close("complete")
    ((_, _, found),) = of_run(tmp_path / "run")
    assert found == explain(open_trace(stored))
    with pytest.raises(BadInput, match="own clock"):
        explain(open_trace(stored), samples=tmp_path / "run")


def test_one_moment_is_one_cause_whatever_was_measured_of_it(tmp_path: Path) -> None:
    """A servo's activation and completion are due at once."""
    trace = planting.trace_with("preempted", 11)
    due_us, latency_us = _worst_of(trace)
    path = trace.write(tmp_path / "trace.txt")
    sets = [_sample_at(due_us, latency_us), _sample_at(due_us, latency_us + 1)]
    late = latest(sets, 2)
    assert [(each.t_ns, each.latency_ns) for each in late] == [
        (due_us * 1000, latency_us * 1000 + 1000),
        (0, 1),
    ]
    assert len(explain_in([path], late).causes) == 1


def test_without_samples_the_traces_own_worst_are_explained(tmp_path: Path) -> None:
    path = planting.trace_with("preempted", 11).write(tmp_path / "trace.txt")
    assert explain_in([path], []) == explain(open_trace(path))
    assert explain_in([], []).causes == ()


def test_samples_of_another_clock_are_not_joined_and_the_reason_is_told(tmp_path: Path) -> None:
    trace = planting.trace_with("preempted", 11)
    due_us, latency_us = _worst_of(trace)
    path = trace.write(tmp_path / "trace.txt")
    text = path.read_text()
    for t_us, _, line in trace.lines:
        if "now=" in line:
            text = text.replace(f"now={t_us * 1000}", f"now={t_us * 1000 + 7_000_000_000}")
    path.write_text(text)
    found = explain_late(open_trace(path), latest([_sample_at(due_us, latency_us)], 1))
    assert found.causes == ()
    assert "7 s away from CLOCK_MONOTONIC" in found.notes[0]


def test_steal_time_makes_a_gap_likely(tmp_path: Path) -> None:
    trace = planting.trace_with("smi-like-gap", 4)
    silent, trace.silent = trace.silent, (0, 0)
    trace.lines = [
        each
        for each in trace.lines
        if "[000]" in each[2] or not silent[0] < each[0] < silent[1]  # CPU 0 goes on
    ]
    due_us, latency_us = _worst_of(trace)
    opened = open_trace(trace.write(tmp_path / "trace.txt"))
    sample_set = _sample_at(due_us, latency_us)
    for stolen_ns, confidence in ((0, "perhaps"), (10_000_000, "likely")):
        worst = WorstSample(
            t_ns=due_us * 1000,
            latency_ns=latency_us * 1000,
            context={"window_steal_ns": stolen_ns},
        )
        late = latest([sample_set.with_metadata(worst=(worst,))], 1)
        first = explain_late(opened, late).causes[0].first
        assert (first.cause, first.confidence) == ("smi-like-gap", confidence)
