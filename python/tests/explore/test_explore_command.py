"""`latenz explore` as people call it: tables, JSON, files, mistakes, the page."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from gateway import ARGUMENTS, GATEWAY, LIMITS, all_candidates, small_system
from playwright.sync_api import sync_playwright

from latenz import cli
from latenz.analysis.explore.words import changes
from latenz.system import read_system, write_system

LIMIT_MS = 120_000
"""How long a browser may take for anything on a busy machine."""
SMALL = ["--deadline=can=250us", "--deadline=timer=700us"]


@pytest.fixture
def system(tmp_path):
    write_system(small_system(), tmp_path / "small.toml")
    return str(tmp_path / "small.toml")


@pytest.fixture
def latenz(monkeypatch, capsys):
    """Run the command in this process; give exit code, standard output, standard error."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["latenz", "explore", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return run


def test_the_best_systems_are_told_and_confirmed_by_bound(latenz, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "out"
    code, told, errors = latenz(*ARGUMENTS, "--candidates", 2_000, "-o", folder, "--json")
    assert (code, errors) == (0, "")
    document = json.loads(told)
    assert document["objectives"] == ["interference", "switches"]
    assert document["deadlines_ns"] == LIMITS
    counts = document["counts"]
    assert counts["evaluated"] == 2_000
    assert counts["feasible"] + sum(counts["reasons"].values()) == 2_000
    assert document["given"]["changes"] == []
    front = document["front"]
    assert [one["interference_share"] for one in front] == sorted(
        one["interference_share"] for one in front
    )
    for rank, one in enumerate(front, 1):
        path = folder / f"system-{rank}.toml"
        deadlines = ARGUMENTS[1:]
        monkeypatch.setattr(sys, "argv", ["latenz", "bound", str(path), *deadlines, "--json"])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        assert not ended.value.code  # within all limits
        confirmed = json.loads(capsys.readouterr().out)["sources"]
        assert [(each["name"], each["wcrt_ns"]) for each in confirmed] == [
            (each["name"], each["wcrt_ns"]) for each in one["sources"]
        ]
        assert one["changes"] == changes(read_system(GATEWAY), read_system(path))
    kept = sorted(path.name for path in folder.iterdir() if path.name[0] != ".")
    systems = [f"system-{rank}.toml" for rank in range(1, len(front) + 1)]
    assert kept == sorted(
        ["candidates.parquet", "front.html", "plan.json", "system.toml", *systems]
    )
    ranks = [row["front_rank"] for row in all_candidates(folder).to_pylist()]
    assert sorted(rank for rank in ranks if rank) == list(range(1, len(front) + 1))


def test_the_table_shows_the_front_with_what_changed(latenz, system, tmp_path):
    code, told, errors = latenz(system, *SMALL, "-o", tmp_path / "out")
    assert (code, errors) == (0, "")
    title, _, headings, _, *rows = told.splitlines()
    assert title.startswith("least interference, then switches: Pareto front, all 5,952 candidates")
    names = ["system", "interference", "switches/s", "can of 250 µs", "timer of 700 µs"]
    assert " ".join(headings.split()) == " ".join(names)
    assert rows[0].split()[0] == "given"
    assert rows[0].split()[2] == "1333.33"  # two slots in 1.5 ms
    assert rows[1].split()[0] == "1"
    assert "monitor of can: " in told
    again = latenz("--resume", tmp_path / "out")
    assert again == (code, told, errors)
    assert latenz(system, *SMALL, "-o", tmp_path / "out") == again


def test_where_no_candidate_fits_the_closest_is_told(latenz, system, tmp_path):
    Path(system).write_text(Path(system).read_text().replace('"10 us"', '"30 us"'))
    arguments = (system, "--deadline=can=40us", "--deadline=timer=700us", "-o", tmp_path / "out")
    code, told, errors = latenz(*arguments)
    assert (code, errors) == (3, "")
    lines = told.splitlines()
    assert lines[0] == (
        "no candidate was found that meets all deadlines, all 5,952 candidates tried"
    )
    assert lines[1].startswith("closest: can has ")
    assert " of 40 µs with " in lines[1]
    assert any(line.endswith("can: the bound is above the deadline") for line in lines[2:])
    assert any(line.endswith("a slot would be used up by the slot switch") for line in lines[2:])
    document = json.loads(latenz("--resume", tmp_path / "out", "--json")[1])
    assert document["front"] == []
    assert document["closest"]["latency_of_deadline"] > 1
    assert not (tmp_path / "out/system-1.toml").exists()


def test_overload_is_a_reason(latenz, system, tmp_path):
    text = Path(system).read_text().replace('"30 us"', '"1 ms"')
    Path(system).write_text(text)
    arguments = (system, "--deadline=can=10ms", "--candidates=200", "-o", tmp_path / "out")
    code, told, _ = latenz(*arguments, "--json")
    assert code == 3
    document = json.loads(told)
    assert document["closest"] is None
    assert any("overload" in reason for reason in document["counts"]["reasons"])


def test_a_recorded_trace_is_kept_once_for_all_systems(latenz, system, tmp_path):
    times = np.cumsum(np.random.default_rng(1).integers(300_000, 5_000_000, 500))
    rows = "".join(f"can:1,{time}\n" for time in times)
    (tmp_path / "trace.csv").write_text(f"source,time_ns\n{rows}")
    text = Path(system).read_text().replace('"can"', '"can:1"')
    text = re.sub('kind = "distances".*}', 'kind = "trace", file = "trace.csv", length = 2 }', text)
    Path(system).write_text(text)
    folder = tmp_path / "out"
    arguments = (system, "--deadline=can:1=300us", "--candidates=300", "-o", folder)
    code, told, _ = latenz(*arguments)
    assert code == 0
    assert "monitor of can:1: " in told  # and no picture for a name between colons
    assert "assumed: arrivals of can:1 are as dense as observed in a trace of 500" in told
    assert "a trace of 500, which is a sample" in (folder / "front.html").read_text()
    assert latenz(*arguments)[1] == told
    assert [path.name for path in folder.glob("*.csv")] == ["system.arrivals.csv"]
    best = read_system(folder / "system-1.toml")
    assert best.sources[0].arrival == read_system(Path(system)).sources[0].arrival


def test_a_partition_may_give_away_what_it_can_spare(latenz, system, tmp_path):
    plain = [system, "--mode=plain", "--deadline=can=1ms", "--objective=switches"]
    tight = json.loads(latenz(*plain, "-o", tmp_path / "kept", "--json")[1])
    code, told, _ = latenz(*plain, "--share=P2=20%", "-o", tmp_path / "traded", "--json")
    assert code == 0
    traded = json.loads(told)
    assert traded["front"][0]["switches_per_s"] <= tight["front"][0]["switches_per_s"]
    assert traded["counts"]["possible"] == 5 * tight["counts"]["possible"]
    assert tight["counts"]["possible"] == 12 * 16  # in mode plain monitors do nothing


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "SYSTEM: no system is named; name a system file, or --resume a folder"),
        (["{system}"], "--deadline: no deadline is given; write for example can=300us"),
        (
            ["{system}", "--deadline=cam=3ms"],
            "--deadline: 'cam' is not a source; did you mean 'can'?",
        ),
        (["{system}", "--deadline=can=0"], "has no unit; write"),
        (["{system}", *SMALL, "--objective=speed"], "--objective: 'speed' is not an objective;"),
        (["{system}", *SMALL, *["--objective=latency"] * 2], "'latency' is named twice"),
        (["{system}", *SMALL, "--share=P1"], "--share: 'P1' is not a share; write for example"),
        (["{system}", *SMALL, "--share=P3=10%"], "'P3' is not a partition; choose one of: P1, P2"),
        (["{system}", *SMALL, "--share=P1=70%"], "'P1' cannot need 70%; it has 0.6 of the cycle"),
        (["{system}", *SMALL, "--share=P1=0%"], "'P1' cannot need 0%"),
        (["{system}", *SMALL, *["--share=P1=10%"] * 2], "'P1' has two shares"),
        (["{system}", *SMALL, "--candidates=0"], "--candidates: 0 is not a number of candidates"),
        (["{system}", *SMALL, "--mode=fast"], "--mode: 'fast' is not a known mode"),
        (["{system}", *SMALL, "-o", "{system}"], "cannot be written (Not a directory)"),
        (["{system}", *SMALL, "-o", "{folder}"], "is not empty; name a new folder with -o"),
        (["--resume={folder}"], "holds no plan.json; name a folder of latenz explore"),
        (["{system}", "--resume={folder}"], "--resume: takes up what was asked before"),
        (["{system}", *SMALL, "--scheduler=host:1"], "--scheduler: 'host:1' is not an address"),
        (["{folder}/none.toml", *SMALL], "none.toml"),
    ],
)
def test_mistakes_get_one_line(latenz, system, tmp_path, arguments, told):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").write_text("mine")
    places = {"system": system, "folder": tmp_path / "full"}
    given = [each.format(**places) for each in arguments]
    if "-o" not in given and "--resume" not in str(given):
        given += ["-o", str(tmp_path / "out")]
    code, output, errors = latenz(*given)
    assert (code, output) == (2, "")
    assert errors.startswith("latenz: ")
    assert errors.count("\n") == 1
    assert told in errors
    assert (tmp_path / "full/notes.txt").read_text() == "mine"


def test_another_plan_is_refused(latenz, system, tmp_path):
    arguments = [system, *SMALL, "--candidates=200", "-o", tmp_path / "out"]
    assert latenz(*arguments)[0] == 0
    for other, what in (
        (["--seed=1"], "other seed"),
        (["--candidates=7"], "other candidates"),
        (["--objective=latency"], "other objectives"),
        (["--share=P1=10%"], "other shares"),
        (["--mode=paper"], "another system"),
    ):
        code, _, errors = latenz(*arguments, *other)
        assert (code, errors.count("\n")) == (2, 1)
        assert f"holds an exploration with {what}" in errors or f"exploration of {what}" in errors
    plan = tmp_path / "out/plan.json"
    sound = plan.read_text()
    for damaged, told in (
        ("{", "is damaged"),
        (sound.replace('"can"', '"cam"'), "a source"),
        (sound.replace("0.1.0", "0.0.9"), "was begun by latenz 0.0.9"),
    ):
        plan.write_text(damaged)
        code, _, errors = latenz("--resume", tmp_path / "out")
        assert (code, errors.count("\n")) == (2, 1)
        assert told in errors
    plan.write_text(sound)
    (tmp_path / "out/candidates.parquet").write_bytes(b"PAR1")
    code, _, errors = latenz("--resume", tmp_path / "out")
    assert (code, errors.count("\n")) == (2, 1)
    assert "is damaged" in errors


def test_the_page_shows_the_front_without_a_network(latenz, tmp_path):
    document = json.loads(
        latenz(*ARGUMENTS, "--candidates", 1_000, "-o", tmp_path / "out", "--json")[1]
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            timeout=LIMIT_MS,
        )
        page = browser.new_page(viewport={"width": 1200, "height": 900})
        page.set_default_timeout(LIMIT_MS)
        troubles: list[str] = []
        asked: list[str] = []
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("console", lambda message: troubles.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "out/front.html").as_uri())
        page.wait_for_selector(".plot .main-svg", state="attached")
        drawn = page.evaluate(
            "[...document.querySelector('.plot').data].map((trace) => [trace.x, trace.y])"
        )
        others, front, given = drawn
        assert len(others[0]) == document["counts"]["feasible"]
        assert front[0] == [100 * one["interference_share"] for one in document["front"]]
        assert front[1] == [one["switches_per_s"] for one in document["front"]]
        assert given[1] == [300]
        buttons = page.locator(".modebar-btn").evaluate_all(
            "all => all.map((b) => b.dataset.title)"
        )
        assert "Zoom" in buttons
        assert not any("Share" in title for title in buttons)  # nothing leaves the page
        assert page.inner_text("h1") == "All deadlines can hold"
        rows = page.locator("table >> nth=0").locator("tbody tr")
        assert rows.count() == 1 + len(document["front"])
        for change in document["front"][0]["changes"]:
            assert change in page.inner_text("main")
        assert troubles == []
        assert len(asked) == 1
        browser.close()
