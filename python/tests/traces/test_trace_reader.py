import random
import re
import shutil
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import trace_model

from latenz.traces.opening import open_trace

DATA = Path(__file__).parents[1] / "data" / "traces"
NESTED = DATA / "nested-svm.dat"

pytestmark = pytest.mark.skipif(not shutil.which("trace-cmd"), reason="needs trace-cmd, a peer")


def trace_cmd(*arguments):
    command = ["trace-cmd", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What trace-cmd prints of the recording: to the nanosecond, with the kernel's own names."""
    path = tmp_path_factory.mktemp("report") / "report.txt"
    path.write_text(trace_cmd("report", "-t", "-N", NESTED))
    return path


@pytest.fixture(scope="module")
def summary():
    return open_trace(NESTED).summary()


def plain(summary):
    """What must not depend on the format of the file."""
    return (
        summary.events,
        summary.exits,
        summary.names,
        [(each.kind, each.start_ns, each.end_ns, each.vcpu, each.what) for each in summary.worst],
    )


def test_counts_are_those_of_trace_cmd(summary, report):
    lines = report.read_text().splitlines()[1:]
    reasons = Counter(
        match[1] for line in lines if (match := re.search(r"kvm_exit: .* reason (\S+) rip", line))
    )
    assert summary.events == len(lines) == 199944
    assert {each.reason: each.count for each in summary.exits} == reasons
    names = Counter(re.search(r"\d: (\w+):", line)[1] for line in lines)
    assert summary.names == names


def test_counts_are_those_of_perf(summary):
    perf = open_trace(DATA / "nested-svm.perf-kvm-stat.txt").summary()
    ours = {each.reason: each for each in summary.exits}
    assert {each.reason: each.count for each in perf.exits} == {
        # perf leaves out the exit that was the machine's last: it counts pairs
        reason: each.count - each.open
        for reason, each in ours.items()
    }
    for each in perf.exits:
        if each.total_ns > 1_000_000:
            # both recorded at once, each by its own reading of the clock
            assert ours[each.reason].total_ns == pytest.approx(each.total_ns, rel=0.01)


def test_costs_are_those_of_a_plain_model(summary, report):
    rows = {reason: row for (_, reason), row in trace_model.exits(report.read_text()).items()}
    assert rows.keys() == {each.reason for each in summary.exits}
    for each in summary.exits:
        row = rows[each.reason]
        assert each.count == row.count
        assert each.open == row.count - len(row.costs_ns)
        assert each.total_ns == sum(row.costs_ns)
        assert each.max_ns == max(row.costs_ns)
        assert each.min_ns == min(row.costs_ns)
        assert each.slept_ns + each.preempted_ns == row.away_ns
        assert each.userspace == row.userspace


@pytest.mark.parametrize(
    "options",
    [("--file-version", "6"), ("--compression", "none"), ("--file-version", "7")],
    ids=" ".join,
)
def test_every_version_of_the_file_tells_the_same(summary, tmp_path, options):
    converted = tmp_path / "converted.dat"
    trace_cmd("convert", "-i", NESTED, "-o", converted, *options)
    other = open_trace(converted).summary()
    assert other.truncated_at is None
    assert plain(other) == plain(summary)
    assert other.clock == summary.clock == "mono"


def test_text_of_trace_cmd_tells_the_same(summary, report):
    text = open_trace(report).summary()
    assert text.format == "trace-cmd report"
    assert text.truncated_at is None
    assert plain(text) == plain(summary)


@pytest.mark.parametrize("option", ["-t", "-R"], ids=["plugins", "raw"])
def test_other_words_of_trace_cmd_tell_the_same(tmp_path, option):
    trace_cmd("split", "-i", NESTED, "-o", tmp_path / "part.dat", "5.9", "6.1")
    part = tmp_path / "part.dat.1"
    text = tmp_path / "report.txt"
    text.write_text(trace_cmd("report", "-t", option, part))
    assert open_trace(text).summary().exits == open_trace(part).summary().exits
    assert len(open_trace(text).summary().exits) > 3


VMX, SVM = 1, 2


def test_numbers_that_trace_cmd_has_no_name_for_are_named_as_by_the_kernel(tmp_path):
    """Its plugin knows fewer reasons than kernels have; `UNKNOWN (75)` is all that it tells."""
    numbers = [(VMX, each) for each in (3, 33, 46, 53, 57, 67, 68, 74, 75, 78, 0x80000021)]
    numbers += [(SVM, each) for each in (0x8F, 0x90, 0xA2, 0x403)]
    trace_cmd("split", "-i", NESTED, "-o", tmp_path / "part.dat", "5.9", "6.1")
    trace = tmp_path / "trace.dat"
    trace_cmd("convert", "-i", tmp_path / "part.dat.1", "-o", trace, "--compression", "none")
    content = bytearray(trace.read_bytes())
    io = re.compile(rb"\x7b\0{7}.{8}\x02\0\0\0", re.DOTALL)  # exit_reason, guest_rip, isa
    exits = [match.start() for match in io.finditer(content)]
    for place, (isa, number) in zip(exits, numbers, strict=False):
        content[place : place + 4] = number.to_bytes(4, "little")
        content[place + 16] = isa
    trace.write_bytes(content)
    text = tmp_path / "report.txt"
    text.write_text(trace_cmd("report", "-t", trace))
    assert text.read_text().count("reason UNKNOWN (") == len(numbers)
    expected = open_trace(trace).summary().exits
    assert open_trace(text).summary().exits == expected
    names = {each.reason for each in expected}
    assert {"NOTIFY", "BUS_LOCK", "INVALID_STATE FAILED_VMENTRY", "0x4e", "vmgexit"} <= names


def test_of_each_window_as_many_events_are_given_as_asked_for():
    trace = open_trace(NESTED)
    windows = [(6_000_000_000, 6_400_000_000), (6_500_000_000, 6_500_100_000)]
    every = list(trace.events(windows))
    parts = [[each for each in every if start <= each.t_ns <= end] for start, end in windows]
    assert [len(part) > 50 for part in parts] == [True, False]
    assert list(trace.events(windows, 50)) == parts[0][:50] + parts[1]


def test_events_in_a_window_are_all_that_trace_cmd_prints_there(report):
    start_ns, end_ns = 6_500_000_000, 6_520_000_000
    expected = [
        (t_ns, pid, name)
        for t_ns, pid, name, _ in trace_model.events(report.read_text())
        if start_ns <= t_ns <= end_ns
    ]
    found = list(open_trace(NESTED).events([(start_ns, end_ns)]))
    assert [(each.t_ns, each.pid, each.name) for each in found] == expected
    assert len(expected) > 100
    assert all(
        each.fields["reason"] and "vcpu_id" in each.fields
        for each in found
        if each.name == "kvm_exit"
    )


def test_fields_of_text_and_file_are_the_same(report):
    window = [(5_950_000_000, 6_050_000_000)]
    compared = {
        "kvm_exit": ("vcpu_id", "reason", "rip", "info1", "info2", "intr_info", "error_code"),
        "kvm_entry": ("vcpu_id", "rip"),
        "sched_switch": (
            "prev_comm",
            "prev_pid",
            "prev_prio",
            "prev_state",
            "next_pid",
            "next_prio",
        ),
        "sched_waking": ("comm", "pid", "prio", "target_cpu"),
        "hrtimer_start": ("hrtimer", "function", "expires"),
        "hrtimer_expire_entry": ("hrtimer", "function", "now"),
        "local_timer_entry": ("vector",),
    }
    seen = set()
    for ours, printed in zip(
        open_trace(NESTED).events(window), open_trace(report).events(window), strict=True
    ):
        assert (ours.t_ns, ours.cpu, ours.pid, ours.name) == (
            printed.t_ns,
            printed.cpu,
            printed.pid,
            printed.name,
        )
        for name in compared.get(ours.name, ()):
            assert ours.fields[name] == printed.fields[name], (ours, printed)
            seen.add(ours.name)
    assert seen >= {"kvm_exit", "kvm_entry", "sched_switch", "hrtimer_start", "local_timer_entry"}


@pytest.mark.parametrize("seed", range(20))
def test_made_up_traces_agree_with_the_model(tmp_path, seed):
    text = made_up(random.Random(seed))
    path = tmp_path / "trace.txt"
    path.write_text(text)
    summary = open_trace(path).summary(1000)
    rows = trace_model.exits(text)
    threads = {each.vcpu: each.pid for each in summary.vcpus}
    ours = {(threads[each.vcpu], each.reason): each for each in summary.exits}
    assert ours.keys() == rows.keys()
    for key, row in rows.items():
        found = ours[key]
        assert (found.count, found.total_ns) == (row.count, sum(row.costs_ns))
        assert found.max_ns == max(row.costs_ns, default=0)
        assert found.slept_ns + found.preempted_ns == row.away_ns
        assert found.open == row.count - len(row.costs_ns)
    longest = sorted(
        (cost for (_, reason), row in rows.items() if reason != "hlt" for cost in row.costs_ns),
        reverse=True,
    )
    assert [each.latency_ns for each in summary.worst if each.kind == "exit"] == longest


def made_up(source):
    """Virtual CPUs that enter, exit, sleep and wander over CPUs; some exits never end."""
    t_ns = source.randrange(10**15)
    lines = []
    threads = {pid: pid - 100 for pid in range(100, 100 + source.randint(1, 4))}
    inside = dict.fromkeys(threads, False)

    def line(pid, name, details):
        nonlocal t_ns
        t_ns += source.randrange(1, 10 ** source.randint(1, 7))
        cpu = source.randrange(4)
        stamp = f"{t_ns // 10**9}.{t_ns % 10**9:09d}"
        lines.append(f"  CPU {threads[pid]}/KVM-{pid} [{cpu:03d}] d..1. {stamp}: {name}: {details}")

    for _ in range(400):
        pid = source.choice(list(threads))
        if inside[pid]:
            reason = source.choice(["npf", "io", "hlt", "msr", "interrupt"])
            line(
                pid, "kvm_exit", f"vcpu {threads[pid]} reason {reason} rip 0x10 info1 0x0 info2 0x0"
            )
            inside[pid] = False
            if source.random() < 0.2:
                line(pid, "kvm_userspace_exit", "reason KVM_EXIT_IO (2)")
            if source.random() < 0.4:
                state = source.choice(["S", "R", "D", "R+"])
                line(pid, "sched_switch", f"CPU 0/KVM:{pid} [120] {state} ==> swapper/1:0 [120]")
                line(pid, "sched_switch", f"swapper/1:0 [120] R ==> CPU 0/KVM:{pid} [120]")
        elif source.random() < 0.95:
            line(pid, "kvm_entry", f"vcpu {threads[pid]}, rip 0x1000")
            inside[pid] = True
    return "\n".join(lines) + "\n"


_HEADER_PAGE = """\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
"""
_HEADER_EVENT = """# compressed entry header
\ttype_len    :    5 bits
\ttime_delta  :   27 bits
\tarray       :   32 bits

\tpadding     : type == 29
\ttime_extend : type == 30
\ttime_stamp : type == 31
\tdata max type_len  == 28
"""
_COMMON = """format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

"""
_EXIT = f"""name: kvm_exit
ID: 300
{_COMMON}\tfield:unsigned int exit_reason;\toffset:8;\tsize:4;\tsigned:0;
\tfield:unsigned long guest_rip;\toffset:16;\tsize:8;\tsigned:0;
\tfield:u32 isa;\toffset:24;\tsize:4;\tsigned:0;
\tfield:unsigned int vcpu_id;\toffset:28;\tsize:4;\tsigned:0;

print fmt: "vcpu %u reason %u rip 0x%lx", REC->vcpu_id, REC->exit_reason, REC->guest_rip
"""
_ENTRY = f"""name: kvm_entry
ID: 301
{_COMMON}\tfield:unsigned int vcpu_id;\toffset:8;\tsize:4;\tsigned:0;
\tfield:unsigned long rip;\toffset:16;\tsize:8;\tsigned:0;

print fmt: "vcpu %u, rip 0x%lx", REC->vcpu_id, REC->rip
"""


def file_of(order):
    """A trace.dat of version 6 of a machine with that byte order, as trace-cmd.dat.v6(5) has it."""

    def number(form, *values):
        return struct.pack(order + form, *values)

    def sized(form, text):
        return number(form, len(text)) + text.encode()

    def record(delta_ns, body):
        words = len(body) // 4
        bits = delta_ns << 5 | words if order == "<" else words << 27 | delta_ns
        return number("I", bits) + body

    events = b"".join(
        record(2000, number("HBBiIIQII", 300, 1, 0, 4711, reason, 0, 0xFFF0, 1, 3))
        + record(reason * 100, number("HBBiIIQ", 301, 1, 0, 4711, 3, 0, 0xFFF0))
        for reason in (48, 30, 48, 1)
    )
    page = number("QQ", 5_000_000_000, len(events)) + events
    head = b"\x17\x08\x44tracing6\0" + bytes([order == ">", 8]) + number("I", 4096)
    head += b"header_page\0" + sized("Q", _HEADER_PAGE)
    head += b"header_event\0" + sized("Q", _HEADER_EVENT)
    head += number("I", 0) + number("I", 1) + b"kvm\0" + number("I", 2)
    head += sized("Q", _EXIT) + sized("Q", _ENTRY)
    head += sized("I", "") + sized("I", "") + sized("Q", "4711 CPU 3/KVM\n")
    head += number("I", 1) + b"options  \0" + number("H", 0) + b"flyrecord\0"
    place = -(-(len(head) + 16) // 4096) * 4096
    head += number("QQ", place, 4096)
    return head.ljust(place, b"\0") + page.ljust(4096, b"\0")


@pytest.mark.parametrize("order", ["<", ">"], ids=["little", "big"])
def test_files_of_either_byte_order(order, tmp_path):
    path = tmp_path / "trace.dat"
    path.write_bytes(file_of(order))
    printed = re.findall(
        r"CPU 3/KVM-4711 +\[000\] +(\S+): kvm_exit: +reason (\w+) rip",
        trace_cmd("report", "-t", path),
    )
    assert printed == [
        ("5.000002000", "EPT_VIOLATION"),
        ("5.000008800", "IO_INSTRUCTION"),
        ("5.000013800", "EPT_VIOLATION"),
        ("5.000020600", "EXTERNAL_INTERRUPT"),
    ]
    summary = open_trace(path).summary()
    assert summary.truncated_at is None
    assert {each.reason: (each.vcpu, each.count, each.total_ns) for each in summary.exits} == {
        "EPT_VIOLATION": ("3", 2, 9600),
        "IO_INSTRUCTION": ("3", 1, 3000),
        "EXTERNAL_INTERRUPT": ("3", 1, 100),
    }
    assert [(each.pid, each.comm) for each in summary.vcpus] == [(4711, "CPU 3/KVM")]
    first = next(open_trace(path).events([(0, 5_000_002_000)]))
    assert first.fields["rip"] == 0xFFF0
