// SPDX-License-Identifier: Apache-2.0
// Translation tables, 4 KiB granule, 36 bit addresses, starting at level 1: the hypervisor's own
// (stage 1) and those that confine guests (stage 2). Arm Architecture Reference Manual, D8.
#pragma once

#include <cstdint>

namespace latenz::hypervisor {

/// Bits of a block or page descriptor besides the address.
struct Stage1 {
  static constexpr std::uint64_t common = (1ULL << 10U) | (1ULL << 6U);  // accessed; RES1 at EL2
  static constexpr std::uint64_t read_only = 1ULL << 7U;
  static constexpr std::uint64_t never_execute = 1ULL << 54U;
  static constexpr std::uint64_t normal = 3ULL << 8U;  // attribute 0, inner shareable
  static constexpr std::uint64_t device = 1ULL << 2U;  // attribute 1
  static constexpr std::uint64_t attributes = 0x04FF;  // 0: write back; 1: device nGnRE
  static constexpr std::uint64_t code = common | read_only | normal;
  static constexpr std::uint64_t constants = common | read_only | never_execute | normal;
  static constexpr std::uint64_t data = common | never_execute | normal;
  static constexpr std::uint64_t registers = common | never_execute | device;
};

struct Stage2 {
  static constexpr std::uint64_t accessed = 1ULL << 10U;
  static constexpr std::uint64_t readable = 1ULL << 6U;
  static constexpr std::uint64_t writable = 1ULL << 7U;
  static constexpr std::uint64_t never_execute = 1ULL << 54U;
  static constexpr std::uint64_t normal = (3ULL << 8U) | (0xFULL << 2U);  // write back, inner
  static constexpr std::uint64_t device = 1ULL << 2U;                     // nGnRE
  static constexpr std::uint64_t memory = accessed | readable | writable | normal;
  static constexpr std::uint64_t code = accessed | readable | normal;
  static constexpr std::uint64_t constants = code | never_execute;
  static constexpr std::uint64_t shared = memory | never_execute;
  static constexpr std::uint64_t registers =
      accessed | readable | writable | device | never_execute;
};

/// The root of an address space.
class TranslationTable {
 public:
  static constexpr std::uint64_t page = 0x1000;
  static constexpr std::uint64_t block = 0x20'0000;
  static constexpr std::uint64_t address_end = 1ULL << 36U;

  /// Maps whole pages, in blocks where both addresses allow it.
  ///
  /// @return false if the pool of tables is used up, an address is no multiple of a page or beyond
  ///         the end, or something is mapped there already; what was mapped until then stays
  [[nodiscard]] bool map(std::uint64_t from, std::uint64_t to, std::uint64_t size,
                         std::uint64_t attributes);

  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(root_); }

 private:
  bool map_one(std::uint64_t from, std::uint64_t to, bool whole_block, std::uint64_t attributes);

  std::uint64_t* root_ = nullptr;
};

}  // namespace latenz::hypervisor
