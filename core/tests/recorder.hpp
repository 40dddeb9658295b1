// SPDX-License-Identifier: Apache-2.0
// An observer that keeps all that a simulation does, pieces of one activity joined.
#pragma once

#include <cstdint>
#include <ostream>
#include <vector>

#include "latenz/simulator.hpp"

struct Segment {
  latenz::Activity activity;
  std::uint32_t partition;
  std::uint32_t source;
  std::int64_t start;
  std::int64_t end;

  bool operator==(const Segment&) const = default;

  [[nodiscard]] bool continues(const Segment& other) const {
    return other.end == start && other.activity == activity && other.partition == partition &&
           other.source == source;
  }
};

inline std::ostream& operator<<(std::ostream& out, const Segment& segment) {
  return out << "{" << static_cast<int>(segment.activity) << ", p" << segment.partition << ", s"
             << segment.source << ", " << segment.start << " .. " << segment.end << "}";
}

struct Recorder {
  static constexpr bool segments = true;

  std::vector<latenz::IrqRecord> irqs;
  std::vector<Segment> schedule;  ///< as it came
  std::size_t most_irqs = SIZE_MAX;

  void irq(const latenz::IrqRecord& record) { irqs.push_back(record); }

  void segment(latenz::Activity activity, std::uint32_t partition, std::uint32_t source,
               latenz::Instant start, latenz::Instant end) {
    schedule.push_back({.activity = activity,
                        .partition = partition,
                        .source = source,
                        .start = start.ns(),
                        .end = end.ns()});
  }

  [[nodiscard]] bool full() const { return irqs.size() >= most_irqs; }

  [[nodiscard]] std::vector<Segment> joined() const {
    std::vector<Segment> all;
    for (const Segment& segment : schedule) {
      if (!all.empty() && segment.continues(all.back())) {
        all.back().end = segment.end;
      } else {
        all.push_back(segment);
      }
    }
    return all;
  }
};
