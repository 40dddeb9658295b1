"""Every sample through a ring in memory: GHDL runs the IP and its writer, `latenz ip` reads."""

import itertools
import json
import signal

import numpy as np
import pytest
from simulated_boards import CYCLE_NS, Reading, column, document, drawn, latenz, never, nobody

from latenz.errors import BadInput
from latenz.importers.opening import open_sample_sets
from latenz.ip.configuration import Configuration
from latenz.ip.instance import LatenciesInstance, open_instances
from latenz.ip.link import Ring
from latenz.ip.record import Plan, Recording
from latenz.ip.recorder import Filling, Streaming, recorder
from latenz.ip.ring import Records, RingReader
from latenz.ip.simulated import Answers, Scenario, simulated_board
from latenz.ip.target import open_target

pytestmark = pytest.mark.boots

ANSWERS = Answers(least_cycles=2, spread_cycles=6, late_one_in=0)
EXPECTED = drawn(ANSWERS, 1, 100_000)
EVERY_FIGURE = {
    "depth_g": 16,
    "snapshot_g": True,
    "sums_g": True,
    "histogram_g": True,
    "histogram_bins_g": 16,
}
SLOW, FAST = 200, 20
"""Periods in cycles: 10 and 100 samples between two looks, for which ring and IP have 32 places."""


def board(period):
    scenario = Scenario(period_cycles=period, answers=ANSWERS, ring_log2=4)
    return simulated_board("latency_stream", EVERY_FIGURE, scenario)


@pytest.fixture(scope="module")
def slow():
    with board(SLOW) as path:
        yield f"unix:{path}"


@pytest.fixture(scope="module")
def fast():
    with board(FAST) as path:
        yield f"unix:{path}"


def cycles_of(sample_set):
    return [each // CYCLE_NS for each in column(sample_set, "latency_ns")]


def found_in_draws(sample_set, period):
    """Which samples of the series were kept, by their times; each is the draw of its place."""
    starts, cycles = column(sample_set, "t_ns"), cycles_of(sample_set)
    numbers = [(each - starts[0]) // (period * CYCLE_NS) for each in starts]
    assert [starts[0] + n * period * CYCLE_NS for n in numbers] == starts
    assert numbers == sorted(set(numbers)), "none is there twice"
    firsts = [
        first
        for first in range(20_000)
        if all(EXPECTED[first + n] == each for n, each in zip(numbers, cycles, strict=True))
    ]
    assert len(firsts) == 1, "there is one sequence of draws that they all belong to"
    return numbers


@pytest.mark.parametrize("continuous", [False, True])
def test_each_sample_is_read_once_whatever_memory_and_ring_hold(slow, tmp_path, continuous):
    """The IP's memory has 16 places and so has the ring; 300 samples go through it."""
    run = tmp_path / "run"
    more = ["--continuous"] if continuous else []
    told = document("read", slow, "--samples", 300, *more, "-o", run)
    assert (told["outcome"], told["remarks"]) == ("complete", [])
    (sample_set,) = open_sample_sets(run)
    numbers = found_in_draws(sample_set, SLOW)
    assert len(numbers) >= 300
    assert numbers == list(range(len(numbers)))
    assert sample_set.form == "samples"
    assert list(run.glob("**/*.parquet"))
    assert not list(run.glob("**/samples.journal"))
    metadata = sample_set.metadata
    assert (metadata.missed_periods, metadata.beyond_range) == (0, 0)
    assert metadata.notes == ()
    latenz("report", run, "-o", tmp_path / "report.html")


def test_few_samples_are_read_from_the_memory_of_the_ip(slow):
    with open_target(slow) as link:
        (instance,) = open_instances(link)
        assert isinstance(recorder(instance, 16, continuous=False), Filling)
        assert isinstance(recorder(instance, 16, continuous=True), Streaming)
        assert isinstance(recorder(instance, 17, continuous=False), Streaming)


def test_a_reader_that_is_too_slow_tells_each_dropped_sample(fast, tmp_path):
    run = tmp_path / "run"
    told = document("read", fast, "--samples", 300, "-o", run)
    assert told["remarks"] == []
    with open_target(fast) as link:  # what the hardware says of the series that has just ended
        (instance,) = open_instances(link)
        num, dropped = instance.register("num"), instance.register("stream_dropped")
    (sample_set,) = open_sample_sets(run)
    numbers = found_in_draws(sample_set, FAST)
    assert numbers[0] == 0, "the first sample of a series finds a place"
    absent = set(range(num)) - set(numbers)
    assert len(absent) == dropped > 300
    assert len(numbers) + dropped == num
    metadata = sample_set.metadata
    assert metadata.missed_periods == dropped
    (note,) = metadata.notes
    assert note.startswith(f"{dropped} samples were measured and not read, because the ring was")


def test_what_an_abandoned_series_left_is_not_read(slow):
    """A reader was killed: ring and IP are full of its samples."""
    with open_target(slow) as link:
        (instance,) = open_instances(link)
        Streaming(instance, instance.place.ring).begin()
        link.wait(100 * SLOW)
        assert instance.register("stream_dropped") > 0
    with open_target(slow) as link:
        recording = Recording(open_instances(link), Plan(samples=20))
        recording.recorders[0].begin()
        link.wait(15 * SLOW)
        recording.recorders[0].stop()
        recording.recorders[0].finish()
    account = recording.recorders[0].account
    assert (account.unread, account.disagreements) == (0, [])
    assert recording.recorders[0].kept == account.statistics[0].num >= 14


@pytest.mark.parametrize("lost", [0, 7])
def test_a_record_that_goes_astray_is_told(slow, monkeypatch, lost):
    """The first, or another one, as if memory or reader had lost it."""
    whole, seen = RingReader.read, itertools.count()

    def read(self, most):
        records = whole(self, most)
        keep = np.array([next(seen) != lost for _ in range(len(records))], dtype=bool)
        names = ("start", "latency", "channel", "saturated", "sequence")
        return Records(*(getattr(records, name)[keep] for name in names))

    with open_target(slow) as link:
        recording = Recording(open_instances(link), Plan(samples=40))
        recording.recorders[0].begin()
        monkeypatch.setattr(RingReader, "read", read)
        recording._wait(never, nobody)
        recording.recorders[0].stop()
        recording.recorders[0].finish()
    assert recording.disagrees
    told = " ".join(recording.remarks())
    kept = recording.recorders[0].kept
    assert f"num is {kept + 1} there, {kept} by the samples" in told
    assert f"stream_sent is {kept + 1} there, {kept} were in the ring" in told
    assert "stream_dropped is 0 there, 1 by the numbers of the records" in told


def test_a_num_that_stops_ends_nothing(slow, monkeypatch):
    """As if it counted to 47, not to 65,535: the ring goes on, other figures are still compared."""
    whole = LatenciesInstance.register

    def register(self, name):
        value = whole(self, name)
        return min(value, 47) if name in ("num", "snapshot_num") else value

    monkeypatch.setattr(Configuration, "most_num", property(lambda _: 47))
    monkeypatch.setattr(LatenciesInstance, "register", register)
    with open_target(slow) as link:
        recording = Recording(open_instances(link), Plan(samples=100))
        assert recording.run(never, nobody) == "complete"
    (each,) = recording.recorders
    assert (each.account.series, each.account.unread, recording.remarks()) == (1, 0, [])
    (sample_set,) = recording.sample_sets()
    numbers = found_in_draws(sample_set, SLOW)
    assert numbers == list(range(len(numbers)))
    assert len(numbers) >= 100
    assert any("more samples than 47" in note for note in sample_set.metadata.notes)


def test_interrupting_keeps_what_is_in_the_ring(slow, tmp_path):
    run = tmp_path / "run"
    reading = Reading(slow, run)
    reading.program.send_signal(signal.SIGINT)
    status, said = reading.ended()
    assert status == 130, said
    assert json.loads((run / "run.json").read_text())["status"] == "interrupted"
    (sample_set,) = open_sample_sets(run)
    numbers = found_in_draws(sample_set, SLOW)
    assert numbers == list(range(len(numbers)))
    assert sample_set.metadata.notes == ()


def test_a_ring_where_no_memory_is_is_told(slow):
    with open_target(slow) as link:
        (instance,) = open_instances(link)
        ring = instance.place.ring
        elsewhere = Streaming(instance, ring.model_copy(update={"base": ring.base + (1 << 20)}))
        elsewhere.begin()
        link.wait(3 * SLOW)
        with pytest.raises(BadInput, match="memory refuses its records"):
            elsewhere.poll()
        beyond = Streaming(instance, ring.model_copy(update={"base": 1 << 50}))
        with pytest.raises(BadInput, match="its base_high is 0x0 after 0x40000 was written"):
            beyond.begin()
        recording = Recording([instance], Plan(samples=30))  # as if nothing had happened
        assert recording.run(never, nobody) == "complete"
    assert recording.remarks() == []


def test_a_ring_that_several_ips_share_is_refused(slow, monkeypatch):
    parts = iter([Records.decode(bytes(14) + bytes([channel, 0])) for channel in (0, 1)])
    with open_target(slow) as link:
        (instance,) = open_instances(link)
        streaming = Streaming(instance, instance.place.ring)
        streaming.begin()
        monkeypatch.setattr(RingReader, "read", lambda *_: next(parts))
        assert streaming.poll() == 1
        with pytest.raises(BadInput, match=r"records of several IPs are in it: channels \[0, 1\]"):
            streaming.poll()
        twice = [instance.place, instance.place.model_copy(update={"name": "other"})]
        link.board = link.board.model_copy(update={"instances": twice})
        with pytest.raises(BadInput, match="two of its instances have one ring"):
            open_instances(link)


def test_a_ring_needs_a_stream(bench):
    with open_target(bench) as link:
        (instance,) = open_instances(link, "T1")
        with pytest.raises(BadInput, match="it has no stream, but a ring behind it"):
            Streaming(instance, Ring(registers=0, memory=1, base=0, size_log2=4))
