// SPDX-License-Identifier: Apache-2.0
#include "aarch64/processor.hpp"

#include <initializer_list>

#include "aarch64/caches.hpp"
#include "aarch64/system_registers.hpp"
#include "aarch64/translation_table.hpp"
#include "boards/board.hpp"
#include "latenz/guest_machine.hpp"

extern "C" {
extern const std::uint8_t guest_loader[];  // loader.S
extern const std::uint8_t guest_idle[];
extern std::uint8_t stacks[];  // image.ld
}

namespace latenz::hypervisor {
namespace {

constexpr std::uint8_t idle_vmid = 0xFF;

TranslationTable idle_table;

/// HCR_EL2: what guests do that concerns others is trapped, all interrupts come to EL2.
constexpr std::uint64_t confined = (1ULL << 0U) |   // VM: stage 2 translation
                                   (1ULL << 1U) |   // SWIO: invalidating by set and way cleans too
                                   (1ULL << 3U) |   // FMO
                                   (1ULL << 4U) |   // IMO
                                   (1ULL << 5U) |   // AMO
                                   (1ULL << 19U) |  // TSC: SMC
                                   (1ULL << 20U) |  // TIDCP: implementation defined registers
                                   (1ULL << 21U) |  // TACR
                                   (1ULL << 22U) |  // TSW: cache maintenance by set and way
                                   (1ULL << 31U);   // RW: EL1 is AArch64

/// MDCR_EL2: debug registers, OS lock and performance monitors trap.
constexpr std::uint64_t debug_trapped = (1ULL << 5U) |   // TPMCR
                                        (1ULL << 6U) |   // TPM
                                        (1ULL << 9U) |   // TDA
                                        (1ULL << 10U) |  // TDOSA
                                        (1ULL << 11U);   // TDRA

/// MDCR_EL2.HPMN: all event counters are EL1's, which cannot reach them; 0 is not allowed.
std::uint64_t counters_of_el1() { return (PmcrEl0::read() >> 11U) & 0x1FU; }

/// CPTR_EL2: what is RES1, and TTA: trace registers trap.
constexpr std::uint64_t trace_trapped = 0x33FF | (1ULL << 20U);

/// HSTR_EL2: of AArch32's system registers only c15, which is implementation defined. T13 would
/// take the thread pointer from 32-bit programs.
constexpr std::uint64_t aarch32_trapped = 1ULL << 15U;

/// CNTHCTL_EL2: EL1 may read the physical counter, not use its timer.
constexpr std::uint64_t counter_readable = 1;

constexpr std::uint64_t stage2_control = 28ULL |          // T0SZ: 36 bits
                                         (1ULL << 6U) |   // SL0: from level 1
                                         (1ULL << 8U) |   // walks are cached: inner, write back
                                         (1ULL << 10U) |  // outer
                                         (3ULL << 12U) |  // inner shareable
                                         (2ULL << 16U) |  // 40 bit physical addresses
                                         (1ULL << 31U);   // RES1

}  // namespace

constinit Processor processors[Processor::most]{};

std::uint64_t loader_offset(const std::uint8_t* what) {
  return reinterpret_cast<std::uint64_t>(what) - reinterpret_cast<std::uint64_t>(guest_loader);
}

bool build_idle() {
  const auto code = reinterpret_cast<std::uint64_t>(guest_loader);
  return idle_table.map(GuestMachine::loader, code, TranslationTable::page, Stage2::code);
}

void Processor::start(std::uint32_t cpu) {
  index = cpu;
  stack_end = reinterpret_cast<std::uint64_t>(stacks) + ((cpu + 1) * stack_distance);
  interface = CpuInterface(board().gic);
  idle.partition = nobody;
  idle.translation = idle_table.address() | (std::uint64_t{idle_vmid} << 48U);
  idle.reset(GuestMachine::loader + loader_offset(guest_idle));
  TpidrEl2::write(reinterpret_cast<std::uint64_t>(this));
  if (cpu == 0) Caches::find();
  VtcrEl2::write(stage2_control);
  HcrEl2::write(confined);
  CptrEl2::write(trace_trapped);
  HstrEl2::write(aarch32_trapped);
  MdcrEl2::write(debug_trapped | counters_of_el1());
  CnthctlEl2::write(counter_readable);
  CntvOffset::write(0);
  CnthpControl::write(0);
  CntpControl::write(0);
  VpidrEl2::write(MidrEl1::read());
  VmpidrEl2::write(1ULL << 31U);  // every guest has one CPU, number 0
  forget_translations();
  board_distributor.start_private();
  interface.start();
  for (const std::uint32_t id : {InterruptId::maintenance, InterruptId::slot_timer,
                                 InterruptId::virtual_timer, InterruptId::arrival_timer}) {
    board_distributor.enable(id);
  }
}

}  // namespace latenz::hypervisor
