"""Figures of interrupts: what was simulated and what was executed never share an axis."""

import numpy as np
import pytest

from latenz.model import Metadata, Reported, SampleSet, TimeBase
from latenz.report.collect import Source, collect
from latenz.report.figures import figures
from latenz.report.interrupts import interrupt_figures

NUMBERS = np.random.default_rng(3)
CONDITIONS = {"monitored": TimeBase.SIMULATED, "hypervisor-monitored": TimeBase.VIRTUAL}


def phase(condition, name, offset_ns):
    latency_ns = offset_ns + NUMBERS.integers(40_000, 8_000_000, 2_000)
    metadata = Metadata(
        name=f"{condition}/{name}",
        condition=condition,
        time_base=CONDITIONS[condition],
        phase=name,
    )
    t_ns = np.arange(len(latency_ns)) * 1_000_000
    handling = NUMBERS.integers(0, 3, len(latency_ns))
    return SampleSet.from_columns(metadata, latency_ns=latency_ns, t_ns=t_ns, handling=handling)


def printed(condition, mean_ns):
    return SampleSet.from_columns(
        Metadata(
            name=f"Figure, {condition}",
            condition=condition,
            time_base=TimeBase.PUBLISHED,
            reported=Reported(mean_ns=mean_ns),
        )
    )


@pytest.fixture(scope="module")
def views():
    sets = [
        phase(condition, name, offset_ns)
        for offset_ns, condition in enumerate(CONDITIONS)
        for name in ("learning", "monitored")
    ]
    sets += [printed("learning", 2_200_000), printed("monitored", 120_000)]
    return collect([Source(each.metadata.name, each.metadata.condition, each) for each in sets])


def test_no_panel_holds_two_time_bases(views):
    bases = {view.label: view.time_base.value for view in views}
    bases |= {label.rpartition("/")[0]: base for label, base in bases.items()}
    made = [*interrupt_figures(views), *figures(views)]
    assert {figure.key for figure in made} >= {"handling", "learning", "averages", "violins"}
    for figure in made:
        assert {"simulated", "virtual"} <= {panel.time_base for panel in figure.panels}
        keys = [panel.key for panel in figure.panels]
        assert len(set(keys)) == len(keys)
        for panel in figure.panels:
            drawn = {series["label"] for series in panel.data["series"]}
            if figure.key == "handling":  # its series are the handlings of one condition
                drawn = {panel.title}
                assert bases[panel.title] == panel.time_base
            assert {bases[label] for label in drawn} == {panel.time_base}


def test_published_averages_stand_beside_the_conditions_they_are_of(views):
    for figure in interrupt_figures(views):
        notes = {panel.time_base: " ".join(panel.notes) for panel in figure.panels}
        assert "average 120 µs" in notes["simulated"]
        assert "Published" not in notes["virtual"]
