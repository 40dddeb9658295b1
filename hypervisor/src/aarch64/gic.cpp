// SPDX-License-Identifier: Apache-2.0
#include "aarch64/gic.hpp"

namespace latenz::hypervisor {
namespace {

constexpr std::uint32_t slot_priority = 0x00;  // at equal times the slot switch comes first
constexpr std::uint32_t arrival_priority = 0x40;
constexpr std::uint32_t other_priority = 0x80;

}  // namespace

constinit Distributor board_distributor{};
constinit VirtualControl list_registers{};

void Distributor::start(const Board& board) {
  base_ = board.distributor;
  Mmio::write32(base_ + Gicd::control, 0);
  const std::uint32_t banks = (Mmio::read32(base_ + Gicd::type) & 0x1FU) + 1;
  for (std::uint32_t id = InterruptId::first_shared; id < banks * 32; ++id) {
    if (id % 32 == 0) {
      Mmio::write32(base_ + Gicd::clear_enable + (id / 8), ~0U);
      Mmio::write32(base_ + Gicd::clear_pending + (id / 8), ~0U);
      Mmio::write32(base_ + Gicd::clear_active + (id / 8), ~0U);
    }
    Mmio::write8(base_ + Gicd::priorities + id, other_priority);
  }
  Mmio::write32(base_ + Gicd::control, 1);
}

void Distributor::start_private() const {
  Mmio::write32(base_ + Gicd::clear_enable, ~0U);
  Mmio::write32(base_ + Gicd::clear_pending, ~0U);
  Mmio::write32(base_ + Gicd::clear_active, ~0U);
  for (std::uint32_t id = 0; id < InterruptId::first_shared; ++id) {
    Mmio::write8(base_ + Gicd::priorities + id, other_priority);
  }
  Mmio::write8(base_ + Gicd::priorities + InterruptId::slot_timer, slot_priority);
  Mmio::write8(base_ + Gicd::priorities + InterruptId::arrival_timer, arrival_priority);
}

void Distributor::route(std::uint32_t id, std::uint32_t cpu) const {
  Mmio::write8(base_ + Gicd::targets + id, static_cast<std::uint8_t>(1U << cpu));
}

}  // namespace latenz::hypervisor
