// SPDX-License-Identifier: Apache-2.0
// What is known of a core: its translations, and its maintenance that is not known to be complete.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cache_line.hpp"
#include "instruction.hpp"
#include "translation.hpp"

namespace latenz::coherence {

inline constexpr unsigned most_cores = 7;
inline constexpr unsigned page_bits = 12;
inline constexpr std::uint64_t page_size = std::uint64_t{1} << page_bits;
inline constexpr std::size_t lines_a_page = page_size / line_size;

/// A page of memory: its lines, and by which cores' cacheable mappings it was reached.
struct Page {
  std::array<Line, lines_a_page> lines{};
  /// The life of each core's mappings (`Core::life`) in which it was last mapped as cacheable.
  std::array<std::array<std::uint32_t, regimes>, most_cores> mapped_in{};

  [[nodiscard]] Line& at(std::uint64_t address) {
    return lines[(address % page_size) >> line_bits];
  }
};

/// A translation that a core has used.
struct TlbEntry {
  std::uint64_t number = ~std::uint64_t{0};  ///< of the virtual page
  std::uint64_t address = 0;                 ///< physical, of the page
  Page* page = nullptr;                      ///< null: no memory is there, but a device
  std::uint32_t generation = 0;
  bool cached = false;
};

/// Maintenance by set and way: it does what it should once every set and way of both levels was
/// named. Sizes are those of a ZCU102: 32 KiB with 4 ways, 1 MiB with 16.
class SetSweep {
 public:
  /// Takes one operation's argument. Returns whether it completes a sweep.
  bool add(std::uint64_t argument) {
    const std::uint64_t level = (argument >> 1U) & 7U;
    if (level > 1) return false;
    seen_.at(level).insert(argument >> 4U);
    if (seen_[0].size() < 512 || seen_[1].size() < 16384) return false;
    seen_ = {};
    return true;
  }

 private:
  std::array<std::unordered_set<std::uint64_t>, 2> seen_;
};

/// A line as it was before maintenance that no barrier has followed yet.
struct Unfinished {
  Data before;
};

/// Maintenance for instructions, which only a barrier completes.
struct Pending {
  Line* line;
  std::uint32_t begun;
};

struct Core {
  static constexpr std::size_t tlb_size = 1024;
  using Tlb = std::array<TlbEntry, tlb_size>;

  const void* identity = nullptr;  ///< QEMU's own object
  unsigned number = 0;
  bool is_a64 = false;          ///< other cores have caches of their own that are not modelled
  bool controls_known = false;  ///< else they are to be read again
  std::array<Controls, regimes> controls{};
  std::array<std::uint32_t, regimes> generation{1, 1, 1};  ///< of TLB entries
  std::array<std::uint32_t, regimes> life{1, 1, 1};        ///< of mappings that may be prefetched
  std::array<std::unique_ptr<Tlb>, regimes> tlb;

  std::unordered_map<Line*, Unfinished> unfinished;
  std::vector<Pending> cleaned;  ///< to where instructions are read
  std::vector<Pending> dropped;  ///< from instruction caches
  std::uint32_t drop_begun = 0;  ///< 0: none
  bool drop_reaches_all = false;
  std::uint32_t all_dropped = 0;  ///< when its whole instruction cache was dropped
  SetSweep cleaning;
  SetSweep dropping;

  void forget(Regime regime, bool everything) {
    const auto at = static_cast<std::size_t>(regime);
    ++generation.at(at);
    if (everything) ++life.at(at);
  }
};

}  // namespace latenz::coherence
