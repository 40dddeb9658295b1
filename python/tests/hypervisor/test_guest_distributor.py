"""What a guest disables at its distributor is taken back, though it was signalled already."""

import pytest
from small_guests import booted_small

pytestmark = pytest.mark.boots

NOTHING, TIMER = 1023, 27
BEGIN = """
    .macro  look register           // what the guest would acknowledge now
    dsb     sy
    ldr     \\register, [x1, #0x18]
    .endm
    movz    x1, #0x0801, lsl #16    // its interface
    movz    x2, #0x0800, lsl #16    // its distributor
    mov     w0, #1
    str     w0, [x2]
    mov     w0, #(1 << 27)
    str     w0, [x2, #0x100]
    mov     w0, #0xF0
    str     w0, [x1, #4]
    mov     w0, #1
    str     w0, [x1]
    msr     cntv_cval_el0, xzr
    msr     cntv_ctl_el0, x0
    isb
1:  look    w5                      // until its timer's interrupt is there
    cmp     w5, #27
    b.ne    1b
"""
END = """
    look    w7
    msr     cntv_ctl_el0, xzr       // nothing pends while it waits: an emulator would never rest
    ldr     w0, [x1, #0x0C]
    str     w0, [x1, #0x10]
    orr     x5, x5, x6, lsl #16
    orr     x5, x5, x7, lsl #32
    report  x5
"""


def seen(folder, text):
    """Boot the guest; return what it saw in turn."""
    small = booted_small(folder, BEGIN + text + END)
    assert (small.state, small.faults) == ("running", 0)
    return [small.progress >> shift & 0xFFFF for shift in (0, 16, 32)]


@pytest.mark.parametrize(
    ("off", "on"),
    [
        ("mov w0, #(1 << 27)\n str w0, [x2, #0x180]", "mov w0, #(1 << 27)\n str w0, [x2, #0x100]"),
        ("str wzr, [x2]", "mov w0, #1\n str w0, [x2]"),
    ],
    ids=["the interrupt", "the distributor"],
)
def test_what_is_switched_off_is_taken_back_and_comes_again(tmp_path, off, on):
    assert seen(tmp_path, f"{off}\n look w6\n {on}\n") == [TIMER, NOTHING, TIMER]


def test_one_that_is_active_stays_so(tmp_path):
    text = """
    ldr     w9, [x1, #0x0C]         // acknowledged
    mov     w0, #(1 << 27)
    str     w0, [x2, #0x180]
    ldr     w6, [x2, #0x300]        // active
    lsr     w6, w6, #27
    str     w9, [x1, #0x10]
    """
    assert seen(tmp_path, text) == [TIMER, 1, NOTHING]


def test_what_the_guest_does_not_own_is_not_there(tmp_path):
    text = """
    mov     w0, #-1
    str     w0, [x2, #0x10C]        // enables and pends 96 to 127
    str     w0, [x2, #0x20C]
    ldr     w6, [x2, #0x10C]
    ldr     w7, [x2, #0x20C]
    orr     w6, w6, w7
    msr     cntv_ctl_el0, xzr
    ldr     w0, [x1, #0x0C]
    str     w0, [x1, #0x10]
    """
    assert seen(tmp_path, text) == [TIMER, 0, NOTHING]
