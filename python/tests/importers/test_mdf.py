"""Measurement data files, written by asammdf, the field's own library in Python."""

import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from asammdf import MDF, Signal

from latenz import importers
from latenz.errors import BadInput

VERSIONS = ("3.30", "4.10", "4.20")


def written(path: Path, groups: list[list[Signal]], version: str = "4.10") -> Path:
    with MDF(version=version) as file:
        file.start_time = datetime(2026, 11, 21, 14, 30, tzinfo=UTC)
        for group in groups:
            file.append(group)
        return Path(file.save(path.with_suffix(".mf4" if version > "4" else ".mdf"), compression=2))


def signal(
    name: str, at_s: list[float] | np.ndarray, samples: np.ndarray, unit: str = ""
) -> Signal:
    return Signal(samples=samples, timestamps=np.asarray(at_s, float), name=name, unit=unit)


def values(sample_set, column: str) -> list[int]:
    return [v for batch in sample_set.batches(column) for v in batch.column(column).to_pylist()]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("overlap", ["drop", "restart", "queue"])
def test_edges_give_what_the_same_levels_give_as_csv(tmp_path, version, overlap):
    random = np.random.default_rng([VERSIONS.index(version), len(overlap)])
    at_ns = np.cumsum(random.integers(1, 5_000_000, 600))
    irq, ack = random.integers(0, 2, (2, 600), dtype=np.uint8)
    rows = [f"{t / 1e9:.9f},{a},{b}" for t, a, b in zip(at_ns, irq, ack, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["Time [s],irq,ack", *rows, ""]))
    path = written(
        tmp_path / "a",
        [[signal("irq", at_ns / 1e9, irq)], [signal("ack", at_ns / 1e9, ack)]],
        version,
    )
    asked = {"start": "irq", "end": "ack:fall", "overlap": overlap}
    (of_csv,) = importers.read(tmp_path / "a.csv", **asked)
    (of_mdf,) = importers.read(path, **asked)
    for column in ("t_ns", "latency_ns"):
        assert values(of_mdf, column) == values(of_csv, column)
    for told in ("overlaps", "orphan_ends", "open_at_end", "from_event", "to_event", "name"):
        assert getattr(of_mdf.metadata, told) == getattr(of_csv.metadata, told)


def test_every_channel_in_a_unit_of_time_is_a_sample_set(tmp_path):
    at = [0.001, 0.002, 0.003]
    path = written(
        tmp_path / "a",
        [
            [
                signal("jitter", at, np.array([12.5, 13.25, 9.0]), "us"),
                signal("wait", at, np.array([4, 5, 6], np.int32), "ms"),
                signal("torque", at, np.array([1.0, 2.0, 3.0]), "Nm"),
            ],
            [signal("wait", at[:1], np.array([70], np.int64), "ns")],
        ],
    )
    found = {each.metadata.name: each for each in importers.read(path)}
    assert set(found) == {"jitter", "0.wait", "1.wait"}
    assert values(found["jitter"], "latency_ns") == [12_500, 13_250, 9_000]
    assert values(found["jitter"], "t_ns") == [1_000_000, 2_000_000, 3_000_000]
    assert values(found["0.wait"], "latency_ns") == [4_000_000, 5_000_000, 6_000_000]
    assert values(found["1.wait"], "latency_ns") == [70]
    about = found["jitter"].metadata
    assert about.tool.startswith("MDF 4.10")
    assert about.measured.startswith("2026-11-21T14:30")
    assert about.time_base_assumed


def test_mistakes_are_told_in_one_line(tmp_path):
    levels = np.array([0, 1, 0], np.uint8)
    path = written(
        tmp_path / "a",
        [
            [
                signal("irq", [0, 1, 2], levels),
                signal("torque", [0, 1, 2], np.array([1.0, 2, 3]), "Nm"),
            ]
        ],
    )
    for asked, told in (
        ({}, "no channel is in a unit of time; name two by --start and --end: irq, torque"),
        ({"start": "irq"}, "no signal given for --end"),
        ({"start": "irq", "end": "akc"}, "no signal 'akc'"),
        ({"start": "irq", "end": "irq"}, "write irq:fall"),
        ({"start": "irq", "end": "torque"}, "holds no latency from irq to torque"),
    ):
        with pytest.raises(BadInput) as refused:
            importers.read(path, **asked)
        assert told in str(refused.value)
        assert "\n" not in str(refused.value)
    for value in (np.nan, 1e300):
        bad = written(tmp_path / "b", [[signal("x", [0, 1], np.array([1.0, value]), "us")]])
        with pytest.raises(BadInput, match="does not fit in 64 bits"):
            importers.read(bad)
        bad.unlink()


@pytest.mark.fuzzing
def test_damaged_files_are_read_or_refused_in_one_line(tmp_path):
    at = np.arange(50) / 1000
    whole = written(tmp_path / "a", [[signal("wait", at, np.arange(50), "us")]]).read_bytes()
    random = np.random.default_rng(7)
    path = tmp_path / "damaged.mf4"
    for _ in range(8):  # each takes a start of asammdf
        damaged = bytearray(whole)
        for place in random.integers(8, len(whole), random.integers(1, 30)):
            damaged[place] = random.integers(256)
        path.write_bytes(damaged[: random.integers(64, len(whole) + 1)])
        try:
            importers.read(path)
            refusals = []
        except BadInput as refused:
            refusals = [str(refused)]
        assert not [each for each in refusals if "\n" in each]


def test_without_asammdf_the_command_that_brings_it_is_named(tmp_path, monkeypatch):
    path = written(tmp_path / "a", [[signal("wait", [0, 1], np.array([1, 2]), "us")]])
    monkeypatch.setattr(sys, "executable", "/usr/bin/python3")  # outside of our environment
    with pytest.raises(BadInput, match="run setup/ensure mdf"):
        importers.read(path)
