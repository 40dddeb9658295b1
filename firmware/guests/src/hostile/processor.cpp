// SPDX-License-Identifier: Apache-2.0
// Abuse of the processor itself: exceptions, states, caches, waiting.
#include <array>
#include <cstddef>
#include <cstdint>

#include "access.hpp"
#include "attack.hpp"
#include "cpu.hpp"
#include "generated.hpp"
#include "guest.hpp"
#include "translation.hpp"

namespace latenz::guests {
namespace {

constexpr std::uint32_t eret = 0xD69F'03E0;
constexpr std::uint32_t udf = 0;

/// Sets and ways of all levels: that of another's data, if the hypervisor lets it through.
void caches_by_set_and_way(std::uint32_t step) {
  const std::uint64_t set_way = ((step / 2U) % 3U << 1U) | (step << 6U) | (step % 4U << 30U);
  asm volatile("dc isw, %0\n dc csw, %0\n dc cisw, %0\n dsb sy" ::"r"(set_way));
}

void caches_by_address(std::uint32_t step) {
  clean_and_invalidate(0x4000'0000 + (std::uint64_t{step} << 16U));
}

void zero_caches(std::uint32_t step) {
  Translation::enable();
  zero(0x4000'0000 + (std::uint64_t{step} << 21U));
  Translation::disable();
}

void broadcast(std::uint32_t /*step*/) {
  asm volatile(
      "tlbi vmalle1is\n tlbi alle1\n tlbi alle1is\n tlbi alle2\n tlbi vmalls12e1is\n"
      "tlbi vae1is, %0\n tlbi aside1is, %0\n tlbi vaae1is, %0\n tlbi ipas2e1is, %0\n"
      "tlbi vae2is, %0\n ic iallu\n ic ialluis\n dsb sy\n isb" ::"r"(std::uint64_t{0})
      : "memory");
}

void translate_addresses(std::uint32_t step) {
  const std::uint64_t address = std::uint64_t{step} << 21U;
  asm volatile(
      "at s1e1r, %0\n at s1e1w, %0\n at s1e0r, %0\n at s12e1r, %0\n at s12e0w, %0\n"
      "at s1e2r, %0\n at s1e3w, %0\n isb" ::"r"(address)
      : "memory");
}

void sleep_masked(std::uint32_t /*step*/) {
  Interrupts::start(GuestMachine::virtual_timer_interrupt);
  firmware::VirtualTimer::compare(0);
  asm volatile("msr daifset, #15");
  while (true) {
    asm volatile("wfi");
    firmware::Cpu::pause(100);
  }
}

void events(std::uint32_t /*step*/) {
  while (true) {
    asm volatile("sev\n wfe\n wfe\n yield\n sevl\n wfe");
    firmware::Cpu::pause(100);
  }
}

void spin_masked(std::uint32_t /*step*/) {
  asm volatile("msr daifset, #15");
  while (true) firmware::Cpu::pause(1000);
}

/// What no processor has, and what this one or this partition may not have.
void undefined(std::uint32_t step) {
  constexpr std::array<std::uint32_t, 16> instructions = {
      udf,         0x0000'FFFF,
      0x1E60'4000,                            // fmov d0, d0
      0x4E20'1C00,                            // and v0.16b, v0.16b, v0.16b
      0x9E66'0000,                            // fmov x0, d0
      0x25D8'E3E0,                            // SVE: ptrue p0.d
      0x0420'0000,                            // SVE: add
      0xC08C'0000,                            // SME
      0xDAC1'03E0,                            // pointer authentication
      0xB820'0000,                            // atomics of 8.1
      0xD69F'0BFF,                            // eretaa
      0xD6BF'03E0,                            // drps
      0xD503'233F,                            // paciasp
      0xFFFF'FFFF, 0x8000'0000, 0xD503'2C7F,  // wfxt
  };
  run_instruction(instructions[step % instructions.size()]);
}

void permit_floating_point(std::uint32_t step) {
  asm volatile("msr cpacr_el1, %0\n isb" ::"r"(std::uint64_t{step % 4} << 20U));
  undefined(2 + (step % 3));
}

/// Changes the instructions that it executes next, without telling any cache.
void modify_itself(std::uint32_t step) {
  alignas(64) static std::array<volatile std::uint32_t, 2> code = {};
  code[0] = 0x5280'0000 | ((step & 0xFFFFU) << 5U);  // mov w0, #step
  code[1] = 0xD65F'03C0;                             // ret
  execute(reinterpret_cast<std::uintptr_t>(code.data()));
}

/// The handler of the exception is nowhere: the hypervisor sees its fetch fail.
void lose_vectors(std::uint32_t step) {
  constexpr std::array<std::uint64_t, 3> places = {0, GuestMachine::store,
                                                   GuestMachine::distributor};
  asm volatile("msr vbar_el1, %0\n isb\n udf #0" ::"r"(places[step % places.size()]));
}

/// The same where no translation leads: each exception raises the next, and none is the
/// hypervisor's.
void lose_vectors_for_ever(std::uint32_t /*step*/) {
  asm volatile("msr vbar_el1, %0\n isb\n udf #0" ::"r"(std::uint64_t{1} << 47U));
}

/// Its first instruction is undefined: for ever.
void undefined_vectors(std::uint32_t /*step*/) {
  alignas(0x800) static std::array<std::uint32_t, 0x200> nothing = {};
  asm volatile("msr vbar_el1, %0\n isb\n udf #0" ::"r"(nothing.data()));
}

void overflow_stack(std::uint32_t /*step*/) { asm volatile("1: stp xzr, xzr, [sp, #-16]!\n b 1b"); }

/// Both stack pointers are spoilt: the exception's handler fails as well.
void misalign_stack(std::uint32_t step) {
  asm volatile("msr spsel, %0\n mov x9, sp\n add x9, x9, #1\n mov sp, x9\n ldr x10, [sp]" ::"r"(
                   std::uint64_t{step % 2})
               : "x9", "x10", "memory");
}

/// Every mode that SPSR has words for: higher levels, AArch32, those that do not exist.
void return_to(std::uint32_t step) {
  constexpr std::uint32_t svc = 0xD400'0001;
  constexpr std::uint32_t ret = 0xD65F'03C0;
  alignas(64) static const std::array<std::uint32_t, 3> there = {svc, udf, ret};
  const std::uint64_t modes = step % 32;
  const std::uint64_t states = std::uint64_t{(step / 32) % 4} << 20U;  // single step, illegal
  asm volatile("msr daifset, #15");
  asm volatile("msr spsr_el1, %0\n msr elr_el1, %1" ::"r"(modes | states | 0x3C0U),
               "r"(there.data()));
  run_instruction(eret);
}

void breakpoints(std::uint32_t step) {
  constexpr std::array<std::uint32_t, 5> bases = {0xD420'0000,  // brk
                                                  0xD440'0000,  // hlt
                                                  0xD4A0'0001,  // dcps1
                                                  0xD4A0'0002,  // dcps2
                                                  0xD4A0'0003};
  run_instruction(bases[step % bases.size()] | ((step & 0x7FFU) << 5U));
}

void single_step(std::uint32_t /*step*/) {
  asm volatile(
      "msr oslar_el1, xzr\n msr mdscr_el1, %0\n msr dbgbvr0_el1, %1\n msr dbgbcr0_el1, %0\n"
      "msr daifclr, #15\n isb\n nop\n nop" ::"r"(std::uint64_t{0xA001}),
      "r"(std::uint64_t{0x4040'0000}));
}

/// Big-endian data, alignment, caches off: whatever its own control register has.
void control(std::uint32_t step) {
  std::uint64_t kept = 0;
  asm volatile("mrs %0, sctlr_el1" : "=r"(kept));
  const std::uint64_t changed = kept ^ (std::uint64_t{1} << (1U + (step % 31U)));
  asm volatile(
      "msr sctlr_el1, %0\n isb\n ldr x9, [sp]\n dmb sy\n msr sctlr_el1, %1\n isb" ::"r"(changed),
      "r"(kept)
      : "x9", "memory");
}

/// Exceptions as fast as they come.
void call_itself(std::uint32_t /*step*/) {
  while (true) asm volatile("svc #0");
}

void use_all_memory(std::uint32_t /*step*/) {
  const InformationPage& known = information();
  const std::uint64_t begin = known.memory_begin + 0x10'0000;
  const std::uint64_t end = known.memory_begin + known.memory_size;
  while (true) {
    for (std::uint64_t address = begin; address < end; address += 64) write64(address, address);
  }
}

constexpr auto attacks = std::to_array<Attack>({
    {"caches-by-set-and-way", 4096, caches_by_set_and_way},
    {"caches-by-address", 4096, caches_by_address},
    {"caches-zero", 64, zero_caches},
    {"tlb-broadcast", 1000, broadcast},
    {"address-translation", 2048, translate_addresses},
    {"sleep-masked", 1, sleep_masked},
    {"events", 1, events},
    {"spin-masked", 1, spin_masked},
    {"undefined-instructions", 16, undefined},
    {"floating-point", 32, permit_floating_point},
    {"self-modifying", 10'000, modify_itself},
    {"vectors-lost", 3, lose_vectors},
    {"vectors-lost-for-ever", 1, lose_vectors_for_ever},
    {"vectors-undefined", 1, undefined_vectors},
    {"stack-overflow", 1, overflow_stack},
    {"stack-misaligned", 2, misalign_stack},
    {"returns", 32 * 4, return_to},
    {"breakpoints", 0x800, breakpoints},
    {"single-step", 10, single_step},
    {"control-register", 31, control},
    {"exception-storm", 1, call_itself},
    {"memory-storm", 1, use_all_memory},
});

}  // namespace

std::span<const Attack> processor_attacks() { return attacks; }

}  // namespace latenz::guests
