"""32-bit programs at EL0 of a 64-bit guest: what they may use works, what traps is stepped over."""

from small_guests import booted_small

BEFORE = """
    adr     x0, vectors
    msr     vbar_el1, x0
    mov     x0, #{state}
    msr     spsr_el1, x0
    adr     x0, program
    msr     elr_el1, x0
    eret
    .balign 2048
vectors:
    .rept   16
    .balign 128
    b       taken
    .endr
taken:                              // class of the exception, how far the program came, its r2
    mrs     x0, esr_el1
    lsr     x0, x0, #26
    mrs     x1, elr_el1
    adr     x4, program
    sub     x1, x1, x4
    orr     x0, x0, x1, lsl #8
    orr     x0, x0, x2, lsl #32
    report  x0
    .balign 64
program:
"""
ARM_STATE, THUMB_STATE = 0x1D0, 0x1F0
SUPERVISOR_CALL = 0x11


def found(folder, state, words):
    small = booted_small(folder, BEFORE.format(state=state) + words)
    assert (small.state, small.faults) == ("running", 0)
    told = small.progress
    return told & 0xFF, told >> 8 & 0xFFFFFF, told >> 32


def test_the_thread_pointer_can_be_read(tmp_path):
    words = "    .word 0xEE1D0F70, 0xEF000000  // mrc p15, 0, r0, c13, c0, 3; svc #0"
    assert found(tmp_path, ARM_STATE, words) == (SUPERVISOR_CALL, 8, 0)


def test_short_instructions_are_stepped_over_by_their_length(tmp_path):
    """Two loads from the console's registers, which are emulated, of two bytes each."""
    halves = """
    .hword  0xF44F, 0x6110          // mov.w r1, #0x900
    .hword  0x0409                  // lsls  r1, r1, #16
    .hword  0x6989                  // ldr   r1, [r1, #0x18]: flags, from the hypervisor
    .hword  0x2207                  // movs  r2, #7
    .hword  0xDF00                  // svc   #0
    """
    assert found(tmp_path, THUMB_STATE, halves) == (SUPERVISOR_CALL, 12, 7)


def test_conditions_of_a_block_go_on_behind_an_emulated_access(tmp_path):
    """With Z clear, of ITE NE the load is executed and the other one is not."""
    halves = """
    .hword  0xF44F, 0x6110          // mov.w r1, #0x900
    .hword  0x0409                  // lsls  r1, r1, #16
    .hword  0x2201                  // movs  r2, #1
    .hword  0xBF14                  // ite   ne
    .hword  0x6989                  // ldrne r1, [r1, #0x18]
    .hword  0x2207                  // moveq r2, #7
    .hword  0xDF00                  // svc   #0
    """
    assert found(tmp_path, THUMB_STATE, halves) == (SUPERVISOR_CALL, 16, 1)
