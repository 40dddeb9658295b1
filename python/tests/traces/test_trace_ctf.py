"""CTF, as perf converts it and as LTTng shapes it, against the same events as text."""

import os
import random
import shutil
import subprocess
import sys

import pytest
from ctf_file import rows, write_ctf
from perf_printed import with_pids_that_perf_prints
from two_sides import World, told_together, write_text

from latenz.errors import BadInput
from latenz.traces.ctf import is_ctf
from latenz.traces.explaining import explain
from latenz.traces.opening import open_trace
from latenz.traces.ring import obstacle

pytestmark = pytest.mark.skipif(not shutil.which("babeltrace2"), reason="needs babeltrace2")
_ALL = [(0, 1 << 62)]


def causes(path, worst=20):
    return [each.to_json() for each in explain(open_trace(path), worst).causes]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """What this machine did for a moment: perf's own CTF, and what perf prints."""
    if obstacle() is not None or not shutil.which("perf"):
        pytest.skip("needs perf, and a kernel to trace")
    folder = tmp_path_factory.mktemp("perf")
    data = folder / "perf.data"
    names = ("sched:sched_switch", "sched:sched_waking", "irq:softirq_*", "timer:hrtimer_*")
    wanted = [word for event in names for word in ("-e", event)]
    command = ["perf", "record", "-o", data, "-k", "mono", "-a", *wanted, "sleep", "0.2"]
    subprocess.run(command, check=True, capture_output=True)
    convert = ["perf", "data", "convert", "-i", data, f"--to-ctf={folder / 'ctf'}"]
    subprocess.run(convert, check=True, capture_output=True)
    with (folder / "perf.txt").open("w") as text:
        subprocess.run(["perf", "script", "--ns", "-i", data], check=True, stdout=text)
    return folder


_COMPARED = ("prev_pid", "prev_state", "next_comm", "next_pid", "next_prio", "target_cpu", "vec")
_COMPARED += ("now", "expires")


def told(path):
    return sorted(
        (each.t_ns, each.cpu, each.pid, each.name, str([each.fields.get(one) for one in _COMPARED]))
        for each in open_trace(path).events(_ALL)
    )


def test_perfs_own_ctf_says_what_perf_prints(recorded):
    found, text = with_pids_that_perf_prints(told(recorded / "ctf"), told(recorded / "perf.txt"))
    assert len(found) > 100
    assert sorted(found, key=str) == sorted(text, key=str)
    summary = open_trace(recorded / "ctf").summary()
    printed = open_trace(recorded / "perf.txt").summary()
    assert summary.format == "CTF"
    assert (summary.names, summary.cpus) == (printed.names, printed.cpus)
    assert summary.truncated_at is None


@pytest.mark.parametrize("thread", ["", "tid"])
@pytest.mark.parametrize("seed", range(3))
def test_lttngs_names_and_counts_become_the_kernels(tmp_path, seed, thread):
    """Without the context tid, who runs is known by who was switched to."""
    world = World(seed, 0).run("irqs-off")
    folder = write_ctf(rows(world.guest), tmp_path / "kernel", thread=thread)
    text = write_text(world.guest, tmp_path / "trace.txt")
    text.write_text(text.read_text().replace(" d..2. ", " "))  # flags, which LTTng does not tell
    found, expected = causes(folder, 500), causes(text, 500)
    summary = open_trace(folder).summary()
    told = [
        [(each["cause"], each["t_ns"], each["latency_ns"]) for each in one]
        for one in (found, expected)
    ]
    later = [[each for each in one if each[1] > summary.start_ns + 100_000] for one in told]
    assert later[0] == later[1]
    assert len(later[0]) > 10
    summary = open_trace(folder).summary()
    left_out = 0 if thread else sum(int(note.split()[0]) for note in summary.notes)
    assert summary.events == len(world.guest.events) - left_out
    assert left_out < 20


def test_exits_of_a_host_have_their_reasons(tmp_path):
    world = World(5, 0).run("vcpu-preempted")
    folder = write_ctf(rows(world.host), tmp_path / "kernel", thread="tid")
    text = write_text(world.host, tmp_path / "host.txt")
    found, expected = (open_trace(each).summary().exits for each in (folder, text))
    assert {(each.reason, each.count, each.total_ns) for each in found} == {
        (each.reason, each.count, each.total_ns) for each in expected
    }


def test_a_host_by_lttng_is_joined_with_its_guest(tmp_path):
    world = World(3, 123_456_789).run("vcpu-preempted")
    host = write_ctf(rows(world.host), tmp_path / "session/kernel", thread="tid").parent
    guest = write_ctf(rows(world.guest), tmp_path / "vm", thread="tid")
    document = told_together(host, guest)
    assert document["format"] == "CTF"
    assert document["causes"][0]["shares"][0]["cause"] == "vcpu-preempted"


def test_events_of_ros2_stand_among_those_of_the_kernel(tmp_path):
    world = World(1, 0).run("irqs-off")
    kernel = rows(world.guest)
    write_ctf(kernel, tmp_path / "session/kernel", thread="tid")
    thread = (50, "talker")
    callbacks = [
        (kernel[place][0] + 1, 0, f"ros2:callback_{end}", {"callback": 0x55D0}, thread)
        for place in (10, 40)
        for end in ("start", "end")
    ]
    write_ctf(callbacks, tmp_path / "session/ust/uid/0/64-bit", thread="vtid", domain="ust")
    trace = open_trace(tmp_path / "session")
    names = trace.summary().names
    assert (names["callback_start"], names["callback_end"]) == (2, 2)
    [first, _] = [each for each in trace.events(_ALL) if each.name == "callback_start"]
    assert (first.t_ns, first.pid, first.comm) == (kernel[10][0] + 1, 50, "talker")
    alone = causes(tmp_path / "session/kernel")
    assert [each["latency_ns"] for each in causes(tmp_path / "session")] == [
        each["latency_ns"] for each in alone
    ]


def test_times_are_the_machines_own_clock(tmp_path):
    """Not the time of day: samples of CLOCK_MONOTONIC are to be found by them."""
    world = World(1, 0).run("irqs-off")
    folder = write_ctf(rows(world.guest), tmp_path / "kernel", thread="tid")
    assert open_trace(folder).summary().start_ns == min(each.t_ns for each in world.guest.events)


def test_a_clock_that_counts_no_nanoseconds_is_refused(tmp_path):
    world = World(1, 0).run("irqs-off")
    folder = write_ctf(rows(world.guest), tmp_path / "kernel", hertz=24_000_000)
    with pytest.raises(BadInput, match=r"its clock counts at 24,000,000 Hz"):
        open_trace(folder)


def test_a_folder_without_a_trace_is_none(tmp_path):
    assert not is_ctf(tmp_path)
    (tmp_path / "metadata").write_text("something else")
    os.mkfifo(tmp_path / "pipe")
    assert not is_ctf(tmp_path)
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "sub/metadata")
    assert not is_ctf(tmp_path)


@pytest.mark.parametrize("seed", range(12))
def test_a_damaged_folder_ends_in_a_sentence(tmp_path, seed):
    chance = random.Random(seed)
    world = World(1, 0).run("irqs-off")
    folder = write_ctf(rows(world.guest), tmp_path / "kernel", thread="tid")
    path = folder / chance.choice(["metadata", "channel0_0"])
    content = bytearray(path.read_bytes())
    for _ in range(4):
        content[chance.randrange(12, len(content))] = chance.randrange(256)
    if seed % 2:
        del content[chance.randrange(12, len(content)) :]
    path.write_bytes(content)
    command = [sys.executable, "-m", "latenz", "explain", folder]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 2), done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode == 2:
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
