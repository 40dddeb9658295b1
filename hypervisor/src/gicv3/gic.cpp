// SPDX-License-Identifier: Apache-2.0
#include "gic.hpp"

#include "aarch64/mmio.hpp"
#include "hypervisor.hpp"

namespace latenz::hypervisor {
namespace {

void wait_until_written(std::uint64_t control, std::uint32_t pends) {
  while ((Mmio::read32(control) & pends) != 0) continue;
}

constexpr std::uint32_t groups_of_a_hypervisor = ~0U;

/// ICH_LR4_EL2 to the last one there is: not used here, but their content may be anything.
void clear_unused_lists(std::uint64_t last) {
#define LATENZ_CLEAR(number, name) \
  if (last >= (number)) asm volatile("msr " name ", xzr" ::: "memory");
  LATENZ_CLEAR(4, "s3_4_c12_c12_4")
  LATENZ_CLEAR(5, "s3_4_c12_c12_5")
  LATENZ_CLEAR(6, "s3_4_c12_c12_6")
  LATENZ_CLEAR(7, "s3_4_c12_c12_7")
  LATENZ_CLEAR(8, "s3_4_c12_c13_0")
  LATENZ_CLEAR(9, "s3_4_c12_c13_1")
  LATENZ_CLEAR(10, "s3_4_c12_c13_2")
  LATENZ_CLEAR(11, "s3_4_c12_c13_3")
  LATENZ_CLEAR(12, "s3_4_c12_c13_4")
  LATENZ_CLEAR(13, "s3_4_c12_c13_5")
  LATENZ_CLEAR(14, "s3_4_c12_c13_6")
  LATENZ_CLEAR(15, "s3_4_c12_c13_7")
#undef LATENZ_CLEAR
}

}  // namespace

void Distributor::start(const GicPlaces& places) {
  base_ = places.distributor;
  if (!find_redistributors(places.redistributors)) fail("GIC: a CPU has no redistributor");
  // Affinity routing is switched on with all groups off, and never off (IHI 0069H, 12.9.4).
  const std::uint32_t routing = Mmio::read32(base_ + Gicd::control) & Gicv3Gicd::affinity_routing;
  Mmio::write32(base_ + Gicd::control, routing);
  wait_until_written(base_ + Gicd::control, Gicv3Gicd::writes_pend);
  Mmio::write32(base_ + Gicd::control, Gicv3Gicd::affinity_routing);
  wait_until_written(base_ + Gicd::control, Gicv3Gicd::writes_pend);
  const std::uint32_t last_bank = Mmio::read32(base_ + Gicd::type) & 0x1FU;
  for (std::uint32_t bank = 1; bank <= last_bank; ++bank) {
    silence(bank, groups_of_a_hypervisor);
    for (std::uint32_t i = 0; i < 32; ++i) {
      const std::uint32_t id = (bank * 32) + i;
      if (id < InterruptId::spurious) route(id, 0);
    }
  }
  wait_until_written(base_ + Gicd::control, Gicv3Gicd::writes_pend);
  Mmio::write32(base_ + Gicd::control, Gicv3Gicd::affinity_routing | Gicv3Gicd::enable_group1);
  wait_until_written(base_ + Gicd::control, Gicv3Gicd::writes_pend);
}

/// They follow each other in any order; each tells whose it is. False if this CPU's is not there.
bool Distributor::find_redistributors(std::uint64_t first) {
  std::uint64_t at = first;
  for (std::size_t i = 0; i < most_cpus; ++i) {
    const std::uint64_t type = Mmio::read64(at + Gicr::type);
    const std::uint64_t affinity = type >> 32U;
    if (affinity < most_cpus) private_[affinity] = at + Gicr::private_frame;
    if ((type & Gicr::last) != 0) break;
    at += (type & Gicr::has_virtual_frames) != 0 ? 2 * Gicr::size : Gicr::size;
  }
  return private_[this_cpu()] != 0;
}

void Distributor::start_private() const {
  const std::uint64_t frame = private_[this_cpu()];
  if (frame == 0) fail("GIC: a CPU has no redistributor");
  const std::uint64_t own = frame - Gicr::private_frame;
  const std::uint32_t waker = Mmio::read32(own + Gicr::waker);
  Mmio::write32(own + Gicr::waker, waker & ~Gicr::processor_sleep);
  wait_until_written(own + Gicr::waker, Gicr::children_asleep);
  silence(0, groups_of_a_hypervisor);
  Mmio::write8(frame + Gicd::priorities + InterruptId::slot_timer, Priority::slot_timer);
  Mmio::write8(frame + Gicd::priorities + InterruptId::arrival_timer, Priority::arrival_timer);
  wait_until_written(own + Gicr::control, Gicr::writes_pend);
}

void Distributor::route(std::uint32_t id, std::uint32_t cpu) const {
  Mmio::write64(base_ + Gicv3Gicd::routes + (std::uint64_t{id} * 8), cpu);
}

/// Guests find the registers on; they cannot switch them off, as that would be for all guests.
void CpuInterface::start() {
  constexpr std::uint64_t on = 7;         // SRE; no bypass of FIQ and IRQ
  constexpr std::uint64_t end_drops = 2;  // EOImode
  constexpr std::uint64_t all_pass = 0xFF;
  IccEnableEl2::write(on);
  instruction_barrier();
  if ((IccEnableEl2::read() & 1U) == 0) fail("GIC: its system registers cannot be switched on");
  IccEnableEl1::write(on);
  const std::uint64_t type = IchType::read();
  const std::uint64_t last_list = type & 0x1FU;
  const std::uint64_t preemption_bits = ((type >> 26U) & 7U) + 1;
  if (last_list + 1 < Gich::registers) fail("GIC: less than four list registers");
  if (preemption_bits > 5) fail("GIC: more than 32 levels of preemption");
  IchControl::write(0);
  for (unsigned i = 0; i < Gich::registers; ++i) VirtualControl::set_list(i, 0);
  clear_unused_lists(last_list);
  VirtualControl::set_active_priorities(0);
  VirtualControl::set_machine_state(0);
  IccBinaryPoint::write(0);
  IccPriorityMask::write(all_pass);
  IccControl::write(end_drops);
  IccEnableGroup1::write(1);
  instruction_barrier();
}

}  // namespace latenz::hypervisor
