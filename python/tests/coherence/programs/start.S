// SPDX-License-Identifier: Apache-2.0
// First instructions at EL2 with caches and translation off: nothing of the image stays in caches.
// A defect is left out maintenance, chosen by its macro.
    .section .head, "ax"
    .global _start
_start:
    adrp    x0, image_begin
#if defined(DEFECT_tables_not_invalidated)
    adrp    x1, tables_begin
#elif defined(DEFECT_bss_not_invalidated)
    adrp    x1, bss_begin
#elif defined(DEFECT_stack_not_invalidated)
    adrp    x1, stacks_begin
#else
    adrp    x1, image_end
#endif
1:  dc      civac, x0
    add     x0, x0, #64
    cmp     x0, x1
    b.lo    1b
    dsb     sy
    adrp    x0, stacks_begin
    add     x0, x0, #0x1000
    mov     sp, x0
    adrp    x0, bss_begin
    adrp    x1, stacks_begin
2:  stp     xzr, xzr, [x0], #16
    cmp     x0, x1
    b.lo    2b
    bl      program
    mov     x0, #8                  // PSCI SYSTEM_OFF
    movk    x0, #0x8400, lsl #16
    smc     #0
    b       .

    .global second_start
second_start:                       // x0: what it is given
    adrp    x1, stacks_begin
    add     x1, x1, #0x2000
    mov     sp, x1
    bl      second_core
    b       .

    .balign 2048
    .global el2_vectors
el2_vectors:                        // from a guest at EL1: skip what was trapped; an HVC returns
    .fill   0x400, 1, 0
    stp     x0, x1, [sp, #-16]!
    mrs     x0, esr_el2
    lsr     x0, x0, #26
    cmp     x0, #0x16               // HVC: back to who entered the guest
    b.eq    3f
    mrs     x0, elr_el2
    add     x0, x0, #4
    msr     elr_el2, x0
    ldp     x0, x1, [sp], #16
    eret
3:  add     sp, sp, #16
    ldp     x29, x30, [sp], #16
    ldp     x19, x20, [sp], #16
    ret

    .global run_guest
run_guest:                          // x0: entry, x1: its stack
    stp     x19, x20, [sp, #-16]!
    stp     x29, x30, [sp, #-16]!
    msr     elr_el2, x0
    msr     sp_el1, x1
    mov     x2, #0x3c5
    msr     spsr_el2, x2
    adrp    x2, el2_vectors
    add     x2, x2, :lo12:el2_vectors
    msr     vbar_el2, x2
    isb
    eret
