"""Makes docs/report.png: a report opened in headless Chromium, as a reader first sees it.

Usage: .venv/bin/python docs/make_report_picture.py REPORT.html [-o docs/report.png]
"""

import argparse
from pathlib import Path

from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
FIRST_SCREEN = """
main > section:not(#verdicts, #summary, #exceedance), .deadline, .reference, .notes, .toolbar,
#summary .scroll:has(.base-published),
#summary > .aside, #exceedance .explain, #exceedance > :is(.tail, .scroll), footer,
.panel ~ .panel { display: none !important }
section { margin-block: 1.2rem }
"""
"""The head of the page, all verdicts, the summary of what was measured, and one figure."""


def main() -> None:
    """Open the report, leave out what fits on no first screen, and save the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).parent / "report.png")
    parser.add_argument("--dark", action="store_true", help="picture the dark theme")
    given = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(
            viewport={"width": 1180, "height": 900},
            color_scheme="dark" if given.dark else "light",
        )
        page.goto(given.report.resolve().as_uri())
        page.add_style_tag(content=FIRST_SCREEN)
        page.locator("#exceedance .panel").first.scroll_into_view_if_needed()
        page.locator("#exceedance .main-svg").first.wait_for()
        page.evaluate("scrollTo(0, 0)")
        page.wait_for_timeout(300)
        page.screenshot(path=given.output, full_page=True)
        browser.close()


if __name__ == "__main__":
    main()
