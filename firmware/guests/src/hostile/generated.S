// SPDX-License-Identifier: Apache-2.0
// Runs an instruction that was written here before, with x0 to x15 from where x0 points to.
    .macro  saved instruction
    .irp    number, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30
    \instruction x\number, [x16, #8 * (\number - 19)]
    .endr
    .endm

    .macro  values instruction
    .irp    number, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    \instruction x\number, [x17, #8 * \number]
    .endr
    .endm

    .text
    .global run_generated
run_generated:
    adr     x16, kept
    saved   str
    mov     x17, sp
    stp     x17, x0, [x16, #96]
    mov     x17, x0
    values  ldr
    adr     x30, generated_end          // where aborts of a jump come back to
    .global generated_instruction
generated_instruction:
    nop
    .global generated_end
generated_end:
    adr     x16, kept
    ldr     x17, [x16, #96]
    mov     sp, x17
    ldr     x17, [x16, #104]
    values  str
    saved   ldr
    ret

    .bss                        // far from instructions: emulators translate those anew
    .balign 4096
kept:
    .skip   4096
