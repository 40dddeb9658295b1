// SPDX-License-Identifier: Apache-2.0
// Exception vectors: interrupts go to interrupt_handler, all else is a fault.
    .syntax unified
    .arm
    .section .vectors, "ax"
    .balign 32
    .global vectors
vectors:
    b       .                       // reset
    b       undefined
    b       supervisor_call
    b       prefetch_abort
    b       data_abort
    b       .                       // not used
    b       interrupt
    b       fast_interrupt

    .global interrupt_vector
interrupt_vector:
interrupt:                          // every register a C++ function may change
    sub     lr, lr, #4
    push    {r0-r3, r12, lr}
    ldr     r0, =interrupt_handler
    ldr     r0, [r0]
    blx     r0
    ldm     sp!, {r0-r3, r12, pc}^  // and back to the mode before

    .macro  fault number, back
    sub     r1, lr, #\back          // where it happened
    mov     r0, #\number
    ldr     r2, =on_exception
    bx      r2
    .endm

undefined:
    fault   1, 4
supervisor_call:
    fault   2, 4
prefetch_abort:
    fault   3, 4
data_abort:
    fault   4, 8
fast_interrupt:
    fault   7, 4

    .global exception_entries       // for cores whose table is filled by VectorTable
    .balign 4
exception_entries:
    .word   vectors, undefined, supervisor_call, prefetch_abort
    .word   data_abort, vectors, interrupt, fast_interrupt
