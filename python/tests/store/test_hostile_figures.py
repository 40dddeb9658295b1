"""Figures in a stranger's run that cannot be: refused in one line, never believed, no crash."""

import json
import subprocess
from pathlib import Path

import pytest

from latenz.model import Metadata, SampleSet
from latenz.store.run import RunWriter

pytestmark = pytest.mark.fuzzing

ROOT = Path(__file__).parents[3]
CELLS = {"cells": [[100, 10, 5], [900, 10, 5]], "n": 10, "sum_ns": 5000, "min_ns": 105}
WHOLE = {
    **CELLS,
    "version": 1,
    "cpu": 0,
    "period_ns": 1000,
    "max_ns": 905,
    "max_t_ns": 5,
    "missed": 0,
}
WRONG = {
    "a minimum below its cells": {"min_ns": 5, "max_ns": 6},
    "a maximum in no cell": {"max_ns": 5000},
    "a minimum in no cell": {"min_ns": 300},
    "more samples than counted, without end": {"n": 2**61},
    "a sum of other samples": {"sum_ns": -(2**63)},
    "a sum beyond floats": {"sum_ns": 10**400},
    "a negative period": {"period_ns": -7},
    "an endless period": {"period_ns": 2**80},
    "a minimum beyond 64 bits": {"min_ns": -(10**30)},
    "negative misses": {"missed": -1},
}
METADATA = {
    "a period of nothing": {"period_ns": 0},
    "an endless period": {"period_ns": 10**30},
    "a cpu beyond all": {"cpu": 10**30},
    "misses beyond all": {"missed_periods": 10**30},
    "a count below zero": {"reported": {"n": -3}},
    "a minimum above the maximum": {"reported": {"n": 3, "min_ns": 9, "max_ns": 5}},
    "an endless late one": {"worst": [{"t_ns": 1, "latency_ns": 10**30}]},
}


def answer(*arguments):
    return subprocess.run(
        [ROOT / "latenz", *map(str, arguments)], capture_output=True, text=True, timeout=600
    )


def run_with(folder, entry_of=None, histogram=None):
    writer = RunWriter(folder)
    known = Metadata(name="s", time_base="silicon", period_ns=1000)
    if histogram is None:
        writer.add(SampleSet.from_columns(known, latency_ns=[1, 2], t_ns=[1000, 2000]))
    else:
        (writer.begin(known) / "histogram.json").write_text(json.dumps(histogram))
    writer.close()
    text = json.loads((folder / "run.json").read_text())
    entry = text["sample_sets"][0]
    entry["metadata"] |= (entry_of or {}).get("metadata", {})
    entry |= {key: value for key, value in (entry_of or {}).items() if key != "metadata"}
    (folder / "run.json").write_text(json.dumps(text))
    return folder


def check_refused(*arguments):
    found = answer(*arguments)
    assert found.returncode == 2, found.stdout + found.stderr
    assert found.stderr.count("\n") == 1
    assert found.stderr.isprintable() or found.stderr.strip().isprintable()


def test_a_whole_histogram_is_shown(tmp_path):
    found = answer("show", run_with(tmp_path / "r", histogram=WHOLE), "--deadline", "2us@1/h")
    assert found.returncode in (0, 3), found.stderr


@pytest.mark.parametrize("wrong", WRONG)
def test_a_histogram_that_contradicts_itself_is_refused(wrong, tmp_path):
    run = run_with(tmp_path / "r", histogram={**WHOLE, **WRONG[wrong]})
    check_refused("show", run, "--deadline", "2us@1/h")
    check_refused("query", "SELECT 1", run)


@pytest.mark.parametrize("wrong", METADATA)
def test_metadata_that_cannot_be_are_refused(wrong, tmp_path):
    run = run_with(tmp_path / "r", {"metadata": METADATA[wrong]})
    check_refused("show", run, "--json")
    check_refused("report", run, "-o", tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_refused(number, tmp_path):
    run = run_with(tmp_path / "r", {"metadata": {"reported": {"n": 3, "mean_ns": 424242.0}}})
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(text.replace("424242.0", number))
    check_refused("show", run, "--json")


def test_a_folder_that_is_no_name_is_refused(tmp_path):
    check_refused("show", run_with(tmp_path / "r", {"folder": "s\0x"}))


def test_a_file_whose_name_is_no_text_is_read(tmp_path):
    import os

    path = os.fsencode(tmp_path) + b"/\xff\xfe.csv"
    Path(os.fsdecode(path)).write_text("latency_us\n1\n2\n")
    for arguments in (
        ["show", path],
        ["query", "SELECT run FROM sample_sets", path],
        ["report", path, "-o", tmp_path / "r.html"],
        ["import", path, "-o", tmp_path / "imported"],
    ):
        found = subprocess.run([ROOT / "latenz", *arguments], capture_output=True)
        assert found.returncode == 0, found.stderr


def test_a_report_of_many_equal_samples_takes_little_memory(tmp_path):
    """Half a megabyte of Parquet may hold two hundred million samples."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("latency_ns", pa.int64())])
    values = pa.table({"latency_ns": pa.array([7] * 1_000_000)}, schema)
    with pq.ParquetWriter(tmp_path / "many.parquet", schema, compression="zstd") as writer:
        for _ in range(150):
            writer.write_table(values)
    assert (tmp_path / "many.parquet").stat().st_size < 1_000_000
    command = ["/usr/bin/python3", "-c", _WATCHED, str(ROOT / "latenz"), "report"]
    command += [str(tmp_path / "many.parquet"), "-o", str(tmp_path / "r.html")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert int(found.stdout) < 1 << 20  # KiB: 1 GiB


_WATCHED = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code)
"""
