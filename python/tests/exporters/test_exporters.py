"""What is exported reads back to the same values, here and in the tools the formats belong to."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from latenz import exporters, importers
from latenz.errors import BadInput
from latenz.model import Metadata, Reported, SampleSet
from latenz.statistics import summarize

DATA = Path(__file__).parent.parent / "data" / "importers"
REAL = [
    "cyclictest-v2.4-hist.json",
    "cyclictest-v2.4-histofall.txt",
    "cyclictest-v2.4-nsec.json",
    "cyclictest-v2.4-spike.txt",
    "cyclictest-v2.4-verbose.txt",
    "rtla-timerlat-hist-v6.1.txt",
    "rtla-timerlat-hist-noirq-bug-v6.1.txt",
    "oslat-v2.4.json",
    "jitterdebugger-results-nsec-v3.json",
    "jitterdebugger-samples.raw",
    "ftrace-timerlat-raw-v6.1.txt",
    "xenomai-latency-s-T60.txt",
    "stress-ng-cyclic-0.15.06.txt",
]


def known(name: str = "cpu0", **more: object) -> Metadata:
    return Metadata(name=name, time_base="silicon", **more)


def samples(*latencies: int, **more: object) -> SampleSet:
    return SampleSet.from_columns(known(**more), latency_ns=list(latencies))


def rows(sample_set: SampleSet) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {name: [] for name in sample_set.columns}
    for batch in sample_set.batches():
        for name in found:
            found[name] += batch.column(name).to_pylist()
    return found


def written(folder: Path, sets: list[SampleSet], to: str) -> Path:
    path = folder / f"export.{to}"
    exporters.write(sets, to, path)
    assert [file.name for file in folder.iterdir()] == [path.name]
    return path


@pytest.mark.parametrize("to", ["csv", "parquet"])
@pytest.mark.parametrize("file", REAL)
def test_csv_and_parquet_keep_everything(tmp_path, file, to):
    before = importers.read(DATA / file)
    after = importers.read(written(tmp_path, before, to))
    assert [s.metadata for s in after] == [s.metadata for s in before]
    assert [s.form for s in after] == [s.form for s in before]
    assert [rows(s) for s in after] == [rows(s) for s in before]


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_one_set_has_no_column_of_names(tmp_path, to):
    path = written(tmp_path, [samples(3, 1, 2)], to)
    if to == "csv":
        lines = list(csv.reader(path.read_text().splitlines()))
        assert lines[0] == ["latency_ns", "latenz_metadata"]
        assert [line[0] for line in lines[1:]] == ["3", "1", "2"]
        assert [line[1] for line in lines[2:]] == ["", ""]
    else:
        assert pq.read_table(path).to_pydict() == {"latency_ns": [3, 1, 2]}


def test_csv_of_sets_that_differ_in_form(tmp_path):
    sets = [
        SampleSet.from_columns(known('a "b", c'), latency_ns=[5], t_ns=[9], missed=[1]),
        SampleSet.from_columns(known("h"), latency_ns=[0], width_ns=[10], count=[7]),
        SampleSet.from_columns(known("s", reported=Reported(n=3, max_ns=8))),
    ]
    path = written(tmp_path, sets, "csv")
    lines = list(csv.reader(path.read_text().splitlines()))
    assert [line[:-1] for line in lines] == [
        ["sample_set", "t_ns", "latency_ns", "missed", "width_ns", "count"],
        ['a "b", c', "9", "5", "1", "", ""],
        ["h", "", "0", "", "10", "7"],
        ["s", "", "", "", "", ""],
    ]
    after = importers.read(path)
    assert [rows(s) for s in after] == [
        {"t_ns": [9], "latency_ns": [5], "missed": [1]},
        {"latency_ns": [0], "width_ns": [10], "count": [7]},
        {},
    ]
    assert [s.metadata for s in after] == [s.metadata for s in sets]


@pytest.mark.parametrize(
    "file",
    [
        "cyclictest-v2.4-hist.json",
        "cyclictest-v2.4-hist-rt.json",
        "cyclictest-v2.4-nsec.json",
        "cyclictest-v2.4.json",
    ],
)
def test_cyclictest_json_is_what_cyclictest_wrote(tmp_path, file):
    real = json.loads((DATA / file).read_text())
    ours = json.loads(written(tmp_path, importers.read(DATA / file), "cyclictest-json").read_text())
    assert set(ours) - {"latenz"} == set(real)
    assert set(ours["sysinfo"]) == set(real["sysinfo"])
    for key in ("file_version", "num_threads", "resolution_in_ns", "return_code"):
        assert ours[key] == real[key]
    for number, thread in real["thread"].items():
        assert ours["thread"][number] | {"node": 0} == thread | {"node": 0}
    assert ours["sysinfo"]["realtime"] == real["sysinfo"]["realtime"]


@pytest.mark.parametrize(
    "file",
    [
        "cyclictest-v2.4-hist-smp.txt",
        "cyclictest-v2.4-spike.txt",
        "jitterdebugger-results-v3.json",
        "jitterdebugger-results-nsec-v3.json",
        "jitterdebugger-stall-500ms.json",
        "stress-ng-cyclic-0.15.06.txt",
        "oslat-v2.4.json",
    ],
)
def test_cyclictest_json_reads_back(tmp_path, file):
    before = importers.read(DATA / file)
    after = importers.read(written(tmp_path, before, "cyclictest-json"))
    for one, other in zip(before, after, strict=True):
        assert rows(one) == rows(other)
        assert one.metadata.name == other.metadata.name
        for name in (
            "beyond_range",
            "beyond_range_from_ns",
            "resolution_ns",
            "time_base",
            "tool",
            "notes",
        ):
            assert getattr(one.metadata, name) == getattr(other.metadata, name)
        assert figures(one) == figures(other)


def figures(sample_set: SampleSet) -> list[object]:
    summary = summarize(sample_set)
    return [summary.n, summary.min_ns, summary.max_ns, summary.mean_ns, summary.quantiles_ns]


def test_cyclictest_json_of_samples(tmp_path):
    path = written(tmp_path, [samples(5_000, 7_000, 5_000, cpu=3)], "cyclictest-json")
    document = json.loads(path.read_text())
    assert document["resolution_in_ns"] == 0
    assert document["thread"]["0"]["histogram"] == {"5": 2, "7": 1}
    path.unlink()
    path = written(tmp_path, [samples(5_000, 7_001)], "cyclictest-json")
    document = json.loads(path.read_text())
    assert document["resolution_in_ns"] == 1
    assert document["thread"]["0"] == {
        "histogram": {"5000": 1, "7001": 1},
        "cycles": 2,
        "min": 5000,
        "max": 7001,
        "avg": 6000.5,
        "cpu": 0,
        "node": -1,
    }


@pytest.mark.parametrize(
    ("sample_set", "to", "message"),
    [
        ("rtla-timerlat-hist-v6.1.txt", "cyclictest-json", "cells up to 10000 ns wide"),
        ("xenomai-latency-s-T60.txt", "hlog", "only printed figures are known"),
        ("plot", "hlog", "no known maximum"),
        ("plot", "cyclictest-json", "the maximum of latency is not known"),
        ("negative", "hlog", "reaches from -5 to 3 ns"),
        ("negative", "pdf", "'pdf' is not a format; formats: csv, parquet, hlog"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(tmp_path, sample_set, to, message):
    if sample_set == "negative":
        sets = [samples(-5, 3)]
    elif sample_set == "plot":
        (tmp_path / "plot").write_text("298 1\n298.5 3\n299.5 9\n300 1\n")
        sets = importers.read(tmp_path / "plot")
        (tmp_path / "plot").unlink()
    else:
        sets = importers.read(DATA / sample_set)
    with pytest.raises(BadInput, match=message):
        exporters.write(sets, to, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"absent/out\.csv: cannot be written"):
        exporters.write([samples(1)], "csv", tmp_path / "absent" / "out.csv")
    with pytest.raises(BadInput, match="is a folder"):
        exporters.write([samples(1)], "csv", tmp_path)


def test_an_existing_file_is_replaced_only_by_a_whole_one(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(BadInput):
        exporters.write([samples(-5, 3)], "hlog", path)
    assert path.read_text() == "old"
    exporters.write([samples(5, 3)], "hlog", path)
    assert path.read_text() != "old"


def read_log(path: Path) -> dict[str, HdrHistogram]:
    reader = HistogramLogReader(str(path), HdrHistogram(1, 3_600_000_000_000, 3))
    found = {}
    while (interval := reader.get_next_interval_histogram()) is not None:
        found[interval.get_tag()] = interval
    return found


@pytest.mark.parametrize(
    "file",
    [
        "cyclictest-v2.4-hist.json",
        "rtla-timerlat-hist-v6.1.txt",
        "jitterdebugger-samples.raw",
        "jitterdebugger-stall-500ms.json",
    ],
)
def test_hlog_is_read_by_the_other_implementation(tmp_path, file):
    sets = importers.read(DATA / file)
    logged = read_log(written(tmp_path, sets, "hlog"))
    assert list(logged) == [s.metadata.name for s in sets]
    for sample_set in sets:
        theirs, ours = logged[sample_set.metadata.name], summarize(sample_set)
        assert theirs.get_total_count() == ours.n
        assert theirs.get_max_value() == pytest.approx(ours.max_ns, rel=2e-3)
        assert theirs.get_value_at_percentile(50) == pytest.approx(ours.median_ns, rel=2e-3)


def test_hlog_times_and_names(tmp_path):
    sample_set = SampleSet.from_columns(
        known("idle, cpu 0"), t_ns=[1_000_000_000, 3_500_000_000], latency_ns=[7, 9]
    )
    text = written(tmp_path, [sample_set], "hlog").read_text()
    assert text.splitlines()[0] == "#[Histogram log format version 1.3]"
    assert "\nTag=idle_cpu_0,0.000,2.500,0.000009,HISTF" in text


def families(path: Path) -> dict[str, object]:
    return {family.name: family for family in text_string_to_metric_families(path.read_text())}


@pytest.mark.parametrize("file", REAL)
def test_openmetrics_is_valid_and_true(tmp_path, file):
    sets = importers.read(DATA / file)
    found = families(written(tmp_path, sets, "openmetrics"))
    maxima = {
        s.labels["sample_set"]: s.value for s in found["latenz_latency_maximum_seconds"].samples
    }
    beyond = {s.labels["sample_set"]: s.value for s in found["latenz_beyond_range_samples"].samples}
    for sample_set in sets:
        summary = summarize(sample_set)
        name = sample_set.metadata.name
        assert maxima[name] == summary.max_ns / 1e9
        assert beyond[name] == summary.beyond_range
    for sample in found["latenz_latency_seconds"].samples:
        sample_set = next(s for s in sets if s.metadata.name == sample.labels["sample_set"])
        assert sample.labels["time_base"] == "silicon"
        if sample.name.endswith("_bucket"):
            limit = math.inf if sample.labels["le"] == "+Inf" else float(sample.labels["le"])
            assert sample.value == certainly_within(sample_set, limit)
        elif sample.name.endswith("_count"):
            assert sample.value == summarize(sample_set).n


def certainly_within(sample_set: SampleSet, limit_s: float) -> int:
    """Count the slow way: every value whose whole interval is within the limit."""
    known, count = sample_set.metadata, 0
    limit_ns = limit_s * 1e9
    values = rows(sample_set)
    widths = values.get("width_ns", [known.resolution_ns] * len(values["latency_ns"]))
    counts = values.get("count", [1] * len(widths))
    for low, width, times in zip(values["latency_ns"], widths, counts, strict=True):
        count += times if low + width - 1 <= limit_ns * (1 + 1e-12) else 0
    if limit_s == math.inf or (known.reported and known.reported.max_ns <= limit_ns):
        count += known.beyond_range
    return count


def test_openmetrics_of_negative_latencies_has_no_sum(tmp_path):
    text = written(tmp_path, [samples(-5, 3)], "openmetrics").read_text()
    assert "_sum" not in text
    assert text.endswith("# EOF\n")
    families(tmp_path / "export.openmetrics")


def test_openmetrics_labels_are_escaped(tmp_path):
    found = families(written(tmp_path, [samples(1, name='a"b\\c')], "openmetrics"))
    assert found["latenz_samples"].samples[0].labels["sample_set"] == 'a"b\\c'


def test_many_samples_are_summed_exactly(tmp_path):
    values = np.full(300_000, 2**52 + 1, dtype=np.int64)
    text = written(tmp_path, [SampleSet.from_columns(known(), latency_ns=values)], "openmetrics")
    total = 300_000 * (2**52 + 1) / 10**9
    sums = [line for line in text.read_text().splitlines() if "_sum{" in line]
    assert float(sums[0].split()[-1]) == total


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20), min_size=1, max_size=3
    ),
    st.sampled_from(["csv", "parquet"]),
)
def test_any_values_survive(tmp_path_factory, values, to):
    folder = tmp_path_factory.mktemp("export")
    sets = [samples(*latencies, name=f"s{i}") for i, latencies in enumerate(values)]
    after = importers.read(written(folder, sets, to))
    assert [rows(s)["latency_ns"] for s in after] == values


STALL = 50_000_000
PERIOD = 1_000_000


def stalled() -> SampleSet:
    """A second at 1 kHz of which 50 ms are lost in one stall: 950 samples, 50 skipped."""
    latencies = [10_000] * 900 + [STALL] + [10_000] * 49
    missed = [0] * 900 + [50] + [0] * 49
    return SampleSet.from_columns(known(period_ns=PERIOD), latency_ns=latencies, missed=missed)


def test_skipped_activations_are_in_every_format(tmp_path):
    summary = summarize(stalled())
    assert (summary.n, summary.n_due, summary.quantiles_ns["0.99"]) == (950, 1000, 40_000_000)

    def exported(to: str) -> Path:
        (tmp_path / to).mkdir()
        return written(tmp_path / to, [stalled()], to)

    for to in ("csv", "parquet"):
        (after,) = importers.read(exported(to))
        assert rows(after) == rows(stalled())
        assert figures(after) == figures(stalled())
    path = exported("hlog")
    assert "50 skipped activations are recorded by how long they waited" in path.read_text()
    logged = read_log(path)["cpu0"]
    assert logged.get_total_count() == 1000
    assert logged.get_value_at_percentile(99) == pytest.approx(40_000_000, rel=2e-3)
    path = exported("cyclictest-json")
    thread = json.loads(path.read_text())["thread"]["0"]
    assert thread["cycles"] == sum(thread["histogram"].values()) == 1000
    assert thread["avg"] * 1000 == pytest.approx(summary.mean_ns)
    (after,) = importers.read(path)
    again = summarize(after)
    assert again.quantiles_ns == summary.quantiles_ns
    assert (again.view, again.n_due, again.missed_periods) == ("as due", 1000, 0)
    assert any("50 skipped activations are among the cycles" in note for note in again.notes)
    found = families(exported("openmetrics"))
    buckets = {
        each.labels["le"]: each.value
        for each in found["latenz_latency_seconds"].samples
        if each.name.endswith("_bucket")
    }
    assert buckets["+Inf"] == 1000
    assert buckets["0.02"] == 949 + 21  # waits of 0 to 20 ms
    (total,) = (s.value for s in found["latenz_latency_seconds"].samples if s.name.endswith("_sum"))
    assert total == pytest.approx(summary.mean_ns * 1000 / 1e9)
    assert found["latenz_samples"].samples[0].value == 950
    assert found["latenz_missed_periods"].samples[0].value == 50


def test_formats_tell_which_activations_they_hold(tmp_path):
    def views(sample_set: SampleSet) -> set[str]:
        path = tmp_path / "metrics"
        exporters.write([sample_set], "openmetrics", path)
        return {s.labels["view"] for family in families(path).values() for s in family.samples}

    assert views(stalled()) == {"as due"}
    assert views(samples(1, 2)) == {"of samples only"}
    exporters.write([samples(1, 2)], "hlog", tmp_path / "log")
    assert "of samples only" in (tmp_path / "log").read_text()


def test_skipped_activations_of_unknown_latency_look_like_the_latest(tmp_path):
    half = samples(*[5_000] * 100, missed_periods=100)
    logged = read_log(written(tmp_path, [half], "hlog"))["cpu0"]
    assert logged.get_total_count() == 200
    (tmp_path / "export.hlog").unlink()
    found = families(written(tmp_path, [half], "openmetrics"))
    values = {
        s.labels["le"]: s.value
        for s in found["latenz_latency_seconds"].samples
        if s.name.endswith("_bucket")
    }
    assert (values["10.0"], values["+Inf"]) == (100, 200)
    assert not any(s.name.endswith("_sum") for s in found["latenz_latency_seconds"].samples)
    with pytest.raises(BadInput, match="the mean of cpu0 is not known"):
        exporters.write([half], "cyclictest-json", tmp_path / "json")
