// SPDX-License-Identifier: Apache-2.0
// First instructions of the core that makes load; the first core's exception vectors are its own.
    .text
    .global second_core
second_core:
    mrs     x0, CurrentEL
    cmp     x0, #(2 << 2)       // as the first one's caller of PSCI was entered
    b.ne    1f
    mov     x1, #0x3c5          // EL1 with its own stack, all masked
    bl      leave_el2
1:  adrp    x0, second_stack_top
    add     x0, x0, :lo12:second_stack_top
    mov     sp, x0
    adrp    x0, vectors
    add     x0, x0, :lo12:vectors
    msr     vbar_el1, x0
    isb
    b       second_core_main

    .section .noinit, "aw", %nobits
    .balign 16
    .skip   0x1000
second_stack_top:
