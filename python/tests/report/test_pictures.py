"""The script that makes the pictures of the docs pictures the page as it is now."""

import importlib.util
from pathlib import Path

from playwright.sync_api import sync_playwright

from latenz.report import ReportedRun, write_report

SCRIPT = Path(__file__).parents[3] / "docs" / "make_report_picture.py"


def test_32_cpus_are_pictured_as_two_lines_down_to_the_figures_end(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_report_picture", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    report, picture = tmp_path / "32.html", tmp_path / "32.png"
    sets = [script.drawn_at_random(cpu) for cpu in range(script.CPUS)]
    views = write_report([ReportedRun("many", sets)], report)
    assert max(views, key=lambda view: view.summary.max_ns or 0).label == "load/cpu19"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=script.CHROMIUM, args=script.ARGUMENTS)
        script.picture(browser, report, picture)
        page = browser.new_page(viewport={"width": script.WIDTH, "height": 900})
        page.goto(report.as_uri())
        page.locator(".hero .main-svg").first.wait_for()
        legend = page.locator(".hero .legendtext").all_text_contents()
        assert legend == ["load, 32 CPUs together", "load/cpu19, the latest"]
        end = page.evaluate("document.querySelector('.hero .panel').getBoundingClientRect().bottom")
        browser.close()
    header = picture.read_bytes()[:24]
    assert header[1:4] == b"PNG"
    width, height = int.from_bytes(header[16:20]), int.from_bytes(header[20:24])
    assert width == script.WIDTH
    assert end <= height <= end + 40
