"""perf.data, against perf itself and against the same events in other files."""

import random
import shutil
import struct
import subprocess

import pytest
from perf_file import FINISHED_ROUND, RAW, PerfFile, write_perf
from perf_printed import with_pids_that_perf_prints
from two_sides import World, told_together, write_dat, write_text

from latenz.errors import BadInput
from latenz.traces.explaining import explain
from latenz.traces.opening import open_trace
from latenz.traces.ring import obstacle

_ALL = [(0, 1 << 62)]
_EVENTS = (
    "sched:sched_switch",
    "sched:sched_waking",
    "irq:softirq_entry",
    "irq:softirq_exit",
    "timer:hrtimer_start",
    "timer:hrtimer_cancel",
    "timer:hrtimer_expire_entry",
    "timer:hrtimer_expire_exit",
)
_NEEDS_PERF = pytest.mark.skipif(
    obstacle() is not None or not shutil.which("perf"), reason="needs perf, and a kernel to trace"
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """What this machine did for a moment, as perf wrote it and as perf prints it."""
    folder = tmp_path_factory.mktemp("perf")
    wanted = [word for event in _EVENTS for word in ("-e", event)]
    busy = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 0.02; done"]
    command = ["perf", "record", "-o", folder / "perf.data", "-k", "mono", "-a", *wanted, *busy]
    subprocess.run(command, check=True, capture_output=True)
    shown = ["perf", "script", "--ns", "-i", folder / "perf.data"]
    with (folder / "perf.txt").open("w") as text:
        subprocess.run(shown, check=True, stdout=text)
    return folder


def told(path):
    """Each event as a reader gives it, but for what the formats word differently."""
    return [
        (each.t_ns, each.cpu, each.pid, each.name, *map(each.fields.get, _COMPARED))
        for each in open_trace(path).events(_ALL)
    ]


_COMPARED = ("prev_pid", "prev_state", "next_comm", "next_pid", "next_prio", "target_cpu", "vec")
_COMPARED += ("now", "expires")


@_NEEDS_PERF
def test_it_says_what_perf_prints(recorded):
    binary, text = with_pids_that_perf_prints(
        told(recorded / "perf.data"), told(recorded / "perf.txt")
    )
    assert len(binary) > 200
    assert sorted(binary, key=str) == sorted(text, key=str)
    times = [each[0] for each in binary]
    assert times == sorted(times)
    summary, printed = (open_trace(recorded / name).summary() for name in ("perf.data", "perf.txt"))
    assert (summary.format, summary.clock) == ("perf.data", "mono")
    assert (summary.names, summary.cpus) == (printed.names, printed.cpus)
    assert summary.truncated_at is None


@_NEEDS_PERF
def test_it_brings_the_flags_that_text_lacks(recorded):
    flags = {each.flags for each in open_trace(recorded / "perf.data").events(_ALL)}
    assert any("h" in each or "H" in each for each in flags)  # in an interrupt
    assert {len(each) for each in flags} == {5}


@pytest.mark.parametrize("order", ["little", "big"])
@pytest.mark.parametrize("cause", ["vcpu-preempted", "interrupt-storm", "qemu-lock"])
def test_the_same_events_give_the_same_causes(tmp_path, cause, order):
    world = World(7, 0).run(cause)
    data = write_perf(world.host, tmp_path / "perf.data", order)
    dat = write_dat(world.host, tmp_path / "trace.dat")
    for worst in (1, 20):
        found, expected = (explain(open_trace(path), worst) for path in (data, dat))
        assert [each.to_json() for each in found.causes] == [
            each.to_json() for each in expected.causes
        ]
    summary, of_dat = open_trace(data).summary(), open_trace(dat).summary()
    assert summary.events == of_dat.events == len(world.host.events)
    assert (summary.exits, summary.backwards) == (of_dat.exits, 0)


def test_a_host_by_perf_is_joined_with_its_guest(tmp_path):
    world = World(3, 123_456_789).run("vcpu-preempted")
    host = write_perf(world.host, tmp_path / "perf.data")
    guest = write_text(world.guest, tmp_path / "guest.txt", world.offset_ns)
    document = told_together(host, guest)
    assert document["format"] == "perf.data"
    assert document["causes"][0]["shares"][0]["cause"] == "vcpu-preempted"


def test_what_was_lost_is_told(tmp_path):
    world = World(1, 0).run("vcpu-preempted")
    file = PerfFile()
    for each in world.host.events[:40]:
        file.sample(each)
    file.lost(world.host.events[39].t_ns + 1, 1, 17)
    summary = open_trace(file.write(tmp_path / "perf.data")).summary()
    assert summary.lost.events == 17
    assert [each.cpu for each in summary.losses] in ([], [1])


def small():
    world = World(1, 0).run("vcpu-preempted")
    file = PerfFile()
    for each in world.host.events[:30]:
        file.sample(each)
    file.record(FINISHED_ROUND, b"")
    return file


def without_content(path):
    file = small()
    file.sample_type &= ~RAW
    return file.write(path)


def compressed(path):
    file = small()
    file.record(81, bytes(32))
    return file.write(path)


def through_a_pipe(path):
    path.write_bytes(b"PERFILE2" + struct.pack("<Q", 16) + bytes(64))
    return path


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda path: small().write(path, kind=0), "no tracepoints"),
        (lambda path: small().write(path, features=0), "killed before it ended"),
        (without_content, "without time, CPU or content"),
        (compressed, "without -z"),
        (through_a_pipe, "perf script"),
    ],
)
def test_what_cannot_be_read_says_what_to_do(tmp_path, make, expected):
    path = make(tmp_path / "perf.data")
    with pytest.raises(BadInput, match=expected) as refusal:
        open_trace(path).summary()
    assert "\n" not in str(refusal.value)


def test_a_damaged_record_ends_what_can_be_read(tmp_path):
    whole = small().write(tmp_path / "perf.data")
    content = bytearray(whole.read_bytes())
    (at,) = struct.unpack_from("<Q", content, 40)  # of the data
    for _ in range(10):
        at += struct.unpack_from("<H", content, at + 6)[0]
    struct.pack_into("<H", content, at + 6, 0)
    damaged = tmp_path / "damaged.data"
    damaged.write_bytes(content)
    summary = open_trace(damaged).summary()
    assert (summary.events, summary.damages) == (10, 1)
    assert summary.truncated_at == f"byte {at}: a record's size is impossible"


@pytest.mark.parametrize("seed", range(300))
def test_damage_anywhere_ends_in_a_sentence(tmp_path, seed):
    chance = random.Random(seed)
    content = bytearray(small().write(tmp_path / "whole").read_bytes())
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(content))
        content[at] = chance.choice([0, 1, 0x7F, 0xFF, chance.randrange(256)])
    if seed % 3 == 0:
        del content[chance.randrange(len(content)) :]
    path = tmp_path / "perf.data"
    path.write_bytes(content)
    told = refusal_or_summary(path)
    assert "ended with" not in told if isinstance(told, str) else told.events <= 30


def refusal_or_summary(path):
    try:
        return open_trace(path).summary()
    except BadInput as mistake:
        return str(mistake)
