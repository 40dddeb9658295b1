// SPDX-License-Identifier: Apache-2.0
// The processor as one guest sees it: its registers while it does not run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aarch64/virtual_gic.hpp"

namespace latenz::hypervisor {

/// Registers of EL1 and EL0 that every guest has for itself. Order: as in vcpu.cpp.
struct SystemState {
  static constexpr std::size_t count = 25;
  std::uint64_t value[count];
};

/// FPSR, FPCR, Q0 to Q31.
struct alignas(16) VectorState {
  std::uint64_t status[2];
  std::uint64_t value[64];
};

struct Vcpu {
  /// x0 to x30; vectors.S saves them here, SP_EL2 pointing behind while the guest runs.
  std::uint64_t x[31]{};
  std::uint64_t unused = 0;

  std::uint64_t program_counter = 0;
  std::uint64_t processor_state = 0;
  SystemState system{};
  VectorState vectors{};
  VirtualGic gic;
  std::uint64_t translation = 0;  ///< VTTBR_EL2
  std::uint8_t partition = 0;

  /// As after a reset, about to execute `entry` at EL1 with all masked. Registers that hold data
  /// are left to the loader, which has the guest's own time for them.
  void reset(std::uint64_t entry);

  /// This one is what the CPU is to execute, or no longer. x[] is saved and loaded by vectors.S.
  void load();
  void save();
  /// It was loaded, and reset meanwhile.
  void load_anew();

  /// Steps over the instruction that trapped.
  static void skip_instruction();

  /// Lets the guest take an exception to its EL1: an instruction that is undefined for it.
  static void inject_undefined();

  /// Likewise an access or a fetch that was answered by an error: a synchronous external abort.
  /// @param syndrome ESR_EL2 of the access
  static void inject_abort(std::uint64_t syndrome);

 private:
  void load_state() const;
  static void inject(std::uint64_t syndrome);
};
static_assert(offsetof(Vcpu, x) == 0 && offsetof(Vcpu, program_counter) == 256,
              "vectors.S knows where registers are");

}  // namespace latenz::hypervisor
