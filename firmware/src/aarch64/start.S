// SPDX-License-Identifier: Apache-2.0
// First instructions: leave EL3 or EL2 for EL1, relocate, clear memory, call firmware_main.
    .section .head, "ax"
    .global _start
_start:                         // also the 64 byte header of an arm64 Linux Image
    b       begin
    .word   0
    .quad   0                   // to be loaded at the start of memory
    .quad   image_end - _start
    .quad   0xa                 // little endian, 4 KiB pages, anywhere in memory
    .quad   0, 0, 0
    .ascii  "ARM\x64"
    .word   0

    .text
begin:
    mrs     x0, mpidr_el1
    tst     x0, #0xff
    b.ne    park                // only the first core measures
    mrs     x19, CurrentEL
    lsr     x19, x19, #2        // handed to firmware_main
    mov     x1, #0x3c5          // EL1 with its own stack, all masked
    cmp     x19, #3
    b.eq    from_el3
    cmp     x19, #2
    b.eq    from_el2
    b       at_el1

    .macro  reset_el1           // UNKNOWN after a reset, or a boot loader's
    movz    x0, #0x0800
    movk    x0, #0x30d0, lsl #16
    msr     sctlr_el1, x0       // RES1; translation and caches off
    .endm

from_el3:                       // to secure EL1, whose interrupts are group 0: GICv2's reset state
    mov     x0, #0x430          // RES1; lower levels are AArch64; no interrupt is routed to EL3
    msr     scr_el3, x0
    msr     cptr_el3, xzr
    mrs     x0, s3_1_c15_c2_1   // CPUECTLR_EL1 of a Cortex-A53
    orr     x0, x0, #(1 << 6)   // SMPEN: coherent with others, before any cache is on
    msr     s3_1_c15_c2_1, x0
    reset_el1
    msr     spsr_el3, x1
    adr     x0, at_el1
    msr     elr_el3, x0
    eret

from_el2:
    adr     x0, _start          // what a boot loader has cached of us, and may write back later
    adrp    x2, image_end
    add     x2, x2, :lo12:image_end
1:  dc      civac, x0
    add     x0, x0, #64
    cmp     x0, x2
    b.lo    1b
    dsb     sy
    adr     x30, at_el1
    .global leave_el2
leave_el2:                      // x1: what PSTATE becomes at EL1, where the caller goes on
    mov     x0, #3              // EL1 may use the counters
    msr     cnthctl_el2, x0
    msr     cntvoff_el2, xzr
    mov     x0, #0x80000000     // EL1 is AArch64
    msr     hcr_el2, x0
    mov     x0, #0x33ff
    msr     cptr_el2, x0
    msr     hstr_el2, xzr       // nothing of EL1 and EL0 traps
    mrs     x0, pmcr_el0
    ubfx    x0, x0, #11, #5     // MDCR_EL2.HPMN: EL1 has all event counters
    msr     mdcr_el2, x0
    reset_el1
    ic      iallu
    dsb     sy
    isb
    msr     spsr_el2, x1
    msr     elr_el2, x30
    eret

at_el1:
    adrp    x0, stack_top
    add     x0, x0, :lo12:stack_top
    mov     sp, x0
    adrp    x0, vectors
    add     x0, x0, :lo12:vectors
    msr     vbar_el1, x0
    isb

    adrp    x0, relocations_start   // only in images linked at 0, all R_AARCH64_RELATIVE
    add     x0, x0, :lo12:relocations_start
    adrp    x1, relocations_end
    add     x1, x1, :lo12:relocations_end
    adr     x2, _start          // where we are
1:  cmp     x0, x1
    b.hs    2f
    ldr     x3, [x0]            // place
    ldr     x4, [x0, #16]       // value
    add     x4, x4, x2
    str     x4, [x3, x2]
    add     x0, x0, #24
    b       1b

2:  adrp    x0, bss_start
    add     x0, x0, :lo12:bss_start
    adrp    x1, bss_end
    add     x1, x1, :lo12:bss_end
3:  cmp     x0, x1
    b.hs    4f
    str     xzr, [x0], #8
    b       3b

4:  mov     w0, w19
    bl      firmware_main
park:
    wfi
    b       park
