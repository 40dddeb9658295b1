import io
import os
from pathlib import Path

import pytest

from latenz.console import Console
from latenz.errors import BadInput
from latenz.traces.exits import exits_json, print_exits, remarks
from latenz.traces.model import Loss
from latenz.traces.opening import open_trace

DATA = Path(__file__).parents[1] / "data"
TRACES = DATA / "traces"


def summary_of(path):
    return open_trace(path).summary()


def summary_of_text(tmp_path, text):
    path = tmp_path / "trace.txt"
    path.write_text(text)
    return summary_of(path)


@pytest.mark.parametrize(
    ("name", "tool", "counts"),
    [
        # counted by grep in the files
        (
            "ftrace-kvm-svm-v6.1",
            "ftrace",
            {"cpuid": 9, "interrupt": 1, "io": 8, "msr": 16, "npf": 3},
        ),
        (
            "trace-cmd-report-kvm-svm-v6.1",
            "trace-cmd report",
            {"cpuid": 5, "interrupt": 1, "io": 5, "msr": 9, "npf": 3},
        ),
        (
            "perf-script-kvm-svm-v6.1",
            "perf script",
            {"cpuid": 5, "interrupt": 1, "io": 5, "msr": 9, "npf": 3},
        ),
        ("ftrace-kvm-vmx-old-format", "ftrace", {"EXTERNAL_INTERRUPT": 1, "IO_INSTRUCTION": 1}),
    ],
)
def test_exits_of_each_tool(name, tool, counts):
    summary = summary_of(TRACES / f"{name}.txt")
    assert summary.format == tool
    assert {each.reason: each.count for each in summary.exits} == counts
    assert {each.vcpu for each in summary.exits} == {"0"}
    assert summary.truncated_at is None


def test_a_vcpu_that_only_its_entry_names():
    """By hand: 83184.290332 to .290334; the other exit goes on to user space and has no entry."""
    interrupt, port = summary_of(TRACES / "ftrace-kvm-vmx-old-format.txt").exits
    assert (interrupt.reason, interrupt.total_ns, interrupt.max_ns) == (
        "EXTERNAL_INTERRUPT",
        2000,
        2000,
    )
    assert interrupt.max_at_ns == 83184_290332_000
    assert (port.reason, port.count, port.open, port.total_ns) == ("IO_INSTRUCTION", 1, 1, 0)


@pytest.mark.parametrize("thread", [":-1    -1", ":-1    -1/-1"])
def test_a_thread_that_is_about_to_end_has_no_number_of_perfs(tmp_path, thread):
    """As perf script printed it; that it is thread 1 was read from the end."""
    path = tmp_path / "perf.txt"
    path.write_text(
        f"  {thread} [000]  8066.290872882: sched:sched_switch: prev_comm=a prev_pid=9120"
        " prev_prio=120 prev_state=X ==> next_comm=b next_pid=9118 next_prio=120\n"
        f"  {thread} [000]  8066.290872883: timer:hrtimer_cancel: hrtimer=0xffff\n"
    )
    assert [each.pid for each in open_trace(path).events([(0, 1 << 62)])] == [9120, -1]


def test_a_kernel_without_exit_events():
    summary = summary_of(TRACES / "ftrace-kvm-pio-mmio-v6.18.txt")
    assert summary.events == 350
    assert not summary.has_exit_events
    assert "4072 events, of which 350" in summary.notes[0]


@pytest.mark.parametrize(
    ("name", "counts", "hlt_ns"),
    [
        ("nested-svm.perf-kvm-stat", {"io": 20572, "npf": 1985, "hlt": 274}, 274 * 924130),
        ("perf-kvm-stat-report-svm-v6.1", {"msr": 200, "cpuid": 100, "io": 100}, None),
        (
            "perf-kvm-stat-report-vmx",
            {"HLT": 101128, "VMCALL": 14089, "CPUID": 24},
            101128 * 310880,
        ),
        ("perf-kvm-stat-report-ioport-v6.1", {"0x3f8:POUT": 100}, None),
    ],
)
def test_perf_tables(name, counts, hlt_ns):
    summary = summary_of(TRACES / f"{name}.txt")
    rows = {each.reason: each for each in summary.exits}
    assert {reason: rows[reason].count for reason in counts} == counts
    assert summary.format == "perf kvm stat report"
    if hlt_ns:
        idle = rows.get("hlt") or rows["HLT"]
        assert idle.idle
        assert idle.total_ns == hlt_ns
    assert ("totals" in (summary.truncated_at or "")) == (name == "perf-kvm-stat-report-vmx")


def test_perf_table_adds_up_to_its_own_last_line():
    """Its total, 36089.05 us, is that of the rows within half a unit of each printed mean."""
    summary = summary_of(TRACES / "perf-kvm-stat-report-svm-v6.1.txt")
    assert summary.events == 405
    resolution_ns = sum(each.count for each in summary.exits) * 5
    assert abs(sum(each.total_ns for each in summary.exits) - 36_089_050) <= resolution_ns
    assert max(each.max_ns for each in summary.exits) == 16_617_740


def test_a_table_of_perf_comes_with_what_helps():
    """It has no events, so no worst moment tells it."""
    summary = summary_of(TRACES / "perf-kvm-stat-report-vmx.txt")
    rows = {row["reason"]: row for row in exits_json(summary)}
    assert "qemu-hugepages" in rows["EPT_VIOLATION"]["tunings"]
    assert "qemu-cpu-pm" in rows["HLT"]["tunings"]
    printed = io.StringIO()
    print_exits(summary, Console(file=printed, width=200))
    helps = printed.getvalue().partition("what helps")[2]
    costly = [name for name in rows if f" {name} " in helps]
    assert costly[:2] == ["EPT_VIOLATION", "VMCALL"]
    assert "CPUID" not in costly  # 0.013 % of the time
    assert helps.index("HLT") < helps.index("EPT_VIOLATION")


def test_perf_table_of_one_vcpu(tmp_path):
    text = (TRACES / "perf-kvm-stat-report-svm-v6.1.txt").read_text()
    summary = summary_of_text(tmp_path, text.replace("all VCPUs", "VCPU 27"))
    assert {each.vcpu for each in summary.exits} == {"27"}


@pytest.mark.parametrize("flags", ["d..1", "d..1.", ".N...", "d...1..", "dN.h2..", ""])
def test_flags_of_every_kernel(tmp_path, flags):
    lines = (
        f"  CPU 0/KVM-41 [001] {flags} 5.000001: kvm_entry: vcpu 3, rip 0x1000[immediate exit]\n"
        f"  CPU 0/KVM-41 [001] {flags} 5.000002: kvm_exit: vcpu 3 reason HLT rip 0x1 info1 0x0\n"
        f"  CPU 0/KVM-41 [001] {flags} 5.000005: kvm_entry: vcpu 3, rip 0x1000 intr_info 0x0\n"
    )
    (row,) = summary_of_text(tmp_path, lines).exits
    assert (row.vcpu, row.reason, row.count, row.total_ns) == ("3", "HLT", 1, 3000)


@pytest.mark.parametrize(
    "thread",
    [
        "qemu-system-x86-7",
        "  CPU 0/KVM-7",
        "a [b] c-7",
        "-7",
        "<...>-7",
        "kworker/0:1-7",
        "x-1 (1234)-7 ( 1234)",
        "mini 7",
        "mini 12/7",
    ],
)
def test_names_of_threads(tmp_path, thread):
    text = f"{thread} [000] 1.000000001: kvm_exit: reason CPUID rip 0x1 info 0 0\n"
    path = tmp_path / "trace.txt"
    path.write_text(text)
    (event,) = open_trace(path).events([(0, 10**18)])
    assert event.pid == 7
    assert event.t_ns == 1_000_000_001
    assert event.fields["reason"] == "CPUID"


@pytest.mark.parametrize(
    ("stamp", "t_ns"),
    [
        ("0.000000", 0),
        ("15.276191", 15_276_191_000),
        ("15.276191007", 15_276_191_007),
        ("9000000000.999999999", 9_000_000_000_999_999_999),
    ],
)
def test_times_are_exact(tmp_path, stamp, t_ns):
    path = tmp_path / "trace.txt"
    path.write_text(f"a-1 [000] .... {stamp}: irq_handler_entry: irq=24 name=virtio0-req.0\n")
    (event,) = open_trace(path).events([(t_ns, t_ns)])
    assert event.fields["irq"] == 24
    assert event.fields["name"] == "virtio0-req.0"


def test_reasons_of_64_bit_arm(tmp_path):
    """The text of arch/arm64/kvm/trace_arm.h; WFx is the guest's waiting."""
    lines = (
        "q-9 [000] d..1 1.000001: kvm_entry: PC: 0xffff800010\n"
        "q-9 [000] d..1 1.000002: kvm_exit: TRAP: HSR_EC: 0x0001 (WFx), PC: 0xffff800014\n"
        "q-9 [000] d..1 1.000012: kvm_entry: PC: 0xffff800018\n"
        "q-9 [000] d..1 1.000013: kvm_exit: IRQ: HSR_EC: 0x0000 (UNKNOWN), PC: 0xffff800018\n"
        "q-9 [000] d..1 1.000015: kvm_entry: PC: 0xffff800018\n"
        "q-9 [000] d..1 1.000016: kvm_exit: TRAP: HSR_EC: 0x0024 (DABT_LOW), PC: 0xffff800018\n"
        "q-9 [000] d..1 1.000020: kvm_entry: PC: 0xffff800018\n"
    )
    rows = {each.reason: each for each in summary_of_text(tmp_path, lines).exits}
    assert {reason: each.total_ns for reason, each in rows.items()} == {
        "WFx": 10_000,
        "IRQ": 2_000,
        "DABT_LOW": 4_000,
    }
    assert rows["WFx"].idle
    assert not rows["IRQ"].idle


def test_share_is_of_the_time_that_was_lost():
    rows = exits_json(summary_of(TRACES / "nested-svm.dat"))
    assert {row["reason"] for row in rows if row["share"] is None} == {"hlt"}
    assert sum(row["share"] for row in rows if not row["idle"]) == pytest.approx(1)
    io = next(row for row in rows if row["reason"] == "io")
    lost_ns = sum(row["total_ns"] for row in rows if not row["idle"])
    assert io["share"] == pytest.approx(io["total_ns"] / lost_ns)


def test_two_machines_with_the_same_vcpu(tmp_path):
    lines = "".join(
        f"q-{pid} [000] .... 1.0000{n}: kvm_exit: vcpu 0 reason io rip 0x1\n"
        f"q-{pid} [000] .... 1.0000{n + 1}: kvm_entry: vcpu 0, rip 0x1\n"
        for n, pid in ((10, 7), (20, 8))
    )
    assert {each.vcpu for each in summary_of_text(tmp_path, lines).exits} == {"0@7", "0@8"}


def test_tracers_of_latency():
    timerlat = summary_of(DATA / "importers" / "ftrace-timerlat-raw-v6.1.txt")
    assert max(each.latency_ns for each in timerlat.worst if each.kind == "timerlat") == 83_800
    hwlat = summary_of(DATA / "importers" / "ftrace-hwlat-raw-v6.1.txt")
    assert max(each.latency_ns for each in hwlat.worst if each.kind == "gap") == 12_608_000
    assert summary_of(DATA / "importers" / "ftrace-osnoise-raw-v6.1.txt").names == {"osnoise": 6}


def test_lost_events_are_told():
    told = summary_of(DATA / "learn" / "ftrace-lost-v6.18.txt")
    assert told.lost.events == 1374 + 1867
    assert any("3,241 events were lost" in each for each in remarks(told))
    assert summary_of(DATA / "learn" / "ftrace-overwritten-v6.18.txt").lost.events > 0


def test_what_was_open_when_events_were_lost_is_not_closed_by_what_comes_later(tmp_path):
    lines = (
        "q-9 [000] .... 1.000001: kvm_exit: vcpu 0 reason io rip 0x1\n"
        "CPU:0 [LOST 7 EVENTS]\n"
        "q-9 [000] .... 2.000001: kvm_entry: vcpu 0, rip 0x1\n"
    )
    summary = summary_of_text(tmp_path, lines)
    (row,) = summary.exits
    assert (row.count, row.open, row.total_ns) == (1, 1, 0)
    assert summary.lost.events == 7


def test_an_exit_ends_with_no_entry_on_a_cpu_whose_events_were_lost_meanwhile(tmp_path):
    """The thread left the guest on CPU 0, and went to CPU 1 while that lost events."""
    lines = (
        "q-9 [001] .... 0.500000: sched_stat_runtime: comm=q\n"
        "q-9 [000] .... 1.000001: kvm_exit: vcpu 0 reason io rip 0x1\n"
        "CPU:1 [LOST 7 EVENTS]\n"
        "q-9 [001] .... 2.000001: kvm_entry: vcpu 0, rip 0x1\n"
        "q-9 [001] .... 2.000010: kvm_exit: vcpu 0 reason cpuid rip 0x1\n"
        "q-9 [000] .... 2.000013: kvm_entry: vcpu 0, rip 0x1\n"
    )
    summary = summary_of_text(tmp_path, lines)
    rows = {row.reason: (row.count, row.open, row.total_ns) for row in summary.exits}
    assert rows == {"io": (1, 1, 0), "cpuid": (1, 0, 3000)}
    assert summary.losses == (Loss(1, 500_000_000, 2_000_001_000),)


def test_a_clock_that_runs_backwards_costs_nothing(tmp_path):
    lines = (
        "q-9 [000] .... 2.000001: kvm_exit: vcpu 0 reason io rip 0x1\n"
        "q-9 [000] .... 1.000001: kvm_entry: vcpu 0, rip 0x1\n"
    )
    summary = summary_of_text(tmp_path, lines)
    assert (summary.exits[0].total_ns, summary.backwards) == (0, 1)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"PERFILE2" + bytes(100), "header"),
        (b"\x1f\x8b\x08" + bytes(100), "gzip"),
        (b"", "empty"),
        (b"hello\nworld\n", "line 1"),
        (bytes(range(256)) * 40, "no event"),
        (b"a-1 [000] .... 12345: kvm_entry: vcpu 0\n", "bare counts"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, content, expected):
    path = tmp_path / "trace"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=expected) as refusal:
        summary_of(path)
    assert str(path) in str(refusal.value)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadInput, match="not a regular file"):
        open_trace(tmp_path / "pipe")


def test_no_file(tmp_path):
    with pytest.raises(BadInput, match="cannot be read"):
        open_trace(tmp_path / "none")
    with pytest.raises(BadInput, match="cannot be read"):
        open_trace(tmp_path)
