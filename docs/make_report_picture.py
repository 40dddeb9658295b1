"""Makes the pictures of a report in docs/, in headless Chromium, as a reader first sees it.

docs/report.png is the first screen of the report given. docs/report-32-cpus.png is the picture that
carries the verdict of a report of 32 CPUs; its values are drawn at random, with a fixed seed, for
there is nothing to learn from them but how 32 CPUs look.

Usage: .venv/bin/python docs/make_report_picture.py REPORT.html
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, sync_playwright

from latenz.model import Deadline, Metadata, SampleSet, TimeBase
from latenz.report import ReportedRun, write_report

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
WIDTH = 1180
BELOW_FIRST_FIGURE = "document.querySelector('.hero .panel').getBoundingClientRect().bottom + 12"
"""Where the first screen ends: below the picture that carries the verdict (CSS pixels)."""
PERIOD_NS = 1_000_000
SAMPLES = 20_000
CPUS = 32
LATE_CPU = 19


def main() -> None:
    """Open both reports and save a picture of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    given = parser.parse_args()
    folder = Path(__file__).parent
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as scratch:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        picture(browser, given.report, folder / "report.png")
        of_32 = Path(scratch) / "32-cpus.html"
        sets = [drawn_at_random(cpu) for cpu in range(CPUS)]
        write_report([ReportedRun("many", sets)], of_32, title="32 CPUs, drawn at random")
        picture(browser, of_32, folder / "report-32-cpus.png")
        browser.close()


def picture(browser: Browser, report: Path, output: Path) -> None:
    """Save the head of a report, down to the end of its first figure."""
    page = browser.new_page(viewport={"width": WIDTH, "height": 900}, color_scheme="light")
    page.goto(report.resolve().as_uri())
    page.locator(".hero .main-svg").first.wait_for()
    page.wait_for_timeout(300)  # fonts and ticks settle
    height = page.evaluate(BELOW_FIRST_FIGURE)
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height}
    page.screenshot(path=output, full_page=True, clip=clip)
    page.close()


def drawn_at_random(cpu: int) -> SampleSet:
    """Return log-normal latencies of one CPU, a few late; those of one CPU are later."""
    random = np.random.default_rng(cpu)
    late = np.where(random.random(SAMPLES) < 1e-3, 12 if cpu == LATE_CPU else 4, 1)
    latency_ns = (random.lognormal(np.log(5_000 + 60 * cpu), 0.25, SAMPLES) * late).astype(np.int64)
    metadata = Metadata(
        name=f"load/cpu{cpu}",
        condition="load",
        cpu=cpu,
        time_base=TimeBase.SIMULATED,
        tool="numpy",
        period_ns=PERIOD_NS,
        deadlines=(Deadline(name="control", limit_ns=100_000),),
    )
    columns = {"t_ns": PERIOD_NS * np.arange(SAMPLES), "missed": np.zeros(SAMPLES, dtype=np.int64)}
    return SampleSet.from_columns(metadata, latency_ns=latency_ns, **columns)


if __name__ == "__main__":
    main()
