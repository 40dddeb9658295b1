"""A trace.dat gives the bound that the text of the same events gives."""

import random

import pytest
from traced_dat import Recording
from traced_kernel import Kernel

from latenz.linux_bound.traced import windows_of_trace


@pytest.mark.parametrize(("seed", "preemptible"), [(1, True), (2, True), (3, False)])
def test_both_forms_of_a_trace_give_the_same_windows(seed, preemptible, tmp_path):
    text = Kernel(random.Random(seed), preemptible=preemptible).run(60)
    printed = tmp_path / "trace.txt"
    printed.write_text(text)
    recorded = Recording(text.splitlines()).write(tmp_path / "trace.dat")
    mode = "rt" if preemptible else "voluntary"
    [of_text], [of_dat] = windows_of_trace(printed, mode), windows_of_trace(recorded, mode)
    assert of_dat.trace.clock == "mono"
    assert of_text.wake_ups == of_dat.wake_ups > 50
    assert of_text.longest() == of_dat.longest()
    assert of_text.trace.inner_ns == of_dat.trace.inner_ns
    assert of_text.interrupts.steps == of_dat.interrupts.steps
    assert of_text.segments == of_dat.segments
    assert of_text.checks == of_dat.checks


def test_a_trace_that_comes_again_has_so_many_wake_ups(tmp_path):
    recording = Recording(Kernel(random.Random(4)).run(60).splitlines())
    [once] = windows_of_trace(recording.write(tmp_path / "once.dat"), "rt")
    [thrice] = windows_of_trace(recording.write(tmp_path / "thrice.dat", times=3), "rt")
    assert thrice.trace.events == 3 * once.trace.events == 3 * recording.events
    assert thrice.wake_ups > 2 * once.wake_ups
    assert thrice.longest().blocking >= once.longest().blocking
