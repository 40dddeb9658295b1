"""The page of plots in a real browser: it draws, asks for nothing, and runs no text of a trace."""

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

from latenz.analysis.learn import learn
from latenz.analysis.learn_page import write_page

LIMIT_MS = 120_000
"""How long a browser may take for anything on a busy machine."""
HOSTILE = (
    "</script><script>window.taken=1</script><img src=x onerror=window.taken=2>\"'&amp;{{7*7}}"
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_in_a_browser(tmp_path: Path, scheme: str) -> None:
    random = np.random.default_rng(1)
    times = {
        HOSTILE: np.cumsum(random.integers(1, 10**6, 3000)),
        "burst": np.cumsum(random.integers(0, 3, 3000)),
        "few": np.array([1]),
    }
    learned = learn(times, 3, allow="0.25")
    page = tmp_path / "learned.html"
    write_page(page, HOSTILE, learned, learned.warnings)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium",
            args=["--no-sandbox", "--disable-gpu"],
            timeout=LIMIT_MS,
        )
        opened = browser.new_page(color_scheme=scheme)
        opened.set_default_timeout(LIMIT_MS)
        troubles: list[str] = []
        asked: list[str] = []
        opened.on("pageerror", lambda error: troubles.append(str(error)))
        opened.on("console", lambda message: troubles.append(message.text))
        opened.on("request", lambda request: asked.append(request.url))
        opened.goto(page.as_uri())
        for figure in opened.query_selector_all("figure.panel"):
            figure.evaluate("(figure) => figure.scrollIntoView()")
            figure.wait_for_selector(".plot .main-svg", state="attached")
        plots = opened.query_selector_all(".plot")
        assert len(plots) == 4
        drawn = plots[0].evaluate("place => place.data.map((trace) => [trace.x, trace.text])")
        source = learned.of(HOSTILE)
        assert [len(x) for x, _ in drawn] == [len(source.convergence)] * 3
        assert drawn[0][0] == [step.activations for step in source.convergence]
        bounded = plots[1].evaluate("place => place.data[1].y")
        assert [round(1e6 * each) for each in bounded] == list(source.distances_ns)
        assert plots[2].evaluate("place => place.layout.yaxis.type") == "linear"
        assert HOSTILE in opened.inner_text("h1")
        for warning in learned.warnings:
            assert warning in opened.inner_text("main")
        assert opened.evaluate("window.taken") is None
        assert troubles == []
        assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [page.as_uri()]
        browser.close()
