"""Traces drive the simulated IP: what it measures is what the trace contains, to the cycle."""

import random
import re
import signal
import subprocess
import sys
import time

import pytest
from simulated_boards import document, latenz

from latenz.durations import parse_frequency
from latenz.errors import BadInput
from latenz.importers.opening import open_sample_sets
from latenz.ip import replay
from latenz.ip.trace import read_trace
from latenz.model import Metadata, SampleSet, TimeBase
from latenz.store.run import RunWriter

pytestmark = pytest.mark.boots

BY_HAND = """\
$comment Overlaps, a pair at one time, an end that opens anew, orphans, a long gap. $end
$timescale 1 ns $end
$scope module board $end
$var wire 1 ! irq $end
$var wire 1 " ack $end
$upscope $end
$enddefinitions $end
#0 0! 0"
#100 1!
#130 0! 1"
#135 0"
#1000 1!
#1010 0!
#1020 1!
#1045 1"
#1050 0" 0!
#1060 1"
#2000 0"
#2010 1! 1"
#2020 0! 0"
#5000 1!
#5010 0!
#900000000 1"
#900000010 0"
#900000100 1!
#900000130 0!
#900000145 1! 1"
#900000150 0! 0"
#900000170 1"
#900000175 0"
#900000300 1"
#900000310 0"
#900000400 1!
"""
BY_HAND = BY_HAND.replace('#5000 1!\n#5010 0!\n#900000000 1"\n#900000010 0"\n', "")
PAIRS = {  # worked out on paper: start, latency
    "drop": [(100, 30), (1000, 45), (2010, 0), (900000100, 45), (900000145, 25)],
    "restart": [(100, 30), (1020, 25), (2010, 0), (900000100, 45), (900000145, 25)],
    "queue": [(100, 30), (1000, 45), (1020, 40), (2010, 0), (900000100, 45), (900000145, 25)],
}
ORPHANS = {"drop": 2, "restart": 2, "queue": 1}

# A design of somebody else: an interrupt controller with a mask, and a handler that polls.
VERILOG = """\
`timescale 1ns/100ps
module source(output reg line);
  integer seed = 7;
  initial begin
    line = 0;
    repeat (40) begin
      #(20 + $unsigned($random(seed)) % 90) line = 1;
      #(3 + $unsigned($random(seed)) % 5) line = 0;
    end
  end
endmodule
module handler(input line, output reg done);
  integer seed = 11;
  reg pending = 0;
  always @(posedge line) pending = 1;
  initial begin
    done = 0;
    #0.3;
    forever begin
      #(1.5 + ($unsigned($random(seed)) % 90) * 0.1)
      if (pending) begin
        pending = 0;
        #(4 + $unsigned($random(seed)) % 40) done = 1;
        #2.5 done = 0;
      end
    end
  end
endmodule
module machine;
  wire line, done;
  source timer(line);
  handler cpu(line, done);
  initial begin $dumpfile("waves.vcd"); $dumpvars(0, machine); #4000 $finish; end
endmodule
"""


def rows(path):
    (sample_set,) = open_sample_sets(path)
    return [
        row
        for batch in sample_set.batches("t_ns", "latency_ns")
        for row in zip(*(batch.column(i).to_pylist() for i in range(2)), strict=True)
    ]


def replayed(trace, tmp_path, *options, code=0):
    told = document("replay", trace, "-o", tmp_path / "replayed", *options, code=code)
    (sample_set,) = open_sample_sets(tmp_path / "replayed")
    return told, sample_set.metadata, rows(tmp_path / "replayed")


@pytest.mark.parametrize("policy", ["drop", "restart", "queue"])
def test_a_dump_written_by_hand_gives_the_pairs_worked_out_on_paper(tmp_path, policy):
    path = tmp_path / "hand.vcd"
    path.write_text(BY_HAND)
    signals = ("--start", "irq", "--end", "board.ack", "--overlap", policy)
    told, metadata, samples = replayed(path, tmp_path, *signals)
    assert told["identical"]
    assert told["exact"]
    assert told["largest_difference_ns"] == 0
    assert told["cycle_ns"] == 5, "the longest that all times are multiples of"
    assert told["cycles"] < 10_000, "0.9 s in which nothing happens is not simulated"
    assert samples == PAIRS[policy]
    assert (metadata.orphan_ends, metadata.overlaps, metadata.open_at_end) == (
        ORPHANS[policy],
        1,
        1,
    )
    latenz("import", path, *signals, "-o", tmp_path / "imported")
    assert samples == rows(tmp_path / "imported")
    (imported,) = open_sample_sets(tmp_path / "imported")
    for name in ("name", "overlaps", "orphan_ends", "open_at_end", "time_base"):
        assert getattr(metadata, name) == getattr(imported.metadata, name)


@pytest.mark.parametrize("overlap", ["drop", "restart", "queue"])
def test_a_dump_of_another_simulator_is_replayed_exactly(tmp_path, overlap):
    """Icarus Verilog simulates a design that has nothing to do with us, in tenths of 1 ns."""
    (tmp_path / "machine.v").write_text(VERILOG)
    for command in (["iverilog", "-g2012", "-o", "machine", "machine.v"], ["vvp", "-n", "machine"]):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=600)
    waves = tmp_path / "waves.vcd"
    signals = ("--start", "machine.timer.line", "--end", "machine.cpu.done", "--overlap", overlap)
    told, metadata, samples = replayed(waves, tmp_path, *signals)
    latenz("import", waves, *signals, "-o", tmp_path / "imported")
    assert told["identical"]
    assert told["cycle_ns"] < 1
    assert len(samples) >= 20
    assert metadata.overlaps > 0, "interrupts came while one was open"
    assert samples == rows(tmp_path / "imported")


def test_a_slower_clock_rounds_as_hardware_does(tmp_path):
    """At 50 MHz an edge is seen at the next multiple of 20 ns, two within 40 ns as one."""
    path = tmp_path / "hand.vcd"
    path.write_text(BY_HAND)
    signals = ("--start", "irq", "--end", "ack", "--clock", "50MHz")
    told, metadata, samples = replayed(path, tmp_path, *signals)
    assert (told["exact"], told["cycle_ns"], metadata.resolution_ns) == (False, 20, 20)
    assert told["identical"], "as the clock samples the trace"
    # Merged: irq at 1020 with 1000, ack at 1045 with 1060, ack at ...170 with ...145.
    late = [(900000100, 60), (900000160, 140)]
    assert samples == [(100, 40), (1000, 60), (2020, 0), *late]
    assert told["merged_edges"] == 3
    assert any("20 ns" in note for note in metadata.notes)


def test_samples_of_a_run_are_replayed(tmp_path, monkeypatch):
    """As those of emulated boards: more than fit in the memory, so in several pieces."""
    generator = random.Random(4)
    t_ns, latency_ns, now = [], [], 10**12
    for _ in range(300):
        now += generator.randrange(3, 10**6)
        t_ns.append(now)
        latency_ns.append(generator.randrange(100))
        now += latency_ns[-1]
    metadata = Metadata(name="board", time_base=TimeBase.VIRTUAL, from_event="a", to_event="b")
    writer = RunWriter(tmp_path / "run")
    writer.add(SampleSet.from_columns(metadata, t_ns=t_ns, latency_ns=latency_ns))
    writer.close()
    monkeypatch.setattr(replay, "_SEGMENT_SAMPLES", 200)
    plan = replay.Plan.of(read_trace(tmp_path / "run", None, None, "drop"), "drop", None)
    assert len(plan.parts) == 2
    measured = replay.replay(plan, lambda: False, lambda _cycles: None)
    assert replay.compare(plan, measured).differences == []
    told = replay.sample_set(plan, measured)
    (batch,) = told.batches("t_ns", "latency_ns")
    assert batch.to_pydict() == {"t_ns": t_ns, "latency_ns": latency_ns}
    assert (told.metadata.name, told.metadata.time_base) == ("board", "simulated")


def test_what_was_measured_wrongly_is_told(tmp_path):
    """The comparison itself: one cycle more in one latency, one start, one count."""
    path = tmp_path / "hand.vcd"
    path.write_text(BY_HAND)
    plan = replay.Plan.of(read_trace(path, "irq", "ack", "drop"), "drop", None)
    pairs = plan.expected.pairs

    def measured(**changes):
        right = {
            "latencies": [each.end - each.begin for each in pairs],
            "begins": [each.begin for each in pairs],
            "overlaps": 1,
            "orphan_ends": ORPHANS["drop"],
            "open_at_end": True,
            "is_whole": True,
        }
        return replay.compare(plan, replay.Replayed(**(right | changes)))

    assert measured().identical
    longer = [each.end - each.begin + (each is pairs[2]) for each in pairs]
    later = [each.begin + (each is pairs[1]) for each in pairs]
    for changes in (
        {"latencies": longer},
        {"begins": later},
        {"latencies": longer[:2], "begins": later[:2]},
        {"overlaps": 0},
        {"orphan_ends": 0},
        {"open_at_end": False},
        {"disagreements": ["max is 4 there, 5 by the samples"]},
    ):
        told = measured(**changes)
        assert not told.identical
        assert told.differences


def test_a_trace_too_fine_to_be_simulated_gets_a_clock_that_does(tmp_path):
    """As GHDL's own dumps, in femtoseconds."""
    path = tmp_path / "fine.vcd"
    header = BY_HAND.split("#0")[0].replace("1 ns", "1 fs")
    path.write_text(
        header + '#0 0! 0"\n#3 1!\n#40898322444 0! 1"\n#50000000001 0"\n#50000000002 1"\n'
    )
    trace = read_trace(path, "irq", "ack", "drop")
    with pytest.raises(BadInput, match=r"such as --clock (\d+GHz);") as refused:
        replay.Plan.of(trace, "drop", None)
    clock = re.search(r"--clock (\w+);", str(refused.value))[1]
    plan = replay.Plan.of(trace, "drop", parse_frequency(clock))
    assert 10**6 < plan.cycles < 3 * 10**7, "some minutes"


def test_other_latencies_are_not_compared_with_the_traces_own(tmp_path):
    """At 100 MHz an end behind a start is with it; as many latencies, from other starts."""
    path = tmp_path / "hand.vcd"
    irq, ack = "\n#{} 1!\n#{} 0!", '\n#{} 1"\n#{} 0"'
    # own: 0 to 54, 601 to 603, 606 to 608; by the clock 0 to 60, 60 to 200, and one of length 0
    edges = [(0, irq), (52, irq), (54, ack), (200, ack), (601, irq), (603, ack), (606, irq)]
    edges += [(608, ack)]
    text = "".join(one.format(at, at + 1) for at, one in edges)
    path.write_text(BY_HAND.split("#0")[0] + '#0 0! 0"' + text.replace("#0 1!", "1!", 1) + "\n")
    trace = read_trace(path, "irq", "ack", "drop")
    assert [each.end - each.begin for each in trace.own.pairs] == [54, 2, 2]
    plan = replay.Plan.of(trace, "drop", 100_000_000)
    pairs = plan.expected.pairs
    assert [each.end - each.begin for each in pairs] == [6, 14, 0]
    told = replay.compare(
        plan,
        replay.Replayed(
            latencies=[each.end - each.begin for each in pairs],
            begins=[each.begin for each in pairs],
            overlaps=plan.expected.overlaps,
            orphan_ends=plan.expected.orphan_ends,
            is_whole=True,
        ),
    )
    assert told.identical
    assert (told.samples, told.in_trace, told.largest_ns) == (3, 3, None)


def test_edges_at_one_time_are_told_apart_by_no_clock(tmp_path):
    path = tmp_path / "glitch.vcd"
    header = BY_HAND.split("#0")[0]
    path.write_text(header + '#0 0! 0"\n#10 1! 0! 1!\n#20 1"\n#30 0" 0!\n#40 1"\n')
    signals = ("--start", "irq", "--end", "ack", "--overlap", "queue")
    told, _, samples = replayed(path, tmp_path, *signals, code=1)
    assert not told["identical"]
    assert "no clock can tell them apart" in " ".join(told["differences"])
    assert samples == [(10, 10)]


def test_an_interrupted_replay_keeps_what_was_measured(tmp_path):
    path = tmp_path / "long.vcd"
    header = BY_HAND.split("#0")[0].replace("1 ns", "1 ps")
    path.write_text(header + '#0 0! 0"\n#1 1!\n#100000000 0! 1"\n')
    command = [sys.executable, "-m", "latenz", "ip", "replay", path, "--start", "irq", "--end"]
    command += ["ack", "-o", tmp_path / "run"]
    with subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE) as program:
        until = time.monotonic() + 120
        while not (tmp_path / "run/run.json").exists() and time.monotonic() < until:
            time.sleep(0.05)
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=600)
    assert program.returncode == 130, errors
    assert '"interrupted"' in (tmp_path / "run/run.json").read_text()
