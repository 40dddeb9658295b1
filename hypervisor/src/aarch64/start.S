// SPDX-License-Identifier: Apache-2.0
// First instructions of every CPU. Whoever started us, a boot loader or firmware: at EL2, caches and
// translation on or off; at the address that we are linked to, or as a whole Image at another one.
    .equ    image_size, 0x200000    // the configuration lies behind
    .equ    board_at, 80            // Configuration::board

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
    msr     daifset, #0xf
    adr     x21, _start
    ldr     x23, linked_to
    add     x22, x21, #image_size
    add     x22, x22, #0x10000      // the image and the configuration
    cmp     x21, x23
    b.ne    move
    bl      clean                   // what a boot loader has written may be in its caches only
    processor_off
    bl      clean                   // what was fetched again meanwhile
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

clean:                              // from x21 to x22; as many times as one likes
    mov     x0, x21
1:  dc      civac, x0
    add     x0, x0, #64
    cmp     x0, x22
    b.lo    1b
    dsb     sy
    ret

// Firmware puts an Image where it likes: moves all of it to where it belongs, unless the two
// overlap, or this is no Image but what an ELF file begins with.
move:
    adr     x20, wrong_place
    ldr     x24, [x21, #16]         // size, by `latenz hypervisor build`
    mov     x0, #image_size
    cmp     x24, x0
    b.ls    refuse
    subs    x0, x21, x23
    cneg    x0, x0, lo
    cmp     x0, x24
    b.lo    refuse
    add     x22, x21, x24
    bl      clean
    processor_off
    bl      clean
    mov     x1, x21
    mov     x21, x23
    add     x22, x23, x24
    bl      clean                   // a line that is written back later would spoil what is moved
2:  ldp     x2, x3, [x1], #16
    stp     x2, x3, [x23], #16
    cmp     x23, x22
    b.lo    2b
    dsb     sy
    ic      iallu
    dsb     sy
    isb
    br      x21

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
    movz    x1, #0x1000             // raspi4b: a PL011, too
    movk    x1, #0xfe20, lsl #16
    cmp     w0, #4
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

    .global write_physical          // x0: an address that need not be mapped; w1: the word
write_physical:
    mrs     x2, sctlr_el2
    bic     x3, x2, #1
    dsb     sy
    msr     sctlr_el2, x3
    isb
    str     w1, [x0]
    dsb     sy
    msr     sctlr_el2, x2
    isb
    ret

    .global start_secondary
start_secondary:
    mrs     x19, mpidr_el1
    and     x19, x19, #0xff
    msr     daifset, #0xf
    processor_off
    address x0, vectors
    msr     vbar_el2, x0
    msr     tpidr_el2, xzr
    stack_of x19
    mov     x0, x19
    bl      secondary_main
    b       stop
