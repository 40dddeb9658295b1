"""Latency over size: lines of what differs in nothing else, and never of two time bases."""

import numpy as np

from latenz.model import Metadata, SampleSet, TimeBase
from latenz.report.collect import Source, collect
from latenz.report.sizes import size_figures


def measured(condition, size, median_ns, time_base=TimeBase.SILICON, load="none", **settings):
    sets = [f"{condition}/half-round-trip", f"{condition}/raw"]
    account = {
        "engine": {"name": "intercore", "settings": {"bytes": size, **settings}},
        "load": {"name": load},
        "sample_sets": sets,
    }
    measured_sets = []
    for name, usual_ns in zip(sets, (median_ns, 50), strict=True):
        latency_ns = np.full(100, usual_ns)
        latency_ns[-2:] = 10 * usual_ns
        metadata = Metadata(name=name, time_base=time_base)
        measured_sets.append(SampleSet.from_columns(metadata, latency_ns=latency_ns))
    return account, measured_sets


def figure_of(*cases, prefix=""):
    accounts = [account for account, _ in cases]
    sources = [Source(s.metadata.name, "", s) for _, sets in cases for s in sets]
    return size_figures([(prefix, accounts, collect(sources))])


def test_a_line_has_a_point_for_each_size_in_order():
    cases = [measured(f"m-{s}", s, 100 + s, through="mailbox") for s in (4096, 1, 64)]
    [figure] = figure_of(*cases)
    [panel] = figure.panels
    assert panel.data["series"] == [
        {
            "label": "mailbox",
            "bytes": [1, 64, 4096],
            "median": [101, 164, 4196],
            "p99": [1010, 1640, 41960],
            "raw": [50, 50, 50],
        }
    ]


def test_what_differs_in_more_than_the_size_has_lines_of_its_own():
    cases = [
        measured(f"{through}-{load}-{memory}-{s}", s, s, load=load, through=through, memory=memory)
        for through in ("mailbox", "exchange")
        for load in ("none", "memory")
        for memory in ("ocm", "ddr")
        for s in (1, 64)
    ]
    [figure] = figure_of(*cases, prefix="run: ")
    [panel] = figure.panels
    labels = [each["label"] for each in panel.data["series"]]
    assert len(set(labels)) == 8
    assert "run: mailbox through ocm under load memory" in labels


def test_time_bases_have_panels_of_their_own():
    cases = [
        measured(f"{base}-{s}", s, s, base, through="exchange")
        for base in (TimeBase.SILICON, TimeBase.VIRTUAL)
        for s in (1, 64)
    ]
    [figure] = figure_of(*cases)
    assert [panel.time_base for panel in figure.panels] == ["silicon", "virtual"]
    assert len({panel.key for panel in figure.panels}) == 2


def test_one_size_and_signals_make_no_line():
    assert figure_of(measured("one", 8, 100, through="exchange")) == []
    signals = [measured(f"s{i}", None, 100, through="raw") for i in range(2)]
    assert figure_of(*signals) == []
    assert size_figures([("", [{"state": "not measured"}], [])]) == []
