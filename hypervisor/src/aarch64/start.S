// SPDX-License-Identifier: Apache-2.0
// First instructions of every CPU. Whoever started us, a boot loader or firmware: at EL2, at the
// address that we are linked to, caches and translation on or off.
    .equ    image_size, 0x200000    // the configuration lies behind
    .equ    board_at, 112           // Configuration::board

    .macro  address register, symbol
    adrp    \register, \symbol
    add     \register, \register, :lo12:\symbol
    .endm

    .macro  stack_of cpu            // a guard page below each, see image.ld
    address x1, stacks
    add     x2, \cpu, #1
    add     x1, x1, x2, lsl #14
    mov     sp, x1
    .endm

    .macro  processor_off           // translation and data caches of EL2
    movz    x0, #0x0830
    movk    x0, #0x30C5, lsl #16    // RES1
    msr     sctlr_el2, x0
    isb
    tlbi    alle2
    ic      iallu
    dsb     sy
    isb
    .endm

    .section .head, "ax"
    .global _start
_start:                             // also the header of an arm64 Linux Image, for booti
    b       begin
    .word   0
    .quad   0                       // where it was loaded, if that is a multiple of 2 MiB
    .quad   image_end - _start      // `latenz hypervisor build` writes how much there is in all
    .quad   0xa                     // little endian, 4 KiB pages, anywhere in memory
    .quad   0, 0, 0
    .ascii  "ARM\x64"
    .word   0

begin:
    mrs     x19, mpidr_el1
    and     x19, x19, #0xff
    cbnz    x19, stop               // others are started by start_secondary
    mrs     x1, CurrentEL
    adr     x20, wrong_level
    cmp     x1, #(2 << 2)
    b.ne    refuse
    adr     x1, _start
    ldr     x2, linked_to
    adr     x20, wrong_place
    cmp     x1, x2
    b.ne    refuse
    msr     daifset, #0xf
    bl      clean_own               // what a boot loader has written may be in its caches only
    processor_off
    bl      clean_own               // what was fetched again meanwhile
    address x0, vectors
    msr     vbar_el2, x0
    msr     tpidr_el2, xzr          // no Processor yet
    address x2, bss_start
    address x3, bss_end
1:  stp     xzr, xzr, [x2], #16
    cmp     x2, x3
    b.lo    1b
    stack_of x19
    bl      hypervisor_main
stop:
    wfi
    b       stop

clean_own:                          // the image and the configuration; as many times as one likes
    adr     x0, _start
    add     x1, x0, #image_size
    add     x1, x1, #0x10000
1:  dc      civac, x0
    add     x0, x0, #64
    cmp     x0, x1
    b.lo    1b
    dsb     sy
    ret

// Says why nothing can begin, at any level and address, by the UART of the configuration's board.
refuse:
    adr     x0, _start
    add     x0, x0, #image_size
    ldr     w0, [x0, #board_at]
    mov     x1, #0x09000000         // virt: a PL011, with its flags and its bit for a full queue
    mov     x2, #0x18
    mov     w3, #(1 << 5)
    mov     x4, #0
    mov     w5, #3                  // virt with GICv3
    cmp     w0, #1
    ccmp    w0, w5, #4, ne
    b.eq    1f
    mov     x1, #0xff000000         // zcu102: a Cadence UART
    mov     x2, #0x2c
    mov     w3, #(1 << 4)
    mov     x4, #0x30
    cmp     w0, #2
    b.ne    stop                    // neither: nobody can be told
1:  ldrb    w5, [x20], #1
    cbz     w5, stop
2:  ldr     w6, [x1, x2]
    tst     w6, w3
    b.ne    2b
    str     w5, [x1, x4]
    b       1b

    .balign 8
linked_to:
    .quad   image_begin
wrong_level:
    .asciz  "\r\nlatenz hypervisor: not entered at EL2\r\n"
wrong_place:
    .asciz  "\r\nlatenz hypervisor: not loaded at 0x40200000\r\n"

    .text
    .global clean_memory            // x0: begin, a line's first byte; x1: end
clean_memory:                       // to memory: with translation off by physical addresses
    mrs     x2, sctlr_el2
    bic     x3, x2, #1
    dsb     sy
    msr     sctlr_el2, x3
    isb
1:  dc      civac, x0
    add     x0, x0, #64
    cmp     x0, x1
    b.lo    1b
    dsb     sy
    msr     sctlr_el2, x2
    isb
    ret

    .global start_secondary
start_secondary:                    // x0: number of the CPU
    mov     x19, x0
    msr     daifset, #0xf
    processor_off
    address x0, vectors
    msr     vbar_el2, x0
    msr     tpidr_el2, xzr
    stack_of x19
    mov     x0, x19
    bl      secondary_main
    b       stop
