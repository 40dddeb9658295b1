// SPDX-License-Identifier: Apache-2.0
// Events as kernels write them, with what a file brings along to read them by: formats of events,
// names of threads and of functions. trace.dat has these in parts of its own, perf.data together.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace_event.hpp"
#include "trace_format.hpp"
#include "trace_source.hpp"

namespace latenz::trace {

/// Of threads and clocks; the kernel's are shorter.
inline constexpr std::size_t longest_name = 64;
/// Of one description of an event, or of the ring buffer, in bytes.
inline constexpr std::uint64_t largest_format = 1U << 20U;

class KernelEvents {
 public:
  explicit KernelEvents(bool big_endian = false) : big_endian_(big_endian) {}

  /// Each of these throws `Damage`; what was read before stays.
  /// A count, and so many descriptions with their sizes.
  void read_formats(Cursor& cursor);
  /// A count, and so many systems: name, and descriptions as above.
  void read_systems(Cursor& cursor);
  /// A size, and so many bytes of the file saved_cmdlines.
  void read_command_lines(Cursor& cursor);

  void set_functions(Functions functions) { functions_ = std::move(functions); }
  /// The newest name counts; beyond some hundred thousand threads, new ones have none.
  void name_thread(int pid, std::string_view comm);
  [[nodiscard]] bool has_formats() const { return !formats_.empty(); }

  /// A record's description by the number that it begins with; one without a name if it has none.
  [[nodiscard]] const Format& format_of(std::span<const std::uint8_t> record) const;

  /// An event but for its time and CPU, which stays valid as long as `fields`, and until the next.
  [[nodiscard]] Event decode(std::span<const std::uint8_t> record, BinaryFields& fields);

 private:
  void add_format(const std::string& text);
  void learn_names(const Event& event);

  bool big_endian_;
  std::vector<std::unique_ptr<Format>> formats_;  ///< by their numbers; nothing: not described
  std::uint64_t format_bytes_ = 0;                ///< of the texts that described them
  std::unordered_map<int, std::string> names_;    ///< of threads, by their ids
  Functions functions_;
  std::array<char, 5> flags_{};  ///< of the event that was decoded last
};

}  // namespace latenz::trace
