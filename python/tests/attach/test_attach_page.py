"""The report of a program that was measured, opened in Chromium."""

import json
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

from .test_attach_trace import attach, made_up

CHROMIUM = "/usr/bin/chromium"
LIMIT_MS = 120_000
SHARES = {
    "not woken yet": "timer_late_ns",
    "ready, no CPU": "ready_ns",
    "runs": "execution_ns",
    "blocked": "blocked_ns",
}


def test_a_report_opens_with_verdict_worst_cycle_and_findings(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text(made_up(3, 300).text(), encoding="utf-8")
    run, page = tmp_path / "run", tmp_path / "report.html"
    done = attach(trace, run, "loop", "--deadline", "200us")
    worst = json.loads(done.stdout)["causes"][0]
    report = [sys.executable, "-m", "latenz", "report", str(run), "-o", str(page)]
    subprocess.run(report, check=True, capture_output=True, timeout=300)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"], timeout=LIMIT_MS
        )
        opened = browser.new_page(viewport={"width": 1200, "height": 900})
        opened.set_default_timeout(LIMIT_MS)
        opened.goto(page.as_uri())
        shown = opened.evaluate(
            """() => {
              const places = [...document.querySelectorAll(
                "#verdicts .overall, #program svg.schedule, #program table")]
                .map((one) => one.getBoundingClientRect().top);
              const texts = [...document.querySelectorAll("#program svg.schedule text")];
              const bars = [...document.querySelectorAll("#program svg.schedule rect")];
              const picture = document.querySelector("#program svg.schedule");
              const edge = picture.getBoundingClientRect();
              return {
                places,
                overall: document.querySelector("#verdicts .overall").innerText,
                sentence: document.querySelector("#program figcaption").innerText,
                names: texts.map((one) => one.textContent),
                bars: bars.map((one) => [one.textContent, one.width.baseVal.value]),
                outside: [...texts, ...bars].filter((one) => {
                  const place = one.getBoundingClientRect();
                  return place.left < edge.left - 1 || place.right > edge.right + 1;
                }).length,
              };
            }"""
        )
        browser.close()
    assert shown["places"] == sorted(shown["places"])
    assert len(shown["places"]) >= 3
    assert "deadline" in shown["overall"] or "limit" in shown["overall"].lower()
    assert shown["sentence"] == worst["sentence"]
    assert set(SHARES) <= set(shown["names"])
    assert shown["outside"] == 0
    widths = dict.fromkeys(SHARES, 0.0)
    for told, width in shown["bars"]:
        widths[told.partition(":")[0]] += width
    whole = sum(widths.values())
    for name, column in SHARES.items():  # bars are at least a pixel wide
        assert abs(widths[name] / whole - worst[column] / worst["response_ns"]) < 0.02, name
