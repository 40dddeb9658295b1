// SPDX-License-Identifier: Apache-2.0
// What was found, once for each pair of places, as lines of text:
//
//   latenz-coherence 1 TARGET CORES
//   found READING CAUSE PHYSICAL VIRTUAL TIME READER WRITER
//   note TEXT
//   end ACCESSES MAINTENANCE
//
// READING is load, walk or fetch. Addresses are hexadecimal. TIME is the virtual time in ns. READER
// and WRITER are CORE:LEVEL:ADDRESS of the instruction, or - where it was not seen.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <unordered_set>
#include <vector>

#include "cache_line.hpp"

namespace latenz::coherence {

enum class Reading : std::uint8_t { load, walk, fetch };

/// An instruction, at the exception level at which it is executed.
struct Site {
  std::uint64_t address = 0;
  std::uint32_t number = 0;
  std::uint8_t level = 0;
};

/// What was read, and what may be wrong with it.
struct Finding {
  Reading reading;
  Hazard hazard;
  std::uint64_t physical;
  std::uint64_t address;  ///< virtual; of a walk what is translated
  Place by;
};

class Findings {
 public:
  /// Opens the file; false: that is not possible.
  bool open(const char* path);
  void begin(const char* target, int cores);
  void end(std::uint64_t accesses, std::uint64_t maintenance);

  /// Returns the place of a site on a core.
  static Place place(const Site& site, unsigned core) { return (site.number << 3U) | core; }
  /// Returns a new site.
  Site* add(std::uint64_t address, unsigned level);

  void add(const Finding& finding, std::int64_t time_ns);
  void note(const std::string& text);

 private:
  [[nodiscard]] std::string told(Place place) const;

  static constexpr std::size_t most = 5000;
  std::FILE* file_ = nullptr;
  std::vector<Site*> sites_{nullptr};  ///< by number; never freed: QEMU holds them
  std::unordered_set<std::string> known_;
};

}  // namespace latenz::coherence
