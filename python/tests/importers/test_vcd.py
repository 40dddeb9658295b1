"""Value change dumps: the pairing rules, against a plain model that knows only the rules."""

from pathlib import Path

import examples
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latenz import importers
from latenz.errors import BadInput
from latenz.importers.pairing import POLICIES, Pairing
from latenz.model import SampleSet

HEADER = """\
$timescale {scale} $end
$scope module top $end
$var wire 1 s start $end
$var wire 1 e end $end
$var real 64 q other $end
$upscope $end
$enddefinitions $end
"""


def write(path: Path, body: str, scale: str = "1 ns", header: str = HEADER) -> Path:
    file = path / "wave.vcd"
    file.write_text(header.format(scale=scale) + body)
    return file


def read(file: Path, **options: object) -> SampleSet:
    (only,) = importers.read(file, **{"start": "start", "end": "end", **options})
    return only


def pairs(sample_set: SampleSet) -> list[tuple[int, int]]:
    return [
        row
        for batch in sample_set.batches("t_ns", "latency_ns")
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]


def counts(sample_set: SampleSet) -> tuple[int | None, int | None, int | None]:
    known = sample_set.metadata
    return known.overlaps, known.orphan_ends, known.open_at_end


def test_the_example_of_every_rule(tmp_path):
    file = tmp_path / "wave.vcd"
    file.write_text(examples.VCD)
    sample_set = read(file, start="top.irq", end="ack")
    # 10 ps a tick: irq at 100 and 3000, bit 0 of ack at 1250 and 3150
    assert pairs(sample_set) == [(1, 11), (30, 1)]
    assert counts(sample_set) == (0, 0, 0)
    assert "2 latencies are no whole nanoseconds and were rounded down" in sample_set.metadata.notes
    assert sample_set.metadata.time_base == "simulated"
    assert sample_set.metadata.from_event == "top.irq"


BODY = "#0 0s 0e #10 1s #12 0s #20 1s #22 0s #30 1e #32 0e #40 1e #41 0e #50 1s\n"


@pytest.mark.parametrize(
    ("policy", "latencies", "counted"),
    [
        ("drop", [(10, 20)], (1, 1, 1)),
        ("restart", [(20, 10)], (1, 1, 1)),
        ("queue", [(10, 20), (20, 20)], (1, 0, 1)),
    ],
)
def test_overlaps(tmp_path, policy, latencies, counted):
    sample_set = read(write(tmp_path, BODY), overlap=policy)
    assert pairs(sample_set) == latencies
    assert counts(sample_set) == counted


@pytest.mark.parametrize(
    ("body", "latencies", "counted"),
    [
        # at the same time, nothing open: latency 0, whatever the order in the file
        ("#0 0s 0e #5 1s 1e\n", [(5, 0)], (0, 0, 0)),
        ("#0 0s 0e #5 1e 1s\n", [(5, 0)], (0, 0, 0)),
        # with one open: the end belongs to it, then the start opens a new one
        ("#0 0s 0e #5 1s #6 0s #9 1s 1e #10 0e #12 1e\n", [(5, 4), (9, 3)], (0, 0, 0)),
        ("#0 0s 0e #5 1s #6 0s #9 1e 1s #10 0e #12 1e\n", [(5, 4), (9, 3)], (0, 0, 0)),
        # the same time given twice is one instant
        ("#0 0s 0e #5 1e #5 1s\n", [(5, 0)], (0, 0, 0)),
        # 0, x, 1 is not an edge, nor is a first value
        ("#0 0s 0e #1 xs #2 1s #3 0s #4 1s #6 1e\n", [(4, 2)], (0, 0, 0)),
        ("#0 1s 0e #3 0s #4 1s #6 1e\n", [(4, 2)], (0, 0, 0)),
        ("#0 0s 0e #1 zs #2 1s #3 0s #4 1s #6 1e\n", [(4, 2)], (0, 0, 0)),
        # values before the first time, blocks, comments, unwatched signals, reals and strings
        (
            "$dumpvars 0s 0e $end #4 r1.5 q 1s $comment 1e $end sx- q 1q #6 1e\n",
            [(4, 2)],
            (0, 0, 0),
        ),
        (
            "#0 0s 0e $dumpoff xs xe $end $dumpon 1s 0e $end #2 0s #4 1s #6 1e\n",
            [(4, 2)],
            (0, 0, 0),
        ),
    ],
)
def test_edges_and_instants(tmp_path, body, latencies, counted):
    sample_set = read(write(tmp_path, body))
    assert pairs(sample_set) == latencies
    assert counts(sample_set) == counted


def test_falling_edges_and_pulse_width(tmp_path):
    file = write(tmp_path, "#0 0s 0e #5 1s #7 0s #9 1e #12 0e #20 1s #28 0s\n")
    assert pairs(read(file, start="start:fall", end="end:fall")) == [(7, 5)]
    assert pairs(read(file, end="start:fall")) == [(5, 2), (20, 8)]
    with pytest.raises(BadInput, match="same edge"):
        read(file, end="start")


@pytest.mark.parametrize(
    ("scale", "t_ns", "latency_ns", "rounded"),
    [
        ("1 s", 10_000_000_000, 7_000_000_000, False),
        ("100ms", 1_000_000_000, 700_000_000, False),
        ("10\nus", 100_000, 70_000, False),
        ("1ns", 10, 7, False),
        ("100 ps", 1, 0, True),
        ("1 fs", 0, 0, True),
    ],
)
def test_time_scales(tmp_path, scale, t_ns, latency_ns, rounded):
    sample_set = read(write(tmp_path, "#0 0s 0e #10 1s #17 1e\n", scale))
    assert pairs(sample_set) == [(t_ns, latency_ns)]
    assert any("rounded down" in note for note in sample_set.metadata.notes) == rounded


def test_a_latency_is_rounded_not_its_ends(tmp_path):
    # 1.9 ns to 4.0 ns is 2.1 ns; the ends rounded on their own would give 3
    sample_set = read(write(tmp_path, "#0 0s 0e #19 1s #40 1e\n", "100 ps"))
    assert pairs(sample_set) == [(1, 2)]


VECTORS = """\
$timescale 1 ns $end
$scope module top $end
$var reg 4 s start [3:0] $end
$var reg 4 e end [0:3] $end
$var wire 1 b other [2] $end
$upscope $end
$enddefinitions $end
"""


def test_vectors_count_as_their_bit_0(tmp_path):
    # start: bit 0 is the right one; end: bit 0 is the left one; short values are extended by 0
    body = "#0 b0 s b0 e #1 b10 s #2 b11 s #3 b1 e #4 b1000 e #6 bx s #7 b1 s #8 b1111 e\n"
    sample_set = read(write(tmp_path, body, header=VECTORS))
    assert pairs(sample_set) == [(2, 2)]


def test_a_vector_without_bit_0_is_refused(tmp_path):
    file = write(tmp_path, "#0\n", header=VECTORS.replace("[3:0]", "[7:4]"))
    with pytest.raises(BadInput, match="has no bit 0"):
        read(file)


def test_names(tmp_path):
    file = tmp_path / "wave.vcd"
    file.write_text(examples.VCD)
    with pytest.raises(
        BadInput, match=r"'irq' is ambiguous; give one of: top\.inner\.irq, top\.irq"
    ):
        read(file, start="irq", end="ack")
    with pytest.raises(BadInput, match=r"no signal 'akc'; there are: top\.ack\[7:0\]"):
        read(file, start="top.irq", end="akc")
    with pytest.raises(BadInput, match=r"no signal given for --end; signals: top\.ack"):
        read(file, start="top.irq", end=None)
    assert len(pairs(read(file, start="top.irq", end="ack[7:0]"))) == 2
    assert len(pairs(read(file, start="top.irq", end="top.ack"))) == 2


def test_one_signal_seen_through_two_scopes_is_not_ambiguous(tmp_path):
    header = HEADER.replace(
        "$upscope", "$scope module in $end\n$var wire 1 s irq $end\n$upscope $end\n$upscope"
    ).replace("1 s start", "1 s irq")
    file = write(tmp_path, "#0 0s 0e #5 1s #6 1e\n", header=header)
    assert pairs(read(file, start="irq")) == [(5, 1)]
    assert pairs(read(file, start="top.in.irq")) == [(5, 1)]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("#0 0s 0e\n#9 1s\n#5 1e\n", r"wave\.vcd:10 \(vcd\): the time goes back from 9 to 5"),
        ("#0 0s 0e\n#99999999999999999999999999999999 1s\n", "is damaged"),
        ("#0 0s 0e #5 1s #9223372036854775808 1e\n", "does not fit in 64 bits"),
        ("#0 0s 0e\nhello\n", r":9 \(vcd\): no signal has the code 'ello'"),
        ("#0 0s 0e\n#5 1\n", "'1' is not a value change"),
        ("#0 0s 0e\nout\n", "'out' is not a value change"),
        ("#0 0s 0e #5 b1\n", "a value without a signal"),
        ("#0 b11 s\n", "wider than its signal"),
        ("#0 b2 s\n", "'2' is damaged"),
        ("#0 0s 0e $comment\n", "no \\$end"),
        ("#0 0s 0e #5 1s\n", "holds no latency from top.start to top.end; 1 starts without end"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path, body, message):
    with pytest.raises(BadInput, match=message):
        read(write(tmp_path, body))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (HEADER.replace("$timescale {scale} $end", "$date now $end"), "no \\$timescale"),
        (HEADER.replace("$enddefinitions $end", ""), "between declarations"),
        (HEADER.replace("1 e end", "e end"), "not declared whole"),
        (HEADER.replace("1 e end", "one e end"), "the size is 'one'"),
        (HEADER.replace("{scale}", "2 ns"), "the time scale is '2 ns'"),
        (HEADER.replace("$scope", "$upscope $end $scope"), "without \\$scope"),
    ],
)
def test_headers(tmp_path, header, message):
    with pytest.raises(BadInput, match=message):
        read(write(tmp_path, "#0 0s 0e #5 1s #6 1e\n", header=header))


def test_a_cut_file_is_told(tmp_path):
    notes = read(write(tmp_path, "#0 0s 0e #5 1s #6 1e")).metadata.notes
    assert "the last change may be cut: the file does not end with a line end" in notes


def model(policy: str, edges: list[tuple[int, bool, bool]]):
    """The rules of the contract, one instant after the other, with a list for what is open."""
    opened: list[int] = []
    done, overlaps, orphans = [], 0, 0
    for time, start, end in edges:
        if start and end and not opened:
            done.append((time, 0))
            continue
        if end and opened:
            begun = opened.pop(0)
            done.append((begun, time - begun))
        elif end:
            orphans += 1
        if start and opened:
            overlaps += 1
            opened = {"drop": opened, "restart": [time], "queue": [*opened, time]}[policy]
        elif start:
            opened = [time]
    return done, (overlaps, orphans, len(opened))


EDGES = st.lists(
    st.tuples(st.integers(0, 50), st.sampled_from([(True, False), (False, True), (True, True)])),
    min_size=1,
    max_size=60,
)


@settings(deadline=None)
@given(policy=st.sampled_from(POLICIES), steps=EDGES)
def test_pairing_keeps_the_rules(policy, steps):
    time, edges = 0, []
    for step, (start, end) in steps:
        time += step + 1
        edges.append((time, start, end))
    wanted, counted = model(policy, edges)
    pairing = Pairing(policy)
    got = [
        (begin, done - begin)
        for time, start, end in edges
        for begin, done in pairing.edges(time, int(start), int(end))
    ]
    assert got == wanted
    assert (pairing.overlaps, pairing.orphan_ends, pairing.open_at_end) == counted


@settings(deadline=None)
@given(
    policy=st.sampled_from(POLICIES),
    changes=st.lists(
        st.tuples(st.integers(0, 9), st.sampled_from("01xz"), st.sampled_from("01xz")), max_size=80
    ),
)
def test_levels_to_latencies(tmp_path_factory, policy, changes):
    """Whole files of random levels, against the model fed with edges found independently."""
    time, before, edges, body = 0, ("0", "0"), [], "#0 0s 0e\n"
    for step, start, end in changes:
        time += step + 1
        body += f"#{time}\n{start}s\n{end}e\n"
        rises = [b == "0" and a == "1" for b, a in zip(before, (start, end), strict=True)]
        if any(rises):
            edges.append((time, *rises))
        before = (start, end)
    wanted, counted = model(policy, edges)
    file = write(tmp_path_factory.mktemp("vcd"), body)
    if not wanted:
        with pytest.raises(BadInput, match="holds no latency"):
            read(file, overlap=policy)
        return
    sample_set = read(file, overlap=policy)
    assert pairs(sample_set) == wanted
    assert counts(sample_set) == counted
