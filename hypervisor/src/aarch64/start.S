// SPDX-License-Identifier: Apache-2.0
// First instructions of every CPU, at EL2 with caches and translation off.
    .section .head, "ax"
    .global _start
_start:
    mrs     x1, mpidr_el1
    and     x1, x1, #0xff
    cbnz    x1, stop                // others are started by start_secondary
    adrp    x0, vectors
    add     x0, x0, :lo12:vectors
    msr     vbar_el2, x0
    msr     daifset, #0xf
    adrp    x2, bss_start
    add     x2, x2, :lo12:bss_start
    adrp    x3, bss_end
    add     x3, x3, :lo12:bss_end
1:  stp     xzr, xzr, [x2], #16
    cmp     x2, x3
    b.lo    1b
    adrp    x0, stacks
    add     x0, x0, :lo12:stacks
    add     x0, x0, #0x2000
    mov     sp, x0
    bl      hypervisor_main
stop:
    wfi
    b       stop

    .text
    .global start_secondary
start_secondary:                    // x0: number of the CPU
    adrp    x1, vectors
    add     x1, x1, :lo12:vectors
    msr     vbar_el2, x1
    msr     daifset, #0xf
    adrp    x1, stacks
    add     x1, x1, :lo12:stacks
    add     x2, x0, #1
    add     x1, x1, x2, lsl #13     // 8 KiB each
    mov     sp, x1
    bl      secondary_main
    b       stop
