// SPDX-License-Identifier: Apache-2.0
// What a guest has of the interrupt controller where the board has a GICv2: a page that is
// emulated, and the hardware's virtual interface.
#pragma once

#include <cstdint>

#include "aarch64/translation_table.hpp"
#include "aarch64/virtual_gic.hpp"
#include "gic_places.hpp"
#include "latenz/guest_machine.hpp"

namespace latenz::hypervisor {

class GuestGic {
 public:
  static constexpr unsigned widest_access = 4;

  explicit constexpr GuestGic(VirtualGic& gic) : gic_(gic) {}

  /// Whether this answers an address, as one behind GuestMachine::distributor.
  static bool has(std::uint64_t offset) { return offset < TranslationTable::page; }
  [[nodiscard]] std::uint32_t read(std::uint32_t offset, unsigned bytes) const {
    return gic_.read(offset, bytes);
  }
  void write(std::uint32_t offset, unsigned bytes, std::uint32_t value) const {
    gic_.write(offset, bytes, value);
  }

  /// Whether a system register is the controller's; here it has none.
  static bool has_register(std::uint32_t /*name*/) { return false; }
  static std::uint64_t read_register(std::uint32_t /*name*/) { return 0; }
  static void write_register(VirtualGic& /*gic*/, std::uint32_t /*name*/, std::uint64_t /*value*/) {
  }

  /// What the guest reaches without a trap.
  [[nodiscard]] static bool map(TranslationTable& table, const GicPlaces& places) {
    return table.map(GuestMachine::cpu_interface, places.virtual_interface,
                     2 * TranslationTable::page, Stage2::registers);
  }

 private:
  VirtualGic& gic_;
};

}  // namespace latenz::hypervisor
