"""Devices whose interrupts are edges: the guest raises and lowers their lines by their masks.

It never makes a device take its interrupt back: by a level it would come without end.
"""

from dataclasses import dataclass

import pytest
from small_guests import assembled

from latenz.errors import BadInput
from latenz.hypervisor.build import build
from latenz.hypervisor.run import boot, ensure_built
from latenz.system import read_system, write_system

pytestmark = pytest.mark.boots

GICV2 = """
    .macro  interrupts_on
    movz    x9, #0x0801, lsl #16
    mov     w0, #0xFF
    str     w0, [x9, #4]            // all priorities
    mov     w0, #1
    str     w0, [x9]
    .endm
    .macro  acknowledge
    ldr     w0, [x9, #0xC]
    .endm
    .macro  end_it
    str     w0, [x9, #0x10]
    .endm
"""
GICV3 = """
    .macro  interrupts_on
    mov     x0, #0xFF
    msr     S3_0_C4_C6_0, x0        // ICC_PMR_EL1
    mov     x0, #1
    msr     S3_0_C12_C12_7, x0      // ICC_IGRPEN1_EL1
    isb
    .endm
    .macro  acknowledge
    mrs     x0, S3_0_C12_C12_0      // ICC_IAR1_EL1
    dsb     sy
    .endm
    .macro  end_it
    msr     S3_0_C12_C12_1, x0      // ICC_EOIR1_EL1
    isb
    .endm
"""
CLOCK = """
    .macro  device_on               // the alarm is due now
    movz    x10, #0x0901, lsl #16
    ldr     w0, [x10]
    str     w0, [x10, #4]
    .endm
    .macro  line    high
    mov     w0, #\\high
    str     w0, [x10, #0x10]
    .endm
"""
UART = """
    .macro  device_on               // its FIFO is empty
    movz    x10, #0xFF01, lsl #16
    .endm
    .macro  line    high
    mov     w0, #8
    .if     \\high
    str     w0, [x10, #0x08]
    .else
    str     w0, [x10, #0x0C]
    .endif
    .endm
"""
COMMON = """
    .macro  poll    ms              // counts in x19 what comes in the time
    mrs     x1, cntfrq_el0
    mov     x2, #1000
    udiv    x1, x1, x2
    mov     x2, #\\ms
    mul     x1, x1, x2
    mrs     x2, cntvct_el0
    add     x1, x1, x2
7:  acknowledge
    and     w3, w0, #0x3FF
    cmp     w3, #{interrupt}
    b.ne    8f
    end_it
    add     x19, x19, #1
8:  mrs     x2, cntvct_el0
    cmp     x2, x1
    b.lo    7b
    .endm
    .macro  edge
    line    0
    line    1
    .endm
    mov     x19, #0
    interrupts_on
    device_on
    movz    x11, #0x0800, lsl #16   // the distributor
    mov     w0, #0x13
    str     w0, [x11]
    mov     w12, #1
    lsl     w12, w12, #({interrupt} % 32)
    mov     w0, #-1                 // asks for edges, whatever it is
    str     w0, [x11, #(0xC00 + {interrupt} / 16 * 4)]
    str     w12, [x11, #(0x100 + {interrupt} / 32 * 4)]
"""
EDGES = """
    line    1
    poll    3
    edge
    poll    3
    str     w12, [x11, #(0x180 + {interrupt} / 32 * 4)]
    edge                            // while it is disabled
    poll    3
    str     w12, [x11, #(0x100 + {interrupt} / 32 * 4)]
    poll    3
    line    0                       // so that nothing is pending for ever
    poll    1
    ldr     w0, [x11, #(0xC00 + {interrupt} / 16 * 4)]
    lsr     w0, w0, #({interrupt} % 16 * 2)
    and     w0, w0, #3
    add     x19, x19, x0, lsl #32
    report  x19
"""
TOO_SOON = """
    line    1
    movz    x0, #0xC600, lsl #16
    movk    x0, #1
    hvc     #0                      // its interrupts may begin
1:  poll    1
    cbz     x19, 1b
    edge
    poll    50
    report  x19
"""
SYSTEM = """
[[slot]]
partition = "driver"
length = "500 us"
[[slot]]
partition = "other"
length = "500 us"
[[source]]
name = "timer"
partition = "other"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "periodic", period = "2 ms" }}
{source}
[[partition]]
name = "driver"
guest = "{guest}"
devices = [{{ physical = {physical:#x}, size = "4 KiB", interrupts = [{interrupt}]{edge} }}]
"""
SOURCE = """
[[source]]
name = "device"
partition = "driver"
top = "5 us"
bottom = "20 us"
arrival = {{ kind = "distances", distances = ["20 ms"] }}
interrupt = {interrupt}
"""


@dataclass(frozen=True)
class Device:
    """How a guest finds a device on a bench, and the interrupt controller."""

    gic: str
    device: str
    physical: int
    interrupt: int


DEVICES = {
    "virt": Device(GICV2, CLOCK, 0x0901_0000, 34),
    "virt-gicv3": Device(GICV3, CLOCK, 0x0901_0000, 34),
    "zcu102": Device(GICV2, UART, 0xFF01_0000, 54),
}


def built_for(folder, bench, program, edge=", edge = true", source="", irqs=15):
    ensure_built()
    own = DEVICES[bench]
    text = own.gic + own.device + (COMMON + program).format(interrupt=own.interrupt)
    path = folder / "system.toml"
    values = {"guest": assembled(folder, text), "physical": own.physical, "edge": edge}
    source = source.format(interrupt=own.interrupt)
    path.write_text(SYSTEM.format(source=source, interrupt=own.interrupt, **values))
    return build(path, "plain", irqs=irqs)


def told(built, bench):
    """Return how many interrupts the guest has counted, and how it found them configured."""
    statistics = boot(built, bench).measured.statistics
    driver = next(each for each in statistics.partitions if each.name == "driver")
    assert (driver.state, driver.faults) == ("running", 0)
    return statistics, driver.progress & 0xFFFF_FFFF, driver.progress >> 32


@pytest.mark.parametrize("bench", DEVICES)
def test_each_edge_comes_once_and_none_is_lost(tmp_path, bench):
    _, count, configured = told(built_for(tmp_path, bench, EDGES), bench)
    assert count == 3, "one of them while the guest had it disabled"
    assert configured & 2, "by edges"


@pytest.mark.parametrize("bench", DEVICES)
def test_a_level_comes_for_as_long_as_it_is_there(tmp_path, bench):
    _, count, configured = told(built_for(tmp_path, bench, EDGES, edge=""), bench)
    assert count > 6
    assert not configured & 2, "though the guest has asked for edges"


@pytest.mark.parametrize("bench", DEVICES)
def test_an_edge_that_comes_too_soon_waits_for_a_slot_of_its_limit(tmp_path, bench):
    statistics, count, _ = told(built_for(tmp_path, bench, TOO_SOON, source=SOURCE, irqs=60), bench)
    device = next(each for each in statistics.sources if each.name == "device")
    assert (device.raised, device.completed, device.masked) == (2, 2, 1)
    assert count == 2


def test_files_keep_how_interrupts_come(tmp_path):
    built = built_for(tmp_path, "virt", EDGES)
    write_system(built.system, tmp_path / "again.toml")
    (device,) = read_system(tmp_path / "again.toml").hosted[0].devices
    assert device.edge


@pytest.mark.parametrize("edge", ['"rising"', '"true"', "1", "[true]"])
def test_anything_else_than_true_or_false_is_refused(tmp_path, edge):
    with pytest.raises(BadInput, match="valid boolean"):
        built_for(tmp_path, "virt", EDGES, edge=f", edge = {edge}")
