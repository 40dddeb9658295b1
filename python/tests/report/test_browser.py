"""The report as a person gets it: opened in Chromium, read, hovered, switched, printed."""

import csv
import re
import time
from collections.abc import Iterator

import numpy as np
import pytest
from conftest import HOSTILE, Example
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
LIMIT_S = 60
"""How long a browser may take for anything on a busy machine."""
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


NOT_DRAWN = "figure.panel:not(details:not([open]) *) .plot:not(:has(.main-svg))"
A4_PIXELS = (210 - 24) * 96 / 25.4
"""Width between the margins of the page's print style."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM, args=ARGUMENTS, timeout=LIMIT_S * 1000
        )
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, example: Example) -> Iterator[Page]:
    context = browser.new_context(
        viewport={"width": 1200, "height": 900}, color_scheme="light", accept_downloads=True
    )
    context.set_default_timeout(LIMIT_S * 1000)
    opened = context.new_page()
    troubles: list[str] = []
    asked: list[str] = []
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.on("console", lambda message: troubles.append(message.text))
    opened.on("dialog", lambda dialog: troubles.append(dialog.message))
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(example.page.as_uri())
    yield opened
    assert opened.evaluate("window.taken") is None
    assert {url for url in asked if not url.startswith(("data:", "blob:"))} == {
        example.page.as_uri()
    }
    assert troubles == []
    context.close()


def draw_all(page: Page) -> None:
    """Scroll to each figure until it is drawn.

    By the page's own means: Playwright's waits for two frames in which nothing moves, and Chromium
    without a display has been seen to show none for half a minute.
    """
    page.evaluate("document.querySelectorAll('details.folded').forEach((one) => (one.open = true))")
    for figure in page.query_selector_all("figure.panel"):
        page.bring_to_front()
        figure.evaluate("(figure) => figure.scrollIntoView()")
        figure.wait_for_selector(".plot .main-svg", state="attached")


def eventually(page: Page, condition: str) -> None:
    """Wait for a condition (playwright's own waiting needs eval, which the page forbids)."""
    end = time.monotonic() + LIMIT_S
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"never came true: {condition}"
        page.wait_for_timeout(20)


def cell(page: Page, label: str, key: str) -> dict[str, str]:
    return page.evaluate(
        """([label, key]) => {
          const row = [...document.querySelectorAll("table.summary tbody tr")]
            .find((row) => row.cells[0].textContent === label);
          const cell = [...row.cells].find((cell) => cell.dataset.key === key);
          return {text: cell.textContent, title: cell.title, ...cell.dataset};
        }""",
        [label, key],
    )


def rows_of(example: Example) -> dict[str, np.ndarray]:
    """Latencies of each row of the table: of activations as due, and of samples where others."""
    found = {}
    for label, latency_ns in example.latencies.items():
        skipped = [
            late - k * 1_000_000 for late in latency_ns for k in range(1, late // 1_000_000 + 1)
        ]
        found[label] = np.concatenate([latency_ns, np.array(skipped, dtype=np.int64)])
        if skipped:
            found[f"{label}, as sampled"] = latency_ns
    return found


def test_numbers_on_the_page_are_those_of_the_activations(page: Page, example: Example) -> None:
    rows = rows_of(example)
    assert len(rows) == len(example.latencies) + 1
    for label, latency_ns in rows.items():
        mean = latency_ns.mean()
        expected = {
            "mean_ns": mean,
            "median_ns": np.median(latency_ns),
            "max_ns": latency_ns.max(),
            "min_ns": latency_ns.min(),
            "jitter_ns": max(latency_ns.max() - mean, mean - latency_ns.min()),
            "stdev_ns": latency_ns.std(ddof=1),
            "p99_ns": np.quantile(latency_ns, 0.99, method="inverted_cdf"),
            "p99.9_ns": np.quantile(latency_ns, 0.999, method="inverted_cdf"),
        }
        for key, value in expected.items():
            shown = cell(page, label, key)
            assert float(shown["ns"]) == pytest.approx(float(value), rel=1e-12)
            assert float(shown["text"].replace(",", "")) == pytest.approx(value / 1000, abs=6e-4)
        assert cell(page, label, "n")["text"] == f"{len(latency_ns):,}"
    assert cell(page, "stress/cpu1", "missed_periods")["text"] == "12"
    assert cell(page, "stress/cpu1", "max_ns")["title"] == "12,345,678 ns"
    assert cell(page, "cyclictest/cpu0", "beyond_range")["text"] == "25"
    assert cell(page, "cyclictest/cpu0", "n")["text"] == "465,025"


def test_the_verdict_comes_first(page: Page) -> None:
    assert page.inner_text("main h2 >> nth=0") == "Verdicts"
    assert "Of 8 verdicts" in page.inner_text(".overall")
    fieldbus = page.locator("article.deadline", has_text="fieldbus").first
    assert "1 of 4 sample sets violates it." in fieldbus.inner_text()
    # one of 12.3 ms, and 9 of the 12 skipped after it had waited for more than 3 ms
    assert "10 of 5,012 activations late, in 1 episode" in fieldbus.inner_text()


def test_control_stands_beside_the_verdicts_and_over_time(page: Page) -> None:
    assert page.inner_text("main h2 >> nth=1") == "Control"
    assert "3,067 µrad" in page.locator("#control tbody").inner_text()
    draw_all(page)
    plot = page.locator("#control-error-0 .plot")
    plot.locator(".scatterlayer .trace").nth(1).wait_for()
    assert plot.locator(".scatterlayer .trace").nth(1).locator(".point").count() == 1


def test_pointing_at_a_bar_tells_the_exact_value(page: Page, example: Example) -> None:
    page.locator("#averages-0").evaluate("(figure) => figure.scrollIntoView()")
    bars = page.locator("#averages-0 .bars .point path")
    bars.first.wait_for()
    widest = max(bars.all(), key=lambda bar: bar.bounding_box()["width"])
    widest.scroll_into_view_if_needed()
    box = widest.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    label = page.locator("#averages-0 .hoverlayer .hovertext").first
    label.wait_for()
    assert "stress, 2 CPUs together: maximum 12.35 ms (12,345,678 ns)" in label.text_content()


def test_names_in_hover_labels_are_text(page: Page) -> None:
    draw_all(page)
    virtual = page.locator("figure.panel.base-virtual[data-kind=averages] .plot")
    virtual.focus()
    page.keyboard.press("ArrowRight")
    assert page.locator("#value").text_content().startswith(HOSTILE)
    assert page.locator(".plot img, .plot a, .plot script").count() == 0


def test_the_theme_switches_and_is_remembered(page: Page) -> None:
    draw_all(page)
    background = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('.plot .xtick text')).fill"
    light, light_ink = page.evaluate(background), page.evaluate(ink)
    page.click("#theme")
    eventually(page, f"{ink} !== {light_ink!r}")
    dark = page.evaluate(background)
    assert dark != light
    assert page.get_attribute("#theme", "aria-pressed") == "true"
    page.reload()
    assert page.evaluate(background) == dark
    page.click("#theme")
    assert page.evaluate(background) == light


def test_the_system_theme_holds_without_a_choice(browser: Browser, example: Example) -> None:
    backgrounds = set()
    for scheme in ("light", "dark"):
        opened = browser.new_page(color_scheme=scheme)
        opened.goto(example.page.as_uri())
        backgrounds.add(opened.evaluate("getComputedStyle(document.body).backgroundColor"))
        opened.close()
    assert len(backgrounds) == 2


def test_it_can_be_used_with_the_keyboard_alone(page: Page) -> None:
    page.keyboard.press("Tab")
    skip = page.evaluate("[document.activeElement.className, document.activeElement.href]")
    assert skip[0] == "skip"
    assert page.locator(".skip").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert style == "solid"
    order = page.evaluate(
        """() => [...document.querySelectorAll("a, button, select, summary, [tabindex]")]
          .map((element) => element.tabIndex)"""
    )
    assert set(order) <= {0, -1}
    draw_all(page)
    page.focus("#exceedance-0 .plot")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert "of 10,000 activations at or above" in page.locator("#value").text_content()
    assert page.locator("#exceedance-0 .hoverlayer .hovertext").count() == 1


def test_every_plot_has_a_text_alternative_and_every_table_its_headings(page: Page) -> None:
    for plot in page.locator(".plot").all():
        assert plot.get_attribute("role") == "group"  # an img must hold nothing to press
        assert len(plot.get_attribute("aria-label")) > 30
    for table in page.locator("table").all():
        assert table.locator("caption").count() == 1
        assert table.locator("thead th:not([scope=col])").count() == 0
        assert table.locator("tbody th:not([scope=row])").count() == 0


def test_the_summary_sorts_and_changes_its_unit(page: Page, example: Example) -> None:
    table = page.locator("table.summary.base-silicon")
    heading = table.locator("th[data-key=mean_ns]")
    for direction in ("ascending", "descending"):
        heading.locator("button").click()
        assert heading.get_attribute("aria-sort") == direction
        shown = table.locator("td[data-key=mean_ns]").evaluate_all(
            "c => c.map((x) => +x.dataset.ns)"
        )
        assert shown == sorted(shown, reverse=direction == "descending")
    page.select_option("#unit", "1")
    latency_ns = example.latencies["idle/cpu0"]
    assert cell(page, "idle/cpu0", "max_ns")["text"] == f"{latency_ns.max():,}"
    assert table.locator(".unit").inner_text() == "ns"


def test_the_summary_downloads_as_csv(page: Page, example: Example) -> None:
    with page.expect_download() as download:
        page.click("#save-csv")
    rows = list(csv.DictReader(download.value.path().read_text(encoding="utf-8").splitlines()))
    found = {row["name"]: row for row in rows}
    assert found[HOSTILE]["time_base"] == "virtual"
    for label, latency_ns in rows_of(example).items():
        assert int(found[label]["max_ns"]) == latency_ns.max()
        assert float(found[label]["mean_ns"]) == pytest.approx(latency_ns.mean(), rel=1e-12)
        assert found[label]["time_base"] == "silicon"


def test_plots_are_drawn_when_they_come_into_view_and_nothing_moves(page: Page) -> None:
    page.evaluate("document.querySelectorAll('details.folded').forEach((one) => (one.open = true))")
    last = page.locator("figure.panel").last
    assert last.locator(".main-svg").count() == 0
    before = page.evaluate("document.documentElement.scrollHeight")
    draw_all(page)
    assert page.evaluate("document.documentElement.scrollHeight") == before
    assert last.locator(".main-svg").count() > 0


def test_the_picture_of_the_verdict_is_on_the_first_screen_with_three_numbers(page: Page) -> None:
    page.wait_for_selector("#exceedance-0 .main-svg", state="attached")
    assert page.locator("#exceedance-0 .plot").bounding_box()["y"] < 700
    numbers = page.locator(".three > div").all_inner_texts()
    assert [each.split("\n")[0] for each in numbers] == ["Largest seen", "Deadline", "Late"]
    assert "12.35 ms" in numbers[0]
    assert "10 of 5,012" in numbers[2]


def test_chips_choose_conditions_and_cpus_by_keyboard(page: Page) -> None:
    page.wait_for_selector("#exceedance-0 .main-svg", state="attached")
    names = "[...document.querySelectorAll('#exceedance-0 .legendtext')].map((t) => t.textContent)"
    assert any("stress" in name for name in page.evaluate(names))
    page.focus("#choose input[name=condition][value=stress]")
    page.keyboard.press("Space")
    eventually(page, f"!{names}.some((name) => name.includes('stress'))")
    page.focus("#choose input[name=cpu][value=together]")
    page.keyboard.press("ArrowRight")  # each
    eventually(page, f"{names}.includes('idle/cpu0') && {names}.includes('idle/cpu1')")
    page.keyboard.press("ArrowRight")  # CPU 0
    eventually(page, f"{names}.includes('idle/cpu0') && !{names}.includes('idle/cpu1')")


def test_logarithmic_axes_have_whole_times_at_their_ticks(page: Page) -> None:
    page.wait_for_selector("#exceedance-0 .xtick text", state="attached")
    ticks = page.locator("#exceedance-0 .xtick text").all_text_contents()
    assert len(ticks) >= 3
    assert all(re.fullmatch(r"[\d.]+ (ns|µs|ms|s)", tick) for tick in ticks), ticks


def test_nothing_can_leave_the_page(example: Example, browser: Browser) -> None:
    opened = browser.new_page()
    requests: list[str] = []
    opened.on("request", lambda request: requests.append(request.url))
    opened.goto(example.page.as_uri())
    blocked = opened.evaluate(
        """async () => {
          const violated = [];
          const note = (event) => violated.push(event.effectiveDirective);
          addEventListener("securitypolicyviolation", note);
          await fetch("http://127.0.0.1:9/x").catch(() => {});
          const picture = new Image();
          picture.src = "http://127.0.0.1:9/x.png";
          const script = document.createElement("script");
          script.textContent = "window.taken = 3";
          document.head.append(script);
          for (let waits = 0; new Set(violated).size < 3 && waits < 1000; ++waits) {
            await new Promise((done) => setTimeout(done, 20));
          }
          return violated;
        }"""
    )
    assert {"connect-src", "img-src", "script-src-elem"} <= set(blocked)
    assert opened.evaluate("window.taken") is None
    opened.close()


def test_no_button_offers_to_send_a_plot_away(page: Page) -> None:
    draw_all(page)
    titles = page.locator(".modebar-btn").evaluate_all("all => all.map((b) => b.dataset.title)")
    assert "Zoom" in titles
    assert not any("Share" in title or "Cloud" in title for title in titles)


def test_a_phone_needs_no_sideways_scrolling(browser: Browser, example: Example) -> None:
    context = browser.new_context(viewport={"width": 320, "height": 640}, has_touch=True)
    opened = context.new_page()
    opened.goto(example.page.as_uri())
    draw_all(opened)
    opened.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert opened.evaluate("document.documentElement.scrollWidth") == 320
    opened.evaluate("scrollTo(50, 0)")
    assert opened.evaluate("scrollX") == 0
    context.close()


def test_print_is_light_and_shows_every_plot(browser: Browser, example: Example) -> None:
    opened = browser.new_page(color_scheme="dark")
    opened.goto(example.page.as_uri())
    opened.emulate_media(media="print")
    eventually(opened, f"document.querySelectorAll('{NOT_DRAWN}').length === 0")
    assert (
        opened.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    )
    assert not opened.is_visible("nav.sections")
    ink = "getComputedStyle(document.querySelector('.plot .xtick text')).fill"
    eventually(opened, f"{ink} === 'rgb(22, 32, 43)'")
    opened.emulate_media(media="screen")
    eventually(opened, "document.documentElement.dataset.theme === undefined")
    opened.close()


def test_printed_from_a_wide_window_every_label_is_on_paper(
    browser: Browser, example: Example
) -> None:
    opened = browser.new_page(viewport={"width": 1300, "height": 900})
    opened.goto(example.page.as_uri())
    opened.wait_for_selector("#exceedance-0 .main-svg", state="attached")
    opened.evaluate(
        """() => addEventListener("beforeprint", () => {
          window.printed = [...document.querySelectorAll("figure.panel:not(details:not([open]) *)")]
            .map((figure) => {
              const left = figure.querySelector(".plot").getBoundingClientRect().left;
              return [...figure.querySelectorAll(".plot text")]
                .map((text) => [text.textContent, text.getBoundingClientRect().right - left]);
            });
        })"""
    )
    opened.pdf(format="A4", prefer_css_page_size=True)
    printed = opened.evaluate("window.printed")
    assert len(printed) >= 5
    exceedance = [text for text, _ in printed[0]]
    assert any("fieldbus 3 ms" in text for text in exceedance)
    assert any(re.fullmatch(r"\d+ ms", text) for text in exceedance)
    assert max(right for panel in printed for _, right in panel) <= A4_PIXELS
    opened.close()


def test_on_paper_no_table_is_wider_than_the_page_and_no_number_is_broken(
    browser: Browser, example: Example
) -> None:
    opened = browser.new_page(viewport={"width": int(A4_PIXELS), "height": 900})
    opened.goto(example.page.as_uri())
    opened.emulate_media(media="print")
    eventually(
        opened, "document.querySelectorAll('#provenance > details:not([open])').length === 0"
    )
    shown = "[...document.querySelectorAll('table')].filter((table) => table.checkVisibility())"
    assert opened.evaluate(f"{shown}.some((table) => table.matches('.evidence'))")
    rights = opened.evaluate(f"{shown}.map((table) => table.getBoundingClientRect().right)")
    assert max(rights) <= A4_PIXELS + 1
    numbers = f"{shown}.flatMap((table) => [...table.querySelectorAll('td.number')])"
    lines = f"""{numbers}.map((cell) => {{
      const text = document.createRange();
      text.selectNodeContents(cell);
      return new Set([...text.getClientRects()].map((box) => Math.round(box.bottom))).size;
    }})"""
    assert max(opened.evaluate(lines)) == 1
    opened.close()
