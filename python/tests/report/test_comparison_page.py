"""The page of `latenz compare -o`: what it says is what `--json` says, as a person gets it."""

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from conftest import HOSTILE
from playwright.sync_api import sync_playwright

from latenz.model import Deadline, Metadata, SampleSet, TimeBase
from latenz.store.run import RunWriter

CHROMIUM = "/usr/bin/chromium"
GATE = "p99 significantly > +10%"


def latenz(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "latenz", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def measured(name: str, random: np.random.Generator, median_ns: int, n: int = 3_000) -> SampleSet:
    latency_ns = random.lognormal(np.log(median_ns), 0.2, n).astype(np.int64)
    missed = np.zeros(n, dtype=np.int64)
    if name == "stalls/cpu0" and median_ns > 5_000:
        latency_ns[n // 2], missed[n // 2] = 400_500_000, 400
    metadata = Metadata(
        name=name,
        time_base=TimeBase.SILICON,
        tool="latenz-wakeup",
        period_ns=1_000_000,
        deadlines=(Deadline(name="fieldbus", limit_ns=3_000_000),),
    )
    return SampleSet.from_columns(metadata, latency_ns=latency_ns, missed=missed)


def write_run(folder: Path, seed: int, median_ns: int, more: str) -> Path:
    random = np.random.default_rng(seed)
    writer = RunWriter(folder, command=["latenz", "run", HOSTILE], environment={"seed": seed})
    for number in (1, 2, 3, 4):
        writer.add(measured(f"load-r{number}/cpu0", random, median_ns))
    for name in ("stalls/cpu0", HOSTILE, more):
        writer.add(measured(name, random, median_ns))
    writer.close()
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("compared")
    write_run(root / "before", 1, 5_000, "gone/cpu0")
    write_run(root / "after", 2, 6_500, "new/cpu0")
    done = latenz(
        *("compare", root / "before", root / "after", "--fail-if", GATE, "--json"),
        *("-o", root / "compared.html"),
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr == f"comparison: {root / 'compared.html'}\n"
    (root / "compared.json").write_text(done.stdout)
    return root


@pytest.fixture(scope="module")
def pairs(folder: Path) -> dict[str, dict]:
    document = json.loads((folder / "compared.json").read_text())
    return {each["name"]: each for each in document["pairs"]}


class Page(HTMLParser):
    """The page's tables as rows of texts, and all its ids, tags and links."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self._in_cell = False
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value for name, value in attributes if name == "id" and value]
        self.links += [value or "" for name, value in attributes if name in ("href", "src")]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] = f"{self.rows[-1][-1]} {data.strip()}".strip()


def test_the_page_says_what_json_says(folder: Path, pairs: dict[str, dict]) -> None:
    compared = [row for row in Page(folder / "compared.html").rows if len(row) == 9]
    rows = iter(row for row in compared if row[0] != "Statistic")
    for pair in pairs.values():
        for statistic, effect in pair["statistics"].items():
            if effect["a"] is None and effect["b"] is None:
                continue
            row = next(rows)
            assert row[0] == statistic.removesuffix("_ns")
            if effect["basis"]:
                assert row[4].endswith(f"({effect['basis']})")
            else:
                assert row[4].startswith(f"cannot be told: {effect['why_no_interval']}")
            if effect["needed"]:
                assert f"{effect['needed']['repetitions']} repetitions of each side" in row[4]
    assert pairs["load/cpu0"]["statistics"]["p99_ns"]["basis"] == "repetitions"


def test_both_views_stand_beside_each_other(folder: Path, pairs: dict[str, dict]) -> None:
    p99 = pairs["stalls/cpu0"]["statistics"]["p99_ns"]
    assert pairs["stalls/cpu0"]["skipped_b"] == 400
    assert p99["b"] > 100_000_000
    assert p99["a"] == p99["a_sampled"]
    assert p99["b_sampled"] < 20_000
    mean = pairs["load/cpu0"]["statistics"]["mean_ns"]
    assert mean["a"] == mean["a_sampled"]
    rows = [row for row in Page(folder / "compared.html").rows if row[:1] == ["p99"]]
    assert any("ms" in row[2] and "µs" in row[8] for row in rows)


def test_how_sets_were_matched_stands_there(folder: Path, pairs: dict[str, dict]) -> None:
    assert pairs["load/cpu0"]["matched_by"] == "repetitions"
    assert pairs["load/cpu0"]["sets_b"] == [f"load-r{number}/cpu0" for number in (1, 2, 3, 4)]
    assert pairs["stalls/cpu0"]["matched_by"] == "name"
    rows = [row for row in Page(folder / "compared.html").rows if len(row) == 8]
    matched = {row[0].removesuffix(" silicon"): row for row in rows}
    assert matched["load/cpu0"][1] == "repetitions"
    assert matched["load/cpu0"][3] == "12,000"
    assert matched["stalls/cpu0"][7] == "400"
    assert matched["gone/cpu0"][1] == "only in A"
    assert matched["new/cpu0"][1] == "only in B"


def test_ratios_and_settings_that_differ_stand_there(folder: Path, pairs: dict[str, dict]) -> None:
    text = (folder / "compared.html").read_text(encoding="utf-8")
    part = text.split('id="forest-silicon"')[1]
    found = json.loads(part.split('<script type="application/json">')[1].split("</script>")[0])
    rows = {row["label"].rpartition(", ")[0]: row for row in found["series"]}
    for name, pair in pairs.items():
        effect = pair["statistics"]["p99_ns"]
        told = (effect["ratio"], effect["ratio_low"], effect["ratio_high"])
        assert (rows[name]["ratio"], rows[name]["low"], rows[name]["high"]) == told
    ratios = [row["ratio"] for row in found["series"]]
    assert ratios == sorted(ratios, reverse=True)
    assert 'id="exceedance"' in text
    different = [row for row in Page(folder / "compared.html").rows if len(row) == 3]
    assert ["environment.seed", "1", "2"] in different
    assert not any(row[0] == "command" for row in different)


def test_only_what_fails_the_gate_is_unfolded(folder: Path, pairs: dict[str, dict]) -> None:
    text = (folder / "compared.html").read_text(encoding="utf-8")
    articles = text.split('aria-labelledby="pair-')[1:]
    assert len(articles) == len(pairs) > 1
    failing = [name for name, pair in pairs.items() if fails(pair["statistics"]["p99_ns"])]
    assert 0 < len(failing) < len(pairs)
    for name, article in zip(pairs, articles, strict=True):
        assert ('<details class="evidence-box" open>' in article) is (name in failing)


def fails(effect: dict) -> bool:
    """Tell by the gate's own words whether p99 of a pair is significantly above +10 %."""
    surely_above = effect["ratio_low"] is not None and effect["ratio_low"] > 1
    return surely_above and 10 * effect["b"] > 11 * effect["a"]


def test_the_gates_limit_stands_among_the_ratios(folder: Path) -> None:
    text = (folder / "compared.html").read_text(encoding="utf-8")
    part = text.split('id="forest-silicon"')[1]
    found = json.loads(part.split('<script type="application/json">')[1].split("</script>")[0])
    assert found["allowed"] == [{"ratio": 1.1, "name": "gate: p99 +10 %"}]


def test_it_is_one_file_that_fetches_nothing(folder: Path) -> None:
    page = Page(folder / "compared.html")
    assert len(set(page.ids)) == len(page.ids)
    assert {link[1:] for link in page.links if link[0] == "#"} <= set(page.ids)
    assert all(link.startswith(("#", "data:")) for link in page.links)
    assert "img" not in page.tags
    assert HOSTILE not in (folder / "compared.html").read_text(encoding="utf-8")
    assert sorted(each.name for each in folder.iterdir()) == [
        *("after", "before", "compared.html", "compared.json")
    ]


def test_a_person_reads_the_outcome_first_and_finds_both_sides(folder: Path) -> None:
    troubles: list[str] = []
    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda message: troubles.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((folder / "compared.html").as_uri())
        assert page.inner_text("main h2 >> nth=0") == "Comparison"
        assert page.inner_text(".overall >> nth=0").endswith(f"violated: fail if {GATE}.")
        assert "load/cpu0: p99 significantly > +10%: from" in page.inner_text("#comparison > ul")
        assert "B is above A in" in page.inner_text("#comparison > p:not(.overall) >> nth=0")
        figure = page.locator("figure.panel").first
        figure.evaluate("(figure) => figure.scrollIntoView()")
        figure.locator(".plot .main-svg").first.wait_for(state="attached")
        assert "gate: p99 +10 %" in figure.locator(".annotation-text").all_text_contents()
        places = page.inner_text("header.top")
        assert str(folder / "before") in places
        assert str(folder / "after") in places
        runs = page.locator("#provenance > details > summary").all_inner_texts()
        assert runs[:2] == ["A", "B"]
        assert page.evaluate("window.taken") is None
        browser.close()
    assert {url for url in asked if not url.startswith(("data:", "blob:"))} == {
        (folder / "compared.html").as_uri()
    }
    assert troubles == []


def test_without_a_gate_nothing_is_passed_or_violated(tmp_path: Path) -> None:
    sides = [tmp_path / name for name in ("a.csv", "b.csv")]
    for side, shift in zip(sides, (0, 1), strict=True):
        side.write_text("latency_us\n" + "".join(f"{10 + shift + i % 7}\n" for i in range(500)))
    done = latenz("compare", *sides, "-o", tmp_path / "page.html")
    assert done.returncode == 3, done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "No gate was asked for" in page
    assert "cannot be told: " in page
    assert "the only set of each side" in page


def test_unlike_sides_are_told(tmp_path: Path) -> None:
    for name, columns in (("a", "latency_us"), ("b", "latency_us,missed")):
        row = "{}" + ",0" * columns.count(",")
        rows = [columns, *(row.format(f"{10 + i % 7}.3") for i in range(500))]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    done = latenz("compare", tmp_path / "a.csv", tmp_path / "b.csv", "-o", tmp_path / "page.html")
    assert done.returncode == 3, done.stderr
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Only one side counts skipped activations: figures are of samples only." in text


@pytest.mark.parametrize("command", ["compare", "report"])
def test_what_a_page_is_made_from_is_never_replaced(tmp_path: Path, command: str) -> None:
    run = write_run(tmp_path / "run", 1, 5_000, "more/cpu0")
    given = tmp_path / "samples.csv"
    given.write_text("latency_us\n" + "7\n" * 100)
    (tmp_path / "link.html").symlink_to(given)
    os.link(given, tmp_path / "same.html")
    files = [given, *(each for each in run.rglob("*") if each.is_file())]
    before = [each.read_bytes() for each in files]
    for output in (given, tmp_path / "link.html", tmp_path / "same.html", run / "run.json"):
        done = latenz(command, given, run, "-o", output)
        assert (done.returncode, done.stdout) == (2, "")
        assert "is what the command reads" in done.stderr
        assert done.stderr.count("\n") == 1
    assert [each.read_bytes() for each in files] == before


def test_nothing_is_half_written(folder: Path, tmp_path: Path) -> None:
    for output, told in ((tmp_path, "is a folder"), (tmp_path / "no" / "page.html", "cannot be")):
        done = latenz("compare", folder / "before", folder / "after", "-o", output)
        assert (done.returncode, done.stdout) == (2, "")
        assert told in done.stderr
        assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
