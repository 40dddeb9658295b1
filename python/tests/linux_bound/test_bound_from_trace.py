"""The bound from a kernel's own tracepoints, against a simulated kernel that knows the truth."""

import json
import random
import re
import subprocess
from functools import cache

import pytest
from traced_kernel import TERMS, Kernel

from latenz.errors import BadInput
from latenz.linux_bound.evidence import LinuxBound, linux_bound, observations_of
from latenz.linux_bound.model import Steps
from latenz.linux_bound.traced import windows_of_trace
from latenz.programs import probe_program

SEEDS = range(6)
WAKE_UPS = 60


@cache
def kernel(seed: int) -> tuple[Kernel, str]:
    simulated = Kernel(random.Random(seed), preemptible=seed % 3 != 2, busy=seed % 5 == 4)
    return simulated, simulated.run(WAKE_UPS)


def bound_of(tmp_path, text: str, claimed=None) -> LinuxBound:
    path = tmp_path / "trace.txt"
    path.write_text(text)
    return linux_bound(observations_of([path], claimed), claimed=claimed)


def mode(simulated: Kernel):
    return "preempt" if simulated.preemptible else "voluntary"


def within(simulated: Kernel, pairs):
    """Return what lies between the first wake-up and the last, where a trace's windows count."""
    first, last = (simulated.truth.latencies[at][0] for at in (0, -1))
    return [(begin, length) for begin, length in pairs if first < begin and begin + length < last]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_window_is_longer_than_the_trace_says_nor_a_wake_up_than_the_bound(seed, tmp_path):
    simulated, text = kernel(seed)
    found = bound_of(tmp_path, text, mode(simulated))
    assert found.unseen == {}
    begins = [begin for begin, _ in within(simulated, simulated.truth.windows["blocking"])]
    for term in TERMS:
        # T-time is shorter than the window: what begins long before the last wake-up is over
        seen = [
            length
            for begin, length in within(simulated, simulated.truth.windows[term])
            if begin + 4 * length < simulated.truth.latencies[-1][0] - 20_000
        ]
        assert max(seen, default=0) <= getattr(found.terms, term), term
    assert len(begins) > WAKE_UPS
    assert max(latency for _, latency in simulated.truth.latencies[1:]) <= found.bound.bound_ns
    [observation] = found.observations
    assert observation.windows.wake_ups >= WAKE_UPS - 1  # one may be open at the end


@pytest.mark.parametrize("seed", SEEDS)
def test_interrupts_are_taken_no_shorter_than_they_were(seed, tmp_path):
    simulated, text = kernel(seed)
    found = bound_of(tmp_path, text, mode(simulated))
    true = within(simulated, simulated.truth.executions)
    pairs = [
        (true[last][0] - true[first][0], sum(own for _, own in true[first : last + 1]))
        for first in range(len(true))
        for last in range(first, min(first + 20, len(true)))
    ]
    true_steps, seen = Steps.of(pairs), found.observations[0].windows.joint()
    edge = found.observations[0].windows.trace.entry_ns
    for span in true_steps.spans:
        # begins are known up to the way in
        assert true_steps(span + 1) <= seen(span + 1 + edge)


@pytest.mark.parametrize("seed", SEEDS)
def test_windows_between_events_are_no_longer_than_brackets(seed, tmp_path):
    simulated, text = kernel(seed)
    found = bound_of(tmp_path, text, mode(simulated))
    trace = found.observations[0].windows.trace
    for term in TERMS:
        assert trace.inner_ns[term] <= getattr(found.terms, term)
    assert 40 <= trace.entry_ns <= 300  # the simulated ways in are 40 to 200, behind an exit's
    true = (
        max(length for _, length in within(simulated, simulated.truth.windows["idle_out"]))
        if trace.from_sleep_ns
        else 0
    )
    assert found.terms.idle_out <= true + 1500 or not true


def conditions(found: LinuxBound):
    return {each.name: each for each in found.conditions}


def test_a_sound_trace_leaves_open_only_what_no_trace_shows(tmp_path):
    _, text = kernel(0)
    found = bound_of(tmp_path, text)
    told = conditions(found)
    states = {name: each.state for name, each in told.items()}
    assert states["C2"] == "checked"
    assert states["C3"] == "assumed"
    assert states["C4"] == "assumed"
    assert states["C5"] == "checked"
    assert found.is_open


def test_throttling_is_named(tmp_path):
    simulated = Kernel(random.Random(1), throttles=True)
    told = conditions(bound_of(tmp_path, simulated.run(WAKE_UPS)))["C2"]
    assert told.state == "violated"
    assert "throttled" in told.how


@pytest.mark.parametrize("seed", [1, 3])
def test_throttling_is_named_where_who_ran_goes_on(seed, tmp_path):
    simulated = Kernel(random.Random(seed), goes_on=True)
    told = conditions(bound_of(tmp_path, simulated.run(WAKE_UPS)))["C2"]
    assert told.state == "violated"
    assert "throttled" in told.how


def test_a_second_real_time_thread_is_named(tmp_path):
    simulated = Kernel(random.Random(1), second=True)
    told = conditions(bound_of(tmp_path, simulated.run(WAKE_UPS)))["C2"]
    assert told.state == "violated"
    assert "second (thread 103, priority 95)" in told.how


@pytest.mark.parametrize(("seed", "claimed"), [(0, "voluntary"), (2, "rt")])
def test_a_wrong_preemption_mode_is_named(seed, claimed, tmp_path):
    told = conditions(bound_of(tmp_path, kernel(seed)[1], claimed))["C5"]
    assert told.state == "violated"
    assert claimed in told.how


def test_lost_events_are_named(tmp_path):
    lines = kernel(0)[1].splitlines()
    lines.insert(len(lines) // 2, "CPU:0 [LOST 17 EVENTS]")
    told = conditions(bound_of(tmp_path, "\n".join(lines) + "\n"))["C3"]
    assert told.state == "violated"
    assert "could not take (17 times)" in told.how


@pytest.mark.parametrize("order", ["backwards", "twice", "shuffled"])
def test_times_that_go_back_are_named_and_leave_no_sound_bound(order, tmp_path):
    head, *lines = kernel(0)[1].split("\n#\n", 1)[1].splitlines()
    if order == "backwards":
        lines.reverse()
    elif order == "twice":
        lines += lines
    else:
        random.Random(3).shuffle(lines)
    found = bound_of(tmp_path, "# tracer: nop\n#\n" + "\n".join([head, *lines]) + "\n", "rt")
    told = conditions(found)["C3"]
    assert told.state == "violated"
    assert "a time before that of the event before" in told.how


def test_interrupts_that_all_begin_at_once_leave_no_bound(tmp_path):
    """As with a clock that stands still: in no window can they be counted."""
    stopped = re.sub(r" \d+\.\d{9}: ", " 1.000000000: ", kernel(0)[1])
    found = bound_of(tmp_path, stopped, "rt")
    assert found.bound.bound_ns is None
    assert Steps.of([(0, 5)], 0)(1) > 10**10


def test_a_bound_below_what_was_seen_is_never_relied_on(tmp_path):
    """Of a file whose terms were damaged, or cut out: its blocks of wake-ups tell otherwise."""
    path = tmp_path / "trace.txt"
    path.write_text(kernel(0)[1])
    told = json.loads(windows_of_trace(path, "rt")[0].model_dump_json())
    told |= {"trace": None, "time_base": "virtual"}
    for term in told["terms"].values():
        term["longest_ns"] = 0
    told["interrupts"]["steps"] = []
    (tmp_path / "windows.json").write_text(json.dumps(told))
    found = linux_bound(observations_of([tmp_path]))
    assert found.bound.bound_ns < found.longest_ns
    assert conditions(found)["C1"].state == "violated"
    assert found.is_open


def test_an_nmi_is_named(tmp_path):
    lines = kernel(0)[1].splitlines()
    at = len(lines) // 2
    nmi = re.sub(r"[.d]\S{4} (\d+\.\d+): .*", r"d.z1. \1: nmi_handler: nmi_handler()", lines[at])
    lines.insert(at, nmi)
    assert conditions(bound_of(tmp_path, "\n".join(lines) + "\n"))["C4"].state == "violated"


@pytest.mark.parametrize(
    ("without", "told"),
    [
        (("irq_disable", "irq_enable", "preempt_disable", "preempt_enable"), "record preemptirq:*"),
        (("preempt_disable", "preempt_enable"), "CONFIG_PREEMPT_TRACER"),
        (("hrtimer_start", "hrtimer_expire_entry", "hrtimer_expire_exit"), "timer:hrtimer_start"),
        (("cpu_idle",), "record power:cpu_idle"),
        (("sched_switch",), "record sched:sched_switch"),
    ],
)
def test_a_term_that_the_trace_does_not_show_is_never_guessed(without, told, tmp_path):
    lines = [
        line
        for line in kernel(0)[1].splitlines()
        if not any(f": {name}: " in line for name in without)
    ]
    found = bound_of(tmp_path, "\n".join(lines) + "\n", "preempt")
    assert found.bound.bound_ns is None
    assert any(told in how for how in found.unseen.values())
    assert found.is_open


def test_microseconds_widen_the_windows(tmp_path):
    simulated, text = kernel(0)
    exact = bound_of(tmp_path, text)
    rounded = bound_of(tmp_path, re.sub(r"(\d+\.\d{6})\d{3}:", r"\1:", text))
    assert rounded.observations[0].windows.trace.resolution_ns == 1000
    for term in TERMS:
        true = [length for _, length in within(simulated, simulated.truth.windows[term])]
        assert getattr(rounded.terms, term) >= getattr(exact.terms, term) - 1, (term, max(true))


def test_osnoise_gives_the_interrupts_and_no_bound(tmp_path):
    rows = [
        f"      <idle>-0       [000] d.h.. {1 + number / 1000:.9f}: irq_noise: local_timer:236 "
        f"start {1 + number / 1000:.9f} duration 5000 ns"
        for number in range(100)
    ]
    found = bound_of(tmp_path, "# tracer: nop\n#\n" + "\n".join(rows) + "\n")
    assert found.bound.bound_ns is None
    assert found.observations[0].windows.joint()(2_500_000) == 15_000


def test_what_is_no_trace_is_refused_in_one_line(tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text("nothing\n")
    with pytest.raises(BadInput):
        windows_of_trace(path)


def test_when_the_clock_is_read_no_trace_says(tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text(kernel(0)[1])
    with pytest.raises(BadInput, match="reads the clock"):
        linux_bound(observations_of([path]), to_user=True)


def test_a_damaged_trace_ends_in_an_answer_or_one_line(tmp_path):
    rng = random.Random(8)
    text = kernel(0)[1]
    program = probe_program("latenz-trace")
    for _ in range(20):
        damaged = bytearray(text[: rng.randrange(2000, 200_000)].encode())
        for _ in range(rng.randrange(1, 60)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        path = tmp_path / "damaged.txt"
        path.write_bytes(bytes(damaged))
        done = subprocess.run([program, "windows", path], capture_output=True, check=False)
        assert done.returncode in (0, 2)
        if done.returncode == 0:
            json.loads(done.stdout)
