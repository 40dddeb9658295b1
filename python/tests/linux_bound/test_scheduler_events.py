"""Tracepoints of the scheduler from Linux 6.15 on, monitors of runtime verification, and timerlat.

The traces are synthetic: text as ftrace prints it, of the simulated kernel in traced_kernel.py,
with lines that such a kernel would have besides. Formats: include/trace/events/sched.h (a probe on
sched_set_need_resched_tp: tsk, cpu, tif), kernel/trace/rv/rv_trace.h (`id: state x event -> next`),
Documentation/trace/timerlat-tracer.rst.
"""

import random
import re
from functools import cache

import pytest
from traced_kernel import TERMS, Kernel

from latenz.linux_bound.evidence import LinuxBound, linux_bound, observations_of
from latenz.linux_bound.show import document, print_bound

ROW = re.compile(r"^(?P<head>.*\] )(?P<flags>\S{5}) (?P<time>[\d.]+): (?P<event>.*)$")
WAKING = re.compile(r"sched_waking: comm=\S+ pid=(?P<pid>\d+)")


@cache
def lines(seed: int, preemptible: bool) -> tuple[str, ...]:
    return tuple(Kernel(random.Random(seed), preemptible=preemptible).run(60).splitlines())


def without_need(rows) -> list[str]:
    """Return a trace whose flags do not tell that the scheduler is needed."""
    return [
        ROW.sub(lambda row: f"{row['head']}{row['flags'][0]}.{row['flags'][2:]} {row['time']}: "
                f"{row['event']}", row)
        for row in rows
    ]  # fmt: skip


def with_events(rows, made) -> list[str]:
    """Add an event behind each row of which `made` makes one, at its time."""
    found = []
    running = "0"
    for row in rows:
        found.append(row)
        if switch := re.search(r"next_pid=(\d+)", row):
            running = switch[1]
        matched = ROW.match(row)
        if matched and (event := made(matched, running)):
            found.append(f"{matched['head']}{matched['flags']} {matched['time']}: {event}")
    return found


def set_by_tracepoint(row, running):
    if WAKING.search(row["event"]):
        return "sched_set_need_resched_tp: (__trace_set_need_resched) cpu=0 tif=4"
    return None


def set_by_monitor(row, running):
    if WAKING.search(row["event"]):
        return f"event_nrp: {running}: any_thread_running x sched_need_resched -> rescheduling"
    return None


def bound_of(tmp_path, rows, claimed) -> LinuxBound:
    path = tmp_path / "trace.txt"
    path.write_text("\n".join(rows) + "\n")
    return linux_bound(observations_of([path], claimed), claimed=claimed)


def mode_condition(found: LinuxBound):
    return next(each for each in found.conditions if each.name == "C5")


@pytest.mark.parametrize("made", [set_by_tracepoint, set_by_monitor])
def test_a_kernel_that_passes_points_over_is_named_without_flags(made, tmp_path):
    silent = without_need(lines(2, preemptible=False))
    assert "was not called" not in mode_condition(bound_of(tmp_path, silent, "rt")).how
    told = mode_condition(bound_of(tmp_path, with_events(silent, made), "rt"))
    assert told.state == "violated"
    assert "the scheduler was needed at a point" in told.how


@pytest.mark.parametrize("made", [set_by_tracepoint, set_by_monitor])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_kernel_that_heeds_points_is_not(made, seed, tmp_path):
    silent = without_need(lines(seed, preemptible=True))
    found = bound_of(tmp_path, with_events(silent, made), "rt")
    assert mode_condition(found).state == "checked"
    alone = bound_of(tmp_path, silent, "rt")
    for term in TERMS:  # more events narrow the brackets, and change nothing else
        assert getattr(found.terms, term) <= getattr(alone.terms, term)


def test_another_cpus_need_is_not_this_ones(tmp_path):
    silent = without_need(lines(2, preemptible=False))

    def elsewhere(row, running):
        event = set_by_tracepoint(row, running)
        return event and event.replace("cpu=0", "cpu=3")

    found = mode_condition(bound_of(tmp_path, with_events(silent, elsewhere), "rt"))
    assert "was not called" not in found.how


def test_the_events_are_counted_as_a_source(tmp_path):
    rows = with_events(lines(0, preemptible=True), set_by_tracepoint)
    found = bound_of(tmp_path, rows, "rt")
    sources = dict(found.observations[0].windows.trace.sources)
    assert sources["sched_*_tp, rv:event_*"] == sum("need_resched_tp" in row for row in rows)


def scheduler_called(row, running):
    if "preempt_disable: caller=schedule" in row["event"]:
        return "sched_entry_tp: (__schedule) preempt=0"
    return None


def delayed(rows, at: int, ns: int) -> list[str]:
    """Let everything behind a row come later."""

    def later(row):
        whole = int(row["time"].replace(".", "")) + ns
        time = f"{whole // 10**9}.{whole % 10**9:09}"
        return f"{row['head']}{row['flags']} {time}: {row['event']}"

    return [*rows[: at + 1], *(ROW.sub(later, row) for row in rows[at + 1 :])]


def test_the_call_of_the_scheduler_is_known_without_names(tmp_path):
    """Of the scheduler's own functions nothing is known; then its event tells when it is called."""
    rows = [
        re.sub(r"(caller|parent)=(preempt_)?(__)?schedule\w*", r"\1=other", row)
        for row in with_events(lines(2, preemptible=False), scheduler_called)
    ]
    calls = [
        at
        for at, row in enumerate(rows)
        if "sched_entry_tp" in row and "next_pid=102" in rows[at + 2]
    ]
    at = calls[len(calls) // 2]
    rows = delayed(rows, at, 2500)
    rows.insert(at + 1, rows[at + 1].partition(": ")[0] + ": rcu_utilization: Start context switch")
    rows = delayed(rows, at + 1, 2500)
    silent = [row for row in rows if "sched_entry_tp" not in row]
    told = bound_of(tmp_path, rows, "voluntary").terms.scheduler
    alone = bound_of(tmp_path, silent, "voluntary").terms.scheduler
    assert alone < 5000 < told


TIMERLAT = """\
          <idle>-0       [000] d.h1.    54.029328: #1     context    irq timer_latency       932 ns
           <...>-867     [000] .....    54.029339: #1     context thread timer_latency     11700 ns
          <idle>-0       [001] dNh1.    54.029346: #1     context    irq timer_latency      2833 ns
           <...>-868     [001] .....    54.029353: #1     context thread timer_latency      9820 ns
          <idle>-0       [000] d.h1.    54.030328: #2     context    irq timer_latency       769 ns
           <...>-867     [000] .....    54.030330: #2     context thread timer_latency      3070 ns
"""


def test_what_timerlat_measured_stands_beside_the_bound(tmp_path, capsys):
    """Lines of the kernel's own documentation."""
    found = bound_of(tmp_path, ["# tracer: timerlat", "#", *TIMERLAT.splitlines()], None)
    [observation] = found.observations
    seen = observation.windows.trace.timerlat
    assert {name: (each.n, each.longest_ns) for name, each in seen.items()} == {
        "irq": (2, 932),
        "thread": (2, 11_700),
    }
    told = document(found, [])["observations"][0]["trace"]["timerlat"]
    assert told["thread"] == {"n": 2, "longest_ns": 11_700}
    print_bound(found, [])
    assert "timerlat on CPU 0: irq 932 ns (2), thread 11.7 µs (2)" in capsys.readouterr().out
