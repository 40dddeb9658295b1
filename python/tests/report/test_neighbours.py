"""Loads beside emulated cores: what the report says follows from the samples alone."""

import hashlib
import re
from html import unescape
from pathlib import Path

import pytest

from latenz.model import Metadata, SampleSet, TimeBase
from latenz.path.model import InterruptPath, PathFile, Segment
from latenz.report import open_runs, write_report
from latenz.store.run import RunWriter

IDLE = [1072, 1072, 912]
CALM = [1072, 1072, 928]
LATE = [1072, 2144, 928]


def page_of(folder: Path, measured: list[tuple[str, str, list[int]]]) -> str:
    writer = RunWriter(folder / "run")
    for condition, load, latency_ns in measured:
        name = f"{condition}/interrupt"
        metadata = Metadata(
            name=name,
            condition=condition,
            time_base=TimeBase.VIRTUAL,
            bench="virt",
            stack="xen",
            stressor=load,
            cpu=0,
        )
        writer.add(SampleSet.from_columns(metadata, latency_ns=latency_ns))
        writer.info.conditions.append(
            {
                "condition": condition,
                "repetition": 1,
                "state": "measured",
                "bench": "virt",
                "stack": {"kind": "xen"},
                "engine": {"settings": {"wait": "poll", "path": load == "none"}},
                "load": {"name": load},
                "samples_sha256": {name: hashlib.sha256(repr(latency_ns).encode()).hexdigest()},
            }
        )
    writer.close()
    write_report(open_runs([folder / "run"]), folder / "page.html")
    text = (folder / "page.html").read_text()
    section = re.search(r'<section id="neighbours".*?</section>', text, re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", section.group())).split()) if section else ""


def test_load_that_does_no_more_than_a_spinning_neighbour(tmp_path):
    said = page_of(
        tmp_path,
        [("x-stress", "stress-ng-all", CALM), ("x", "none", IDLE), ("x-spin", "spin", CALM)],
    )
    assert "sample by sample the same as the spinning neighbour's" in said
    assert "baseline; differs from the row without load" in said
    assert said.index("x/interrupt") < said.index("x-spin/interrupt") < said.index("x-stress/int")
    assert "no caches, no DRAM" in said


def test_load_that_does_more(tmp_path):
    said = page_of(
        tmp_path,
        [("x", "none", CALM), ("x-spin", "spin", CALM), ("x-stress", "stress-ng-all", LATE)],
    )
    assert "baseline; sample by sample the same as the row without load" in said
    assert "max 2.144 µs against 1.072 µs" in said


def test_nothing_is_said_of_a_load_without_a_baseline(tmp_path):
    said = page_of(tmp_path, [("x", "none", IDLE), ("x-stress", "stress-ng-all", LATE)])
    assert "nothing can be said about the load" in said


@pytest.mark.parametrize("measured", [[("x", "none", IDLE)], []])
def test_no_section_without_loads(tmp_path, measured):
    assert page_of(tmp_path, [*measured, ("y", "none", IDLE)]) == ""


def test_longer_paths_tell_what_they_do_more(tmp_path):
    def path(interrupts: int, **instructions: int) -> InterruptPath:
        segments = [
            Segment(program="Xen", category=name, term="t_hyp", instructions=n, symbols={name: n})
            for name, n in instructions.items()
        ]
        return InterruptPath(
            first=0,
            interrupts=interrupts,
            latency_ns=None,
            instructions=sum(instructions.values()),
            begin="exception",
            unaccounted_ns=0,
            segments=segments,
        )

    paths = PathFile(
        tick_ns=1, paths=(path(399, entry=100, injection=50), path(1, entry=100, scheduler=600))
    )
    measured = [("x", "none", CALM), ("x-spin", "spin", CALM), ("x-stress", "stress-ng-all", LATE)]
    page_of(tmp_path / "first", measured)
    (tmp_path / "first" / "run" / "x-stress").mkdir(exist_ok=True)
    paths.save(tmp_path / "first" / "run" / "x-stress")
    write_report(open_runs([tmp_path / "first" / "run"]), tmp_path / "page.html")
    said = " ".join((tmp_path / "page.html").read_text().split())
    assert "has 700 instructions where most have 150: +600 scheduler" in said
