"""Every file of a real tool reads back to what the tool printed, counted here in other ways."""

import json
from pathlib import Path

import numpy as np
import pytest

from latenz import importers
from latenz.errors import BadInput
from latenz.model import SampleSet

DATA = Path(__file__).parent.parent / "data" / "importers"


def read(name: str, **options: object) -> dict[str, SampleSet]:
    return {s.metadata.name: s for s in importers.read(DATA / name, **options)}


def columns(sample_set: SampleSet) -> dict[str, list[int]]:
    values: dict[str, list[int]] = {name: [] for name in sample_set.columns}
    for batch in sample_set.batches():
        for name in values:
            values[name] += batch.column(name).to_pylist()
    return values


def cells(sample_set: SampleSet) -> dict[int, int]:
    values = columns(sample_set)
    return dict(zip(values["latency_ns"], values["count"], strict=True))


def figures(sample_set: SampleSet) -> tuple[object, ...]:
    known = sample_set.metadata.reported
    return (known.n, known.min_ns, known.mean_ns, known.max_ns)


def table(name: str, first: str) -> list[list[str]]:
    """The words of the lines that begin with a digit, after the line `first`."""
    lines = (DATA / name).read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith(first))
    return [line.split() for line in lines[begin + 1 :] if line[:1].isdigit()]


SUMMARIES = {  # n, min, mean, max as printed, in ns
    ("cyclictest-v2.4.json", "cpu0"): (2000, 3_000, 27_470.0, 2_310_000),
    ("cyclictest-v2.4-quiet.txt", "thread0"): (2000, 3_000, 27_000.0, 2_310_000),
    ("cyclictest-v2.4-nsec.json", "cpu0"): (1000, 3_245, 17_457.89, 1_914_347),
    ("cyclictest-v2.4-nsec.json", "cpu1"): (514, 3_531, 14_533.51, 812_941),
    ("cyclictest-v2.4-nsec.txt", "thread0"): (1000, 3_245, 17_457.0, 1_914_347),
    ("cyclictest-v2.4-nsec.txt", "thread1"): (514, 3_531, 14_533.0, 812_941),
    ("cyclictest-v2.4-break.txt", "thread0"): (6, 4_000, 12_000.0, 32_000),
    ("cyclictest-v2.4-stall-500ms.txt", "thread0"): (2496, 4_000, 215_000.0, 503_818_000),
    ("cyclictest-v2.4-spike.txt", "thread0"): (500, 3_000, 11_000.0, 175_000),
    ("cyclictest-v2.4-spike.txt", "thread1"): (343, 4_000, 17_000.0, 55_000),
    ("rtla-timerlat-top-v6.1.txt", "cpu0/irq"): (2853, 6_000, 81_000.0, 8_371_000),
    ("rtla-timerlat-top-v6.1.txt", "cpu0/thread"): (2853, 19_000, 130_000.0, 8_486_000),
    ("rtla-timerlat-top-v6.1.txt", "cpu1/irq"): (2846, 14_000, 70_000.0, 5_375_000),
    ("rtla-timerlat-top-v6.1.txt", "cpu1/thread"): (2846, 26_000, 122_000.0, 9_665_000),
    ("ptsematest-v2.4.json", "pair0"): (500, 11_000, 28_400.0, 747_000),
    ("ptsematest-v2.4.json", "pair1"): (470, 12_000, 23_820.0, 710_000),
    ("ptsematest-v2.4.txt", "pair0"): (500, 11_000, 28_000.0, 747_000),
    ("ptsematest-v2.4.txt", "pair1"): (469, 12_000, 24_000.0, 710_000),
    ("signaltest-v2.4.json", "thread0"): (500, 64_000, 4_461_730.0, 22_169_000),
    ("signaltest-v2.4.json", "thread1"): (500, 64_000, 5_135_300.0, 18_979_000),
    ("signaltest-v2.4.txt", "thread0"): (500, 64_000, 4_461_000.0, 22_169_000),
    ("signaltest-v2.4.txt", "thread1"): (500, 64_000, 5_135_000.0, 18_979_000),
    ("jitterdebugger-verbose.txt", "cpu0"): (2991, 2_000, 6_430.0, 2_111_000),
    ("jitterdebugger-verbose.txt", "cpu1"): (2971, 2_000, 4_300.0, 76_000),
    ("stress-ng-cyclic-0.15.06.txt", "cyclic0"): (10_000, 2_437, 4_242.47, 511_169),
    ("rteval-summary-text.txt", "system"): (1_440_463_955, 2_000, 4_406.24790712, 56_000),
    ("rteval-summary-text.txt", "cpu0"): (36_011_847, 2_000, 5_464.34910711, 40_000),
    ("xenomai-latency-s-T60.txt", "latency"): (599_943, 1_175, 2_955.0, 374_075),
    ("xenomai-latency-broken-lines.txt", "latency"): (599_984, 1_154, 3_078.0, 87_379),
}


@pytest.mark.parametrize(("file", "name"), SUMMARIES)
def test_printed_figures(file, name):
    sets = read(file)
    assert figures(sets[name]) == SUMMARIES[file, name]
    assert sets[name].form == "summary"
    assert set(sets) == {other for tool, other in SUMMARIES if tool == file}


BEYOND = {  # file, set: (samples beyond, known to be at or above)
    ("cyclictest-v2.4-hist.json", "cpu0"): (25, 400_000),
    ("cyclictest-v2.4-hist.json", "cpu1"): (32, 400_000),
    ("cyclictest-v2.4-hist-smp.txt", "thread0"): (25, 400_000),
    ("cyclictest-v2.4-hist-smp.txt", "thread1"): (32, 400_000),
    ("cyclictest-v2.4-histofall.txt", "thread0"): (21, 100_000),
    ("cyclictest-v2.4-histofall.txt", "thread1"): (32, 100_000),
    ("cyclictest-v2.4-hist-rt.txt", "thread0"): (1029, 100_000),
    ("cyclictest-v2.4-hist-rt.txt", "thread1"): (806, 100_000),
    ("cyclictest-v2.4-hist-rt.json", "cpu0"): (1029, 100_000),
    ("cyclictest-v2.4-hist-rt.json", "cpu1"): (806, 100_000),
    ("oslat-v2.4.txt", "cpu1"): (26, 32_000),
    ("oslat-v2.4.json", "cpu1"): (26, 32_000),
    ("rtla-timerlat-hist-v6.1.txt", "cpu0/irq"): (135, 600_000),
    ("rtla-timerlat-hist-v6.1.txt", "cpu0/thread"): (193, 600_000),
    ("rtla-timerlat-hist-v6.1.txt", "cpu1/irq"): (151, 600_000),
    ("rtla-timerlat-hist-v6.1.txt", "cpu1/thread"): (193, 600_000),
    ("rtla-osnoise-hist-v6.1.txt", "cpu0/noise"): (600, 400_000),
    ("rtla-osnoise-hist-v6.1.txt", "cpu1/noise"): (604, 400_000),
    ("rtla-timerlat-hist-noirq-bug-v6.1.txt", "cpu0/thread"): (1, 1_536_000),
    ("jitterdebugger-results-v3.json", "cpu0"): (2, 128_000),
    ("jitterdebugger-results-v3.json", "cpu1"): (0, None),
    ("jitterdebugger-results-nsec-v3.json", "cpu0"): (0, None),
    ("jitterdebugger-stall-500ms.json", "cpu0"): (538, 213_000),
    ("rtla-timerlat-hist-auto-v6.1.txt", "cpu0/irq"): (0, None),
    ("rtla-timerlat-hist-auto-v6.1.txt", "cpu0/thread"): (0, None),
}


@pytest.mark.parametrize(("file", "name"), BEYOND)
def test_no_sample_beyond_a_histogram_is_lost(file, name):
    sets = read(file)
    known = sets[name].metadata
    assert (known.beyond_range, known.beyond_range_from_ns) == BEYOND[file, name]
    kept = sum(cells(sets[name]).values())
    assert kept + known.beyond_range == known.reported.n
    assert set(sets) == {other for tool, other in BEYOND if tool == file}


@pytest.mark.parametrize("file", ["cyclictest-v2.4-hist.json", "cyclictest-v2.4-hist-rt.json"])
def test_cyclictest_json_cells(file):
    document = json.loads((DATA / file).read_text())
    for sample_set in read(file).values():
        thread = document["thread"][str(sample_set.metadata.cpu)]
        wanted = {int(us) * 1000: count for us, count in thread["histogram"].items()}
        assert cells(sample_set) == wanted
        assert set(columns(sample_set)["width_ns"]) == {1000}
        assert figures(sample_set) == (
            thread["cycles"],
            thread["min"] * 1000,
            float(str(thread["avg"])) * 1000,
            thread["max"] * 1000,
        )
        assert sample_set.metadata.tool_version == "2.40"
        assert sample_set.metadata.kernel.startswith(document["sysinfo"]["release"])


@pytest.mark.parametrize(
    ("file", "lowest", "highest"),
    [
        ("cyclictest-v2.4-hist-smp.txt", (3, 3), (5512, 4504)),
        ("cyclictest-v2.4-histofall.txt", (3, 3), (4582, 3231)),
        ("cyclictest-v2.4-hist-rt.txt", (30, 29), (8427, 7196)),
    ],
)
def test_cyclictest_text_cells(file, lowest, highest):
    rows = table(file, "# Histogram")
    sets = read(file)
    assert list(sets) == ["thread0", "thread1"]
    for thread, sample_set in enumerate(sets.values()):
        wanted = {int(r[0]) * 1000: int(r[1 + thread]) for r in rows if int(r[1 + thread])}
        assert cells(sample_set) == wanted
        known = sample_set.metadata.reported
        assert (known.min_ns, known.max_ns) == (lowest[thread] * 1000, highest[thread] * 1000)


def test_cyclictest_text_and_json_of_one_run_agree():
    text, document = read("cyclictest-v2.4-hist-smp.txt"), read("cyclictest-v2.4-hist.json")
    for one, other in zip(text.values(), document.values(), strict=True):
        assert cells(one) == cells(other)
        assert figures(one)[:2] == figures(other)[:2]


def test_cyclictest_verbose_values():
    lines = (DATA / "cyclictest-v2.4-verbose.txt").read_text().splitlines()
    values = [[int(w) for w in line.split(":")] for line in lines if line.count(":") == 2]
    sets = read("cyclictest-v2.4-verbose.txt")
    for thread, period_ns in ((0, 1_500_000), (1, 2_000_000)):
        wanted = [us * 1000 for t, _, us in values if t == thread]
        sample_set = sets[f"thread{thread}"]
        assert columns(sample_set) == {"latency_ns": wanted}
        assert sample_set.metadata.period_ns == period_ns
    assert len(values) == 66


def test_cyclictest_unit_can_be_stated():
    sets = read("cyclictest-v2.4-verbose.txt", unit_ns=1)
    assert columns(sets["thread0"])["latency_ns"][:4] == [9, 6, 7, 27]
    assert sets["thread0"].metadata.resolution_ns == 1


def test_cyclictest_spikes_are_the_worst_samples():
    lines = (DATA / "cyclictest-v2.4-spike.txt").read_text().splitlines()
    spikes = [line.replace(":", " ").split() for line in lines if "Spike" in line]
    for thread, sample_set in enumerate(read("cyclictest-v2.4-spike.txt").values()):
        wanted = sorted(
            ((int(w[3]) * 1000, int(w[5]) * 1000) for w in spikes if int(w[1]) == thread),
            reverse=True,
        )
        got = sorted(((w.latency_ns, w.t_ns) for w in sample_set.metadata.worst), reverse=True)
        assert got == wanted
    assert len(spikes) == 189


def test_cyclictest_break_is_told():
    notes = read("cyclictest-v2.4-break.txt")["thread0"].metadata.notes
    assert "stopped by this thread at the break value 32" in notes


@pytest.mark.parametrize(
    ("file", "names", "width_ns"),
    [
        (
            "rtla-timerlat-hist-v6.1.txt",
            ["cpu0/irq", "cpu0/thread", "cpu1/irq", "cpu1/thread"],
            10_000,
        ),
        ("rtla-osnoise-hist-v6.1.txt", ["cpu0/noise", "cpu1/noise"], 10_000),
        ("rtla-timerlat-hist-auto-v6.1.txt", ["cpu0/irq", "cpu0/thread"], 1_000),
    ],
)
def test_rtla_cells(file, names, width_ns):
    rows = table(file, "Index")
    lines = {w[0]: w[1:] for w in map(str.split, (DATA / file).read_text().splitlines()) if w}
    sets = read(file)
    assert list(sets) == names
    for column, sample_set in enumerate(sets.values()):
        wanted = {int(r[0]) * 1000: int(r[1 + column]) for r in rows if int(r[1 + column])}
        assert cells(sample_set) == wanted
        assert set(columns(sample_set)["width_ns"]) == {width_ns}
        printed = [int(lines[row][column]) for row in ("count:", "min:", "avg:", "max:")]
        n, low, mean, high = printed
        assert figures(sample_set) == (n, low * 1000, mean * 1000.0, high * 1000)


def test_rtla_column_without_samples_is_left_out_and_told():
    sets = read("rtla-timerlat-hist-noirq-bug-v6.1.txt")
    assert list(sets) == ["cpu0/thread"]
    assert "no samples in cpu0/irq" in sets["cpu0/thread"].metadata.notes
    assert figures(sets["cpu0/thread"]) == (1, 1_536_000, 1_536_000.0, 1_536_000)


@pytest.mark.parametrize("file", ["oslat-v2.4.txt", "oslat-v2.4.json"])
def test_oslat_cells(file):
    printed = json.loads((DATA / "oslat-v2.4.json").read_text())["thread"]["0"]["histogram"]
    wanted = {int(us) * 1000: count for us, count in printed.items() if us != "32"}
    sample_set = read(file)["cpu1"]
    assert cells(sample_set) == wanted
    assert figures(sample_set)[1::2] == (1_000, 401_000)


def test_oslat_mean_is_kept_with_its_digits():
    assert read("oslat-v2.4.json")["cpu1"].metadata.reported.mean_ns == 1000.296
    assert read("oslat-v2.4.txt")["cpu1"].metadata.reported.mean_ns == 1000.0


@pytest.mark.parametrize(
    ("file", "unit_ns"),
    [
        ("jitterdebugger-results-v3.json", 1000),
        ("jitterdebugger-results-nsec-v3.json", 1),
        ("jitterdebugger-stall-500ms.json", 1000),
    ],
)
def test_jitterdebugger_cells(file, unit_ns):
    document = json.loads((DATA / file).read_text())
    for name, sample_set in read(file).items():
        cpu = document["cpu"][name.removeprefix("cpu")]
        wanted = {int(v) * unit_ns: count for v, count in cpu["histogram"].items()}
        assert cells(sample_set) == wanted
        assert figures(sample_set)[0] == cpu["count"]
        assert figures(sample_set)[1] == cpu["min"] * unit_ns
        assert figures(sample_set)[2] == pytest.approx(cpu["avg"] * unit_ns, rel=1e-15)
        assert figures(sample_set)[3] == cpu["max"] * unit_ns
        assert sample_set.metadata.resolution_ns == unit_ns


@pytest.mark.parametrize("unit_ns", [None, 1])
def test_jitterdebugger_samples(unit_ns):
    record = np.dtype([("cpu", "<u4"), ("s", "<i8"), ("ns", "<i8"), ("value", "<u8")])
    records = np.fromfile(DATA / "jitterdebugger-samples.raw", record)
    assert len(records) == 1000
    for name, sample_set in read("jitterdebugger-samples.raw", unit_ns=unit_ns).items():
        own = records[records["cpu"] == int(name.removeprefix("cpu"))]
        assert columns(sample_set) == {
            "t_ns": (own["s"] * 10**9 + own["ns"]).tolist(),
            "latency_ns": (own["value"] * (unit_ns or 1000)).tolist(),
        }


def test_timerlat_trace_samples():
    lines = (DATA / "ftrace-timerlat-raw-v6.1.txt").read_text().splitlines()
    events = [line.split() for line in lines if "timer_latency" in line]
    total = 0
    for name, sample_set in read("ftrace-timerlat-raw-v6.1.txt").items():
        cpu, kind = name.removeprefix("cpu").split("/")
        own = [w for w in events if w[1] == f"[00{cpu}]" and w[-4] == kind]
        assert columns(sample_set) == {
            "t_ns": [int(w[3].rstrip(":").replace(".", "")) * 1000 for w in own],
            "latency_ns": [int(w[-2]) for w in own],
        }
        total += len(own)
    assert total == len(events) == 46


def test_timerlat_trace_with_other_events():
    sets = read("rtla-timerlat_trace-v6.1.txt")
    assert columns(sets["cpu0/irq"]) == {"t_ns": [46_951_888_000], "latency_ns": [115_320]}
    assert columns(sets["cpu0/thread"]) == {"t_ns": [46_952_371_000], "latency_ns": [609_250]}


def test_osnoise_trace():
    sets = read("ftrace-osnoise-raw-v6.1.txt")
    assert columns(sets["cpu0/max-single"])["latency_ns"] == [30_013_000, 12_671_000, 20_171_000]
    assert columns(sets["cpu1/max-single"])["latency_ns"] == [21_594_000, 14_158_000, 20_162_000]


def test_hwlat_trace():
    sets = read("ftrace-hwlat-raw-v6.1.txt")
    assert columns(sets["cpu1/inner"]) == {
        "t_ns": [1_795_226_612_025_507_500, 1_795_226_614_089_027_230],
        "latency_ns": [11_310_000, 4_165_000],
    }
    assert columns(sets["cpu0/outer"])["latency_ns"] == [12_608_000]


def test_hwlatdetect():
    sets = read("hwlatdetect-samples.txt")
    when = [1_646_837_340_346_151_918, 1_646_837_351_550_312_752]
    assert columns(sets["inner"]) == {"t_ns": when, "latency_ns": [5_000, 46_000]}
    assert columns(sets["outer"]) == {"t_ns": when, "latency_ns": [9_000, 45_000]}
    assert "lists 2 of 37 samples, the largest of which is 48000 ns" in sets["inner"].metadata.notes


def test_stress_ng_figures():
    known = read("stress-ng-cyclic-0.15.06.txt")["cyclic0"].metadata
    assert (known.reported.median_ns, known.reported.stdev_ns) == (3901.0, 5398.75)
    assert "99.90 %: 24180 ns" in known.notes[1]


def test_rteval_median_is_not_believed():
    known = read("rteval-summary-text.txt")["system"].metadata
    assert known.reported.median_ns is None
    assert known.reported.stdev_ns == pytest.approx(1818.21060672, rel=1e-15)


def test_xenomai_overruns_are_missed_periods():
    known = read("xenomai-latency-s-T60.txt")["latency"].metadata
    assert (known.missed_periods, known.period_ns) == (40, 100_000)
    assert any("deviation 1.460" in note for note in known.notes)


def test_xenomai_damaged_rows_are_told():
    notes = read("xenomai-latency-broken-lines.txt")["latency"].metadata.notes
    assert notes[0] == "damaged rows were left out: line 1, 3, 4"
    assert "line 2" in notes[1]
    assert "374075" in notes[1]


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (
            "cyclicdeadline-v2.4.txt",
            "no format that Latenz reads; formats: latenz-wakeup, parquet, mdf, vcd",
        ),
        ("hwlatdetect-below-threshold.txt", "holds no sample: nothing exceeded the threshold"),
        ("rtla-osnoise-top-v6.1.txt", "txt:1 (rtla): `rtla osnoise top` prints sums"),
    ],
)
def test_files_without_latencies_are_refused_with_the_reason(file, reason):
    with pytest.raises(BadInput) as refused:
        importers.read(DATA / file)
    assert reason in str(refused.value)
    assert file in str(refused.value)


@pytest.mark.parametrize("file", sorted(p.name for p in DATA.iterdir() if p.suffix != ".md"))
def test_formats_are_told_apart_by_content(file):
    tools = {"cyclicdeadline": None, "ptsematest": "rt-tests", "signaltest": "rt-tests"}
    tool = file.split("-")[0]
    wanted = {"stress": "stress-ng", "sigrok": "levels"}.get(tool, tools.get(tool, tool))
    if "timerlat_trace" in file:
        wanted = "ftrace"
    head = (DATA / file).read_bytes()[:65536]
    if wanted is None:
        pytest.skip("holds no result")
    assert importers.recognise(head, file) == wanted
    others = [
        name
        for name in importers.FORMATS
        if name != wanted and importers._module(name).matches(head)
    ]
    assert others in ([], ["rt-tests"])  # its JSON test is the widest and comes after the others
