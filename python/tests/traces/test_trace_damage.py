"""Damaged and cut traces: what can be read is told, where that ended, and nothing crashes."""

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from latenz.errors import BadInput
from latenz.programs import probe_program
from latenz.traces.opening import open_trace

pytestmark = pytest.mark.fuzzing

DATA = Path(__file__).parents[1] / "data" / "traces"
NESTED = DATA / "nested-svm.dat"
MEBIBYTE = 1 << 20


@pytest.fixture(scope="module", params=["zstd", "none", "version-6"])
def small(request, tmp_path_factory):
    """A tenth of a second of a real recording, in each form of the file."""
    if not shutil.which("trace-cmd"):
        pytest.skip("needs trace-cmd to make the file")
    folder = tmp_path_factory.mktemp("small")

    def trace_cmd(*arguments):
        subprocess.run(["trace-cmd", *arguments], check=True, capture_output=True, cwd=folder)

    trace_cmd("split", "-i", str(NESTED), "-o", "part.dat", "5.95", "5.97")
    form = {
        "zstd": ["--compression", "zstd"],
        "none": ["--compression", "none"],
        "version-6": ["--file-version", "6"],
    }[request.param]
    trace_cmd("convert", "-i", "part.dat.1", "-o", "small.dat", *form)
    return (folder / "small.dat").read_bytes()


def run(path, mode="summary", *arguments):
    command = [probe_program("latenz-trace"), mode, path, *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=600)


def told(path):
    """The summary of a file that may be damaged; None if it was refused in one line."""
    done = run(path)
    assert done.returncode in (0, 2), done
    if done.returncode == 2:
        assert done.stderr.count(b"\n") == 1
        return None
    return json.loads(done.stdout)


def test_cut_anywhere(small, tmp_path):
    whole = tmp_path / "whole.dat"
    whole.write_bytes(small)
    full = told(whole)
    assert full["truncated_at"] is None
    assert full["events"] > 5000
    path = tmp_path / "cut.dat"
    read = []
    for size in sorted(random.Random(1).sample(range(16, len(small)), 100)):
        path.write_bytes(small[:size])
        cut = told(path)
        assert cut is not None
        assert cut["truncated_at"], size
        assert cut["events"] <= full["events"]
        read.append(cut["events"])
    # what is there is read: never less from a longer piece, and most of a piece that is almost all
    assert read == sorted(read)
    path.write_bytes(small[:-50])
    assert told(path)["events"] >= 0.9 * full["events"]
    path.write_bytes(small)
    assert told(path) == full


def test_flipped_bytes(small, tmp_path):
    source = random.Random(2)
    path = tmp_path / "flipped.dat"
    for _ in range(100):
        damaged = bytearray(small)
        for _ in range(source.choice([1, 1, 3, 30])):
            place = source.randrange(source.choice([len(small), 4096]))
            damaged[place] = source.choice([0, 255, damaged[place] ^ 1 << source.randrange(8)])
        path.write_bytes(damaged)
        told(path)
        assert run(path, "events", "0:9000000000000000000").returncode in (0, 2)


def test_a_damaged_page_is_left_out_and_told(tmp_path):
    """A page of the ring buffer stands for itself: those before and behind it are read."""
    converted = tmp_path / "plain.dat"
    command = ["trace-cmd", "convert", "-i", NESTED, "-o", converted, "--compression", "none"]
    subprocess.run(command, check=True, capture_output=True)
    content = bytearray(converted.read_bytes())
    page = len(content) // 2 // 4096 * 4096
    content[page + 8 : page + 16] = b"\xff" * 8  # its length
    converted.write_bytes(content)
    summary = open_trace(converted).summary()
    assert summary.truncated_at.startswith(f"byte {page}")
    assert "CPU 0" in summary.truncated_at
    whole = open_trace(NESTED).summary()
    assert whole.events - 500 < summary.events < whole.events
    assert summary.end_ns == whole.end_ns
    assert summary.lost.places > 0


def test_lengths_that_promise_gigabytes_take_no_memory(small, tmp_path):
    import resource

    path = tmp_path / "huge.dat"
    for start in range(0, 4096, 64):
        content = bytearray(small)
        content[start + 20 : start + 28] = b"\xff\xff\xff\x7f\xff\xff\xff\x7f"
        path.write_bytes(content)
        done = subprocess.run(
            [probe_program("latenz-trace"), "summary", path],
            capture_output=True,
            check=False,
            preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_AS, (256 * MEBIBYTE, 256 * MEBIBYTE)
            ),
        )
        assert done.returncode in (0, 2), done.stderr


def test_text_cut_anywhere(tmp_path):
    text = (DATA / "ftrace-kvm-svm-v6.1.txt").read_bytes()
    path = tmp_path / "cut.txt"
    header = text.index(b" mini-100")
    lines = text[header:].count(b"\n")
    for size in random.Random(3).sample(range(header + 200, len(text)), 40):
        path.write_bytes(text[:size])
        summary = open_trace(path).summary()
        assert summary.events == text[header:size].count(b"\n") <= lines
        if not text[:size].endswith(b"\n"):
            start = text.rindex(b"\n", 0, size) + 1
            assert f"(byte {start})" in summary.truncated_at


HOSTILE = [
    b"\xff\xfe\x00\x01",
    b"a" * 300_000,
    b"[[[[[[[[[[",
    b"x-1 [000] .... 99999999999999999999.000000: kvm_exit: vcpu 0 reason io rip 0x1",
    b"x-1 [99999999999999] .... 1.000000: kvm_exit: vcpu 0 reason io rip 0x1",
    b"x-1 [000] .... 1.0000000000000000001: kvm_exit: vcpu 0 reason io rip 0x1",
    b"x-99999999999999 [000] .... 1.000000: kvm_exit: vcpu 0 reason io rip 0x1",
    b"x-1 [000] .... 1.000000: ",
    b"x-1 [000] .... -1.000000: kvm_entry: vcpu 0",
]
STRANGE = [  # events, of which the details make no sense
    b"x-1 [000] .... 1.000000: kvm_exit: ",
    b"x-1 [000] .... 1.000000: kvm_exit: reason",
    b"x-1 [000] .... 1.000000: kvm_exit: vcpu 99999999999999999999 reason \x00\x01\xff rip",
    b"x-1 [000] .... 1.000000: sched_switch: ==> ",
    b"x-1 [000] .... 1.000000: sched_switch: a:b [c] S ==> d:e [f]",
    b"x-1 [000] .... 1.000000: sched_waking: comm==== pid=-5 prio=-1 target_cpu=x",
    b"x-1 [000] .... 1.000000: hrtimer_start: hrtimer=0x function=/// expires=-9223372036854775808",
    b"x-1 [000] .... 1.000000: hrtimer_expire_entry: hrtimer=0x now=9223372036854775807",
    b"x-1 [000] .... 1.000000: #9 context thread timer_latency -5 ns",
    b"x-1 [000] .... 1.000000: #1 inner/outer(us): 9223372036854775807/x",
]


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_lines_that_are_no_events_are_told_and_passed_over(tmp_path, line):
    text = (DATA / "ftrace-kvm-svm-v6.1.txt").read_bytes()
    path = tmp_path / "hostile.txt"
    before = text.count(b"\n")
    path.write_bytes(text + line + b"\n" + text)
    summary = open_trace(path).summary()
    assert summary.events == 2 * 118
    assert f"line {before + 1}" in summary.truncated_at


@pytest.mark.parametrize("line", STRANGE, ids=range(len(STRANGE)))
def test_details_that_make_no_sense(tmp_path, line):
    path = tmp_path / "strange.txt"
    path.write_bytes(line + b"\n" + (DATA / "ftrace-kvm-svm-v6.1.txt").read_bytes())
    trace = open_trace(path)
    assert trace.summary().events == 119
    assert len(list(trace.events([(0, 10**18)]))) == 119
    assert sum(each.count for each in trace.summary().exits) in (37, 38)


def test_a_library_of_made_up_names_takes_bounded_memory(tmp_path):
    path = tmp_path / "names.txt"
    with path.open("w") as file:
        for n in range(200_000):
            file.write(f"t{n}-{n} [000] .... 1.{n:06d}: kvm_exit: vcpu {n} reason r{n} rip 0x1\n")
            file.write(f"t{n}-1 [000] .... 1.{n:06d}: event{n}: a=1\n")
    summary = open_trace(path).summary()
    assert sum(each.count for each in summary.exits) == 200_000
    assert len(summary.exits) < 10_000
    assert len(summary.names) < 10_000


def test_bad_command_lines_of_the_reader(tmp_path):
    for arguments in (["summary"], ["events", NESTED], ["events", NESTED, "5"], ["other", NESTED]):
        command = [probe_program("latenz-trace"), *arguments]
        done = subprocess.run(command, capture_output=True, check=False)
        assert done.returncode == 2
        assert done.stderr.count(b"\n") == 1
    with pytest.raises(BadInput, match="regular file"):
        open_trace(Path("/dev/null")).summary()
