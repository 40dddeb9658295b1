"""The site of the guide: every link leads somewhere, and its search works without a network."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = "/usr/bin/chromium"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, ROOT / "docs" / "make_site.py", "-o", place]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return place


def test_each_page_is_in_the_order_of_the_guide(site):
    guide = (ROOT / "docs" / "README.md").read_text()
    targets = re.findall(r"^\| \[[^]]+\]\(([^)]+)\.md\)", guide, re.MULTILINE)
    wanted = [target.split("/")[-1] + ".html" for target in targets]

    _, _, navigation = (site / "index.html").read_text().partition('class="sidebar-tree"')
    navigation, _, _ = navigation.partition('class="main"')
    pages = re.findall(r'href="(?:[^"#]*/)?([^"#/]+)">', navigation)

    assert len(wanted) > 50
    assert pages == ["README.html", *wanted]


def test_a_reader_without_a_network_finds_a_page_by_its_words(site):
    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").as_uri())
        page.get_by_placeholder("Search").fill("throttling")
        page.keyboard.press("Enter")
        found = page.locator("#search-results li a[href*='linux-bound']")
        found.wait_for()
        found.click()
        assert "throttl" in (page.locator("article").text_content() or "")
        browser.close()

    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
