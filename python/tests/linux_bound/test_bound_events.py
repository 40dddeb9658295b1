"""What a kernel is said to offer for a bound."""

from latenz.traces.offers import BOUND_EVENTS, missing_for_bound


def test_what_a_kernel_lacks_is_named(tmp_path):
    for event in BOUND_EVENTS:
        (tmp_path / "events" / event).mkdir(parents=True)
    assert missing_for_bound(tmp_path) == []
    (tmp_path / "events/preemptirq/irq_enable").rmdir()
    assert missing_for_bound(tmp_path) == ["preemptirq:irq_enable"]
