// SPDX-License-Identifier: Apache-2.0
// perf.data: samples of tracepoints, as `perf record -e SYSTEM:EVENT` writes them.
//
// Format: tools/perf/Documentation/perf.data-file-format.txt and perf_event_open(2). A sample holds
// the kernel's own record of the event, and the file the formats to read it by. Everything is
// checked before it is used; what cannot be read is left out and told.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace_budget.hpp"
#include "trace_event.hpp"
#include "trace_kernel.hpp"
#include "trace_source.hpp"

namespace latenz::trace {

inline constexpr std::size_t perf_magic_size = 8;
/// Does a file that begins so come from perf, in either byte order?
[[nodiscard]] bool is_perf(std::span<const std::uint8_t> start);

class TracePerf {
 public:
  /// Reads all but the events. Throws `probe::Failure` if there are none that can be used.
  explicit TracePerf(const FileSource& file);

  /// Hands all events of tracepoints over in the order of their times.
  void read(Consumer& consumer);

  /// Complete after `read`.
  [[nodiscard]] const Description& description() const { return description_; }

 private:
  struct Place {  ///< of a part of the file
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  struct Attribute {  ///< of an event, as perf_event_open was given it
    std::uint32_t type = 0;
    std::uint64_t sample_type = 0;
    std::uint64_t read_format = 0;
    bool has_sample_id = false;  ///< time and CPU also behind what is not a sample
  };
  struct Pending {  ///< a record that waits for those of other CPUs
    std::uint64_t t_ns = 0;
    std::uint64_t number = 0;  ///< in the file
    std::uint32_t type = 0;
    std::vector<std::uint8_t> body;
    [[nodiscard]] bool operator>(const Pending& other) const {
      return t_ns != other.t_ns ? t_ns > other.t_ns : number > other.number;
    }
  };
  struct Sample {
    std::uint64_t t_ns = 0;
    int cpu = 0;
    std::span<const std::uint8_t> raw;
  };
  class Words;

  void read_header(Cursor cursor);
  void read_attributes(const Place& attributes, std::uint64_t attribute_size);
  void read_identities(const Place& identities, std::size_t attribute);
  void check_attributes() const;
  void read_features(const std::array<std::uint64_t, 4>& features);
  void read_tracing_data(const Place& place);

  [[nodiscard]] std::span<const std::uint8_t> bytes(std::uint64_t offset, std::uint64_t size);
  std::uint64_t keep(std::uint32_t type, std::span<const std::uint8_t> body, std::uint64_t place);
  void deliver_until(std::uint64_t t_ns, Consumer& consumer);
  void deliver(const Pending& record, Consumer& consumer);
  void deliver_sample(std::span<const std::uint8_t> body, Consumer& consumer);
  void deliver_lost(const Pending& record, Consumer& consumer) const;
  [[nodiscard]] const Attribute* attribute_of(std::span<const std::uint8_t> body) const;
  [[nodiscard]] std::optional<Sample> sample_of(const Attribute& attribute,
                                                std::span<const std::uint8_t> body) const;
  [[nodiscard]] std::optional<std::uint64_t> behind(std::span<const std::uint8_t> body,
                                                    std::uint64_t field) const;
  [[nodiscard]] std::uint64_t time_of(std::uint32_t type, std::span<const std::uint8_t> body) const;

  const FileSource& file_;
  Budget budget_;
  Description description_;
  bool big_endian_ = false;
  Place data_;
  std::vector<Attribute> attributes_;
  std::unordered_map<std::uint64_t, std::size_t> attribute_by_id_;
  KernelEvents events_;
  std::vector<std::uint8_t> window_;  ///< bytes of the file from window_offset_ on
  std::uint64_t window_offset_ = 0;
  std::priority_queue<Pending, std::vector<Pending>, std::greater<>> pending_;
  std::uint64_t numbered_ = 0;
};

}  // namespace latenz::trace
