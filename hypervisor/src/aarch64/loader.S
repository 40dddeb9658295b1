// SPDX-License-Identifier: Apache-2.0
// What a guest executes before its own first instruction, as itself and in its own time: clears its
// memory and registers, copies its images, jumps to them. One page, mapped read-only for every guest. Position
// independent; addresses of the guest machine (guest_machine.hpp).
    .section .loader, "ax"
    .balign 4096
    .global guest_loader
guest_loader:
    movz    x20, #0x0B00, lsl #16   // GuestMachine::information
    ldp     x1, x2, [x20, #24]      // memory_begin, memory_size
0:  dc      civac, x1               // nothing cached by an earlier life may be written back later
    add     x3, x1, #64
    dc      civac, x3
    add     x3, x1, #128
    dc      civac, x3
    add     x3, x1, #192
    dc      civac, x3
    add     x1, x1, #256
    subs    x2, x2, #256
    b.hi    0b
    dsb     sy
    ldp     x1, x2, [x20, #24]
1:  stp     xzr, xzr, [x1]
    stp     xzr, xzr, [x1, #16]
    stp     xzr, xzr, [x1, #32]
    stp     xzr, xzr, [x1, #48]
    stp     xzr, xzr, [x1, #64]
    stp     xzr, xzr, [x1, #80]
    stp     xzr, xzr, [x1, #96]
    stp     xzr, xzr, [x1, #112]
    add     x1, x1, #128
    subs    x2, x2, #128
    b.hi    1b
    ldr     x3, [x20, #56]          // copies
    add     x4, x20, #64
2:  cbz     x3, 4f
    ldp     x5, x6, [x4], #16       // from, to
    ldr     x7, [x4], #8            // size
3:  ldp     x8, x9, [x5]
    ldp     x10, x11, [x5, #16]
    ldp     x12, x13, [x5, #32]
    ldp     x14, x15, [x5, #48]
    stp     x8, x9, [x6]
    stp     x10, x11, [x6, #16]
    stp     x12, x13, [x6, #32]
    stp     x14, x15, [x6, #48]
    add     x5, x5, #64
    add     x6, x6, #64
    subs    x7, x7, #64
    b.ne    3b
    sub     x3, x3, #1
    b       2b
4:  dsb     sy
    ic      iallu
    dsb     sy
    isb
    mov     x1, #(3 << 20)          // CPACR_EL1: floating point, for as long as it takes
    msr     cpacr_el1, x1
    isb
    msr     fpcr, xzr
    msr     fpsr, xzr
    .irp    number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movi    v\number\().2d, #0
    .endr
    .irp    number, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31
    movi    v\number\().2d, #0
    .endr
    msr     cpacr_el1, xzr
    isb
    ldp     x16, x0, [x20, #40]     // entry, argument
    .irp    number, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23
    mov     x\number, xzr
    .endr
    .irp    number, 24, 25, 26, 27, 28, 29, 30
    mov     x\number, xzr
    .endr
    br      x16

    .balign 2048
    .global guest_idle
guest_idle:                         // what runs where nothing is to run
    hvc     #0xca3                  // time for the console; x0: whether it could use more
    cbnz    x0, guest_idle
    wfi
    b       guest_idle

    .balign 1024
    .global guest_calibration
guest_calibration:                  // how long a trap takes that does nothing
    mrs     x1, cntpct_el0
    hvc     #0xca1
    mrs     x2, cntpct_el0
    hvc     #0xca2
    b       guest_calibration
    .balign 4096
