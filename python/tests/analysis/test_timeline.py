"""What the processor did: whole, in order, and as files that viewers read."""

import json
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest
from dictionaries import system_of

from latenz.analysis import Simulator
from latenz.analysis.simulate import ACTIVITIES, HANDLINGS
from latenz.analysis.timeline import Timeline, schedule_picture, timeline, write_trace
from latenz.system import read_system

EXAMPLE = Path("experiments/systems/can-gateway.toml")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def part() -> Timeline:
    system = read_system(EXAMPLE)
    return timeline(Simulator(system, irqs=2000, seed=3, watch="segments"), 10**6, 41 * 10**6)


def test_segments_do_not_overlap_and_bottom_handlers_take_what_they_cost(part: Timeline) -> None:
    segments = part.segments
    assert (segments.start_ns[1:] >= segments.end_ns[:-1]).all()
    assert (segments.end_ns > segments.start_ns).all()
    whole = timeline(Simulator(part.system, irqs=50, watch="segments"), 0, 10**12)
    spent: Counter[int] = Counter()
    for activity, source, start_ns, end_ns in zip(
        whole.segments.activity,
        whole.segments.source,
        whole.segments.start_ns,
        whole.segments.end_ns,
        strict=True,
    ):
        if "bottom handler" in ACTIVITIES[activity]:
            spent[int(source)] += int(end_ns - start_ns)
    ended = Counter(whole.irqs.source.tolist())
    assert spent == {
        number: count * part.system.sources[number].bottom_ns for number, count in ended.items()
    }


def test_the_part_asked_for_is_what_the_whole_has_there(part: Timeline) -> None:
    whole = timeline(Simulator(part.system, irqs=2000, seed=3, watch="segments"), 0, 10**12)
    inside = (whole.segments.end_ns > part.start_ns) & (whole.segments.start_ns < part.end_ns)
    assert whole.segments.start_ns[inside].tolist() == part.segments.start_ns.tolist()
    arrived = (whole.irqs.arrival_ns >= part.start_ns) & (whole.irqs.arrival_ns < part.end_ns)
    assert whole.irqs.end_ns[arrived].tolist() == part.irqs.end_ns.tolist()


def test_interposed_handlers_run_in_foreign_slots(part: Timeline) -> None:
    """But one that has begun may last into its partition's own slot."""
    slots = list(part.slots())
    for activity, partition, start_ns in zip(
        part.segments.activity, part.segments.partition, part.segments.start_ns, strict=True
    ):
        owner = next((o for o, start, end in slots if start <= start_ns < end), None)
        if owner is not None and ACTIVITIES[activity] == "bottom handler":
            assert owner == partition


def test_the_trace_is_the_format_that_viewers_read(part: Timeline, tmp_path: Path) -> None:
    write_trace(part, tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    phases = Counter(event["ph"] for event in events)
    assert phases["b"] == phases["e"] == phases["n"] == len(part.irqs.end_ns)
    assert phases["X"] == len(part.segments.start_ns) + len(list(part.slots()))
    names = {e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    assert names == {"slots", "hypervisor", *part.system.partitions}
    for event in events:
        if event["ph"] == "b":
            assert event["args"]["handling"] in HANDLINGS
        if event["ph"] == "X":
            assert event["dur"] > 0


def test_the_picture_shows_every_slot_handler_and_arrival(part: Timeline) -> None:
    root = ET.fromstring(schedule_picture(part))
    boxes = Counter(box.get("class") for box in root.iter(f"{SVG}rect"))
    activities = Counter(ACTIVITIES[number] for number in part.segments.activity)
    assert boxes["slot"] == len(list(part.slots()))
    assert boxes["top"] == activities["top handler"]
    assert boxes["interposed"] == activities["interposed bottom handler"] > 0
    arrows = [line for line in root.iter(f"{SVG}line") if line.get("class") == "arrival"]
    assert len(arrows) == len(part.irqs.end_ns)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["./latenz", *arguments], capture_output=True, text=True, check=False)


def test_the_command_draws_and_traces(tmp_path: Path) -> None:
    picture, trace = tmp_path / "schedule.svg", tmp_path / "trace.json"
    done = run("simulate", str(EXAMPLE), "--picture", str(picture), "--trace", str(trace), "--json")
    assert done.returncode == 0, done.stderr
    assert ET.parse(picture).getroot().tag == f"{SVG}svg"
    assert json.loads(trace.read_text())["traceEvents"]


@pytest.mark.parametrize(
    ("window", "words"),
    [
        ("5ms", "is not a window"),
        ("5ms..4ms", "end it after its start"),
        ("a..b", "'a' is not a duration"),
        ("0..1000s", "choose a shorter one"),
    ],
)
def test_wrong_windows_are_told_in_one_line(window: str, words: str, tmp_path: Path) -> None:
    done = run(
        "simulate", str(EXAMPLE), "--irqs", "50000", "--picture", str(tmp_path / "x.svg"),
        "--window", window,
    )  # fmt: skip
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_idle_time_has_no_segments() -> None:
    quiet = {
        "slots": [{"partition": "P1", "length": 100}],
        "c_switch": 0, "c_mon": 0, "c_sched": 0, "c_ctx": 0,
        "sources": [
            {"name": "a", "partition": "P1", "c_th": 1, "c_bh": 2, "monitor": None,
             "model": {"type": "pjd", "period": 1000, "jitter": 0, "dmin": 0}}
        ],
    }  # fmt: skip
    part = timeline(Simulator(system_of(quiet), irqs=5, watch="segments"), 0, 5000)
    assert len(part.segments.start_ns) == 10
