"""The picture of bounds, term by term, and that a report of a run with windows shows it."""

import json
import random
import xml.etree.ElementTree as ET

import pytest
from traced_kernel import Kernel

from latenz.errors import BadInput
from latenz.linux_bound.evidence import linux_bound, observations_of
from latenz.linux_bound.picture import bound_picture
from latenz.linux_bound.traced import windows_of_trace
from latenz.report.runs import _wake_up_bounds

SVG = "{http://www.w3.org/2000/svg}"
HELD, SCHEDULER, INTERRUPTS, SEEN = "#0072b2", "#e69f00", "#b9b9b9", "#d55e00"


@pytest.fixture
def run(tmp_path):
    """A run as a board leaves it: windows of two loads on a kernel, one of them with a bad name."""
    for seed, load in enumerate(("none", "<b>&\x1b[2J")):
        trace = tmp_path / "trace.txt"
        trace.write_text(Kernel(random.Random(seed)).run(60))
        told = json.loads(windows_of_trace(trace, "rt")[0].model_dump_json())
        told |= {"trace": None, "time_base": "virtual", "load": load, "kernel": "6.1.0-rt"}
        folder = tmp_path / "run" / f"one-{seed}"
        folder.mkdir(parents=True)
        (folder / "windows.json").write_text(json.dumps(told))
    return tmp_path / "run"


def widths(picture, colour):
    """Return the widths of the boxes of a colour behind the legend's."""
    boxes = [each for each in picture.iter(f"{SVG}rect") if each.get("fill") == colour]
    return [int(each.get("width")) for each in boxes[1:]]


def test_bars_are_as_long_as_the_terms(run):
    observations = observations_of([run])
    picture = ET.fromstring(bound_picture(observations))
    alone = [linux_bound([each]) for each in observations]
    longest = max(max(each.bound.bound_ns, each.longest_ns) for each in alone)
    scale = 540 / longest
    for colour, length in (
        (HELD, lambda each: each.bound.holding_ns),
        (SCHEDULER, lambda each: each.bound.scheduler_ns),
        (INTERRUPTS, lambda each: each.bound.interrupts_ns),
    ):
        for width, each in zip(widths(picture, colour), alone, strict=True):
            assert abs(width - scale * length(each)) <= 1.5
    assert len(widths(picture, SEEN)) == 2
    assert all("of" in "".join(each.itertext()) for each in picture.iter(f"{SVG}title"))


def test_a_report_shows_it_and_damaged_windows_are_told(run):
    assert _wake_up_bounds(run).startswith(b"<svg")
    assert _wake_up_bounds(run / "one-0") is None
    (run / "one-0" / "windows.json").write_text("{}")
    with pytest.raises(BadInput, match="windows"):
        _wake_up_bounds(run)
