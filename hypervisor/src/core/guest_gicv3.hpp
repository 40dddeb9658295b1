// SPDX-License-Identifier: Apache-2.0
// A guest's GICv3: the frames of its distributor and of its one redistributor, and the system
// registers that trap, all in front of the same emulated distributor that guests with a GICv2 have.
// Where IHI 0069H lets an implementation choose: one security state, affinity routing always on,
// one CPU of affinity 0, all interrupts in group 1, no LPIs. Freestanding.
#pragma once

#include <cstdint>

#include "gic_registers.hpp"
#include "gicv3_registers.hpp"

namespace latenz::hypervisor {

/// @tparam VirtualGic a BasicVirtualGic
template <typename VirtualGic>
class BasicGuestGicv3 {
 public:
  static constexpr unsigned widest_access = 8;
  static constexpr std::uint32_t redistributor = 0xA'0000;  ///< behind the distributor

  explicit constexpr BasicGuestGicv3(VirtualGic& gic) : gic_(gic) {}

  /// Whether this answers an address, as one behind GuestMachine::distributor.
  static bool has(std::uint64_t offset) {
    return offset < Gicv3Gicd::frame || offset - redistributor < Gicr::size;
  }

  /// No register has a one in its upper 32 bits; the rest reads as zero and ignores writes.
  [[nodiscard]] std::uint32_t read(std::uint32_t offset, unsigned bytes) const {
    if (offset < redistributor) return read_distributor(offset, bytes);
    const std::uint32_t own = offset - redistributor;
    if (own >= Gicr::private_frame) return read_private(own - Gicr::private_frame, bytes);
    if (own == Gicr::type && bytes >= 4) return Gicr::last;
    if (own == Gicr::implementer && bytes == 4) return implementer;
    return own == Gicv3Gicd::identification2 && bytes == 4 ? architecture : 0;
  }

  void write(std::uint32_t offset, unsigned bytes, std::uint32_t value) const {
    if (bytes > 4) return;
    if (offset == Gicd::control) {
      gic_.write(Gicd::control, 4, (value & Gicv3Gicd::enable_group1) != 0 ? 1 : 0);
      return;
    }
    const std::uint32_t of_private = redistributor + Gicr::private_frame;
    if (offset < redistributor ? is_shared(offset) : offset >= of_private) {
      const std::uint32_t there = offset < redistributor ? offset : offset - of_private;
      if (offset < redistributor || is_private(there)) gic_.write(there, bytes, value);
    }
  }

  static bool has_register(std::uint32_t name) {
    return name == Gicv3Trapped::icc_sgi1r || name == Gicv3Trapped::icc_asgi1r ||
           name == Gicv3Trapped::icc_sgi0r || name == Gicv3Trapped::icc_sre;
  }
  /// The interface of system registers is on; what generates interrupts can only be written.
  static std::uint64_t read_register(std::uint32_t name) {
    return name == Gicv3Trapped::icc_sre ? 7 : 0;
  }
  static void write_register(VirtualGic& gic, std::uint32_t name, std::uint64_t value) {
    if (name == Gicv3Trapped::icc_sgi1r) send(gic, value);
  }

 private:
  static constexpr std::uint32_t implementer = 0x43B;
  static constexpr std::uint32_t architecture = 0x3B;  ///< in GICD_PIDR2 and GICR_PIDR2: GICv3
  static constexpr std::uint32_t identifier_bits = 9U << 19U;  ///< GICD_TYPER: ten of them
  static constexpr std::uint32_t none_to_any = 1U << 25U;      ///< No1N: each has its CPU
  static constexpr std::uint32_t shared_priorities_end = Gicd::priorities + InterruptId::end;

  /// Registers with a bit, or a byte, for each interrupt from 32 on.
  static constexpr bool is_shared(std::uint32_t offset) {
    if (offset >= Gicd::set_enable && offset < Gicd::priorities) return offset % 0x80 >= 4;
    if (offset >= Gicd::configuration) return offset < Gicd::configuration + (InterruptId::end / 4);
    return offset >= Gicd::priorities + InterruptId::first_shared && offset < shared_priorities_end;
  }
  /// And below 32.
  static constexpr bool is_private(std::uint32_t offset) {
    if (offset >= Gicd::set_enable && offset < Gicd::priorities) return offset % 0x80 < 4;
    return offset >= Gicd::priorities && offset < Gicd::priorities + InterruptId::first_shared;
  }

  [[nodiscard]] std::uint32_t read_distributor(std::uint32_t offset, unsigned bytes) const {
    if (bytes > 4) return 0;
    if (is_shared(offset) || offset == Gicd::implementer) return gic_.read(offset, bytes);
    const bool of_groups = offset > Gicv3Gicd::groups && offset < Gicd::set_enable;
    if (of_groups && bytes == 4 && offset % 0x80 >= 4) return ~0U;
    if (offset == Gicd::type) {
      return gic_.read(Gicd::type, 4) | identifier_bits | none_to_any;
    }
    if (offset == Gicd::control) {
      const std::uint32_t on = gic_.read(Gicd::control, 4) != 0 ? Gicv3Gicd::enable_group1 : 0;
      return on | Gicv3Gicd::affinity_routing | Gicv3Gicd::one_security_state;
    }
    return offset == Gicv3Gicd::identification2 ? architecture : 0;
  }

  [[nodiscard]] std::uint32_t read_private(std::uint32_t offset, unsigned bytes) const {
    if (bytes > 4) return 0;
    if (is_private(offset)) return gic_.read(offset, bytes);
    return offset == Gicv3Gicd::groups && bytes == 4 ? ~0U : 0;
  }

  /// ICC_SGI1R_EL1, to a list of CPUs of some affinity, or to all others, of which there is none.
  static void send(VirtualGic& gic, std::uint64_t value) {
    constexpr std::uint64_t elsewhere = (0xFFULL << 16U) |  // Aff1
                                        (0xFFULL << 32U) |  // Aff2
                                        (1ULL << 40U) |     // IRM: all others
                                        (0xFULL << 44U) |   // RS
                                        (0xFFULL << 48U);   // Aff3
    constexpr std::uint32_t to_first = 1U << 16U;           // of the list in GICD_SGIR
    if ((value & elsewhere) != 0 || (value & 1U) == 0) return;
    const auto number = static_cast<std::uint32_t>((value >> 24U) & 0xFU);
    gic.write(Gicd::software_generated, 4, to_first | number);
  }

  VirtualGic& gic_;
};

}  // namespace latenz::hypervisor
