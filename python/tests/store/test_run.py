import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from test_journal import PERIOD, journal

from latenz.errors import BadInput
from latenz.importers.opening import open_sample_sets
from latenz.model import Metadata, Reported, SampleSet, TimeBase
from latenz.store.run import Run, RunWriter


def metadata(name="idle/cpu0", **more):
    return Metadata(name=name, time_base=TimeBase.SILICON, **more)


def scattered(n):
    return np.random.default_rng(1).integers(0, 2**40, n)


def rows(sample_set):
    return [row for batch in sample_set.batches() for row in batch.to_pylist()]


def test_what_goes_in_comes_out(tmp_path):
    writer = RunWriter(tmp_path / "run", seed=7)
    samples = SampleSet.from_columns(metadata(), latency_ns=[3, -1, 2**62], t_ns=[0, 10, 20])
    cells = SampleSet.from_columns(
        metadata("h", beyond_range=2), latency_ns=[0, 8], width_ns=[8, 8], count=[1, 5]
    )
    printed = SampleSet.from_columns(metadata("s", reported=Reported(n=3, max_ns=9)))
    for sample_set in (samples, cells, printed):
        writer.add(sample_set)
    writer.close()
    run = Run.open(tmp_path / "run")
    assert run.info.seed == 7
    assert run.info.status == "complete"
    for before, after in zip((samples, cells, printed), run.sample_sets, strict=True):
        assert after.metadata == before.metadata
        assert after.form == before.form
        assert rows(after) == rows(before)


def test_a_parquet_file_alone_knows_what_it_is(tmp_path):
    writer = RunWriter(tmp_path / "run")
    writer.add(SampleSet.from_columns(metadata(cpu=4), latency_ns=[1]))
    [alone] = open_sample_sets(tmp_path / "run/idle/cpu0/samples.parquet")
    assert alone.metadata == metadata(cpu=4)


def test_a_run_is_readable_while_it_records_and_after(tmp_path):
    writer = RunWriter(tmp_path / "run")
    folder = writer.begin(metadata())
    writer.begin(metadata("idle/cpu1"))
    assert Run.open(tmp_path / "run").sample_sets == []
    journal(folder / "samples.journal", [[(0, 5), (3 * PERIOD, 6)]], tail=b"torn")
    [recording] = Run.open(tmp_path / "run").sample_sets
    assert [row["latency_ns"] for row in rows(recording)] == [5, 6]
    assert "4 damaged bytes" in recording.metadata.notes[0]
    finished = writer.finish("idle/cpu0")
    assert writer.finish("idle/cpu1") is None
    assert [row["missed"] for row in rows(finished)] == [2, 0]
    assert not (folder / "samples.journal").exists()


def test_a_recorded_histogram_keeps_exact_extremes_and_peaks(tmp_path):
    writer = RunWriter(tmp_path / "run")
    folder = writer.begin(metadata())
    (folder / "histogram.json").write_text(
        json.dumps(
            {
                "version": 1,
                "cpu": 0,
                "period_ns": PERIOD,
                "n": 3,
                "sum_ns": "310",
                "min_ns": 5,
                "max_ns": 300,
                "max_t_ns": 8,
                "missed": 4,
                "cells": [[5, 1, 2], [296, 8, 1]],
            }
        )
    )
    journal(folder / "peaks.journal", [[(0, 300)]], period_ns=0)
    writer.finish("idle/cpu0")
    [read_back] = Run.open(tmp_path / "run").sample_sets
    assert read_back.metadata.missed_periods == 4
    assert read_back.metadata.reported.max_ns == 300
    assert [row["latency_ns"] for row in rows(read_back.peaks)] == [300]


def test_a_killed_writer_leaves_every_finished_set(tmp_path):
    program = """
import os, sys
from pathlib import Path
from latenz.model import Metadata, SampleSet
from latenz.store.run import RunWriter
writer = RunWriter(Path(sys.argv[1]))
for i in range(10_000):
    writer.add(SampleSet.from_columns(Metadata(name=f"s{i}", time_base="silicon"), latency_ns=[i]))
    print(i, flush=True)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "run")], stdout=subprocess.PIPE
    ) as process:
        for _ in range(30):
            finished = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
    found = Run.open(tmp_path / "run").sample_sets
    values = [row["latency_ns"] for sample_set in found for row in rows(sample_set)]
    assert values[: finished + 1] == list(range(finished + 1))


def test_a_full_disk_is_one_clear_line_and_leaves_no_part(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], check=True)
    try:
        writer = RunWriter(disk / "run")
        writer.add(SampleSet.from_columns(metadata("small"), latency_ns=[1]))
        with pytest.raises(BadInput, match="No space left"):
            writer.add(SampleSet.from_columns(metadata("large"), latency_ns=scattered(100_000)))
        assert not list(disk.rglob("*.partial"))
        [kept] = Run.open(disk / "run").sample_sets
        assert rows(kept) == [{"latency_ns": 1}]
    finally:
        subprocess.run(["umount", disk], check=True)


def test_names_from_files_cannot_leave_the_run(tmp_path):
    writer = RunWriter(tmp_path / "run")
    for name in ("../../etc/passwd", "/abs", "a/../b", ".", "x y/µ", "x y/µ"):
        writer.add(SampleSet.from_columns(metadata(name), latency_ns=[1]))
    run = Run.open(tmp_path / "run")
    assert len(run.sample_sets) == 6
    assert {path.name for path in tmp_path.iterdir()} == {"run"}
    text = (tmp_path / "run/run.json").read_text().replace('"etc/passwd"', '"../../etc"')
    (tmp_path / "run/run.json").write_text(text)
    with pytest.raises(BadInput, match="leaves the run"):
        Run.open(tmp_path / "run")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "is not a run folder"),
        (b"{", "is wrong at the file"),
        (b"\xff", "is wrong at the file"),
        (b'{"format": 2, "created": ""}', "is wrong at format"),
        (b'{"created": "", "sample_sets": [{"folder": 1}]}', "sample_sets.0"),
    ],
)
def test_a_wrong_run_is_named(tmp_path, content, says):
    if content is not None:
        (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(BadInput, match=says):
        Run.open(tmp_path)


def test_a_used_folder_is_not_overwritten(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(BadInput, match="not empty"):
        RunWriter(tmp_path)


def test_a_damaged_parquet_file_is_named(tmp_path):
    writer = RunWriter(tmp_path / "run")
    writer.add(SampleSet.from_columns(metadata(), latency_ns=scattered(100_000)))
    path = tmp_path / "run/idle/cpu0/samples.parquet"
    content = bytearray(path.read_bytes())
    content[1000:3000] = bytes(2000)
    path.write_bytes(content)
    with pytest.raises(BadInput, match="is damaged"):
        rows(open_sample_sets(path)[0])
    path.write_bytes(content[:-5])
    with pytest.raises(BadInput, match="not a whole Parquet file"):
        open_sample_sets(path)


def test_a_run_that_was_cut_off_says_first_what_is_missing(tmp_path):
    writer = RunWriter(
        tmp_path / "run",
        condition_order=["idle", "loaded"],
        experiment={"repetitions": 2},
        conditions=[
            {"condition": "idle", "repetition": 1, "state": "measured"},
            {"condition": "loaded", "repetition": 1, "state": "measured"},
            {"condition": "idle", "repetition": 2, "state": "measured"},
            {"condition": "loaded", "repetition": 2, "state": "interrupted"},
        ],
    )
    writer.add(SampleSet.from_columns(metadata(), latency_ns=[1, 2, 3]))
    writer.close("interrupted")
    shown = subprocess.run(
        [sys.executable, "-m", "latenz", "show", tmp_path / "run"],
        capture_output=True,
        text=True,
        check=True,
    )
    first = shown.stdout.splitlines()[0]
    assert first == "interrupted: this run was not recorded to its end; not whole: loaded"
