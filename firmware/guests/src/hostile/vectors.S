// SPDX-License-Identifier: Apache-2.0
// Exception vectors that let an attacker go on: a failed instruction is stepped over, a failed jump
// returns to its caller. They run on a stack of their own (SP_EL1, attacks have SP_EL0).
    .macro  entry target
    .balign 0x80
    b       \target
    .endm

    .section .vectors, "ax"
    .balign 0x800
    .global hostile_vectors
hostile_vectors:
    .rept 2                     // from EL1, with either stack pointer
    entry   step_over
    entry   interrupt_vector    // of the firmware
    entry   interrupt_vector
    entry   ignore_error
    .endr
    .rept 2                     // from EL0, either instruction set
    entry   leave_el0
    entry   leave_el0
    entry   leave_el0
    entry   leave_el0
    .endr

    .text
step_over:
    stp     x0, x1, [sp, #-16]!
    adr     x0, exceptions_seen
    ldr     x1, [x0]
    add     x1, x1, #1
    str     x1, [x0]
    mrs     x0, spsr_el1
    mov     x1, #(3 << 20)      // neither illegal state nor single step
    bic     x0, x0, x1
    msr     spsr_el1, x0
    mrs     x0, esr_el1
    lsr     x0, x0, #26
    cmp     x0, #0x15           // SVC: ELR is behind it
    b.eq    2f
    cmp     x0, #0x21           // instruction abort
    mov     x1, #0x22           // misaligned program counter
    ccmp    x0, x1, #4, ne
    ccmp    x0, #0x0e, #4, ne   // illegal execution state
    b.eq    1f
    mrs     x0, elr_el1
    add     x0, x0, #4
    msr     elr_el1, x0
    b       2f
1:  msr     elr_el1, x30
2:  ldp     x0, x1, [sp], #16
    eret

ignore_error:
    eret

leave_el0:                      // as if the instruction that went there had done nothing
    mov     x0, #0x3c4          // EL1 with SP_EL0, all masked
    msr     spsr_el1, x0
    adr     x0, generated_end
    msr     elr_el1, x0
    eret

    .bss
    .balign 8
    .global exceptions_seen
exceptions_seen:
    .skip   8
