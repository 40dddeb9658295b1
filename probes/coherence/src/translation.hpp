// SPDX-License-Identifier: Apache-2.0
// Translation of addresses as the Arm Architecture Reference Manual (DDI 0487, D8) has it for
// Armv8.0 in AArch64: stage 1 of EL1&0, EL2 and EL3 with granules of 4, 16 and 64 KiB, and stage 2.
// Not: extensions of it (EL2 with VHE, 52 bits, hardware's access flag), and tables of AArch32.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace latenz::coherence {

/// Who translates: a core has three independent translations.
enum class Regime : std::uint8_t { el10, el2, el3 };
inline constexpr unsigned regimes = 3;

/// Registers that decide about translation and cacheability, of one regime.
struct Controls {
  std::uint64_t sctlr = 0;
  std::uint64_t tcr = 0;
  std::uint64_t ttbr0 = 0;
  std::uint64_t ttbr1 = 0;  ///< EL1 only
  std::uint64_t mair = 0;
  std::uint64_t hcr = 0;  ///< EL1 only, as the rest
  std::uint64_t vtcr = 0;
  std::uint64_t vttbr = 0;

  bool operator==(const Controls&) const = default;
  /// Returns whether data goes through caches anywhere, in stage 1.
  [[nodiscard]] bool caches_data() const { return (sctlr & 5U) == 5U || (hcr & (1U << 12U)) != 0; }
};

/// How an access reaches memory.
enum class Memory : std::uint8_t { device, uncached, cached };

/// A descriptor that a walk read.
struct WalkRead {
  std::uint64_t address;  ///< physical
  bool cached;
};

/// Where an access goes.
struct Translation {
  bool valid = false;
  std::uint64_t address = 0;  ///< physical
  Memory memory = Memory::device;
  std::array<WalkRead, 24> read{};  ///< 4 of stage 1, each with 4 of stage 2, and 4 more
  unsigned reads = 0;

  [[nodiscard]] std::span<const WalkRead> walk() const { return std::span(read).first(reads); }
};

/// Reads 64 bits of physical memory; false: there is none.
using ReadMemory = bool (*)(std::uint64_t address, std::uint64_t& value);

/// Translates an address.
Translation translate(Regime regime, const Controls& controls, std::uint64_t address,
                      bool instruction, ReadMemory read);

}  // namespace latenz::coherence
