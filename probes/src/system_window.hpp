// SPDX-License-Identifier: Apache-2.0
// What happened on each CPU between two readings of /proc, of the SMI counter and of the frequency:
// coarse, but needs no privilege. Read by the recording thread only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "file.hpp"

namespace latenz::probe {

/// One reading; CPUs are indexed by number.
struct SystemReading {
  std::int64_t taken_ns = 0;  ///< on the clock of the run
  std::vector<std::int64_t> steal_ns;
  std::vector<std::optional<std::uint64_t>> smis;
  std::map<std::string, std::vector<std::uint64_t>> interrupts;  ///< by name, then CPU
};

/// Steal time by CPU number from the text of /proc/stat, in ticks of `tick_ns`.
[[nodiscard]] std::vector<std::int64_t> parse_steal_ns(const std::string& stat,
                                                       std::int64_t tick_ns);

/// Counts by interrupt ("24:ttyS0", "LOC") and CPU number from the text of /proc/interrupts.
[[nodiscard]] std::map<std::string, std::vector<std::uint64_t>> parse_interrupts(
    const std::string& text);

class SystemReader {
 public:
  /// `with_interrupts`: read /proc/interrupts as well, which costs on machines with many CPUs.
  SystemReader(const std::vector<unsigned>& cpus, bool with_interrupts);

  [[nodiscard]] SystemReading read(std::int64_t now_ns);

  /// Current frequency of a CPU in kHz, where the kernel tells it.
  [[nodiscard]] static std::optional<std::int64_t> frequency_khz(unsigned cpu);

  /// "24:ttyS0" for interrupt 24; the bare number if the kernel does not name it.
  [[nodiscard]] static std::string interrupt_name(std::uint64_t number);

 private:
  File stat_;
  File interrupts_;
  std::map<unsigned, File> msrs_;
  std::int64_t tick_ns_;
  std::string text_;
};

}  // namespace latenz::probe
