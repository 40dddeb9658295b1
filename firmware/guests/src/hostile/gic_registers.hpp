// SPDX-License-Identifier: Apache-2.0
// Registers of the guest's interrupt controller for those who abuse them: the same ones of a GICv2
// (Arm IHI 0048B), as they are named here, and of a GICv3 (Arm IHI 0069H).
#pragma once

#include <array>
#include <cstdint>

#include "access.hpp"
#include "gic.hpp"

namespace latenz::guests {

/// Address of what a GICv2's distributor has at an offset; a GICv3 has private interrupts'
/// elsewhere.
inline std::uint64_t distributor_register(std::uint64_t offset) {
  constexpr std::uint64_t private_frame = GuestMachine::redistributor + 0x1'0000;
  const bool of_private = (offset >= 0x080 && offset < 0x400 && offset % 0x80 < 4) ||
                          (offset >= 0x400 && offset < 0x420) ||
                          (offset >= 0xC00 && offset < 0xC08);
  return (of_private && has_gicv3() ? private_frame : GuestMachine::distributor) + offset;
}

/// One of the registers with a bit for each interrupt, which begin at an offset.
inline std::uint64_t bank_register(std::uint64_t offset, std::uint32_t bank) {
  return distributor_register(word(offset, bank));
}

/// The CPU interface. Values are those of a GICv2's registers.
class Interface {
  static constexpr std::uint64_t base = GuestMachine::cpu_interface;

 public:
  static constexpr std::uint32_t enable = 1;
  static constexpr std::uint32_t end_only_drops_priority = 1U << 9U;

  static void control(std::uint32_t value) {
    if (!has_gicv3()) {
      write32(base, value);
      return;
    }
    const std::uint64_t end_mode = (value & end_only_drops_priority) != 0 ? 2 : 0;
    asm volatile("msr s3_0_c12_c12_4, %0\n msr s3_0_c12_c12_7, %1\n isb" ::"r"(end_mode),
                 "r"(std::uint64_t{value} & enable));  // ICC_CTLR_EL1, ICC_IGRPEN1_EL1
  }
  static void mask(std::uint32_t priority) {
    if (!has_gicv3()) {
      write32(base + 0x04, priority);
      return;
    }
    asm volatile("msr s3_0_c4_c6_0, %0\n isb" ::"r"(std::uint64_t{priority}));  // ICC_PMR_EL1
  }
  /// Of a GICv3 the three bits that there are: QEMU 10 takes 8 for 0 and ends itself.
  static void binary_point(std::uint32_t value) {
    if (!has_gicv3()) {
      write32(base + 0x08, value);
      return;
    }
    asm volatile("msr s3_0_c12_c12_3, %0" ::"r"(std::uint64_t{value} & 7U));  // ICC_BPR1_EL1
  }
  /// @param index 0 to 3: of a GICv3 group 0's in turn with group 1's
  static void active_priorities(std::uint32_t index, std::uint32_t value) {
    if (!has_gicv3()) {
      write32(word(base + 0xD0, index), value);
      return;
    }
    if (index % 2 == 0) {
      asm volatile("msr s3_0_c12_c9_0, %0" ::"r"(std::uint64_t{value}));  // ICC_AP1R0_EL1
    } else {
      asm volatile("msr s3_0_c12_c8_4, %0" ::"r"(std::uint64_t{value}));  // ICC_AP0R0_EL1
    }
  }
  /// Of both groups.
  static void acknowledge() {
    if (has_gicv3()) {
      asm volatile("mrs x9, s3_0_c12_c12_0\n mrs x9, s3_0_c12_c8_0" ::: "x9");
    } else {
      read32(base + 0x0C);
      read32(base + 0x20);
    }
  }
  static void end(std::uint32_t value) {
    if (has_gicv3()) {
      asm volatile("msr s3_0_c12_c12_1, %0\n msr s3_0_c12_c8_1, %0" ::"r"(std::uint64_t{value}));
    } else {
      write32(base + 0x10, value);
      write32(base + 0x24, value);
    }
  }
  static void deactivate(std::uint32_t value) {
    if (!has_gicv3()) {
      write32(base + 0x1000, value);
      return;
    }
    asm volatile("msr s3_0_c12_c11_1, %0" ::"r"(std::uint64_t{value}));  // ICC_DIR_EL1
  }
  /// @param value as of GICD_SGIR: number, list of targets from bit 16, filter from bit 24
  static void signal(std::uint32_t value) {
    if (!has_gicv3()) {
      write32(GuestMachine::distributor + 0xF00, value);
      return;
    }
    const std::uint32_t filter = value >> 24U & 3U;
    const std::uint64_t to_others = filter == 1 ? 1ULL << 40U : 0;
    const std::uint64_t to_itself = filter == 2 ? 1 : 0;
    const std::uint64_t list = filter == 0 ? value >> 16U & 0xFFU : to_itself;
    const std::uint64_t number = value & 0xFU;
    asm volatile("msr s3_0_c12_c11_5, %0" ::"r"(to_others | number << 24U | list));
  }
  static void signal_itself(std::uint32_t number) { signal(2U << 24U | number); }
};

}  // namespace latenz::guests
