"""Traces of which the cause is known are told right, and certainty needs proof."""

import re
import struct
import subprocess
from pathlib import Path

import pytest
from hostile import FUNCTIONS, Hostile, event_format, pages, record

from latenz.traces.advice import remedy
from latenz.traces.causes import Cause
from latenz.traces.explaining import explain
from latenz.traces.flags import Flags, parse
from latenz.traces.functions import interrupted
from latenz.traces.opening import open_trace

KNOWN = Path(__file__).parents[1] / "data/traces/known"
PLANTED = KNOWN.parent / "planted"
_OF_DEVICES = {
    "host-irq-affinity",
    "host-irqbalance-off",
    "cmdline-irqaffinity",
    "cmdline-managed-irq",
    "host-net-queues",
    "host-irq-default-mask",
}


def _worst(name: str) -> Cause:
    first = explain(open_trace(KNOWN / f"{name}.txt")).causes[0]
    assert sum(share.share_ns for share in first.shares) == first.latency_ns
    return first


@pytest.mark.parametrize(
    ("name", "cause", "confidence", "share_ns"),
    [
        ("plain-preemptoff", "preemption-off", "likely", 700_000),
        ("race-preemptoff", "preemption-off", "likely", 802_000),
        ("race-preemptoff-wakeup", "preemption-off", "likely", 802_000),  # without interrupts
        ("plain-idle", "host-idle", "likely", 179_500),
        ("race-idle", "host-idle", "likely", 140_000),
        ("ipi", "inter-processor-interrupt", "certain", 336_000),
        ("smi", "smi-like-gap", "likely", 300_000),
        ("inversion", "priority-inversion", "likely", 2_000_000),
    ],
)
def test_a_known_cause_is_told_with_as_much_confidence_as_there_is_proof(
    name: str, cause: str, confidence: str, share_ns: int
) -> None:
    first = _worst(name).first
    assert (first.cause, first.confidence) == (cause, confidence)
    assert share_ns <= first.share_ns <= share_ns + 5_000
    assert bool(first.alternatives) == (confidence != "certain")


@pytest.mark.parametrize("name", ["race-preemptoff", "race-preemptoff-wakeup", "race-idle"])
def test_what_a_cpu_chose_before_it_knew_of_a_thread_is_no_throttling(name: str) -> None:
    told = {share.cause for share in _worst(name).shares}
    assert told.isdisjoint({"throttled", "fair-server"})


def test_affinity_of_devices_is_not_advised_against_interrupts_of_other_cpus() -> None:
    first = _worst("ipi").first
    assert _OF_DEVICES.isdisjoint(first.tunings)
    assert _OF_DEVICES.isdisjoint(remedy("tlb-shootdown").tunings)
    assert "ipi:ipi_send_cpumask" in first.record


def test_cpus_that_come_back_microseconds_apart_were_silent_at_once() -> None:
    assert "all CPUs were silent at once" in _worst("smi").first.evidence


def test_the_thread_that_ran_in_place_of_a_locks_owner_is_named() -> None:
    worst = _worst("inversion")
    assert worst.window.kind == "blocked"
    assert worst.first.by[0].name == "mid-70 ran, until woken by low-60"
    assert worst.first.share_ns == 2_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d..2.", Flags(True, False, False, False, "thread", 2)),
        ("dNh2.", Flags(True, False, True, False, "hardirq", 2)),
        (".n.1.", Flags(False, False, True, False, "thread", 1)),
        ("b.s..", Flags(False, True, False, False, "softirq", 0)),
        ("DLH1.", Flags(True, True, False, True, "hardirq", 1)),
        ("dN.2", Flags(True, False, True, False, "thread", 2)),
        (".nLsa.1", Flags(False, False, True, True, "softirq", 10)),
        ("", None),
        ("78242.3", None),
    ],
)
def test_the_flags_of_an_event_are_read_by_their_places(text: str, expected: object) -> None:
    assert parse(text) == expected


def test_recorded_flags_are_those_that_trace_cmd_prints() -> None:
    path = PLANTED / "throttled.dat"
    report = subprocess.run(
        ["trace-cmd", "report", "-l", "-i", path], capture_output=True, text=True, check=True
    ).stdout
    rows = re.findall(r"-\d+ +\d+([.dDbX]\S)(\S)(\S)\S* +(\d+)\.(\d{6}): (\w+):", report)
    assert len(rows) > 3000
    trace = open_trace(path)
    summary = trace.summary()
    ours = [each.flags for each in trace.events([(summary.start_ns, summary.end_ns)])]
    # that version of trace-cmd does not tell n, which is not yet folded into the count, from N
    assert [each[:4].replace("n", "N") for each in ours] == ["".join(row[:3]) for row in rows]
    assert {"dnh.", "dNh."} <= {each[:4] for each in ours}


_INTERRUPTED = (
    "hrtimer_wakeup;__hrtimer_run_queues;hrtimer_interrupt;__sysvec_apic_timer_interrupt;"
    "sysvec_apic_timer_interrupt;asm_sysvec_apic_timer_interrupt;zap_pte_range;unmap_page_range"
)


@pytest.mark.parametrize(
    ("stack", "function"),
    [
        (_INTERRUPTED, "zap_pte_range"),
        ("gic_handle_irq;call_on_irq_stack;el1_interrupt;el1h_64_irq;fb_scroll", "fb_scroll"),
        ("try_to_wake_up;wake_up_q;futex_wake;do_futex", "futex_wake"),
        ("0x1234;<00007f12>", ""),
        ("", ""),
    ],
)
def test_of_a_stack_the_function_is_named_that_was_interrupted(stack: str, function: str) -> None:
    assert interrupted(stack) == function


@pytest.mark.parametrize(
    ("below", "cause", "told"),
    [
        ("_raw_spin_unlock_irqrestore;fb_scroll", "irqs-off", "app-40 in fb_scroll"),
        ("", "smi-like-gap", "in user space, where interrupts are never off"),
        ("zap_pte_range", "smi-like-gap", "code that disables interrupts"),
    ],
    ids=["enabling", "user space", "kernel"],
)
def test_where_an_interrupt_came_tells_whether_interrupts_were_off(
    below: str, cause: str, told: str, tmp_path: Path
) -> None:
    """Nothing is traced for 300 us; then the timer's interrupt comes, and its stack tells where."""
    frames = ["try_to_wake_up", "hrtimer_wakeup", "asm_sysvec_apic_timer_interrupt"]
    rows = [(1304, "             app-40      [001] d.h3. TIME: <stack trace>")]
    rows += [(1304, f" => {name}") for name in [*frames, *below.split(";")] if name]
    rows += [(1100, "            make-301     [000] d.... TIME: sys_enter: NR 1")]
    first = _with_rows("smi", tmp_path, *rows).first
    assert first.cause == cause
    assert told in f"{first.evidence} {first.alternatives}"


def _with_rows(name: str, folder: Path, *rows: tuple[int, str]) -> Cause:
    """Explain a known trace with rows added: microseconds after its 1000 s, and what follows."""
    lines = (KNOWN / f"{name}.txt").read_text().splitlines()
    for at_us, text in rows:
        later = (
            place
            for place, line in enumerate(lines)
            if (found := re.search(r" 1000\.(\d{6}): ", line)) and int(found[1]) > at_us
        )
        lines.insert(next(later), text.replace("TIME", f"1000.{at_us:06}"))
    path = folder / "trace.txt"
    path.write_text("\n".join(lines) + "\n")
    return explain(open_trace(path)).causes[0]


_KWORKER = "     kworker/1:1-41      [001] {} TIME: {}"


@pytest.mark.parametrize(
    ("rows", "expected", "note"),
    [
        (
            [
                (1002, _KWORKER.format("...1.", "preempt_disable: caller=zap_pte+0x1 parent=x")),
                (1802, _KWORKER.format("...1.", "preempt_enable: caller=zap_pte+0x9 parent=x")),
            ],
            "kworker/1:1-41 in zap_pte",
            "preemption was disabled",
        ),
        (
            [
                (1002, _KWORKER.format("d....", "irq_disable: caller=_raw_spin_lock parent=fb")),
                (1802, _KWORKER.format("d....", "irq_enable: caller=_raw_spin_unlock parent=fb")),
            ],
            "kworker/1:1-41 in fb",
            "",
        ),
        (
            [
                (1004, _KWORKER.format("dNh2.", "<stack trace>")),
                *((1004, f" => {name}") for name in _INTERRUPTED.split(";")),
            ],
            "kworker/1:1-41 in zap_pte_range",
            "",
        ),
        (
            [
                (1010, _KWORKER.format(".N.1.", "fb_scroll <-con_write")),
                (1700, _KWORKER.format(".N.1.", "fb_copy <-con_write")),
            ],
            "kworker/1:1-41 in fb_scroll",
            "preemption was disabled",
        ),
        (
            [
                (
                    902,
                    _KWORKER.format(
                        ".....",
                        "workqueue_execute_start: work struct 00000000ab: function vmstat_update",
                    ),
                ),
            ],
            "kworker/1:1-41 in work vmstat_update",
            "",
        ),
        (
            [
                (1010, _KWORKER.format(".N...", "sys_enter: NR 11 (7f00, 1000)")),
                (1500, _KWORKER.format(".N...", "page_fault_kernel: address=0x1 ip=0x2")),
            ],
            "kworker/1:1-41 in system call NR 11 (7f00,",
            "at set places only",
        ),
    ],
    ids=["preempt_disable", "irq_disable", "stack", "function", "work", "kernel"],
)
def test_the_function_that_kept_a_cpu_is_named(
    rows: list[tuple[int, str]], expected: str, note: str, tmp_path: Path
) -> None:
    worst = _with_rows("race-preemptoff-wakeup", tmp_path, *rows)
    told = next(each for each in worst.shares if each.cause in ("preemption-off", "irqs-off"))
    assert expected in [part.name for part in told.by], told
    assert note in told.evidence


def test_who_sent_an_interrupt_and_for_what_is_named(tmp_path: Path) -> None:
    sent = "       bash-300      [000] d..2. TIME: ipi_send_cpumask: cpumask=1 callsite=smp_call"
    rows = [(1000, f"{sent}+0x1/0x2 callback=flush_tlb_func+0x0/0x10")]
    first = _with_rows("ipi", tmp_path, *rows).first
    assert first.cause == "tlb-shootdown"
    assert "function call interrupt from bash-300 on CPU 0 for flush_tlb_func" in first.evidence


def test_a_thread_that_is_moved_while_it_is_ready_is_followed(tmp_path: Path) -> None:
    by = "            make-301     [000] d..2. TIME: "
    switch = "sched_switch: prev_comm=make prev_pid=301 prev_prio=120 prev_state=R+ ==> "
    rows = [
        (1500, f"{by}sched_migrate_task: comm=rt pid=50 prio=9 orig_cpu=1 dest_cpu=0"),
        (1510, f"{by}{switch}next_comm=rt next_pid=50 next_prio=9"),
    ]
    worst = _with_rows("race-preemptoff-wakeup", tmp_path, *rows)
    assert worst.latency_ns == 510_000
    assert worst.first.cause == "preemption-off"
    assert "the thread was moved from CPU 1 to CPU 0" in worst.first.evidence
    parts = [part.name for share in worst.shares for part in share.by]
    assert any(name.startswith(("make-", "bash-")) for name in parts)


def test_a_console_that_is_written_to_is_told(tmp_path: Path) -> None:
    text = "console: [   12.3] usb 1-1: new device"
    rows = [(1100, _KWORKER.format("d..1.", text))]
    assert _with_rows("race-preemptoff-wakeup", tmp_path, *rows).first.cause == "console-output"


_COMMON = (
    "field:unsigned short common_type; offset:0; size:2; signed:0;\n"
    "field:unsigned char common_flags; offset:2; size:1; signed:0;\n"
    "field:unsigned char common_preempt_count; offset:3; size:1; signed:0;\n"
    "field:int common_pid; offset:4; size:4; signed:1;\n"
)
_FORMATS = {
    "ipi_send_cpumask": "field:__data_loc cpumask_t cpumask; offset:8; size:4; signed:0;\n"
    "field:void * callsite; offset:16; size:8; signed:0;\n"
    "field:void * callback; offset:24; size:8; signed:0;\n",
    "preempt_disable": "field:s32 caller_offs; offset:8; size:4; signed:1;\n"
    "field:s32 parent_offs; offset:12; size:4; signed:1;\n",
    "kernel_stack": "field:int size; offset:8; size:4; signed:1;\n"
    "field:unsigned long caller[8]; offset:16; size:64; signed:0;\n",
    "function": "field:unsigned long ip; offset:8; size:8; signed:0;\n"
    "field:unsigned long parent_ip; offset:16; size:8; signed:0;\n",
}
_TEXT = 0xFFFFFFFF81000000


def test_functions_and_cpus_of_binary_events_are_told_by_name(tmp_path: Path) -> None:
    trace = Hostile()
    texts = [(name, _COMMON + text) for name, text in _FORMATS.items()]
    trace.formats(*(event_format(name, 10 + at, text) for at, (name, text) in enumerate(texts)))
    names = {0: "_stext", 0x100: "zap_pte_range", 0x200: "fb_copy"}
    symbols = "".join(f"{_TEXT + at:x} T {name}\n" for at, name in names.items())
    trace.part(FUNCTIONS, len(symbols).to_bytes(4, "little") + symbols.encode())
    masked = struct.pack("<IIQQ", 8 << 16 | 32, 0, _TEXT + 0x210, _TEXT + 0x100)
    stack = struct.pack("<iiQQQ", 3, 0, _TEXT + 0x250, _TEXT + 0x180, 2**64 - 1)
    contents = (
        masked + (0b1010).to_bytes(8, "little"),
        struct.pack("<ii", 0x104, 0x204),
        stack,
        struct.pack("<QQ", _TEXT + 0x104, _TEXT + 0x204),
    )
    head = [struct.pack("<HBBi", 10 + at, 0x29, 0x12, 41) for at in range(len(contents))]
    rows = [one + other for one, other in zip(head, contents, strict=True)]
    trace.data(pages(record(each) for each in rows))
    found = list(open_trace(trace.write(tmp_path / "trace.dat")).events([(0, 2**62)]))
    assert [each.name for each in found] == [*_FORMATS]
    assert {each.flags for each in found} == {"dph21"}
    told = [each.fields for each in found]
    assert (told[0]["cpumask"], told[0]["callback"]) == ("1,3", "zap_pte_range")
    assert (told[1]["caller"], told[1]["parent"]) == ("zap_pte_range", "fb_copy")
    assert told[2]["stack"] == "fb_copy;zap_pte_range"
    assert (told[3]["ip"], told[3]["parent_ip"]) == ("zap_pte_range", "fb_copy")
