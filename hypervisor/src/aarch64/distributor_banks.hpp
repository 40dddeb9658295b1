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

 private:
  friend Distributor;
  DistributorBanks() = default;

  void write_bit(std::uint32_t registers, std::uint32_t id) const {
    write_bank(registers, id / 32, 1U << (id % 32));
  }
  void write_bank(std::uint32_t registers, std::uint32_t bank, std::uint32_t bits) const {
    const std::uint64_t frame = static_cast<const Distributor*>(this)->frame(bank);
    Mmio::write32(frame + registers + (std::uint64_t{bank} * 4), bits);
  }
};

}  // namespace latenz::hypervisor
