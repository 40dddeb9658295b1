"""Reports of many sets: short, with all CPUs of a condition together, and quick to open."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, sync_playwright

from latenz.model import Deadline, Metadata, SampleSet, TimeBase
from latenz.report import ReportedRun, write_report
from latenz.report.collect import Source, collect
from latenz.report.distribution import Distribution, pooled
from latenz.report.figures import figures
from latenz.report.pools import choices, lines_of

pytestmark = pytest.mark.proofs

CHROMIUM = "/usr/bin/chromium"


def measured(condition: int, cpu: int, n: int, limit_ns: int = 30_000) -> SampleSet:
    random = np.random.default_rng([condition, cpu])
    late = np.where(random.random(n) < 2e-4, 8, 1)
    latency_ns = (random.lognormal(np.log(300 * (1 + condition)), 0.3, n) * late).astype(np.int64)
    metadata = Metadata(
        name=f"signal-{condition}/cpu{cpu}",
        condition=f"signal-{condition}",
        cpu=cpu,
        time_base=TimeBase.SILICON,
        tool="latenz-wakeup",
        period_ns=100_000,
        deadlines=(Deadline(name="signal", limit_ns=limit_ns),),
    )
    return SampleSet.from_columns(
        metadata,
        latency_ns=latency_ns,
        t_ns=100_000 * np.arange(n),
        missed=np.zeros(n, dtype=np.int64),
    )


def sets(conditions: int, cpus: int, n: int, **more: int) -> list[SampleSet]:
    return [measured(each, cpu, n, **more) for each in range(conditions) for cpu in range(cpus)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield opened
        opened.close()


def test_forty_sets_are_short_on_screen_and_on_paper(tmp_path: Path, browser: Browser) -> None:
    page = tmp_path / "forty.html"
    write_report([ReportedRun("run", sets(14, 3, 1_000)[:40])], page)
    opened = browser.new_page(viewport={"width": 1300, "height": 900})
    opened.goto(page.as_uri())
    assert opened.evaluate("document.documentElement.scrollHeight") <= 6_000
    assert len(re.findall(rb"/Type /Page\b", opened.pdf(format="A4"))) <= 8
    opened.close()


@pytest.mark.long
def test_two_hundred_sets_are_below_the_bar_of_a_page(tmp_path: Path) -> None:
    page = tmp_path / "many.html"
    write_report([ReportedRun("run", sets(25, 8, 2_000))], page)
    assert page.stat().st_size <= 8_000_000


def test_cpus_are_pooled_and_the_latest_is_told() -> None:
    of_32 = sets(1, 32, 500)
    views = collect(
        [Source(each.metadata.name, "signal-0", each) for each in of_32],
    )
    pool, *members = lines_of(views)
    assert (pool.role, len(members)) == ("pooled", 32)
    (latest,) = [line for line in members if line.latest]
    largest = {view.label: view.summary.max_ns for view in views}
    assert latest.view.label == max(largest, key=largest.__getitem__)
    every = np.concatenate([next(each.batches("latency_ns"))["latency_ns"] for each in of_32])
    assert pool.view.distribution.n == len(every) == 16_000
    assert pool.view.summary.max_ns == every.max()
    assert pool.view.summary.mean_ns == pytest.approx(every.mean(), rel=1e-12)
    p99 = np.quantile(every, 0.99, method="inverted_cdf")
    assert pool.view.summary.quantiles_ns["0.99"] == pytest.approx(p99, rel=1e-3)
    assert pool.view.summary.quantiles_ns["0.99999"] is None  # 16,000 cannot carry it


def test_a_pool_counts_every_activation_like_brute_force() -> None:
    parts = [collect([Source("x", "x", each)])[0].distribution for each in sets(1, 5, 300)]
    together = pooled(parts)
    assert together is not None
    for limit in (100, 300, 500, 1000):
        of_each = sum(int(part.count[part.lowest >= limit].sum()) for part in parts)
        assert int(together.count[together.lowest >= limit].sum()) == of_each
    assert (np.diff(together.lowest) > 0).all()


def test_ranges_that_end_below_others_values_are_not_pooled() -> None:
    def cells(lowest: list[int], beyond_from_ns: int | None) -> Distribution:
        low = np.array(lowest)
        ones = np.ones_like(low)
        beyond = 3 if beyond_from_ns else 0
        return Distribution(low, low + 1, ones, beyond=beyond, beyond_from_ns=beyond_from_ns)

    assert pooled([cells([1, 50], 40), cells([1], None)]) is None
    known = pooled([cells([1, 30], 40), cells([2], None)])
    assert known is not None
    assert (known.n, known.beyond, known.beyond_from_ns) == (6, 3, 40)


def test_what_was_measured_differently_is_never_pooled() -> None:
    unlike = [
        SampleSet.from_columns(
            Metadata(name=f"s/cpu{i}", cpu=i, time_base=TimeBase.SILICON, to_event=event),
            latency_ns=[5, 6],
        )
        for i, event in enumerate(("handler", "user"))
    ]
    views = collect([Source(each.metadata.name, "s", each) for each in unlike])
    assert [line.role for line in lines_of(views)] == ["single", "single"]


def test_a_deadline_far_beyond_the_data_does_not_stretch_the_axes() -> None:
    for limit_ns, far in ((3_000, False), (3_000_000, True)):
        views = collect([Source("s", "s", each) for each in sets(1, 1, 500, limit_ns=limit_ns)])
        for figure in figures(views):
            data = figure.panels[0].data
            assert [limit["far"] for limit in data["limits"]] == [far]
            assert (data["range"][1] < limit_ns) == far


def test_the_conditions_with_the_largest_latencies_are_drawn_first() -> None:
    views = collect([Source(s.metadata.name, s.metadata.condition, s) for s in sets(20, 1, 50)])
    offered = choices(lines_of(views))
    assert len(offered) == 20
    drawn = {choice.name for choice in offered if choice.drawn}
    by_max = sorted(views, key=lambda view: -(view.summary.max_ns or 0))
    assert drawn == {view.group for view in by_max[:8]}
