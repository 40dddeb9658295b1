// SPDX-License-Identifier: Apache-2.0
// What all distributors do alike: registers with a bit for each interrupt, 32 to a bank.
#pragma once

#include <cstdint>

#include "aarch64/mmio.hpp"
#include "gic_registers.hpp"

namespace latenz::hypervisor {

/// @tparam Distributor tells by `frame(bank)` where the registers of a bank are
template <typename Distributor>
class DistributorBanks {
 public:
  void enable(std::uint32_t id) const { write_bit(Gicd::set_enable, id); }
  void disable(std::uint32_t id) const { write_bit(Gicd::clear_enable, id); }
  /// The same for each ID whose bit is set in a bank of 32.
  void enable_all(std::uint32_t bank, std::uint32_t bits) const {
    write_bank(Gicd::set_enable, bank, bits);
  }
  void disable_all(std::uint32_t bank, std::uint32_t bits) const {
    write_bank(Gicd::clear_enable, bank, bits);
  }
  void clear_all_active(std::uint32_t bank, std::uint32_t bits) const {
    write_bank(Gicd::clear_active, bank, bits);
  }
  void set_active(std::uint32_t id) const { write_bit(Gicd::set_active, id); }
  void clear_active(std::uint32_t id) const { write_bit(Gicd::clear_active, id); }
  void set_pending(std::uint32_t id) const { write_bit(Gicd::set_pending, id); }
  /// Only while it is disabled; after the start all shared ones come by levels.
  void trigger_by_edge(std::uint32_t id) const {
    const std::uint64_t at = frame(id / 32) + Gicd::configuration + (id / 16 * 4);
    Mmio::write32(at, Mmio::read32(at) | (Gicd::edge << (2 * (id % 16))));
  }

 private:
  friend Distributor;
  DistributorBanks() = default;

  void write_bit(std::uint32_t registers, std::uint32_t id) const {
    write_bank(registers, id / 32, 1U << (id % 32));
  }
  void write_bank(std::uint32_t registers, std::uint32_t bank, std::uint32_t bits) const {
    Mmio::write32(frame(bank) + registers + (std::uint64_t{bank} * 4), bits);
  }
  [[nodiscard]] std::uint64_t frame(std::uint32_t bank) const {
    return static_cast<const Distributor*>(this)->frame_of(bank);
  }
  /// All of a bank is off, forgotten, of a group, and comes by a level if it is shared.
  void silence(std::uint32_t bank, std::uint32_t group) const {
    write_bank(Gicd::clear_enable, bank, ~0U);
    write_bank(Gicd::clear_pending, bank, ~0U);
    write_bank(Gicd::clear_active, bank, ~0U);
    write_bank(Gicd::groups, bank, group);
    if (bank > 0) write_bank(Gicd::configuration, 2 * bank, 0);
    if (bank > 0) write_bank(Gicd::configuration, (2 * bank) + 1, 0);
    const std::uint64_t priorities = frame(bank) + Gicd::priorities + (std::uint64_t{bank} * 32);
    for (std::uint32_t i = 0; i < 32; ++i) Mmio::write8(priorities + i, Priority::others);
  }
};

}  // namespace latenz::hypervisor
