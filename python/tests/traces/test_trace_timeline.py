"""The timeline keeps the rules of Chrome's Trace Event Format, and shows what is in the trace."""

import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import planting
import pytest

from latenz.traces.explaining import explain
from latenz.traces.opening import open_trace
from latenz.traces.timeline import write_timeline

DATA = Path(__file__).parents[1] / "data/traces"
_CPUS, _VIRTUAL_CPUS, _THREADS, _WORST = 1, 2, 3, 4
Row = dict[str, Any]


def _timeline(trace: Path, folder: Path) -> list[Row]:
    opened = open_trace(trace)
    path = folder / "timeline.json"
    slices = write_timeline(opened, path, explain(opened, 5).causes)
    document = json.loads(path.read_text())
    assert document["displayTimeUnit"] == "ns"
    rows: list[Row] = document["traceEvents"]
    assert slices == sum(row["ph"] == "X" for row in rows)
    return rows


def _in_ns(microseconds: float) -> int:
    nanoseconds = microseconds * 1000
    assert abs(nanoseconds - round(nanoseconds)) < 1e-2
    return round(nanoseconds)


def _slices(rows: list[Row], process: int) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row["ph"] == "X" and row["pid"] == process:
            found[row["tid"]].append(row)
    return found


def _check_format(rows: list[Row]) -> None:
    """What the format's description demands of each event, and that slices of a track nest."""
    for row in rows:
        assert row["ph"] in ("X", "M", "i")
        assert isinstance(row["name"], str)
        assert row["name"]
        assert isinstance(row["pid"], int)
        assert isinstance(row["tid"], int)
        if row["ph"] == "M":
            assert row["name"] in ("process_name", "thread_name")
            assert row["args"]["name"]
            continue
        assert row["ts"] >= 0
        if row["ph"] == "X":
            assert row["dur"] >= 0
        else:
            assert row["s"] in ("g", "p", "t")
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        if row["ph"] == "X":
            start_ns = _in_ns(row["ts"])
            tracks[row["pid"], row["tid"]].append((start_ns, start_ns + _in_ns(row["dur"])))
    for track in tracks.values():
        around: list[tuple[int, int]] = []
        for start, end in sorted(track, key=lambda each: (each[0], -each[1])):
            while around and around[-1][1] <= start:
                around.pop()
            assert not around or end <= around[-1][1], (around[-1], (start, end))
            around.append((start, end))
    named = {(row["pid"], row["tid"]) for row in rows if row["name"] == "thread_name"}
    assert named == set(tracks)


@pytest.mark.parametrize(
    "file",
    [
        "planted/throttled.dat",
        "planted/deadline-budget.dat",
        "planted/preempted.dat",
        "planted/timer-storm.dat",
    ],
)
def test_a_timeline_of_a_real_trace_keeps_the_rules(file: str, tmp_path: Path) -> None:
    rows = _timeline(DATA / file, tmp_path)
    _check_format(rows)
    trace = open_trace(DATA / file)
    length_ns = trace.summary().end_ns - trace.summary().start_ns
    for slices in _slices(rows, _CPUS).values():
        tasks = [row for row in slices if row["cat"] == "task"]
        ends = [_in_ns(row["ts"]) + _in_ns(row["dur"]) for row in tasks]
        assert ends[-1] == length_ns
        assert sum(_in_ns(row["dur"]) for row in tasks) == length_ns - _in_ns(tasks[0]["ts"])


@pytest.mark.parametrize("planted", planting.CAUSES)
def test_a_timeline_of_any_trace_keeps_the_rules(planted: str, tmp_path: Path) -> None:
    path = planting.trace_with(planted, 7).write(tmp_path / "trace.txt")
    _check_format(_timeline(path, tmp_path))


def test_a_timeline_begun_in_the_middle_keeps_the_rules(tmp_path: Path) -> None:
    trace = planting.trace_with("interrupt-storm", 2)
    trace.lines = sorted(trace.lines)[500:]
    _check_format(_timeline(trace.write(tmp_path / "trace.txt"), tmp_path))


def test_exits_are_slices_with_their_reason_as_many_as_perf_counted(tmp_path: Path) -> None:
    rows = _timeline(DATA / "nested-svm.dat", tmp_path)
    _check_format(rows)
    shown: Counter[str] = Counter(
        row["name"]
        for slices in _slices(rows, _VIRTUAL_CPUS).values()
        for row in slices
        if row["cat"] == "exit"
    )
    report = (DATA / "nested-svm.perf-kvm-stat.txt").read_text()
    counted = {
        name: int(count) for name, count in re.findall(r"^\s+(\w+)\s+(\d+)\s+\d", report, re.M)
    }
    counted["io"] += 1  # the last one has no entry, which perf leaves out
    assert shown == counted


def test_the_worst_moments_are_marked_with_their_causes(tmp_path: Path) -> None:
    rows = _timeline(DATA / "planted/throttled.dat", tmp_path)
    found = explain(open_trace(DATA / "planted/throttled.dat"), 5).causes
    shown = _slices(rows, _WORST)
    assert len(shown) == len(found)
    for cause in found:
        (row,) = shown[cause.rank]
        assert row["name"] == f"#{cause.rank} {cause.first.cause}"
        assert _in_ns(row["dur"]) == cause.latency_ns
        assert row["args"]["evidence"] == cause.first.evidence
        marks = [each for each in rows if each["ph"] == "i" and each["name"] == row["name"]]
        assert [each["ts"] for each in marks] == [row["ts"]]
        assert marks[0]["s"] == "g"


def test_a_throttled_thread_is_shown_as_ready(tmp_path: Path) -> None:
    rows = _timeline(DATA / "planted/throttled.dat", tmp_path)
    worst = explain(open_trace(DATA / "planted/throttled.dat"), 1).causes[0]
    assert worst.window.pid is not None
    of_thread = _slices(rows, _THREADS)[worst.window.pid]
    ready = [row for row in of_thread if row["name"] == "ready"]
    assert max(_in_ns(row["dur"]) for row in ready) == worst.latency_ns
