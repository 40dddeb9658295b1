// SPDX-License-Identifier: Apache-2.0
// Exception vectors of EL1: interrupts go to interrupt_handler, all else is a fault.
    .macro  fault number
    .balign 0x80
    mov     x0, #\number
    b       on_exception
    .endm

    .section .vectors, "ax"
    .balign 0x800
    .global vectors
vectors:
    fault   0
    fault   1
    fault   2
    fault   3
    fault   4                   // synchronous

    .balign 0x80                // interrupt: every register a C++ function may change
    .global interrupt_vector
interrupt_vector:
    stp     x0, x1, [sp, #-160]!
    stp     x2, x3, [sp, #16]
    stp     x4, x5, [sp, #32]
    stp     x6, x7, [sp, #48]
    stp     x8, x9, [sp, #64]
    stp     x10, x11, [sp, #80]
    stp     x12, x13, [sp, #96]
    stp     x14, x15, [sp, #112]
    stp     x16, x17, [sp, #128]
    stp     x18, x30, [sp, #144]
    adrp    x0, interrupt_handler
    ldr     x0, [x0, :lo12:interrupt_handler]
    blr     x0
    ldp     x2, x3, [sp, #16]
    ldp     x4, x5, [sp, #32]
    ldp     x6, x7, [sp, #48]
    ldp     x8, x9, [sp, #64]
    ldp     x10, x11, [sp, #80]
    ldp     x12, x13, [sp, #96]
    ldp     x14, x15, [sp, #112]
    ldp     x16, x17, [sp, #128]
    ldp     x18, x30, [sp, #144]
    ldp     x0, x1, [sp], #160
    eret

    fault   6
    fault   7
    fault   8
    fault   9
    fault   10
    fault   11
    fault   12
    fault   13
    fault   14
    fault   15
