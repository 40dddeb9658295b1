// SPDX-License-Identifier: Apache-2.0
// A program for QEMU's board virt, or with XEN for a guest there, whose way from the vector to the
// first action of its handler, isr, is thirteen instructions: a branch, ten that save registers, a
// call, and reading the counter. Prints every latency in ticks. With WFI it sleeps in between.
    .equ SAMPLES, 20
    .equ PERIOD, 0x4000
#ifdef XEN
    .equ GICD, 0x03001000
    .equ GICC, 0x03002000
    .equ UART, 0x22000000
#else
    .equ GICD, 0x08000000
    .equ GICC, 0x08010000
    .equ UART, 0x09000000
#endif

    .macro function name
    .global \name
    .type \name, %function
\name:
    .endm

    .section .text, "ax"
#ifdef XEN  // header of an arm64 Image, as Xen loads it
    b _start
    .word 0
    .quad 0, image_size, 2, 0, 0, 0
    .ascii "ARM\x64"
    .word 0
#endif
function _start
    ldr x0, =stack_top
    mov sp, x0
    ldr x0, =vectors
    msr vbar_el1, x0
    ldr x0, =GICD
    mov w1, #1
    str w1, [x0]
    mov w1, #(1 << 27)
    str w1, [x0, #0x100]
    ldr x0, =GICC
    mov w1, #0xff
    str w1, [x0, #4]
    mov w1, #1
    str w1, [x0]
    mov x20, #SAMPLES
    ldr x21, =latencies
    mrs x22, cntvct_el0
    add x22, x22, #PERIOD
    msr cntv_cval_el0, x22
    mov x0, #1
    msr cntv_ctl_el0, x0
    isb
    msr daifclr, #2
    b wait
    .size _start, . - _start

function wait
1:
#ifdef WFI
    wfi
#endif
    cbnz x20, 1b
    b report
    .size wait, . - wait

function isr
    mrs x0, cntvct_el0
    ldr x2, =GICC
    ldr w3, [x2, #0xc]
    cbz x20, 1f             // go on, so that a core that waits wakes up, but note nothing
    sub x1, x0, x22
    str x1, [x21], #8
    sub x20, x20, #1
1:  add x22, x22, #PERIOD
    msr cntv_cval_el0, x22
    mov x4, #1
    msr cntv_ctl_el0, x4    // Xen masks the timer when it fires
    isb
    str w3, [x2, #0x10]
    ret
    .size isr, . - isr

function irq_entry
    stp x0, x1, [sp, #-16]!
    stp x2, x3, [sp, #-16]!
    stp x4, x5, [sp, #-16]!
    stp x6, x7, [sp, #-16]!
    stp x8, x9, [sp, #-16]!
    stp x10, x11, [sp, #-16]!
    stp x12, x13, [sp, #-16]!
    stp x14, x15, [sp, #-16]!
    stp x16, x17, [sp, #-16]!
    stp x18, x30, [sp, #-16]!
    bl isr
    ldp x18, x30, [sp], #16
    ldp x16, x17, [sp], #16
    ldp x14, x15, [sp], #16
    ldp x12, x13, [sp], #16
    ldp x10, x11, [sp], #16
    ldp x8, x9, [sp], #16
    ldp x6, x7, [sp], #16
    ldp x4, x5, [sp], #16
    ldp x2, x3, [sp], #16
    ldp x0, x1, [sp], #16
    eret
    .size irq_entry, . - irq_entry

function report
    msr daifset, #2
    ldr x0, =latencies
    ldr x1, =UART
    mov x2, #SAMPLES
1:  ldr x3, [x0], #8
    mov x4, #60
2:  lsr x5, x3, x4
    and x5, x5, #15
    cmp x5, #10
    add x6, x5, #48
    add x7, x5, #87
    csel x5, x6, x7, lo
    str w5, [x1]
    subs x4, x4, #4
    b.pl 2b
    mov w5, #10
    str w5, [x1]
    sub x2, x2, #1
    cbnz x2, 1b
    ldr x0, =0x84000008
    hvc #0
    b .
    .size report, . - report
    .ltorg

    .balign 2048
function vectors
    .skip 0x280
    b irq_entry
    .balign 2048
    .size vectors, . - vectors

    .bss
latencies: .skip 8 * SAMPLES
    .balign 16
    .skip 4096
stack_top:
