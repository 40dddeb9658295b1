"""A monitor that is switched on at a time: what comes before is as without a monitor."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from latenz.analysis import Simulator
from latenz.analysis.simulate import HANDLINGS, simulated_irqs
from latenz.system import Monitor, Platform, RecordedTrace, Slot, Source, System

TRACES = Path(__file__).parents[3] / "experiments" / "traces"


def system(times_ns, monitor):
    return System(
        Platform(50_000, 640, 4_385, 50_000),
        (Slot("P1", 6_000_000), Slot("P2", 6_000_000), Slot("housekeeping", 2_000_000)),
        (Source("ecu", "P1", 5_000, 40_000, RecordedTrace(times_ns, 5), monitor),),
        latency_from="top",
    )


def simulated(described, **options):
    """Return arrival, latency and handling of every interrupt, in the order of arrival."""
    parts = list(simulated_irqs(Simulator(described, watch="irqs", **options)))
    arrival, start, end, handling = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("arrival_ns", "top_start_ns", "end_ns", "handling")
    )
    assert (np.diff(arrival) >= 0).all()
    return arrival, end - start, handling


@pytest.fixture(scope="module")
def times_ns():
    spec = importlib.util.spec_from_file_location("ecu", TRACES / "make_ecu_trace.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return np.array(module.trace(), dtype=np.int64)


def test_the_committed_trace_is_what_its_script_makes(times_ns):
    lines = (TRACES / "ecu.csv").read_text().splitlines()
    assert lines == ["source,time_ns", *(f"ecu,{time}" for time in times_ns)]
    gaps_ns = np.diff(times_ns)
    assert len(times_ns) == 11_000
    assert 1_700_000 < gaps_ns.mean() < 1_900_000


@pytest.mark.parametrize("mode", ["paper", "carry"])
def test_before_the_switch_nothing_is_interposed_and_nothing_costs(times_ns, mode):
    monitored = system(times_ns, Monitor((1_000_000,)))
    at_ns = int(times_ns[5_000])
    learning = simulated(monitored, mode=mode, monitored_from_ns={"ecu": at_ns})
    without = simulated(system(times_ns, None), mode=mode)
    phase = learning[0] < at_ns
    assert phase.sum() == 5_000
    assert set(learning[2][phase]) == {HANDLINGS.index("direct"), HANDLINGS.index("delayed")}
    # Only what is still pending at the switch can be served earlier than without a monitor.
    pending = learning[0] + learning[1] >= at_ns
    same = phase & ~pending
    assert same.sum() > 4_900
    for ours, theirs in zip(learning, without, strict=True):
        np.testing.assert_array_equal(ours[same], theirs[same])
    assert (learning[1][phase] <= without[1][phase]).all()


@pytest.mark.parametrize("mode", ["paper", "carry"])
def test_switched_on_from_the_start_is_as_always_on(times_ns, mode):
    monitored = system(times_ns, Monitor((1_000_000,)))
    always = simulated(monitored, mode=mode)
    switched = simulated(monitored, mode=mode, monitored_from_ns={"ecu": 0})
    for ours, theirs in zip(switched, always, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_monitor_knows_nothing_of_what_came_before_it(times_ns):
    distance_ns = int(times_ns[-1])  # one grant for the whole trace
    monitored = system(times_ns, Monitor((distance_ns,)))
    at_ns = int(times_ns[7_000])
    _, _, handling = simulated(monitored, mode="paper", monitored_from_ns={"ecu": at_ns})
    [granted] = np.flatnonzero(handling == HANDLINGS.index("interposed"))
    assert granted >= 7_000


def test_an_unknown_source_is_refused(times_ns):
    with pytest.raises(ValueError, match="door"):
        Simulator(system(times_ns, None), monitored_from_ns={"door": 0})
