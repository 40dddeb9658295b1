// SPDX-License-Identifier: Apache-2.0
// What the hypervisor does one after the other, as records of the trace. Freestanding.
#pragma once

#include <cstdint>
#include <span>

#include "trace.hpp"

namespace latenz::hypervisor {

/// A section is what the hypervisor does for a while; it becomes a record when it ends, at the
/// latest when the next one begins. Times are ticks.
class TraceSections {
 public:
  void place(std::span<TraceRecord> room) { trace_.place(room); }

  /// @param section without its duration
  void open(const TraceRecord& section) {
    close(section.start);
    section_ = section;
    is_open_ = true;
  }

  void close(std::uint64_t at) {
    if (!is_open_) return;
    section_.duration = static_cast<std::uint32_t>(at - section_.start);
    trace_.write(section_);
    is_open_ = false;
  }

  /// The open one is forgotten.
  void forget() { is_open_ = false; }

  /// Nothing is written any more.
  void end() {
    is_open_ = false;
    trace_.end();
  }

  [[nodiscard]] bool any_open() const { return is_open_; }
  void set_detail(std::uint32_t detail) { section_.detail = detail; }

  [[nodiscard]] const Trace& trace() const { return trace_; }

 private:
  Trace trace_;
  TraceRecord section_{};
  bool is_open_ = false;
};

}  // namespace latenz::hypervisor
