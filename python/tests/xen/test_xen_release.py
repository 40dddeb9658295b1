"""Samples count only if Dom0 let the measured domain go before they began, with the load there."""

import re
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from latenz.boards.console import Received, Stream
from latenz.errors import BadInput
from latenz.experiment.schema import Experiment
from latenz.model import Metadata, TimeBase
from latenz.stacks import STACKS, Job

EXPERIMENT = """
name = "xen"
[stack.xen]
kind = "{kind}"
[stressor.all]
kind = "stress-ng-all"
classes = ["all"]
[[condition]]
name = "one"
bench = "virt"
stack = "xen"
probe = "{probe}"
stressor = "{stressor}"
{duration}
"""
SCRIPT = Path(str(resources.files("latenz.stacks"))) / "init" / "xen_dom0.sh"
HELLO = {"timer": "generic", "timer_hz": 1_000_000_000, "core": "cortex-a53"}
BEHIND = "counter_behind_ns=100000000"


@pytest.fixture
def stack(tmp_path):
    """A stack with one condition, as an experiment file describes it."""

    def make(stressor="spin", kind="xen", probe="interrupt"):
        path = tmp_path / "xen.toml"
        duration = 'duration = "1 s"' if probe == "cyclictest" else ""
        words = {"stressor": stressor, "kind": kind, "probe": probe, "duration": duration}
        text = EXPERIMENT.format(**words)
        path.write_text(text)
        (condition,) = Experiment.read(path).conditions
        metadata = Metadata(name="one", time_base=TimeBase.VIRTUAL)
        return STACKS[kind](condition.system, Job("virt", condition, tmp_path, metadata))

    return make


def received(*notes: str) -> Received:
    stream = Stream(latency_ticks=[1078, 913], interarrival_ticks=[250_000] * 2, complete=True)
    return Received(hello=HELLO, streams={0: stream}, notes=list(notes), ended={0, 2})


def told(released_ns: int) -> str:
    return f"held_ns=1000000000 released_ns={released_ns} processes=57"


def test_samples_under_load_are_taken_and_say_so(stack):
    (found,) = stack().collect(received(BEHIND, told(3_000_000_000), "killed: 1 brk"))
    assert [batch.column("latency_ns").to_pylist() for batch in found.batches()] == [[1078, 913]]
    notes = " ".join(found.metadata.notes)
    assert "held by Dom0 until 3.000 s" in notes
    assert "57 processes" in notes
    assert "killed: 1 brk" in notes
    assert "_ns=" not in notes


@pytest.mark.parametrize("released_ns", [3_400_013_000, 9_000_000_000])
def test_samples_that_began_before_the_release_are_refused(stack, released_ns):
    # They begin at 3.500012 s of the board; Dom0's counter may be 0.1 s behind.
    with pytest.raises(BadInput, match=f"let the measured domain go at {released_ns} ns"):
        stack().collect(received(BEHIND, told(released_ns)))


def test_the_last_moment_that_is_early_enough(stack):
    assert stack().collect(received(BEHIND, told(3_400_011_999)))
    with pytest.raises(BadInput):
        stack().collect(received(BEHIND, told(3_400_012_000)))


def test_without_the_firmware_s_counter_nothing_is_shown(stack):
    with pytest.raises(BadInput, match="let the measured domain go at 1000000000 ns"):
        stack().collect(received(told(1_000_000_000)))


def test_dom0_s_own_words_tell_why_it_gave_up(stack):
    words = "Dom0 gives up: the load ended before measuring: stress-ng: not found"
    with pytest.raises(BadInput, match="did not let the measured domain go: Dom0 gives up: the"):
        stack().collect(received(BEHIND, words))


def test_what_xen_notes_is_not_taken_for_the_cause(stack):
    noted = "(XEN) d0v0: vGICD: unhandled word write 0xffffffff to ICACTIVER0"
    with pytest.raises(BadInput) as told:
        stack().collect(received(BEHIND, noted))
    assert "it ended before Dom0 let the measured domain go" in str(told.value)
    assert "ICACTIVER0" not in str(told.value)


def test_only_dom0_s_end_is_the_end(stack):
    got = received()
    got.ended = {0}
    assert not stack().done(got)
    got.ended = {2}
    assert stack().done(got)


def test_no_load_moves_anything_in_memory(stack):
    lengths = {len(stack(load)._dom0_arguments()) for load in ("none", "spin", "all")}
    assert len(lengths) == 1


def test_loads_that_settle_as_long_begin_at_the_same_time(stack):
    begins = {stack(load)._begin_ns() for load in ("spin", "stress-ng-cpu")}
    assert len(begins) == 1
    assert begins.pop() % 10_000 == 2_000


def test_all_of_stress_ng_begins_at_the_same_time_of_the_scheduler(stack):
    assert (stack("all")._begin_ns() - stack("spin")._begin_ns()) % 30_000_000 == 0


def test_a_linux_guest_begins_on_a_whole_second(stack):
    linux = stack(kind="xen-linux", probe="cyclictest")
    assert linux._begin_ns() % 1_000_000_000 == 0
    with pytest.raises(BadInput, match="let the measured domain go at 6000000000 ns"):
        linux.collect(received(told(6_000_000_000)))


def test_dom0_s_program_reads_the_options_that_it_is_given(stack):
    read = set(re.findall(r"\$\(option (\w+)\)", SCRIPT.read_text()))
    given = set()
    for load in ("none", "spin", "all"):
        given |= set(re.findall(r"latenz\.(\w+)=", stack(load)._dom0_arguments()))
    assert read == given


def test_dom0_s_program_is_sound_shell():
    done = subprocess.run(["shellcheck", SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
