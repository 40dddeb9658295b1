// SPDX-License-Identifier: Apache-2.0
#include "gic.hpp"

namespace latenz::hypervisor {
namespace {

/// Group 0 where there is one world only, whatever firmware has chosen; else firmware's choice
/// stays: what the non-secure world writes is ignored, and what it enables is its group 1.
constexpr std::uint32_t enabled_group = 0;

}  // namespace

void Distributor::start(const GicPlaces& places) {
  base_ = places.distributor;
  Mmio::write32(base_ + Gicd::control, 0);
  const std::uint32_t banks = (Mmio::read32(base_ + Gicd::type) & 0x1FU) + 1;
  for (std::uint32_t bank = 1; bank < banks; ++bank) silence(bank, enabled_group);
  Mmio::write32(base_ + Gicd::control, 1);
}

void Distributor::start_private() const {
  silence(0, enabled_group);
  Mmio::write8(base_ + Gicd::priorities + InterruptId::slot_timer, Priority::slot_timer);
  Mmio::write8(base_ + Gicd::priorities + InterruptId::arrival_timer, Priority::arrival_timer);
}

void Distributor::route(std::uint32_t id, std::uint32_t cpu) const {
  Mmio::write8(base_ + Gicd::targets + id, static_cast<std::uint8_t>(1U << cpu));
}

}  // namespace latenz::hypervisor
