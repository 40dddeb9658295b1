"""Reading activations: every format tells the same, real traces are read, mistakes have a line."""

from pathlib import Path

import made_traces
import numpy as np
import pytest

from latenz.analysis.activations import FORMATS, read_activations
from latenz.errors import BadInput
from latenz.model import Metadata, SampleSet, TimeBase
from latenz.store.run import RunWriter

DATA = Path(__file__).parent.parent / "data" / "learn"
WRITERS = {
    "csv": made_traces.write_csv,
    "parquet": made_traces.write_rows_as_parquet,
    "btf": made_traces.write_btf,
    "ftrace": made_traces.write_ftrace,
}


def made(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {
        name: 7_000_000_000 + np.cumsum(random.integers(0, 3_000_000, 400))
        for name in ("can (irq 3)", "Out-of-band timer (irq 44)", "eth0:rx (irq 5)")
    }


def assert_same(found: dict[str, np.ndarray], wanted: dict[str, np.ndarray]) -> None:
    assert set(found) == set(wanted)
    for name, times in wanted.items():
        assert found[name].dtype == np.int64
        np.testing.assert_array_equal(found[name], times)


@pytest.mark.parametrize("kind", WRITERS)
def test_every_format_tells_the_same(kind: str, tmp_path: Path) -> None:
    wanted = made(1)
    WRITERS[kind](tmp_path / "trace", wanted)
    recorded = read_activations(tmp_path / "trace")
    assert recorded.format == ("csv" if kind == "parquet" else kind)
    assert recorded.warnings == ()
    assert_same(recorded.times_by_source, wanted)
    chosen = read_activations(tmp_path / "trace", recorded.format, sources=["can (irq 3)"])
    assert_same(chosen.times_by_source, {"can (irq 3)": wanted["can (irq 3)"]})


def test_sample_sets_tell_their_time_stamps(tmp_path: Path) -> None:
    times = made(2)["can (irq 3)"]
    made_traces.write_samples(tmp_path / "samples.parquet", "idle/cpu0", times)
    recorded = read_activations(tmp_path / "samples.parquet")
    assert recorded.format == "samples"
    assert_same(recorded.times_by_source, {"idle/cpu0": times})

    writer = RunWriter(tmp_path / "run", command=["test"])
    for name, columns in {
        "timed": {"latency_ns": np.arange(400), "t_ns": times, "missed": np.arange(400) // 399 * 7},
        "untimed": {"latency_ns": np.arange(9)},
    }.items():
        metadata = Metadata(name=name, time_base=TimeBase.SILICON)
        writer.add(SampleSet.from_columns(metadata, **columns))
    writer.close()
    recorded = read_activations(tmp_path / "run")
    assert_same(recorded.times_by_source, {"timed": times})
    assert recorded.warnings == (
        "untimed has no time stamps",
        "timed lacks 7 activations that were skipped",
    )


def test_recorded_interrupts() -> None:
    text = (DATA / "ftrace-v6.18.txt").read_text()
    recorded = read_activations(DATA / "ftrace-v6.18.txt")
    assert recorded.format == "ftrace"
    stamps = [
        round(float(line.split(": irq_handler_entry")[0].split()[-1]) * 1e6)
        for line in text.splitlines()
        if "irq=36 name=virtio1-req.0" in line
    ]
    assert len(stamps) > 10
    assert (recorded.times_by_source["virtio1-req.0 (irq 36)"] // 1000).tolist() == stamps


@pytest.mark.parametrize("name", ["no-irq-info", "tgid"])
def test_recorded_interrupts_in_other_columns(name: str) -> None:
    path = DATA / f"ftrace-{name}-v6.18.txt"
    times = read_activations(path).times_by_source["virtio1-req.0 (irq 36)"]
    assert len(times) == path.read_text().count("irq=36")


@pytest.mark.parametrize(
    ("event", "source"),
    [
        ("hrtimer_expire_entry", "tick_nohz_handler (cpu 0)"),
        ("hrtimer_expire_entry", "tick_nohz_handler (cpu 1)"),
        ("local_timer_entry", "local timer (cpu 1)"),
        ("sched_wakeup", "rcu_preempt (pid 15)"),
    ],
)
def test_other_events_of_the_kernel(event: str, source: str) -> None:
    path = DATA / "ftrace-v6.18.txt"
    recorded = read_activations(path, event=event)
    assert source in recorded.times_by_source
    found = sum(map(len, recorded.times_by_source.values()))
    assert found == path.read_text().count(f": {event}: ")


def test_an_event_without_known_fields_is_one_source(tmp_path: Path) -> None:
    lines = [f"  a-1 [00{at % 2}] .... 1.{at:06}: can_rx: id={at}\n" for at in range(9)]
    (tmp_path / "trace").write_text("".join(lines))
    recorded = read_activations(tmp_path / "trace", event="can_rx")
    expected = 10**9 + 1000 * np.arange(9)
    assert_same(recorded.times_by_source, {"can_rx": expected})


def test_perf_script_prints_nanoseconds() -> None:
    recorded = read_activations(DATA / "perf-script-ns-v6.18.txt")
    assert recorded.times_by_source["virtio1-req.0 (irq 36)"].tolist() == [13763604388253]


def test_trace_cmd_report() -> None:
    path = DATA / "trace-cmd-report-kvm-v6.1.txt"
    times = read_activations(path, event="kvm_exit").times_by_source["kvm_exit"]
    lines = [line for line in path.read_text().splitlines() if " kvm_exit: " in line]
    stamps = [line.split(": kvm_exit")[0].split()[-1] for line in lines]
    assert len(times) > 20
    assert times.tolist() == [int(stamp.replace(".", "")) * 1000 for stamp in stamps]


def test_lines_as_trace_cmd_report_prints_them(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text(
        "cpus=2\n"
        "          <idle>-0     [001]    25.634692: irq_handler_entry:    irq=30 name=eth0\n"
        "          <idle>-0     [001]    25.634699: irq_handler_exit:     irq=30 ret=handled\n"
        "CPU:1 [62 EVENTS DROPPED]\n"
        "     irq/30-eth0-99    [000] d.h1. 25.700000001: irq_handler_entry:  irq=30 name=eth0\n"
        "CPU:0 [EVENTS DROPPED]\n"
    )
    recorded = read_activations(tmp_path / "trace")
    assert recorded.times_by_source["eth0 (irq 30)"].tolist() == [25634692000, 25700000001]
    assert "62 events were lost in 2 places" in recorded.warnings[0]


def test_lost_events_are_told() -> None:
    lost = read_activations(DATA / "ftrace-lost-v6.18.txt", event="sched_switch")
    assert "3241 events were lost in 2 places" in lost.warnings[0]
    late = read_activations(DATA / "ftrace-overwritten-v6.18.txt", event="sched_switch")
    assert "the recording of CPU 0 begins late" in late.warnings[0]


def test_cpus_may_overtake_each_other_in_a_trace(tmp_path: Path) -> None:
    line = "  a-1 [{cpu:03}] d.h1. {at}.000000: irq_handler_entry: irq=1 name=can\n"
    ordered = [(0, 5), (1, 3), (0, 6), (1, 6)]
    (tmp_path / "trace").write_text("".join(line.format(cpu=cpu, at=at) for cpu, at in ordered))
    times = read_activations(tmp_path / "trace").times_by_source["can (irq 1)"]
    assert times.tolist() == [3 * 10**9, 5 * 10**9, 6 * 10**9, 6 * 10**9]


def test_btf_activations() -> None:
    recorded = read_activations(DATA / "can.btf")
    us = 1000
    assert_same(
        recorded.times_by_source,
        {
            "Can_ISR": us * np.array([0, 200, 500, 1300]),
            "Rx_Task": us * np.array([9, 209, 509, 1309]),
            "Timer_ISR": us * np.array([250, 1250]),
        },
    )
    assert [warning.split()[0] for warning in recorded.warnings] == ["Timer_ISR", "1"]
    started = read_activations(DATA / "can.btf", event="start").times_by_source
    assert started["Can_ISR"].tolist() == [2000, 203_000, 504_000, 1_302_000]
    triggered = read_activations(DATA / "can.btf", event="trigger").times_by_source
    assert triggered["Can_Stimulus"].tolist() == [0]


NAMES_BEFORE_2_2 = "#typeTable\n#-0 T\n#-1 ISR\n#entityTable\n#-10 Engine_Task\n#-11 Crank_ISR\n"
NAMES_SINCE_2_2 = """\
#typeMapping 0 T
#typeMapping 1 I
#entityMapping 10 Engine_Task
#entityMapping 11 Crank_ISR
"""


@pytest.mark.parametrize("names", [NAMES_BEFORE_2_2, NAMES_SINCE_2_2])
def test_btf_with_numbers_for_names(names: str, tmp_path: Path) -> None:
    text = (DATA / "mapped.btf").read_text()
    assert NAMES_BEFORE_2_2 in text
    (tmp_path / "t.btf").write_text(text.replace(NAMES_BEFORE_2_2, names))
    recorded = read_activations(tmp_path / "t.btf")
    assert_same(
        recorded.times_by_source,
        {
            "Crank_ISR": np.array([0, 100_000, 250_000]),
            "Engine_Task": np.array([1, 260_001]),
        },
    )
    assert "below 1 ns" in recorded.warnings[0]


@pytest.mark.parametrize("scale", ["ns", "us", "ms", "s", "US"])
def test_btf_time_scales(scale: str, tmp_path: Path) -> None:
    unit = {"ns": 1, "us": 1000, "ms": 10**6, "s": 10**9}[scale.lower()]
    events = "0,S,0,T,A,0,activate\r\n7,S,1,T,A,1,activate\r\n7.5,S,1,T,B,1,activate\r\n"
    (tmp_path / "t.btf").write_text(f"\ufeff#version 2.1.3\r\n#timeScale {scale}\r\n{events}")
    found = read_activations(tmp_path / "t.btf").times_by_source
    assert found["A"].tolist() == [0, 7 * unit]
    assert found["B"].tolist() == [int(7.5 * unit)]


def test_a_cut_off_last_line_is_left_out_and_told(tmp_path: Path) -> None:
    for name in ("can.btf", "ftrace-v6.18.txt"):
        whole = (DATA / name).read_bytes()
        before = read_activations(DATA / name).times_by_source
        last = whole.rstrip().rpartition(b"\n")[2]
        extra = (
            last[: last.index(b",I,")]
            if name == "can.btf"
            else b" a-1 [000] 1: irq_handler_entry: i"
        )
        (tmp_path / name).write_bytes(whole + extra)
        cut = read_activations(tmp_path / name)
        assert "cut off" in cut.warnings[0]
        assert_same(cut.times_by_source, before)
        (tmp_path / name).write_bytes(whole + extra + b"\n")
        with pytest.raises(BadInput, match=f"{name}:{whole.count(10) + 1} "):
            read_activations(tmp_path / name)


BTF = "#version 2.2.0\n#timeScale ns\n5,S,0,T,A,0,activate\n"
FTRACE = "# tracer: nop\n a-1 [000] d.h1. 5.000001: irq_handler_entry: irq=1 name=can\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("\0\1\2binary" * 99, "is not a trace that Latenz reads"),
        ("source,time_us\ncan,1\n", ":1: is not a trace of arrivals; the first line"),
        ("source,time_ns\ncan,1.5\n", ":2: '1.5' is not a time"),
        ("source,time_ns\ncan,5\ncan,4\n", ":3: 4 ns comes after 5 ns"),
        ("source,time_ns\ncan,99999999999999999999\n", ":2: "),
        ("source,time_ns\n", "holds no activation"),
        ("source,time_ns\n,5\n", "'' is not a name"),
        ("source,time_ns\na\x1b[2J,5\n", "'a\\x1b[2J' is not a name"),
        (BTF + "4,S,0,T,A,0,activate\n", ":4 (btf): 4 ns comes after 5 ns"),
        (BTF + "9,S,0,T,A,0\n", ":4 (btf): '9,S,0,T,A,0' is not an event"),
        (BTF + "x,S,0,T,A,0,activate\n", ":4 (btf): the time stamp is 'x'"),
        (BTF + "-7,S,0,T,A,0,activate\n", ":4 (btf): the time stamp is '-7'"),
        (BTF + "9223372036854775808,S,0,T,A,0,activate\n", "it must fit in 64 bits"),
        (BTF + "9,S,0,T,,0,activate\n", ":4 (btf): the target has no name"),
        (BTF + "#timeScale us\n", ":4 (btf): a second time scale"),
        (BTF.replace("#timeScale ns\n", ""), ":2 (btf): the unit of the time stamps is not known"),
        (BTF.replace(" ns", " fortnights"), ":2 (btf): 'fortnights' is not a time scale"),
        (BTF.replace("activate", "preempt"), "there is no event activate"),
        (
            FTRACE + FTRACE.replace("5.0", "4.0"),
            ":4 (ftrace): 4000001000 ns comes after 5000001000",
        ),
        (FTRACE.replace("name=can", ""), ":2 (ftrace): irq_handler_entry has no field name"),
        (FTRACE.replace("5.000001", "5000001"), "time stamps must be seconds"),
        (FTRACE.replace("5.000001:", "oops:"), ":2 (ftrace): 'a-1 [000] d.h1. oops:"),
        (FTRACE.replace("5.0", "9999999999.0"), "it must fit in 64 bits"),
        (FTRACE.replace("irq_handler_entry", "can_rx"), "choose with --event among: can_rx"),
    ],
)
def test_mistakes_are_one_line_with_their_place(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "trace").write_text(text)
    with pytest.raises(BadInput) as mistake:
        read_activations(tmp_path / "trace")
    assert message in str(mistake.value)
    assert str(tmp_path / "trace") in str(mistake.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ftrace-latency-format-v6.18.txt", ":19 (ftrace): "),
        ("ftrace-tsc-clock-v6.18.txt", "time stamps must be seconds"),
    ],
)
def test_recordings_that_cannot_be_used_are_told(name: str, message: str) -> None:
    with pytest.raises(BadInput) as mistake:
        read_activations(DATA / name)
    assert message in str(mistake.value)


def test_sample_sets_that_cannot_be_used_are_told(tmp_path: Path) -> None:
    path = tmp_path / "samples.parquet"
    made_traces.write_samples(path, "s", np.array([5, 4]))
    with pytest.raises(BadInput, match="sample set s: row 2: 4 ns comes after 5 ns"):
        read_activations(path)
    made_traces.write_samples(path, "s", np.array([-5, 4]))
    with pytest.raises(BadInput, match="negative"):
        read_activations(path)
    (tmp_path / "l.csv").write_text("latency_us\n5\n6\n")
    with pytest.raises(BadInput, match="no sample set in it has time stamps"):
        read_activations(tmp_path / "l.csv")


def test_options_that_do_not_fit_are_told(tmp_path: Path) -> None:
    for arguments, message in (
        ({"format_name": "csw"}, "--format: 'csw' is not a format; did you mean 'csv'"),
        ({"event": "start"}, "--event: 'start' cannot be chosen"),
        ({"sources": ["cam"]}, "--source: 'cam' is not in"),
        ({"format_name": "ftrace", "event": "a b"}, "--event: 'a b' is not an event"),
    ):
        (tmp_path / "t.csv").write_text("source,time_ns\ncan,5\n")
        with pytest.raises(BadInput) as mistake:
            read_activations(tmp_path / "t.csv", **arguments)
        assert message in str(mistake.value)
    for path in (tmp_path / "absent", Path("/dev/null")):
        for format_name in (None, *FORMATS):
            with pytest.raises(BadInput, match=str(path)):
                read_activations(path, format_name)
    for format_name in ("csv", "btf", "ftrace"):
        with pytest.raises(BadInput, match=str(tmp_path)):
            read_activations(tmp_path, format_name)


@pytest.mark.parametrize("end", ["\r\n", "\n", "\r"])
def test_comments_alone_are_no_trace(end, tmp_path):
    (tmp_path / "trace").write_text(f"# comment{end}" * 2000, newline="")
    with pytest.raises(BadInput, match="is not a trace that Latenz reads"):
        read_activations(tmp_path / "trace")
