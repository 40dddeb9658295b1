"""Missed activations in the report: every figure is of activations as they were due."""

from pathlib import Path

import numpy as np

from latenz.model import Metadata, SampleSet, TimeBase
from latenz.report import ReportedRun, write_report
from latenz.report.collect import Source, View, collect
from latenz.report.figures import figures

PERIOD = 1_000_000


def metadata(**changes: object) -> Metadata:
    return Metadata.model_validate({"name": "set", "time_base": TimeBase.SILICON, **changes})


def half_missed(period_ns: int | None = PERIOD) -> SampleSet:
    """A second of which half a second is one stall."""
    latencies = np.full(500, 10_000)
    latencies[250] = 500 * PERIOD
    missed = np.zeros(500, np.int64)
    missed[250] = 500
    return SampleSet.from_columns(
        metadata(period_ns=period_ns), latency_ns=latencies, missed=missed
    )


def seen(sample_set: SampleSet) -> View:
    (view,) = collect([Source("set", "set", sample_set)])
    return view


def test_distributions_hold_every_activation_by_how_long_it_waited() -> None:
    every = np.sort([10_000] * 499 + [k * PERIOD for k in range(501)])
    cells = SampleSet.from_columns(
        metadata(period_ns=PERIOD, missed_periods=500),
        latency_ns=[10_000, 500 * PERIOD],
        width_ns=[1, 1],
        count=[499, 1],
    )
    for sample_set in (half_missed(), cells):
        found = seen(sample_set).distribution
        assert (found.n, found.beyond, found.max_ns) == (1000, 0, 500 * PERIOD)
        for limit in (5_000, 20_000, 100 * PERIOD, 499 * PERIOD):
            share = np.count_nonzero(every > limit)
            assert found.count[found.lowest > limit].sum() == share


def test_the_exceedance_curve_shows_half_a_second_late_as_half_of_all() -> None:
    made = {figure.key: figure for figure in figures([seen(half_missed())])}
    (series,) = made["exceedance"].panels[0].data["series"]
    assert series["n"] == 1000
    curve = zip(series["latency"], series["atOrAbove"], strict=True)
    assert max(count for ns, count in curve if ns > 10_100) == 500
    (bars,) = made["histograms"].panels[0].data["series"]
    assert sum(bars["count"]) == 999  # one waited for 0 ns, which no logarithmic axis has


def test_skipped_ones_of_unknown_latency_lie_above_all_others() -> None:
    view = seen(half_missed(period_ns=None))
    assert (view.distribution.n, view.distribution.unknown) == (1000, 500)
    made = {figure.key: figure for figure in figures([view])}
    (series,) = made["exceedance"].panels[0].data["series"]
    assert min(series["atOrAbove"]) >= 500
    assert "beyond" not in series  # that is for what lies beyond a histogram's range
    notes = made["exceedance"].panels[0].notes
    assert any("nobody knows how late 500 skipped activations were" in each for each in notes)


def test_the_table_has_both_views_and_says_what_only_samples_tell(tmp_path: Path) -> None:
    sets = [
        half_missed().with_metadata(name="counted"),
        SampleSet.from_columns(metadata(name="only"), latency_ns=[5] * 1000),
    ]
    page = tmp_path / "r.html"
    write_report([ReportedRun("r", sets)], page)
    text = page.read_text(encoding="utf-8")
    assert '<th scope="row" data-key="name">counted</th>' in text
    assert '<th scope="row" data-key="name">counted, as sampled</th>' in text
    assert text.count(", as sampled</th>") == 1
    told = "of samples only, as the source does not count missed activations: only."
    assert f"Figures {told}" in text
