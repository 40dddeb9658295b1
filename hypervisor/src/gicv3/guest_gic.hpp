// SPDX-License-Identifier: Apache-2.0
// What a guest has of the interrupt controller where the board has a GICv3: emulated frames, and
// system registers, most of which are the hardware's own.
#pragma once

#include "aarch64/translation_table.hpp"
#include "aarch64/virtual_gic.hpp"
#include "gic_places.hpp"
#include "guest_gicv3.hpp"
#include "latenz/guest_machine.hpp"

namespace latenz::hypervisor {

class GuestGic : public BasicGuestGicv3<VirtualGic> {
 public:
  using BasicGuestGicv3::BasicGuestGicv3;

  /// What the guest reaches without a trap has no address.
  [[nodiscard]] static bool map(TranslationTable& /*table*/, const GicPlaces& /*places*/) {
    return true;
  }
};
static_assert(GuestMachine::redistributor - GuestMachine::distributor == GuestGic::redistributor);

}  // namespace latenz::hypervisor
