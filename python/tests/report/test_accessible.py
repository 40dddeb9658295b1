"""Every kind of page against axe-core, which checks what WCAG asks for and a program can see."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from conftest import Example
from playwright.sync_api import Browser, sync_playwright
from test_browser import ARGUMENTS, CHROMIUM, LIMIT_S, draw_all

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM, args=ARGUMENTS, timeout=LIMIT_S * 1000
        )
        yield opened
        opened.close()


def violations(browser: Browser, page: Path, width: int, theme: str) -> list[str]:
    # the check's own script needs what the page's policy forbids
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=True
    )
    context.set_default_timeout(LIMIT_S * 1000)
    opened = context.new_page()
    opened.goto(page.as_uri())
    draw_all(opened)
    found = Axe().run(opened).response["violations"]
    context.close()
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:200]} {node['failureSummary'][:200]}"
        for each in found
        for node in each["nodes"][:3]
    ]


@pytest.mark.parametrize(("width", "theme"), [(1300, "light"), (390, "dark")])
def test_axe_finds_nothing_in_a_report(browser, example: Example, width, theme):
    assert not violations(browser, example.page, width, theme)


def test_axe_finds_nothing_in_a_comparison(browser, example: Example, tmp_path):
    from latenz.commands.compare import compared, write_page
    from latenz.compare import Settings, judge

    places = (example.run, example.run)
    found = compared(places, {}, Settings(), wanted=False)
    page = tmp_path / "compared.html"
    write_page(places, {}, (found, judge(found, "p99 > +10%")), page, wanted=False)
    assert not violations(browser, page, 1300, "light")


def test_axe_finds_nothing_in_a_page_of_plots_and_tables(browser, tmp_path):
    from latenz.page.plots import Plot, PlotTable, write_plots

    line = {"type": "scatter", "x": [1, 2], "y": [3, 4], "name": "front"}
    plot = Plot("The front", "Each point is a system.", [line], {"title": {"text": "late"}}, {})
    table = PlotTable("Systems", "Those of the front.", ["system", "late"], [["a", "1"]], 1)
    write_plots(tmp_path / "plots.html", "Explored", ["A note."], [plot], [table])
    assert not violations(browser, tmp_path / "plots.html", 1300, "dark")
