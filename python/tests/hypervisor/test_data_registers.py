"""Registers that hold data are each guest's own, and a guest that begins anew finds them empty."""

from small_guests import booted_small

EVERY = "\n".join(f"    \\each {number}" for number in range(32))
VECTORS = f"""
    .macro  every each
{EVERY}
    .endm
    .macro  fill number
    add     x4, x1, #\\number
    dup     v\\number\\().2d, x4
    add     x4, x4, #0x40
    ins     v\\number\\().d[1], x4
    .endm
    .macro  check number
    add     x4, x1, #\\number
    umov    x5, v\\number\\().d[0]
    cmp     x4, x5
    add     x4, x4, #0x40
    umov    x5, v\\number\\().d[1]
    ccmp    x4, x5, #0, eq
    b.ne    found
    .endm
    mov     x0, #3 << 20
    msr     cpacr_el1, x0
    isb
"""
KEEPS = f"""{VECTORS}
    mov     x1, #0xB0000
    every   fill
    mov     x0, #1 << 22
    msr     fpcr, x0
    mrs     x6, cntpct_el0          // for some slots of each
1:  every   check
    mrs     x5, fpcr
    cmp     x5, x0
    b.ne    found
    mrs     x7, cntpct_el0
    sub     x7, x7, x6
    mov     x8, #0x7A0000
    cmp     x7, x8
    b.lo    1b
    report  #1
found:
    report  #2
"""
BEGINS_ANEW = f"""{VECTORS}
    .irp    number, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18, 19, 20, 21, 22, 23
    cbnz    x\\number, found
    .endr
    .irp    number, 24, 25, 26, 27, 28, 29, 30
    cbnz    x\\number, found
    .endr
    .macro  empty number
    umov    x4, v\\number\\().d[0]
    umov    x5, v\\number\\().d[1]
    orr     x4, x4, x5
    cbnz    x4, found
    .endm
    every   empty
    mov     x1, #0xA0000
    every   fill
    mov     x19, x1
    mov     x30, x1
    mov     x6, #0x1000             // whether this life is the second: memory is cleared, a page
    movk    x6, #0x0B00, lsl #16    // of reports is not
    ldr     x7, [x6]
    cbnz    x7, 2f
    mov     x7, #4
    str     x7, [x6]
    movz    w0, #0x0009
    movk    w0, #0x8400, lsl #16    // SYSTEM_RESET
    hvc     #0
2:  report  #1
found:
    report  #2
"""


def test_vector_registers_are_kept_beside_another_guest(tmp_path):
    """The other one's are loaded in between, which are zero."""
    found = booted_small(tmp_path, KEEPS)
    assert (found.state, found.faults, found.progress) == ("running", 0, 1)


def test_a_guest_that_begins_anew_finds_them_empty(tmp_path):
    found = booted_small(tmp_path, BEGINS_ANEW)
    assert (found.state, found.restarts, found.progress) == ("running", 1, 1)
