import json
import os
import re
import threading
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from conftest import HOSTILE, Example

from latenz.errors import BadInput
from latenz.model import Deadline, Metadata, Reported, SampleSet, TimeBase
from latenz.page.embedded import json_script
from latenz.report import ReportedRun, write_report
from latenz.report.collect import Source, collect
from latenz.report.verdicts import judged_deadlines

VOID = {"meta", "link", "br", "img", "input", "hr", "path"}


class Outline(HTMLParser):
    """Checks that every element is closed where it was opened, and collects ids and sources."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.labelled_by: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = dict(attributes)
        assert len(given) == len(attributes), f"an attribute of {tag} stands twice"
        assert not [name for name in given if name.startswith("on")], f"{tag} has a handler"
        self.ids += [value for name, value in attributes if name == "id" and value]
        self.fetched += [v for name, v in attributes if name in ("src", "href") and v]
        self.labelled_by += [given[name] or "" for name in given if name == "aria-labelledby"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open, f"</{tag}> closes nothing"
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def outline_of(page: Path) -> Outline:
    outline = Outline()
    outline.feed(page.read_text(encoding="utf-8"))
    outline.close()
    return outline


def panels_of(page: Path) -> list[dict]:
    text = page.read_text(encoding="utf-8")
    found = re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    return [json.loads(part) for part in found]


def samples(name: str, latency_ns: object, **more: object) -> SampleSet:
    base = more.pop("time_base", TimeBase.SILICON)
    return SampleSet.from_columns(
        Metadata(name=name, time_base=base, **more), latency_ns=latency_ns
    )


def test_the_page_is_well_formed_and_fetches_nothing(example: Example) -> None:
    outline = outline_of(example.page)
    assert outline.open == []
    assert len(set(outline.ids)) == len(outline.ids)
    assert set(outline.labelled_by) <= set(outline.ids)
    assert all(place.startswith(("#", "data:")) for place in outline.fetched)
    assert {place[1:] for place in outline.fetched if place[0] == "#"} <= set(outline.ids)
    assert "img" not in outline.tags
    assert example.page.stat().st_size < 8_000_000


def test_hostile_names_stay_text(example: Example) -> None:
    outline = outline_of(example.page)
    assert any(HOSTILE in part for part in outline.text)
    assert outline.tags.count("script") == 3 + len(panels_of(example.page))
    assert HOSTILE not in example.page.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["</script>", "<!--<script>", "]]>", "\u2028", "&lt;", '"'])
def test_embedded_json_is_inert_and_keeps_its_meaning(text: str) -> None:
    embedded = str(json_script({"name": text}))
    assert not set("<>&\u2028") & set(embedded)
    assert json.loads(embedded) == {"name": text}


def test_time_bases_never_share_a_panel(example: Example) -> None:
    kinds = [panel["timeBase"] for panel in panels_of(example.page)]
    assert set(kinds) == {"silicon", "virtual", "published"}
    text = example.page.read_text(encoding="utf-8")
    for table in re.findall(r'<table class="summary.*?</table>', text, re.DOTALL):
        base = re.search(r'data-time-base="(\w+)"', table)[1]
        assert ("alonso2024" in table) == (base == "published")


def test_every_bucket_of_the_page_shows_its_peak(example: Example) -> None:
    shown = {
        series["label"]: series
        for panel in panels_of(example.page)
        for series in panel["series"]
        if "peaksOnly" in series
    }
    for name, latency_ns in example.latencies.items():
        buckets = len(shown[name]["max"])
        member = np.arange(len(latency_ns)) * buckets // len(latency_ns)
        expected = [int(latency_ns[member == number].max()) for number in range(buckets)]
        assert shown[name]["max"] == expected


def test_published_values_are_judged_apart(example: Example) -> None:
    text = example.page.read_text(encoding="utf-8")
    judged = text[text.index('id="verdicts"') : text.index('id="summary"')]
    measured = judged.split('<details class="reference">')[0]
    assert "published" not in re.sub(r'title="[^"]*"', "", measured)


def test_samples_that_no_axis_can_show_do_not_break_the_page(tmp_path: Path) -> None:
    extreme = [
        samples("huge", [2**62, 2**62 + 1, 2**63 - 1]),
        samples("negative", [-5, -(2**40)]),
        samples("zero", [0]),
        samples("one", [77]),
        samples("equal", [5] * 1000),
        samples("zero at a microsecond", [0, 0, 1000], resolution_ns=1000),
    ]
    page = tmp_path / "r.html"
    write_report([ReportedRun("extreme", extreme)], page)
    assert outline_of(page).open == []
    assert "2 activations at or below zero cannot be drawn" in page.read_text(encoding="utf-8")


def test_a_set_that_only_has_printed_figures_is_shown(tmp_path: Path) -> None:
    printed = SampleSet.from_columns(
        Metadata(name="t", time_base=TimeBase.SILICON, reported=Reported(max_ns=4000))
    )
    page = tmp_path / "r.html"
    write_report([ReportedRun("x", [printed])], page, [Deadline(name="d", limit_ns=9000)])
    text = page.read_text(encoding="utf-8")
    assert "how long that took is unknown" in text


@pytest.mark.parametrize(
    ("latency_ns", "missed", "expected"),
    [
        ([5] * 5000, 0, "0 of 5,000 activations late, in 1.39 h: late episodes are rarer"),
        ([5] * 4998 + [1001, 7000], 0, "2 of 5,000 activations late, in 1 episode, in 1.39 h"),
        ([5] * 4999 + [900], 3, "0 of 5,003 activations late"),
        ([5] * 400, 0, "1/h is allowed, which takes 3 h without a late one to show."),
    ],
)
def test_verdicts_say_what_they_rest_on(latency_ns: list, missed: int, expected: str) -> None:
    sample_set = samples(
        "x",
        latency_ns,
        missed_periods=missed,
        period_ns=10**9,
        deadlines=(Deadline(name="d", limit_ns=1000),),
    )
    (deadline,) = judged_deadlines(collect([Source("x", "x", sample_set)]))
    assert expected in deadline.judgements[0].verdict.sentence


def test_severest_deadline_comes_first() -> None:
    limits = tuple(
        Deadline(name=str(ns), limit_ns=ns, allowed=allowed)
        for ns, allowed in ((10_000, "1/h"), (1000, "0"), (6000, "0.1%"))
    )
    sample_set = samples("x", [5] * 15_000 + [5000], period_ns=10**9, deadlines=limits)
    judged = judged_deadlines(collect([Source("x", "x", sample_set)]))
    assert [(deadline.name, deadline.verdict) for deadline in judged] == [
        ("1000", "violates"),
        ("6000", "meets"),
        ("10000", "meets"),
    ]


def test_runs_with_the_same_sets_are_told_apart(tmp_path: Path) -> None:
    runs = [ReportedRun("a", [samples("s", [1])]), ReportedRun("b", [samples("s", [2])] * 2)]
    page = tmp_path / "r.html"
    views = write_report(runs, page)
    assert [view.label for view in views] == ["a: s", "b: s", "b: s (2)"]
    assert [view.group for view in views] == ["a", "b", "b"]


def test_a_failed_report_leaves_nothing_and_harms_nothing(tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    page.write_text("before")
    with pytest.raises(BadInput, match="no samples"):
        write_report([ReportedRun("x", [samples("empty", [])])], page)
    assert page.read_text() == "before"
    assert list(tmp_path.iterdir()) == [page]
    with pytest.raises(BadInput, match="holds no sample set"):
        write_report([ReportedRun("x", [])], page)
    with pytest.raises(BadInput, match="cannot be written"):
        write_report([ReportedRun("x", [samples("s", [1])])], tmp_path / "no" / "r.html")


def test_what_is_no_regular_file_is_written_to_but_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_report([ReportedRun("x", [samples("s", [1])])], pipe)
    reader.join(timeout=60)
    assert read[0].startswith("<!DOCTYPE html>")
    assert pipe.is_fifo()
