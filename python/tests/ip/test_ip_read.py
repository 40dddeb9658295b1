"""End to end: software writes `we`, interrupts fire, samples come back through AXI into Parquet,
and the report shows them. GHDL runs the hardware; nothing stands in for anything."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from simulated_boards import (
    CYCLE_NS,
    LOSE_EVERY,
    PERIOD,
    Reading,
    column,
    document,
    drawn,
    latenz,
    never,
    nobody,
)

from latenz.errors import BadInput
from latenz.importers.opening import open_sample_sets
from latenz.ip.configuration import Configuration
from latenz.ip.instance import open_instances
from latenz.ip.record import Plan, Recording
from latenz.ip.recorder import Draining
from latenz.ip.simulated import Answers, Scenario, simulated_board
from latenz.ip.target import open_target
from latenz.ip.watch import Watcher
from latenz.statistics import summarize

pytestmark = pytest.mark.boots


def test_samples_are_what_the_processor_took(published, tmp_path):
    """What is read is, cycle by cycle, what the simulated processor waited."""
    target, expected = published
    run = tmp_path / "run"
    told = document("read", target, "--samples", 100, "-o", run)
    assert (told["outcome"], told["status"], told["alarm"]) == ("complete", "complete", False)
    assert told["remarks"] == []
    (sample_set,) = open_sample_sets(run)
    latencies = column(sample_set, "latency_ns")
    assert len(latencies) >= 100
    cycles = [each // CYCLE_NS for each in latencies]
    begins = [i for i in range(len(expected)) if expected[i : i + len(cycles)] == cycles]
    assert begins, "the samples are consecutive draws"
    metadata = sample_set.metadata
    assert (metadata.time_base, metadata.tool, metadata.resolution_ns) == (
        "simulated",
        "Latencies IP",
        CYCLE_NS,
    )
    assert (metadata.from_event, metadata.to_event) == ("irq_in rises", "ack_in rises")
    assert metadata.overlaps is None
    figures = told["sample_sets"][0]
    assert (figures["n"], figures["max_ns"]) == (len(latencies), max(latencies))


def test_sizes_that_cannot_be_known_are_not_guessed(tmp_path):
    """32 bits without identification: 16 bits of a latency would be a wrong one."""
    with simulated_board("latencies_ip", {"latency_width_g": 32}) as path:
        run = tmp_path / "run"
        refused = latenz("ip", "read", f"unix:{path}", "--samples", 1, "-o", run, code=2)
        assert "build it with identification_g" in refused.stderr
        assert not run.exists()
        with open_target(f"unix:{path}") as link:
            link.write(1, 0x04, 500)  # alarm_lat: nothing tells the width until a series begins
            link.write(1, 0x00, 1)
            link.wait(3_000)
            (instance,) = open_instances(link)
            with pytest.raises(BadInput, match="min has more than 16 bits"):
                instance.start()
    arguments = ("--generic", "latency_width_g=32", "--generic", "depth_g=16", "--samples", 3)
    told = document("read", "sim:latencies_ip", *arguments, "-o", tmp_path / "known")
    assert told["sample_sets"][0]["n"] >= 3


def test_more_samples_than_the_memory_holds_are_series(published, tmp_path):
    target, expected = published
    with open_target(target) as link:
        recording = Recording(open_instances(link), Plan(samples=700))
        assert recording.run(never, nobody) == "complete"
    (sample_set,) = recording.sample_sets()
    cycles = [each // CYCLE_NS for each in column(sample_set, "latency_ns")]
    assert len(cycles) >= 700
    account = recording.recorders[0].account
    assert (account.series, account.disagreements) == (2, [])
    text = ",".join(map(str, expected))
    for part in (cycles[:512], cycles[512:]):
        assert ",".join(map(str, part)) in text, "each series is consecutive"
    assert any("2 series" in note for note in sample_set.metadata.notes)


def test_a_ring_is_read_without_a_gap(bench, tmp_path):
    """The memory holds 16 samples; 60 are read while it is filled, each exactly once."""
    run = tmp_path / "run"
    told = document("read", bench, "--samples", 60, "-o", run)
    assert told["remarks"] == []
    t1, t2 = open_sample_sets(run)
    for sample_set in (t1, t2):
        assert not any("not read" in note for note in sample_set.metadata.notes)
        starts = column(sample_set, "t_ns")
        steps = [b - a for a, b in itertools.pairwise(starts)]
        assert min(steps) > 0
    starts = column(t1, "t_ns")
    lost = [b - a for a, b in itertools.pairwise(starts) if b - a != PERIOD * CYCLE_NS]
    assert all(each == 2 * PERIOD * CYCLE_NS for each in lost), "the one after a lost one overlaps"
    assert 60 // LOSE_EVERY - 1 <= len(lost) <= 60 // LOSE_EVERY + 1
    # pl_ps_irq ends T1 and begins T2: the same edge, by time stamps of two IPs.
    ends = {
        t + latency for t, latency in zip(column(t1, "t_ns"), column(t1, "latency_ns"), strict=True)
    }
    assert set(column(t2, "t_ns")[1:-1]) <= ends
    assert (t1.metadata.orphan_ends, t2.metadata.to_event) == (0, "a word of the FIFO is read")

    page = tmp_path / "report.html"
    latenz("report", run, "-o", page)
    text = page.read_text()
    for wanted in ("T1", "T2", "ps_pl_irq rises", "a word of the FIFO is read", "Latencies IP"):
        assert wanted in text
    shown = json.loads(latenz("show", run, "--json").stdout)["sample_sets"]
    assert [each["name"] for each in shown] == ["T1", "T2"]
    assert [each["time_base"] for each in shown] == ["simulated"] * 2


def test_overwritten_samples_are_counted(bench):
    """Not looked at for 50 periods, a memory of 16 samples has lost the first ones."""
    with open_target(bench) as link:
        (instance,) = open_instances(link, "T1")
        recorder = Draining(instance)
        recorder.begin()
        link.wait(50 * PERIOD)
        recorder.poll()
        kept = recorder.kept
        link.wait(20 * PERIOD)
        recorder.poll()
        recorder.stop()
        recorder.finish()
    (told,) = recorder.account.statistics
    assert 10 <= kept <= 16
    assert recorder.account.unread >= 30
    assert recorder.kept + recorder.account.unread == told.num
    assert recorder.account.disagreements == []


def test_what_is_overwritten_while_it_is_read_is_never_kept():
    """A sample every 8 cycles, faster than they can be read: each kept one is a true one."""
    answers = Answers(least_cycles=1, spread_cycles=2, late_one_in=0)
    expected = drawn(answers, 5, 20_000)
    generics = {"depth_g": 32, "num_width_g": 32, "time_stamp_g": True}
    scenario = Scenario(period_cycles=8, answers=answers, seed=5)
    with (
        simulated_board("latencies_ip", generics, scenario) as path,
        open_target(f"unix:{path}") as link,
    ):
        recorder = Draining(open_instances(link)[0])
        recorder.begin()
        for wait in (1, 60, 120, 180, 200, 220, 240, 256, 280, 400) * 3:
            link.wait(wait)  # the memory is full after 256
            recorder.poll()
        recorder.stop()
        recorder.finish()
    rows = [
        row
        for batch in recorder.spool.sample_set(None).batches("t_ns", "latency_ns")
        for row in zip(*(batch.column(i).to_pylist() for i in range(2)), strict=True)
    ]
    (told,) = recorder.account.statistics
    assert recorder.kept + recorder.account.unread == told.num
    assert recorder.account.unread > 100
    numbers = [(t_ns - rows[0][0]) // (8 * CYCLE_NS) for t_ns, _ in rows]
    assert numbers == sorted(set(numbers))
    cycles = [latency_ns // CYCLE_NS for _, latency_ns in rows]
    assert len(cycles) > 100
    firsts = [
        first
        for first in range(1000)
        if all(expected[first + n] == each for n, each in zip(numbers, cycles, strict=True))
    ]
    assert len(firsts) == 1, "there is one sequence of draws that they all belong to"


def test_a_series_is_begun_anew_before_num_stops(bench, monkeypatch):
    """As if `num` had less than six bits, so that it does not take 65,535 samples."""
    monkeypatch.setattr(Configuration, "most_num", property(lambda _: 47))
    with open_target(bench) as link:
        recording = Recording(open_instances(link, "T2"), Plan(samples=70))
        assert recording.run(never, nobody) == "complete"
    (sample_set,) = recording.sample_sets()
    account = recording.recorders[0].account
    assert account.series >= 3
    assert all(24 <= each.num < 47 for each in account.statistics[:-1])
    assert sum(each.num for each in account.statistics) == recording.recorders[0].kept
    assert (account.unread, account.num_stopped, account.disagreements) == (0, False, [])
    starts = column(sample_set, "t_ns")
    assert starts == sorted(set(starts)), "none is read twice"
    assert any(f"{account.series} series" in note for note in sample_set.metadata.notes)


def test_only_what_is_around_the_largest_is_kept_and_then_nothing_comes(tmp_path):
    answers = Answers(least_cycles=10, spread_cycles=5, late_one_in=40, late_cycles=50)
    expected = drawn(answers, 2, 300)
    generics = {"freeze_g": True, "depth_g": 32, "snapshot_g": True, "sums_g": True}
    scenario = Scenario(period_cycles=100, count=200, answers=answers, seed=2)
    run = tmp_path / "run"
    with simulated_board("latencies_ip", generics, scenario) as path:
        document("read", f"unix:{path}", "--samples", 195, "-o", run)
        with open_target(f"unix:{path}") as link:
            link.wait(10_000)  # the last of its interrupts
        arguments = ("--samples", 5, "--timeout", "1s", "-o", tmp_path / "none")
        told = document("read", f"unix:{path}", *arguments, code=3)
    assert (told["outcome"], told["sample_sets"]) == ("stalled", [])
    assert told["remarks"] == ["latencies_ip: no sample came"]
    whole, around = open_sample_sets(run)
    reported = whole.metadata.reported
    used = expected[: reported.n]
    assert reported.n >= 195
    assert reported.max_ns == max(used) * CYCLE_NS
    assert reported.mean_ns == pytest.approx(sum(used) / len(used) * CYCLE_NS, rel=1e-12)
    largest = used.index(max(used))
    cycles = [each // CYCLE_NS for each in column(around, "latency_ns")]
    at = cycles.index(max(used))
    assert around.metadata.name == "latencies_ip/around-maximum"
    assert cycles == used[largest - at : largest - at + len(cycles)]
    assert len(cycles) - at - 1 == 8, "as many after it as a quarter of the memory"
    assert f"number {at + 1};" in around.metadata.notes[0]


def test_a_late_interrupt_raises_the_alarm(bench, tmp_path):
    """A lost interrupt is served a period later: that latency is above the limit."""
    run = tmp_path / "run"
    arguments = ("--samples", 30, "--alarm", "2us", "--instance", "T2")
    told = document("read", bench, *arguments, "-o", run, code=1)
    assert told["alarm"]
    (verdict,) = told["sample_sets"][0]["deadlines"]
    assert (verdict["verdict"], verdict["limit_ns"]) == ("violates", 2000)
    assert verdict["exceeding"] >= 1


def test_a_limit_that_few_samples_kept_is_not_shown(published, tmp_path):
    """As `latenz run` and `latenz show` end, too."""
    target, _ = published
    arguments = ("--samples", 100, "--alarm", "100us")
    told = document("read", target, *arguments, "-o", tmp_path / "run", code=3)
    assert (told["outcome"], told["alarm"]) == ("complete", False)
    (verdict,) = told["sample_sets"][0]["deadlines"]
    assert (verdict["verdict"], verdict["exceeding"]) == ("not shown", 0)


def test_given_up_measurements_count_as_long(bench, tmp_path):
    with open_target(bench) as link:
        (instance,) = open_instances(link, "T2")
        instance.set_register("timeout", PERIOD - 10)
        try:
            recording = Recording([instance], Plan(samples=50))
            recording.run(never, nobody)
        finally:
            instance.set_register("timeout", 0)
    (sample_set,) = recording.sample_sets()
    (told,) = recording.recorders[0].account.statistics
    assert told.timeouts >= 2
    assert sample_set.metadata.beyond_range == told.timeouts
    assert sample_set.metadata.beyond_range_from_ns == (PERIOD - 10) * CYCLE_NS
    assert summarize(sample_set).n == recording.recorders[0].kept + told.timeouts
    assert recording.remarks() == []


def test_too_long_an_alarm_is_refused(published, tmp_path):
    target, _ = published
    answer = latenz("ip", "read", target, "--alarm", "1ms", "-o", tmp_path / "run", code=2)
    assert "do not fit in 16 bits" in answer.stderr
    assert "655350 ns" in answer.stderr
    assert not (tmp_path / "run").exists()


def test_watching_shows_what_the_hardware_counts(bench):
    with open_target(bench) as link:
        for instance in open_instances(link):
            instance.start()
        link.wait(30 * PERIOD)
        watcher = Watcher(open_instances(link))
        watcher.report()
        link.wait(100 * PERIOD)
        (t1, _) = watcher.report().watched
    assert t1.samples_per_s == pytest.approx(1e9 / PERIOD / CYCLE_NS, rel=0.2)
    told = document("watch", bench, "--once", "--interval", "200ms", "--deadline", "1ms")
    assert (told["time_base"], [each["name"] for each in told["instances"]]) == (
        "simulated",
        ["T1", "T2"],
    )
    for each in told["instances"]:
        assert each["measuring"]
        assert each["one_moment"]
        assert each["num"] >= 20
        assert each["min_ns"] <= each["mean_ns"] <= each["max_ns"]
        assert each["verdict"]["verdict"] == "not shown", "too short for one in an hour"
        assert "samples_per_s" in each
    table = latenz("ip", "watch", bench, "--once", "--interval", "20ms").stdout
    for word in ("T1", "T2", "jitter", "overlaps", "simulated"):
        assert word in table


def test_the_built_in_self_test_is_exact(bench):
    checks = document("selftest", bench)["checks"]
    assert {each["result"] for each in checks} == {"right"}
    delays = [each["check"] for each in checks if each["check"].startswith("delays")]
    assert delays == [f"delays of {k} to {k + 15} cycles" for k in (0, 1, 100)] * 2


def test_the_self_test_is_exact_whatever_its_user_has_set(tmp_path):
    """A time-out shorter than its delays, and a memory in halves that freeze at each maximum."""
    generics = {"self_test_g": True, "freeze_g": True, "watchdog_g": True, "depth_g": 64}
    with simulated_board("latencies_ip", generics, Scenario(period_cycles=1 << 30)) as path:
        with open_target(f"unix:{path}") as link:
            (instance,) = open_instances(link)
            instance.set_register("timeout", 50)
            instance.set_register("post_trigger", 1)
        checks = document("selftest", f"unix:{path}")["checks"]
        with open_target(f"unix:{path}") as link:
            (instance,) = open_instances(link)
            assert [instance.register(name) for name in ("timeout", "post_trigger")] == [50, 1]
    assert {each["result"] for each in checks} == {"right"}, checks
    assert sum(each["check"].startswith("delays of") for each in checks) == 3


def test_without_self_test_delays_are_not_shown(published):
    target, _ = published
    checks = document("selftest", target, code=3)["checks"]
    assert [each["result"] for each in checks].count("not there") == 1
    assert "wrong" not in {each["result"] for each in checks}


def test_interrupting_keeps_every_sample(published, tmp_path):
    target, expected = published
    run = tmp_path / "run"
    reading = Reading(target, run)
    reading.program.send_signal(signal.SIGINT)
    status, said = reading.ended()
    assert status == 130, said
    assert json.loads((run / "run.json").read_text())["status"] == "interrupted"
    (sample_set,) = open_sample_sets(run)
    cycles = [each // CYCLE_NS for each in column(sample_set, "latency_ns")]
    assert cycles
    assert ",".join(map(str, cycles[:512])) in ",".join(map(str, expected))


@pytest.mark.parametrize("design", ["latencies_ip", "latency_stream"])
def test_a_kill_leaves_the_samples_that_were_read(tmp_path, design):
    """Those with times: they are in the run's journal before the recording has ended."""
    answers = Answers(least_cycles=20, spread_cycles=40)
    expected = drawn(answers, 1, 50_000)
    run = tmp_path / "run"
    generics = {"time_stamp_g": True, "counters_g": True, "num_width_g": 32}
    with simulated_board(design, generics, Scenario(period_cycles=200, answers=answers)) as path:
        reading = Reading(f"unix:{path}", run)
        journal = run / design / "samples.journal"
        while not (journal.exists() and journal.stat().st_size > 2_000):
            time.sleep(0.01)
        reading.program.kill()
        reading.ended()
    assert json.loads((run / "run.json").read_text())["status"] == "running"
    (sample_set,) = open_sample_sets(run)
    cycles = [each // CYCLE_NS for each in column(sample_set, "latency_ns")]
    assert len(cycles) > 100
    firsts = [i for i in range(1000) if expected[i : i + len(cycles)] == cycles]
    assert len(firsts) == 1, "the samples are consecutive draws"
    starts = column(sample_set, "t_ns")
    assert {b - a for a, b in itertools.pairwise(starts)} == {200 * CYCLE_NS}
    assert any("not ended in order" in note for note in sample_set.metadata.notes)
    latenz("show", run)


def test_samples_with_times_are_stored_as_any_others(bench, tmp_path):
    run = tmp_path / "run"
    document("read", bench, "--samples", 40, "-o", run)
    assert not list(run.glob("**/samples.journal"))
    for sample_set in open_sample_sets(run):
        assert sample_set.metadata.missed_periods is not None
        assert not any("not ended in order" in note for note in sample_set.metadata.notes)
        assert len(column(sample_set, "t_ns")) >= 40


def test_a_full_disk_keeps_what_was_written(tmp_path):
    """As if a file had room for some hundred samples only."""
    run = tmp_path / "run"
    answers = Answers(least_cycles=20, spread_cycles=0, late_one_in=0)
    generics = {"time_stamp_g": True, "num_width_g": 32}
    scenario = Scenario(period_cycles=60, answers=answers)
    with simulated_board("latencies_ip", generics, scenario) as path:
        read = f"exec {sys.executable} -m latenz ip read unix:{path} --continuous -o {run}"
        ended = subprocess.run(
            ["bash", "-c", f"ulimit -f 12; {read}"], capture_output=True, text=True, timeout=600
        )
    assert ended.returncode == 2, ended.stderr
    assert "samples.journal: cannot be written" in ended.stderr
    assert ended.stderr.count("\n") == 1
    (sample_set,) = open_sample_sets(run)
    starts = column(sample_set, "t_ns")
    assert len(starts) > 100
    assert {b - a for a, b in itertools.pairwise(starts)} == {60 * CYCLE_NS}


def test_a_board_that_goes_away_leaves_what_was_read(tmp_path):
    run = tmp_path / "run"
    generics = {"counters_g": True, "num_width_g": 32, "depth_g": 64}
    with simulated_board("latencies_ip", generics, Scenario(period_cycles=100)) as path:
        reading = Reading(f"unix:{path}", run)
    status, said = reading.ended()
    assert status == 2, said
    assert b"the board has closed the connection" in said or b"does not answer" in said
    assert json.loads((run / "run.json").read_text())["status"] == "failed"
    (sample_set,) = open_sample_sets(run)
    assert column(sample_set, "latency_ns")


def test_what_is_too_long_is_known_only_to_be_that_long(tmp_path):
    answers = Answers(least_cycles=65_530, spread_cycles=10, late_one_in=0)
    expected = drawn(answers, 3, 2)
    assert min(expected) < 65_535 <= max(expected)
    scenario = Scenario(period_cycles=65_600, count=2, answers=answers, seed=3)
    run = tmp_path / "run"
    with simulated_board("latencies_ip", {"counters_g": True}, scenario) as path:
        document("read", f"unix:{path}", "--samples", 2, "--timeout", "5min", "-o", run)
    (sample_set,) = open_sample_sets(run)
    within = [each * CYCLE_NS for each in expected if each < 65_535]
    assert column(sample_set, "latency_ns") == within
    assert sample_set.metadata.beyond_range == len(expected) - len(within)
    assert sample_set.metadata.beyond_range_from_ns == 655_350
    figures = summarize(sample_set)
    assert (figures.n, figures.max_ns, figures.mean_ns) == (2, None, None)
    assert figures.min_ns == min(expected) * CYCLE_NS
    latenz("report", run, "-o", tmp_path / "report.html")


def test_wrong_options_are_one_line(tmp_path):
    for arguments, reason in (
        (("read", "nonsense", "-o", tmp_path / "a"), "is not a board"),
        (("read", "unix:/nowhere", "-o", tmp_path / "a"), "no board answers"),
        (("read", "sim:latency_bench", "--samples", 0, "-o", tmp_path / "a"), "at least 1"),
        (("replay", tmp_path / "none.vcd", "-o", tmp_path / "a"), "no such file"),
        (("replay", __file__, "--overlap", "never", "-o", tmp_path / "a"), "not an overlap policy"),
    ):
        answer = latenz("ip", *arguments, code=2)
        assert reason in answer.stderr
        assert answer.stderr.count("\n") == 1
    assert list(Path(os.fspath(tmp_path)).iterdir()) == []
