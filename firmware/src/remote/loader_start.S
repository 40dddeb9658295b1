// SPDX-License-Identifier: Apache-2.0
// Ways into the resident loader: the start of the core, the end of a program, and its exceptions.
    .syntax unified
    .arm
    .section .head, "ax"
    .global _start
_start:
    mrc     p15, 0, r0, c0, c0, 5   // MPIDR
    tst     r0, #3                  // QEMU counts the four A53 before
1:  wfine                           // only the first core serves
    bne     1b
    mov     r0, #0
    mov     r1, #0
    ldr     r2, =loader_begin
    b       enter

    .global loader_return
loader_return:
    ldr     r2, =loader_ended
enter:                              // whatever a program left behind: interrupts off, own stack
    cpsid   if, #0x13
    ldr     sp, =stack_top
    bx      r2

    .macro  fault number, back
    sub     r1, lr, #\back          // where it happened
    mov     r0, #\number
    ldr     r2, =loader_crashed
    b       enter
    .endm

undefined:
    fault   1, 4
supervisor_call:
    fault   2, 4
prefetch_abort:
    fault   3, 4
data_abort:
    fault   4, 8
interrupt:
    fault   6, 4
fast_interrupt:
    fault   7, 4

    .global loader_vectors, loader_vectors_end
loader_vectors:                     // copied to the high vectors: too far for a branch
    ldr     pc, [pc, #24]
    ldr     pc, [pc, #24]
    ldr     pc, [pc, #24]
    ldr     pc, [pc, #24]
    ldr     pc, [pc, #24]
    ldr     pc, [pc, #24]
    ldr     pc, [pc, #24]
    ldr     pc, [pc, #24]
    .word   _start, undefined, supervisor_call, prefetch_abort
    .word   data_abort, _start, interrupt, fast_interrupt
loader_vectors_end:
