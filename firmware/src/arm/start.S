// SPDX-License-Identifier: Apache-2.0
// First instructions: leave hypervisor mode, set the stacks, clear memory, call firmware_main.
    .syntax unified
    .arm
    .section .head, "ax"
    .global _start
    .type   _start, %function
_start:
    mrs     r4, cpsr                // its mode tells the level: handed to firmware_main
    and     r4, r4, #0x1f
#if __ARM_ARCH >= 8
    mrc     p15, 0, r0, c0, c0, 5   // MPIDR
    tst     r0, #0xff
    bne     park                    // only the first core measures
    cmp     r4, #0x1a
    bne     at_el1
    mov     r0, #3                  // EL1 may use the counters
    mcr     p15, 4, r0, c14, c1, 0  // CNTHCTL
    mov     r0, #0
    mov     r1, #0
    mcrr    p15, 4, r0, r1, c14     // CNTVOFF
    mov     r0, #0xf                // EL1 may use the interrupt controller's registers
    mcr     p15, 4, r0, c12, c9, 5  // ICC_HSRE
    isb
    mrs     r0, cpsr
    bic     r0, r0, #0x1f
    orr     r0, r0, #0xd3           // supervisor mode, interrupts masked
    msr     spsr_hyp, r0
    adr     r0, at_el1
    msr     elr_hyp, r0
    eret
at_el1:
    mov     r0, #7
    mcr     p15, 0, r0, c12, c12, 5 // ICC_SRE
    isb
    ldr     r0, =vectors
    mcr     p15, 0, r0, c12, c0, 0  // VBAR
#endif
    cps     #0x12                   // each mode has a stack: interrupt,
    ldr     sp, =stack_top
    cps     #0x11                   // fast interrupt,
    ldr     sp, =stack_top - 0x1000
    cps     #0x17                   // abort,
    ldr     sp, =stack_top - 0x1000
    cps     #0x1b                   // undefined instruction;
    ldr     sp, =stack_top - 0x1000
    cps     #0x13                   // supervisor, where the program runs
    ldr     sp, =stack_top - 0x2000

    ldr     r0, =bss_start
    ldr     r1, =bss_end
    mov     r2, #0
1:  cmp     r0, r1
    strlo   r2, [r0], #4
    blo     1b

    cmp     r4, #0x1a
    moveq   r0, #2
    movne   r0, #1
    bl      firmware_main
park:
    wfi
    b       park
