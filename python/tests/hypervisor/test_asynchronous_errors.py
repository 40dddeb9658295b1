"""An asynchronous error is of the partition that ran when it was caused, and never the board's end.

The emulator has none. The debugger lets the hypervisor see one pending, as a processor shows it in
ISR_EL1, when it asks between two partitions.
"""

import pytest
from debugger import Debugger, emulator_of, received, symbols
from small_guests import built_small

from latenz.hypervisor.trace import read_statistics

pytestmark = pytest.mark.boots

WAIT = """
1:  wfi
    b       1b
"""
GONE = """
    movz    x0, #0x8400, lsl #16    // PSCI SYSTEM_OFF
    movk    x0, #8
    hvc     #0
"""
PENDING = 1 << 8


def partition_of(debugger):
    """The partition whose translation is in use: 0 is `small`, 1 `other`; 254 nobody's."""
    return (debugger.system_register("VTTBR_EL2") >> 48) - 1


def run(tmp_path, text, more, wanted):
    """Show an error pending when the wanted partition has just been switched from, once."""
    image, console = tmp_path / "image.elf", tmp_path / "console"
    built_small(tmp_path, text, more).write(image)
    asked = symbols()["pending_errors_known"]
    with Debugger(emulator_of(image, console), tmp_path) as debugger:
        debugger.stop_at(asked)
        debugger.go_on()
        while partition_of(debugger) != wanted:
            debugger.go_on()
        debugger.set_register(0, debugger.register(0) | PENDING)
        debugger.stop_no_more_at(asked)
        debugger.wait()
    told = received(console)
    assert not told.faults, "the board went on to its end"
    statistics = read_statistics(bytes(told.files["statistics.json"]))
    assert sum(each.completed for each in statistics.sources) == 20
    return statistics, told.lines


@pytest.mark.parametrize(
    ("more", "state", "restarts"), [("", "stopped", 0), ('on_fault = "restart"', "running", 1)]
)
def test_it_is_of_the_partition_that_ran(tmp_path, more, state, restarts):
    statistics, lines = run(tmp_path, WAIT, more, wanted=0)
    small, other = statistics.partitions
    assert (small.state, small.faults, small.restarts) == (state, 1, restarts)
    assert (other.state, other.faults, other.restarts) == ("running", 0, 0)
    assert any(line.startswith("hypervisor: small: asynchronous error at ") for line in lines)


def test_one_that_is_gone_is_told_of(tmp_path):
    # on a busy machine the first slot may be over before the guest has switched itself off
    for _ in range(5):
        statistics, lines = run(tmp_path, GONE, "", wanted=0)
        small, other = statistics.partitions
        if small.state == "off":
            break
    assert (small.state, small.faults, small.restarts) == ("off", 1, 0)
    assert (other.state, other.faults) == ("running", 0)
    assert any(line.startswith("hypervisor: small: asynchronous error at ") for line in lines)


def test_one_of_idle_time_is_counted(tmp_path):
    statistics, _ = run(tmp_path, GONE, "", wanted=254)
    assert statistics.idle_errors == 1
    assert [each.faults for each in statistics.partitions] == [0, 0]
