// SPDX-License-Identifier: Apache-2.0
#include "aarch64/vcpu.hpp"

#include "aarch64/system_registers.hpp"
#include "instruction_state.hpp"

extern "C" void save_vectors(latenz::hypervisor::VectorState* state);        // vectors.S
extern "C" void load_vectors(const latenz::hypervisor::VectorState* state);  // vectors.S

namespace latenz::hypervisor {
namespace {

constexpr std::uint64_t el1_all_masked = 0x3C5;
constexpr std::uint64_t el1_reset_control = 0x30D0'0800;  // SCTLR_EL1: what is RES1; all off
constexpr std::size_t control_register = 0;               // its place in the list below
constexpr std::size_t translation_control = 24;
constexpr std::uint64_t no_walks = (1ULL << 7U) | (1ULL << 23U);  // TCR_EL1: EPD0, EPD1

/// Calls with the name of each register in SystemState, as a string literal, and its place.
// clang-format off: it never agrees with itself here
#define LATENZ_EACH_SYSTEM_REGISTER(ACTION)                                       \
  ACTION(0, "sctlr_el1") ACTION(1, "ttbr0_el1") ACTION(2, "ttbr1_el1")            \
  ACTION(3, "spsr_el1") ACTION(4, "mair_el1") ACTION(5, "amair_el1")              \
  ACTION(6, "vbar_el1") ACTION(7, "contextidr_el1") ACTION(8, "tpidr_el0")        \
  ACTION(9, "tpidr_el1") ACTION(10, "tpidrro_el0") ACTION(11, "esr_el1")          \
  ACTION(12, "far_el1") ACTION(13, "afsr0_el1") ACTION(14, "afsr1_el1")           \
  ACTION(15, "par_el1") ACTION(16, "cpacr_el1") ACTION(17, "cntkctl_el1")         \
  ACTION(18, "cntv_cval_el0") ACTION(19, "cntv_ctl_el0") ACTION(20, "csselr_el1") \
  ACTION(21, "sp_el0") ACTION(22, "sp_el1") ACTION(23, "elr_el1")
// clang-format on

void save_system(SystemState& state) {  // NOLINT(misc-const-correctness): by the assembly
#define LATENZ_SAVE(place, name) asm volatile("mrs %0, " name : "=r"(state.value[place]));
  LATENZ_EACH_SYSTEM_REGISTER(LATENZ_SAVE)
  state.value[translation_control] = TcrEl1::read();
#undef LATENZ_SAVE
}

/// No table is walked while its root is one guest's and the rest another's: processors look ahead
/// (Cortex-A72 erratum 1319367, -A55 1530924, -A76 1165522).
[[gnu::always_inline]] inline void load_system(const SystemState& state,
                                               std::uint64_t translation) {
  TcrEl1::write(state.value[translation_control] | no_walks);
  instruction_barrier();
  VttbrEl2::write(translation);
#define LATENZ_LOAD(place, name) asm volatile("msr " name ", %0" ::"r"(state.value[place]));
  LATENZ_EACH_SYSTEM_REGISTER(LATENZ_LOAD)
#undef LATENZ_LOAD
  instruction_barrier();
  TcrEl1::write(state.value[translation_control]);
}

/// Where EL1 takes a synchronous exception from a mode, behind the base of its vectors.
constexpr std::uint64_t vector_offset(std::uint64_t mode) {
  if (mode == 0x5) return 0x200;  // EL1 with its own stack
  if (mode == 0x4) return 0x000;
  return (mode & 0x10U) != 0 ? 0x600 : 0x400;  // EL0: AArch32 or AArch64
}

/// Two at a time, which the compiler does for a length that it knows.
template <typename Values>
void clear(Values& values) {
#pragma GCC unroll 64
  for (auto& each : values) each = 0;
}

}  // namespace

void Vcpu::reset(std::uint64_t entry) {
  clear(system.value);
  system.value[control_register] = el1_reset_control;
  program_counter = entry;
  processor_state = el1_all_masked;
}

void Vcpu::load() {
  load_vectors(&vectors);
  gic.load();
  load_state();
}

void Vcpu::load_anew() { load_state(); }

[[gnu::always_inline]] inline void Vcpu::load_state() const {
  load_system(system, translation);
  ElrEl2::write(program_counter);
  SpsrEl2::write(processor_state);
  instruction_barrier();
}

void Vcpu::save() {
  save_system(system);
  save_vectors(&vectors);
  program_counter = ElrEl2::read();
  processor_state = SpsrEl2::read();
  gic.save();
}

void Vcpu::skip_instruction() {
  ElrEl2::write(ElrEl2::read() + instruction_bytes(EsrEl2::read()));
  SpsrEl2::write(behind_instruction(SpsrEl2::read()));
}

void Vcpu::inject_undefined() {
  constexpr std::uint64_t unknown_reason = 1ULL << 25U;  // class 0, a 32 bit instruction
  inject(unknown_reason);
}

void Vcpu::inject_abort(std::uint64_t syndrome) {
  constexpr std::uint64_t kept = (0x3FULL << 26U) | (1ULL << 25U) | (1ULL << 6U);  // class, IL, WnR
  constexpr std::uint64_t external = 0x10;  // xFSC: not on a walk of tables
  constexpr std::uint64_t from_el1 = 1ULL << 26U;
  const bool at_el1 = (SpsrEl2::read() & 0x1CU) == 0x4;
  FarEl1::write(FarEl2::read());
  inject((syndrome & kept) | external | (at_el1 ? from_el1 : 0));
}

void Vcpu::inject(std::uint64_t syndrome) {
  const std::uint64_t state = SpsrEl2::read();
  EsrEl1::write(syndrome);
  ElrEl1::write(ElrEl2::read());
  SpsrEl1::write(state);
  ElrEl2::write(VbarEl1::read() + vector_offset(state & 0x1FU));
  SpsrEl2::write(el1_all_masked);
}

}  // namespace latenz::hypervisor
