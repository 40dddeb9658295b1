// SPDX-License-Identifier: Apache-2.0
// Arm Generic Interrupt Controller, version 3: one interrupt, for the first core, in group 1.
#pragma once

#include "register.hpp"

namespace latenz::firmware {

/// System registers of a core's interface, as a 32-bit core names them.
class GicV3Interface32 {
 public:
  /// The interrupt being signalled; it is active until `end`.
  static std::uint32_t acknowledge() {
    std::uint32_t id = 0;  // NOLINT(misc-const-correctness): the instruction writes it
    asm volatile("mrc p15, 0, %0, c12, c12, 0" : "=r"(id));  // ICC_IAR1
    return id;
  }

  static void end(std::uint32_t acknowledged) {
    asm volatile("mcr p15, 0, %0, c12, c12, 1" ::"r"(acknowledged));  // ICC_EOIR1
  }

 protected:
  static void start_interface() {
    asm volatile(
        "mcr p15, 0, %0, c4, c6, 0\n"    // ICC_PMR: every priority
        "mcr p15, 0, %1, c12, c12, 7\n"  // ICC_IGRPEN1
        "isb" ::"r"(0xFF),
        "r"(1));
  }
};

/// The same of a 64-bit core.
class GicV3Interface64 {
 public:
  static std::uint32_t acknowledge() {
    std::uint64_t id = 0;  // NOLINT(misc-const-correctness): the instruction writes it
    asm volatile("mrs %0, s3_0_c12_c12_0" : "=r"(id));  // ICC_IAR1_EL1
    return static_cast<std::uint32_t>(id);
  }

  static void end(std::uint32_t acknowledged) {
    asm volatile("msr s3_0_c12_c12_1, %0" ::"r"(std::uint64_t{acknowledged}));  // ICC_EOIR1_EL1
  }

 protected:
  static void start_interface() {
    asm volatile(
        "msr s3_0_c4_c6_0, %0\n"    // ICC_PMR_EL1
        "msr s3_0_c12_c12_7, %1\n"  // ICC_IGRPEN1_EL1
        "isb" ::"r"(std::uint64_t{0xFF}),
        "r"(std::uint64_t{1}));
  }
};

/// `distributor`: its address; `redistributor`: address of the first core's
template <std::uintptr_t distributor, std::uintptr_t redistributor,
          typename Interface = GicV3Interface32>
class GicV3 : public Interface {
 public:
  using Id = std::uint32_t;

  static void start(Id id) {
    DistributorControl::write(affinity_routing | enable_group_1);
    Waker::clear(processor_sleep);
    while ((Waker::read() & children_asleep) != 0) {
    }
    if (id < first_shared) {
      let_through<PrivateRegisters>(id);
    } else {
      let_through<SharedRegisters>(id);
    }
    Interface::start_interface();
  }

  /// Number of the interrupt that was acknowledged.
  static Id number(Id acknowledged) { return acknowledged; }

  /// Whether nothing was there to be acknowledged.
  static bool spurious(Id acknowledged) { return acknowledged >= 1020 && acknowledged < 1024; }

 private:
  static constexpr Id first_shared = 32;
  static constexpr std::uint32_t affinity_routing = 1U << 4U;
  static constexpr std::uint32_t enable_group_1 = 1U << 1U;
  static constexpr std::uint32_t processor_sleep = 1U << 1U;
  static constexpr std::uint32_t children_asleep = 1U << 2U;

  template <std::uintptr_t base>
  struct Lines {
    using Groups = RegisterArray<base + 0x080>;
    using Enables = RegisterArray<base + 0x100>;
    using Priorities = RegisterArray<base + 0x400, std::uint8_t>;
  };

  using DistributorControl = Register<distributor>;
  using SharedRegisters = Lines<distributor>;
  using Waker = Register<redistributor + 0x14>;
  using PrivateRegisters = Lines<redistributor + 0x1'0000>;

  template <typename Registers>
  static void let_through(Id id) {
    const std::uint32_t bit = 1U << (id % 32);
    Registers::Groups::write(id / 32, Registers::Groups::read(id / 32) | bit);
    Registers::Priorities::write(id, 0x80);
    Registers::Enables::write(id / 32, bit);  // shared ones go to core 0 after a reset
  }
};

}  // namespace latenz::firmware
