"""The report on simulated interrupts, in Chromium, against the samples it was made from."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, sync_playwright

from latenz.report import open_runs, write_report
from latenz.store.run import Run

EXPERIMENTS = Path(__file__).parents[3] / "experiments"
LIMIT_MS = 120_000
"""How long a browser may take for anything on a busy machine."""
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


@pytest.fixture(scope="module", params=["synthetic", "ecu"])
def reported(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    experiment = EXPERIMENTS / f"beckert2014-{request.param}.toml"
    command = [sys.executable, "-m", "latenz", "run", experiment, "--only", "[!h]*"]
    command += ["-o", folder / "run"]
    subprocess.run(command, capture_output=True, check=True)
    write_report(open_runs([folder / "run"]), folder / "report.html")
    return request.param, folder


@pytest.fixture
def page(reported) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=ARGUMENTS, timeout=LIMIT_MS
        )
        opened = browser.new_page(viewport={"width": 1200, "height": 900})
        opened.set_default_timeout(LIMIT_MS)
        troubles: list[str] = []
        opened.on("pageerror", lambda error: troubles.append(str(error)))
        opened.on("console", lambda message: troubles.append(message.text))
        opened.goto((reported[1] / "report.html").as_uri())
        opened.evaluate("document.querySelectorAll('.folded').forEach((one) => (one.open = true))")
        yield opened
        assert troubles == []
        browser.close()


def samples(run: Path, *left_out: str) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return latencies and handlings of every set, by condition; not those of some phases."""
    found: dict[str, list] = {}
    for sample_set in Run.open(run).sample_sets:
        if sample_set.form == "samples" and sample_set.metadata.phase not in left_out:
            for batch in sample_set.batches("latency_ns", "handling"):
                columns = [batch.column(name).to_numpy() for name in ("latency_ns", "handling")]
                found.setdefault(sample_set.metadata.condition, []).append(columns)
    return {
        condition: tuple(np.concatenate(column) for column in zip(*parts, strict=True))
        for condition, parts in found.items()
    }


def drawn(page: Page, panel: str) -> list[dict]:
    """Return what is drawn in a panel, once it has come into view."""
    page.locator(panel).evaluate("(panel) => panel.scrollIntoView()")
    page.locator(f"{panel} .main-svg").first.wait_for()
    return page.locator(f"{panel} .plot").evaluate(
        "plot => plot.data.map(({name, mode, x, y}) => ({name, mode, x, y}))"
    )


def test_histograms_hold_every_interrupt_by_its_handling(reported, page):
    latencies = samples(reported[1] / "run", "learning")
    titles = page.locator("#handling figcaption").all_inner_texts()
    assert [title.split()[-1] for title in titles] == list(latencies)
    for number, (latency_ns, handling) in enumerate(latencies.values()):
        marks = [
            trace
            for trace in drawn(page, f"#handling-simulated-{number}")
            if trace["mode"] == "markers"
        ]
        counts = {trace["name"]: sum(trace["y"]) for trace in marks}
        names = ["direct", "interposed", "delayed"]
        expected = dict(zip(names, np.bincount(handling, minlength=3).tolist(), strict=True))
        assert counts == {name: count for name, count in expected.items() if count}
        plot = page.locator(f"#handling-simulated-{number} .plot")
        line = plot.evaluate("plot => plot.layout.shapes[0].x0")
        unit = plot.evaluate("plot => plot.layout.xaxis.title.text")
        size = 1e6 if "ms" in unit else 1e3
        assert line * size == pytest.approx(latency_ns.mean(), rel=1e-9)


def test_what_was_published_stands_beside(reported, page):
    expected = {
        "synthetic": ["average 2.5 ms: direct 40.0 %, delayed 60.0 %", "average 1.2 ms", "150 µs"],
        "ecu": ["average 2.2 ms", "average 120 µs", "average 300 µs", "average 900 µs", "1.6 ms"],
    }[reported[0]]
    section = "#handling" if reported[0] == "synthetic" else "#learning"
    notes = [
        text
        for text in page.locator(f"{section} .panel > .aside").all_inner_texts()
        if text.startswith("Published")
    ]
    assert len(notes) == len(expected)
    for note, figure in zip(notes, expected, strict=True):
        assert figure in note


def test_moving_averages_are_those_of_the_samples(reported, page):
    if reported[0] == "synthetic":
        assert page.locator("#learning").count() == 0
        return
    latencies = samples(reported[1] / "run")
    traces = drawn(page, "#learning-simulated")
    unit = page.locator("#learning-simulated .plot").evaluate("p => p.layout.yaxis.title.text")
    size = 1e6 if "ms" in unit else 1e3
    assert [trace["name"] for trace in traces] == list(latencies)
    for trace, (latency_ns, _) in zip(traces, latencies.values(), strict=True):
        assert trace["x"][-1] == len(latency_ns) == 11_000
        window = len(latency_ns) // 20
        for at, mean in list(zip(trace["x"], trace["y"], strict=True))[:: len(trace["x"]) // 25]:
            expected = latency_ns[max(0, at - window) : at].mean()
            # the beginning of the window may lie within a block of up to 20 samples
            assert mean * size == pytest.approx(expected, rel=0.12)
    shade = page.locator("#learning-simulated .plot").evaluate("p => p.layout.shapes[0]")
    assert (shade["x0"], shade["x1"]) == (0, 1100)


def test_shares_stand_in_the_summary(reported, page):
    header = page.locator("table.summary.base-simulated th").all_inner_texts()
    assert {"Direct", "Interposed", "Delayed"} <= {text.strip() for text in header}
