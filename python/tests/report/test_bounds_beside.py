"""`latenz report RUN --system FILE`: bound, search, measurement and deadline of each source.

Held against what `latenz check` and `latenz bound` say of the same file by themselves.
"""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from latenz.model import Deadline, Metadata, SampleSet, TimeBase
from latenz.report.bounds import mode_of, source_of
from latenz.report.words import UNKNOWN
from latenz.store.run import RunWriter
from latenz.system import read_system

SYSTEM = Path(__file__).parents[3] / "experiments/systems/can-gateway.toml"


def latenz(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "latenz", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def measured(
    name: str, most_ns: int, base: TimeBase = TimeBase.SILICON, stack: str | None = None
) -> SampleSet:
    latency_ns = np.linspace(most_ns // 4, most_ns, 500).astype(np.int64)
    deadlines = (Deadline(name="frame", limit_ns=100_000), Deadline(name="late", limit_ns=10**9))
    metadata = Metadata(name=name, time_base=base, tool="own", stack=stack, deadlines=deadlines)
    return SampleSet.from_columns(metadata, latency_ns=latency_ns)


def write_run(folder: Path, *sets: SampleSet) -> Path:
    writer = RunWriter(folder, command=["own"])
    for each in sets:
        writer.add(each)
    writer.close()
    return folder


class Cells(HTMLParser):
    """The rows of the table of bounds: the name, four times in full, and what follows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.inside = False
        self.feed(page[page.index('<section id="bounds"') :].partition("</section>")[0])

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        self.inside = tag in ("th", "td") or (self.inside and tag == "span")
        if tag in ("th", "td"):
            self.rows[-1].append(dict(attributes).get("title") or "")

    def handle_data(self, text: str) -> None:
        if self.inside and self.rows and self.rows[-1] and not self.rows[-1][-1].endswith(" ns"):
            self.rows[-1][-1] += text.strip() + " " if text.strip() else ""


def rows_of(page: Path) -> dict[str, list[str]]:
    rows = Cells(page.read_text(encoding="utf-8")).rows[1:]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


def told(ns: int | None) -> str:
    return UNKNOWN if ns is None else f"{ns:,} ns"


@pytest.fixture(scope="module")
def mixed(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, "subprocess.CompletedProcess[str]"]:
    folder = tmp_path_factory.mktemp("bounds")
    run = write_run(
        folder / "run",
        measured("bench/can-engine", 60_000),
        measured("board/can-engine", 70_000, TimeBase.VIRTUAL),
        measured("board/door", 80_000, TimeBase.VIRTUAL),
        measured("bench/other", 90_000),
    )
    page = folder / "report.html"
    return page, latenz("report", run, "--system", SYSTEM, "-o", page)


def test_each_number_is_that_of_check_and_of_the_samples(mixed) -> None:
    page, done = mixed
    assert done.returncode == 0, done.stderr
    found = {
        each["name"]: each
        for each in json.loads(latenz("check", SYSTEM, "--json").stdout)["sources"]
    }
    bounds = {
        each["name"]: each["wcrt_ns"]
        for each in json.loads(latenz("bound", SYSTEM, "--json").stdout)["sources"]
    }
    rows = rows_of(page)
    for label, source, seen_ns in (
        ("can-engine silicon", "can-engine", 60_000),
        ("can-engine virtual", "can-engine", 70_000),
        ("door virtual", "door", 80_000),
        ("can-comfort", "can-comfort", None),
        ("ethernet", "ethernet", None),
    ):
        deadline_ns = None if seen_ns is None else 100_000
        expected = (seen_ns, found[source]["highest_ns"], bounds[source], deadline_ns)
        assert rows[label][:4] == [told(ns) for ns in expected]
        assert found[source]["wcrt_ns"] == bounds[source]
    assert len(rows) == 5
    assert rows["ethernet"][4] == "No sample set has this source's name."


def test_time_bases_never_share_a_picture(mixed) -> None:
    page = mixed[0].read_text(encoding="utf-8")
    panels = re.findall(r'<figure id="bounds-(\w+)".*?json">(.*?)</script>', page, re.DOTALL)
    drawn = {base: json.loads(data)["series"] for base, data in panels}
    assert {base: [row["label"] for row in rows] for base, rows in drawn.items()} == {
        "silicon": ["can-engine"],
        "virtual": ["can-engine", "door"],
    }
    assert (drawn["silicon"][0]["least"], drawn["silicon"][0]["seen"]) == (15_000, 60_000)
    assert "Of no source, as their names tell: bench/other." in page


def test_what_was_seen_above_its_bound_is_said_and_ends_with_1(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", measured("door", 10**9))
    done = latenz("report", run, "--system", SYSTEM, "-o", tmp_path / "r.html")
    assert done.returncode == 1
    assert "door: 1 s seen, above its bound of " in done.stderr
    assert rows_of(tmp_path / "r.html")["door silicon"][4].startswith("Seen later than the bound")


def test_sets_of_other_modes_are_held_against_bounds_of_their_mode(tmp_path: Path) -> None:
    run = write_run(
        tmp_path / "run",
        measured("a/door", 1_000, TimeBase.VIRTUAL, "hypervisor, mode plain"),
        measured("b/door", 1_000, TimeBase.VIRTUAL, "hypervisor, mode carry"),
    )
    assert latenz("report", run, "--system", SYSTEM, "-o", tmp_path / "r.html").returncode == 0
    rows = rows_of(tmp_path / "r.html")
    for mode in ("plain", "carry"):
        document = json.loads(latenz("bound", SYSTEM, "--mode", mode, "--json").stdout)
        bound_ns = next(x["wcrt_ns"] for x in document["sources"] if x["name"] == "door")
        assert rows[f"door, mode {mode} virtual"][2] == told(bound_ns)


def test_mistakes_get_one_line_and_leave_nothing(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", measured("motor", 1_000))
    page = tmp_path / "r.html"
    (tmp_path / "bad.toml").write_text("[platform\n")
    for system, parts in (
        (SYSTEM, ("--system", "no sample set", "'can-engine'", "'motor'", "alike")),
        (tmp_path / "none.toml", ("none.toml",)),
        (tmp_path / "bad.toml", ("bad.toml",)),
        (run, ("run",)),
    ):
        done = latenz("report", run, "--system", system, "-o", page)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
        assert all(part in done.stderr for part in parts), done.stderr
        assert not page.exists()
    copied = tmp_path / "own.toml"
    copied.write_text(SYSTEM.read_text())
    done = latenz("report", run, "--system", copied, "-o", copied)
    assert done.returncode == 2
    assert copied.read_text() == SYSTEM.read_text()


def test_names_are_found_in_their_parts() -> None:
    system = read_system(SYSTEM)

    def of(name: str, source: str | None = None, stack: str | None = None) -> Metadata:
        return Metadata(
            name=name, time_base=TimeBase.SILICON, tool="own", source=source, stack=stack
        )

    assert source_of(of("load-5/door/after"), system) == "door"
    assert source_of(of("trace.csv: ethernet"), system) == "ethernet"
    assert source_of(of("door/can-engine"), system) == "can-engine"
    assert source_of(of("learning", "x.toml, source door"), system) == "door"
    assert source_of(of("doors"), system) is None
    assert mode_of(of("door"), system) == "carry"
    assert mode_of(of("door", stack="hypervisor, mode paper"), system) == "paper"
