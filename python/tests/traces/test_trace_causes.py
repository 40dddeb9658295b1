"""Causes: planted ones are found first whatever noise there is, and shares sum to the latency."""

import json
import random
import re
from itertools import pairwise
from pathlib import Path

import planting
import pytest

from latenz.errors import BadInput
from latenz.model import Metadata, SampleSet, TimeBase
from latenz.traces import explaining
from latenz.traces.advice import explanations, meaning, reason_named, reasons, remedy
from latenz.traces.causes import Cause
from latenz.traces.explaining import explain, explain_late
from latenz.traces.join import Late, latest
from latenz.traces.occupancy import Occupancy
from latenz.traces.opening import open_trace
from latenz.traces.timeline import write_timeline
from latenz.tune import catalogue

DATA = Path(__file__).parents[1] / "data/traces"
_THESIS = {  # pamuk2024 chapter 6, with the numbers of Intel's manual, volume 3D, appendix C
    "APIC_WRITE": 56,
    "HLT": 12,
    "EPT_MISCONFIG": 49,
    "PREEMPTION_TIMER": 52,
    "EXTERNAL_INTERRUPT": 1,
    "IO_INSTRUCTION": 30,
    "EOI_INDUCED": 45,
    "EPT_VIOLATION": 48,
    "PAUSE_INSTRUCTION": 40,
    "CPUID": 10,
    "MSR_READ": 31,
}


def _check(cause: Cause) -> None:
    """What must hold of each cause whatever it is."""
    assert sum(share.share_ns for share in cause.shares) == cause.latency_ns
    assert all(sum(part.share_ns for part in each.by) == each.share_ns for each in cause.shares)
    known = [each.share_ns for each in cause.shares if each.cause != "unknown"]
    assert known == sorted(known, reverse=True)
    assert all(share.evidence for share in cause.shares)


def test_who_had_a_cpu_in_a_window_is_found_as_by_looking_at_all() -> None:
    trace = open_trace(DATA / "planted/timer-storm.dat")
    summary = trace.summary()
    begin_ns, end_ns = summary.start_ns, summary.end_ns
    occupancy = Occupancy(trace.events([(begin_ns, end_ns)]), begin_ns)
    for stretches in occupancy.stretches.values():
        assert all(one.end_ns <= other.start_ns for one, other in pairwise(stretches))
    chance = random.Random(1)
    for _ in range(200):
        [cpu] = chance.choices([*occupancy.stretches, 99])
        first_ns, last_ns = sorted(chance.choices(range(begin_ns, end_ns), k=2))
        assert occupancy.of(cpu, first_ns, last_ns) == [
            each.within(first_ns, last_ns)
            for each in occupancy.stretches.get(cpu, [])
            if each.end_ns > first_ns and each.start_ns < last_ns
        ]


@pytest.mark.parametrize("planted", planting.CAUSES)
def test_a_planted_cause_is_first_below_any_noise(planted: str, tmp_path: Path) -> None:
    for seed in range(5):
        trace = planting.trace_with(planted, seed)
        worst = explain(open_trace(trace.write(tmp_path / "trace.txt")), 3).causes
        for each in worst:
            _check(each)
        first = worst[0].first
        assert first.cause == planted.split(" to ")[0].split(" in ")[0], (seed, worst[0].to_json())
        assert first.share_ns >= 0.9 * trace.planted_us * 1000
        assert worst[0].rank == 1


@pytest.mark.parametrize(
    ("file", "cause", "at_least_ns"),
    [
        ("throttled.dat", "fair-server", 45_000_000),
        ("deadline-budget.dat", "deadline-budget", 30_000_000),
        ("preempted.dat", "preempted", 4_000_000),
        ("timer-storm.dat", "interrupt-storm", 100_000),
    ],
)
def test_really_planted_causes_are_first(file: str, cause: str, at_least_ns: int) -> None:
    found = explain(open_trace(DATA / "planted" / file)).causes
    for each in found:
        _check(each)
    assert found[0].first.cause == cause
    assert found[0].first.share_ns >= at_least_ns


def test_exits_of_a_real_virtual_machine_are_explained() -> None:
    trace = open_trace(DATA / "nested-svm.dat")
    found = explain(trace, 20).causes
    longest = max(each.max_ns for each in trace.summary().exits if not each.idle)
    for each in found:
        _check(each)
        assert each.first.cause.startswith("exit:") or each.first.cause == "vcpu-preempted"
    assert found[0].latency_ns == longest
    assert "HLT" not in {each.first.cause for each in found}


def _exit_trace(reason: str, t_us: int, middle: list[str]) -> str:
    """One exit of a virtual CPU among short ones, as the kernel's tracer prints them."""
    lines = []

    def add(at_us: int, text: str, thread: str = "CPU 0/KVM-900") -> None:
        lines.append(f"  {thread} [001] d..2. {at_us // 10**6}.{at_us % 10**6:06}: {text}")

    for number in range(20):
        add(t_us + 100 * number, "kvm_exit: vcpu 0 reason MSR_WRITE rip 0x1 info1 0x0 info2 0x0")
        add(t_us + 100 * number + 2, "kvm_entry: vcpu 0, rip 0x1")
    start_us = t_us + 3000
    add(start_us, f"kvm_exit: vcpu 0 reason {reason} rip 0x1 info1 0x0 info2 0x0")
    for each in middle:
        offset, _, text = each.partition(" ")
        of_other = text.startswith("sched_switch: prev_comm=other")
        thread = "other-901" if of_other else "CPU 0/KVM-900"
        add(start_us + int(offset), text, thread)
    add(start_us + 800, "kvm_entry: vcpu 0, rip 0x1")
    return "# tracer: nop\n#\n" + "\n".join(lines) + "\n"


_VCPU = "{0}_comm=CPU 0/KVM {0}_pid=900 {0}_prio=98"
_OTHER = "{0}_comm=other {0}_pid=901 {0}_prio=120"


@pytest.mark.parametrize("reason", sorted(_THESIS.keys() - {"HLT"}))
@pytest.mark.parametrize(
    ("middle", "expected"),
    [
        ([], "exit:{}"),
        (["10 kvm_userspace_exit: reason KVM_EXIT_IO (2)"], "exit:{}"),
        (
            [
                f"10 sched_switch: {_VCPU.format('prev')} prev_state=R ==> {_OTHER.format('next')}",
                f"700 sched_switch: {_OTHER.format('prev')} prev_state=R ==> "
                f"{_VCPU.format('next')}",
            ],
            "throttled",
        ),
        (
            [
                f"10 sched_switch: {_VCPU.format('prev')} prev_state=S ==> {_OTHER.format('next')}",
                f"700 sched_switch: {_OTHER.format('prev')} prev_state=R ==> "
                f"{_VCPU.format('next')}",
            ],
            "blocked",
        ),
    ],
    ids=["in the kernel", "in user space", "throttled", "asleep"],
)
def test_an_exit_is_told_by_its_reason_unless_its_thread_was_away(
    reason: str, middle: list[str], expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "trace.txt"
    path.write_text(_exit_trace(reason, 5_000_000, middle))
    found = explain(open_trace(path)).causes
    _check(found[0])
    assert found[0].latency_ns == 800_000
    assert found[0].first.cause == expected.format(reason)
    in_user_space = any("userspace" in each for each in middle)
    if in_user_space:
        assert found[0].first.by[0].name == "in user space"
        assert found[0].first.by[0].share_ns == 790_000


def test_an_exit_that_ends_on_another_cpu_is_told_by_who_had_each_of_them(tmp_path: Path) -> None:
    """3 ms in the kernel on CPU 1; then its thread waits, and comes in on CPU 0."""
    switched = f"sched_switch: {_VCPU.format('prev')} prev_state=R ==> "
    middle = [
        f"600 {switched}{_OTHER.format('next')}",
        "650 sched_migrate_task: comm=CPU 0/KVM pid=900 prio=98 orig_cpu=1 dest_cpu=0",
    ]
    text = _exit_trace("EPT_VIOLATION", 5_000_000, middle)
    lines = text.splitlines()
    came = "sched_switch: prev_comm=busy prev_pid=902 prev_prio=98 prev_state=S ==> "
    lines[-1:] = [
        f"  busy-902 [000] d..2. 5.003780: {came}{_VCPU.format('next')}",
        lines[-1].replace("[001]", "[000]"),
    ]
    lines[2:2] = ["  busy-902 [000] d..2. 4.000000: sys_enter: NR 1"]
    path = tmp_path / "trace.txt"
    path.write_text("\n".join(lines) + "\n")
    first = explain(open_trace(path)).causes[0]
    _check(first)
    assert first.latency_ns == 800_000
    shares = {share.cause: share.share_ns for share in first.shares}
    assert shares["exit:EPT_VIOLATION"] == 620_000
    assert shares["vcpu-preempted"] == 130_000
    assert "own-execution" not in shares


def test_an_exit_without_the_schedulers_events_is_never_the_guests_own_time(
    tmp_path: Path,
) -> None:
    """It ends on another CPU; nobody tells when it went there."""
    lines = _exit_trace("EPT_VIOLATION", 5_000_000, []).splitlines()
    lines[-1] = lines[-1].replace("[001]", "[000]")
    lines += ["  other-901 [001] d..2. 5.004000: sys_enter: NR 1"]
    path = tmp_path / "trace.txt"
    path.write_text("\n".join(lines) + "\n")
    first = explain(open_trace(path)).causes[0]
    assert first.latency_ns == 800_000
    assert first.first.cause == "exit:EPT_VIOLATION"


def test_of_a_wait_with_very_many_events_the_beginning_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread sleeps for 0.8 ms; meanwhile another CPU has an interrupt every microsecond."""
    switched = f"sched_switch: {_VCPU.format('prev')} prev_state=S ==> {_OTHER.format('next')}"
    back = f"sched_switch: {_OTHER.format('prev')} prev_state=R ==> {_VCPU.format('next')}"
    text = _exit_trace("EPT_VIOLATION", 5_000_000, [f"10 {switched}", f"700 {back}"])
    lines = text.splitlines()
    lines[-2:-2] = [
        f"  busy-902 [000] d..2. 5.{3011 + number:06}: irq_handler_{edge}"
        for number in range(680)
        for edge in ("entry: irq=24 name=eth0", "exit: irq=24 ret=handled")
    ]
    path = tmp_path / "trace.txt"
    path.write_text("\n".join(lines) + "\n")
    whole = explain(open_trace(path), 1)
    assert whole.causes[0].first.cause == "blocked"
    assert whole.notes == ()
    monkeypatch.setattr(explaining, "_MOST_EVENTS", 500)
    cut = explain(open_trace(path), 1)
    (cause,) = cut.causes
    assert cause.latency_ns == whole.causes[0].latency_ns == 800_000
    assert sum(share.share_ns for share in cause.shares) == cause.latency_ns
    assert cause.first.cause == "blocked"
    assert cause.shares[-1].cause == "not-looked-at"
    assert 300_000 < cause.shares[-1].share_ns < 700_000
    assert "of 800 µs only the first" in cut.notes[0]


def test_a_wait_with_very_many_events_leaves_enough_for_one_within_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both lie in the same busy 0.8 ms; the second begins after more events than one may have."""
    lines = _exit_trace("EPT_VIOLATION", 5_000_000, []).splitlines()
    lines[-1:-1] = [
        f"  busy-902 [000] d..2. 5.{3001 + number:06}: irq_handler_{edge}"
        for number in range(799)
        for edge in ("entry: irq=24 name=eth0", "exit: irq=24 ret=handled")
    ]
    for at_us, text in (
        (3600, "kvm_exit: vcpu 1 reason IO_INSTRUCTION rip 0x1 info1 0x0 info2 0x0"),
        (3750, "kvm_entry: vcpu 1, rip 0x1"),
    ):
        later = next(number for number, line in enumerate(lines) if f" 5.{at_us:06}:" in line)
        lines.insert(later, f"  CPU 1/KVM-910 [002] d..2. 5.{at_us:06}: {text}")
    path = tmp_path / "trace.txt"
    path.write_text("\n".join(lines) + "\n")
    monkeypatch.setattr(explaining, "_MOST_EVENTS", 800)
    monkeypatch.setattr(explaining, "_FEWEST_EVENTS", 100)
    found = explain(open_trace(path), 2)
    long, short = found.causes
    assert {share.cause for share in long.shares} == {"exit:EPT_VIOLATION", "not-looked-at"}
    assert sum(share.share_ns for share in long.shares) == long.latency_ns == 800_000
    assert [(share.cause, share.share_ns) for share in short.shares] == [
        ("exit:IO_INSTRUCTION", 150_000)
    ]
    assert len(found.notes) == 1
    many = explain(open_trace(path), 20).causes
    assert [cause.what for cause in many if cause.first.cause == "not-looked-at"] == []


def test_a_cpu_whose_events_were_lost_is_not_called_silent(tmp_path: Path) -> None:
    """In place of a gap in which nothing is traced: one that the tracer says it has lost."""
    trace = planting.trace_with("smi-like-gap", 4)
    path = trace.write(tmp_path / "trace.txt")
    late = [each for each in explain(open_trace(path)).causes if each.latency_ns > 150_000]
    assert late[0].first.cause == "smi-like-gap"
    lines = path.read_text().splitlines()
    silent_us = trace.silent[1]
    place = next(
        number
        for number, line in enumerate(lines)
        if "[001]" in line and float(line.split()[3].rstrip(":")) * 1e6 >= silent_us - 1
    )
    lines.insert(place, "CPU:1 [LOST 7 EVENTS]")
    path.write_text("\n".join(lines) + "\n")
    window = Late(late[0].latency_ns, late[0].t_ns, 1, "idle")
    (cause,) = explain_late(open_trace(path), [window]).causes
    assert cause.first.cause == "unknown"
    assert write_timeline(open_trace(path), tmp_path / "timeline.json")
    rows = json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    ((at_us, track),) = [
        (row["ts"], row["tid"]) for row in rows if row["name"] == "events were lost"
    ]
    assert track == 1
    assert not [
        row
        for row in rows
        if row["ph"] == "X"
        and (row["pid"], row["tid"]) == (1, 1)
        and row["ts"] <= at_us < row["ts"] + row["dur"]
    ]


def test_exits_shorter_than_the_clocks_resolution_are_counted_and_not_late(tmp_path: Path) -> None:
    """Text has microseconds, and a short exit begins and ends in the same one."""
    lines = [
        f"  CPU 0/KVM-900 [001] d..2. 5.{number:06}: {text}"
        for number in range(20)
        for text in (
            "kvm_exit: vcpu 0 reason MSR_WRITE rip 0x1 info1 0x0 info2 0x0",
            "kvm_entry: vcpu 0, rip 0x1",
        )
    ]
    path = tmp_path / "trace.txt"
    path.write_text("# tracer: nop\n#\n" + "\n".join(lines) + "\n")
    trace = open_trace(path)
    assert [(each.count, each.total_ns) for each in trace.summary().exits] == [(20, 0)]
    assert explain(trace).causes == ()
    same = SampleSet.from_columns(
        Metadata(name="idle", time_base=TimeBase.SILICON, cpu=1),
        t_ns=[5_000_003_000, 5_000_004_000],
        latency_ns=[0, 2_000],
    )
    assert [each.latency_ns for each in latest([same], 10)] == [2_000]


def test_an_idle_guest_is_no_latency(tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    path.write_text(_exit_trace("HLT", 5_000_000, []))
    assert all(each.latency_ns == 2_000 for each in explain(open_trace(path)).causes)


def test_hardware_latency_events_make_a_gap_certain(tmp_path: Path) -> None:
    trace = planting.trace_with("smi-like-gap", 1)
    first, last = trace.silent
    trace.add(last + 20, 1, "hwlat", f"#1 inner/outer(us): 2/{last - first} ts:1000.030000 count:1")
    found = explain(open_trace(trace.write(tmp_path / "trace.txt"))).causes
    gaps = [each.first for each in found if each.first.cause == "smi-like-gap"]
    assert gaps
    assert gaps[0].confidence == "certain"


@pytest.mark.parametrize(
    ("planted", "context", "expected"),
    [
        ("preempted", "thread", "preempted"),
        ("interrupt-storm", "thread", "interrupt-storm"),
        ("irqs-off", "irq", "irqs-off"),
        ("smi-like-gap", "irq", "smi-like-gap"),
    ],
)
def test_samples_of_timerlat_are_explained(
    planted: str, context: str, expected: str, tmp_path: Path
) -> None:
    """The tracer writes its sample when the interrupt or the thread runs, with the latency."""
    trace = planting.trace_with(planted, 6)
    due_us = 1_000_000_000 + 1000 * (planting.WORST_CYCLE + 1)
    came = "local_timer_entry" if context == "irq" else f"next_pid={planting.RT_PID} "
    lines = sorted(trace.lines)
    t_us = next(at for at, _, line in lines if at > due_us and "[001]" in line and came in line)
    trace.running[1] = ("rt", planting.RT_PID, planting.RT_PRIORITY)
    told = f"#31 context {context:>6} timer_latency {1000 * (t_us - due_us)} ns"
    trace.add(t_us + 1, 1, "timerlat", told)
    found = explain(open_trace(trace.write(tmp_path / "trace.txt")), 20).causes
    of_tracer = [each for each in found if each.window.kind == "timerlat"]
    for each in of_tracer:
        _check(each)
    if context == "irq":
        assert [each.first.cause for each in of_tracer] == [expected]
    assert found[0].first.cause == expected


def test_a_trace_without_the_schedulers_events_leaves_the_cause_open(tmp_path: Path) -> None:
    trace = planting.trace_with("preempted", 3)
    trace.lines = [each for each in trace.lines if ": sched_" not in each[2]]
    found = explain(open_trace(trace.write(tmp_path / "trace.txt"))).causes
    assert "preempted" not in {share.cause for each in found for share in each.shares}


@pytest.mark.parametrize("seed", range(24))
def test_a_damaged_trace_is_explained_as_far_as_it_goes(seed: int, tmp_path: Path) -> None:
    damage = random.Random(seed)
    path = tmp_path / "trace"
    if seed % 2:
        planting.trace_with(damage.choice(planting.CAUSES), seed).write(path)
    else:
        path.write_bytes(damage.choice(sorted(DATA.glob("planted/*.dat"))).read_bytes())
    content = bytearray(path.read_bytes())
    for _ in range(damage.choice([1, 10, 100])):
        content[damage.randrange(len(content))] = damage.choice(b"0123456789=-x \n\xff\0")
    path.write_bytes(content)
    try:
        trace = open_trace(path)
        found = explain(trace, 5).causes
        write_timeline(trace, tmp_path / "timeline.json", found)
    except BadInput:
        return  # told in one line
    for each in found:
        _check(each)


def test_all_reasons_of_the_thesis_are_explained_by_both_vendors_names() -> None:
    for name, number in _THESIS.items():
        known = reason_named(name)
        assert known is not None
        assert known.vmx == number
        assert known.what
        assert known.usual
        assert known.tunings or known.advice
    for name in ("hlt", "npf", "interrupt", "io", "pause", "cpuid", "msr"):
        assert reason_named(name) is not None, name
    # as Linux 6.18's events/kvm/kvm_exit/format has them
    same = (("hlt", "idle-halt"), ("VMCALL", "hypercall"), ("BUS_LOCK", "buslock"))
    assert all(reason_named(one) is reason_named(other) is not None for one, other in same)
    assert meaning("exit:EPT_VIOLATION").startswith("The guest touched memory")
    assert remedy("exit:no such reason").tunings == ()


def test_every_tuning_that_is_advised_is_in_the_catalogue() -> None:
    known = {entry.id for entry in catalogue.load()}
    sources = [*(each.tunings for each in reasons()), *(each.tunings for each in explanations())]
    advised = {each for tunings in sources for each in tunings}
    assert advised <= known, sorted(advised - known)


def test_every_cause_of_the_documentation_is_explained() -> None:
    page = (Path(__file__).parents[3] / "docs/explain-causes.md").read_text()
    rows = page.partition("| cause | what was seen |")[2].partition("\n\n")[0].splitlines()
    causes = [name for row in rows[2:] for name in re.findall(r"`([\w-]+)`", row.split("|")[1])]
    assert len(causes) > 15
    assert [name for name in causes if not meaning(name)] == []


def test_no_reason_is_told_twice() -> None:
    names = [name for each in reasons() for name in {known.lower() for known in each.names}]
    assert len(names) == len(set(names))
