// SPDX-License-Identifier: Apache-2.0
// Memory-mapped device registers. Every access goes through here, once and in program order.
#pragma once

#include <cstdint>

namespace latenz::hypervisor {

class Mmio {
 public:
  static std::uint32_t read32(std::uint64_t address) {
    return *reinterpret_cast<const volatile std::uint32_t*>(address);
  }
  static void write32(std::uint64_t address, std::uint32_t value) {
    *reinterpret_cast<volatile std::uint32_t*>(address) = value;
  }
  static std::uint64_t read64(std::uint64_t address) {
    return *reinterpret_cast<const volatile std::uint64_t*>(address);
  }
  static void write64(std::uint64_t address, std::uint64_t value) {
    *reinterpret_cast<volatile std::uint64_t*>(address) = value;
  }
  static void write8(std::uint64_t address, std::uint8_t value) {
    *reinterpret_cast<volatile std::uint8_t*>(address) = value;
  }
};

}  // namespace latenz::hypervisor
