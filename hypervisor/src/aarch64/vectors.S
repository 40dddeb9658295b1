// SPDX-License-Identifier: Apache-2.0
// Exception vectors of EL2. While a guest runs, SP_EL2 points behind the registers of its Vcpu: they
// are saved where they stay, and a context switch only picks another Vcpu to resume.
    .macro  save_guest handler
    stp     x0, x1, [sp, #-256]!
    mrs     x0, cntpct_el0          // when the hypervisor was entered
    stp     x2, x3, [sp, #16]
    stp     x4, x5, [sp, #32]
    stp     x6, x7, [sp, #48]
    stp     x8, x9, [sp, #64]
    stp     x10, x11, [sp, #80]
    stp     x12, x13, [sp, #96]
    stp     x14, x15, [sp, #112]
    stp     x16, x17, [sp, #128]
    stp     x18, x19, [sp, #144]
    stp     x20, x21, [sp, #160]
    stp     x22, x23, [sp, #176]
    stp     x24, x25, [sp, #192]
    stp     x26, x27, [sp, #208]
    b       \handler
    .endm

    .macro  call_handler function
    stp     x28, x29, [sp, #224]
    str     x30, [sp, #240]
    mrs     x1, tpidr_el2           // Processor, which begins with the end of its stack
    ldr     x2, [x1]
    mov     sp, x2
    bl      \function
    .endm

    .macro  fault number
    .balign 0x80
    mov     x0, #\number
    b       own_fault
    .endm

    .section .vectors, "ax"
    .balign 0x800
    .global vectors
vectors:
    fault   0
    fault   1
    fault   2
    fault   3
    fault   4
    fault   5
    fault   6
    .balign 0x80
    b       error_taken
    .balign 0x80
    save_guest  guest_trap          // synchronous, from AArch64
    .balign 0x80
    save_guest  interrupt
    .balign 0x80
    save_guest  interrupt           // FIQ: not used, answers spurious
    .balign 0x80
    save_guest  guest_error         // SError
    .balign 0x80
    save_guest  guest_trap          // from AArch32
    .balign 0x80
    save_guest  interrupt
    .balign 0x80
    save_guest  interrupt
    .balign 0x80
    save_guest  guest_error

    .text
guest_trap:
    call_handler on_guest_trap
    b       resume_guest
guest_error:
    call_handler on_guest_error
    b       resume_guest
interrupt:
    call_handler on_interrupt
    .global resume_guest
resume_guest:                       // x0: Vcpu
    mov     sp, x0
    ldp     x2, x3, [sp, #16]
    ldp     x4, x5, [sp, #32]
    ldp     x6, x7, [sp, #48]
    ldp     x8, x9, [sp, #64]
    ldp     x10, x11, [sp, #80]
    ldp     x12, x13, [sp, #96]
    ldp     x14, x15, [sp, #112]
    ldp     x16, x17, [sp, #128]
    ldp     x18, x19, [sp, #144]
    ldp     x20, x21, [sp, #160]
    ldp     x22, x23, [sp, #176]
    ldp     x24, x25, [sp, #192]
    ldp     x26, x27, [sp, #208]
    ldp     x28, x29, [sp, #224]
    ldr     x30, [sp, #240]
    ldp     x0, x1, [sp], #256
    eret

own_fault:
    mrs     x1, esr_el2
    mrs     x2, elr_el2
    mrs     x3, far_el2
    mrs     x4, mpidr_el1           // a stack from its end on: it may be the stack that is full
    and     x4, x4, #0xff
    adrp    x5, stacks + 0x4000
    add     x5, x5, x4, lsl #14
    mov     sp, x5
    bl      on_own_fault
    b       .

error_taken:                        // in take_error only: elsewhere errors are masked
    mrs     x0, spsr_el2
    orr     x0, x0, #(1 << 8)
    msr     spsr_el2, x0
    eret

    .global pending_errors
    .global pending_errors_known
pending_errors:                     // of all that this CPU has done until now: ISR_EL1
    dsb     sy
    isb
    mrs     x0, isr_el1
pending_errors_known:
    ret

    .global take_error
take_error:                         // lets a pending one be taken, and nothing come of it
    mrs     x1, elr_el2
    mrs     x2, spsr_el2
    msr     daifclr, #4
    isb
    msr     daifset, #4
    msr     elr_el2, x1
    msr     spsr_el2, x2
    ret

    .macro  each_vector operation   // at x1, four at a time
    \operation {v0.2d, v1.2d, v2.2d, v3.2d}, [x1], #64
    \operation {v4.2d, v5.2d, v6.2d, v7.2d}, [x1], #64
    \operation {v8.2d, v9.2d, v10.2d, v11.2d}, [x1], #64
    \operation {v12.2d, v13.2d, v14.2d, v15.2d}, [x1], #64
    \operation {v16.2d, v17.2d, v18.2d, v19.2d}, [x1], #64
    \operation {v20.2d, v21.2d, v22.2d, v23.2d}, [x1], #64
    \operation {v24.2d, v25.2d, v26.2d, v27.2d}, [x1], #64
    \operation {v28.2d, v29.2d, v30.2d, v31.2d}, [x1], #64
    .endm
    .global save_vectors            // x0: FPSR, FPCR, 32 registers of 16 bytes
save_vectors:
    add     x1, x0, #16
    each_vector st1
    mrs     x1, fpsr
    mrs     x2, fpcr
    stp     x1, x2, [x0]
    ret
    .global load_vectors
load_vectors:
    add     x1, x0, #16
    each_vector ld1
    ldp     x1, x2, [x0]
    msr     fpsr, x1
    msr     fpcr, x2
    ret
