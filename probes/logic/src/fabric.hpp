// SPDX-License-Identifier: Apache-2.0
// A compiled design in step with a processor: for each access and each edge it is brought to the
// processor's time, clock edge by clock edge.
//
// While the processor waits for an access its own clock, which counts instructions, stands still,
// and the design's goes on: the design's time is the processor's plus all it has waited for the
// bus. So an interrupt that comes meanwhile is as late as on a bus that is as fast as the design.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>

#include "logic.hpp"

namespace latenz::logic {

using compiled::Bus;
using compiled::Logic;
using compiled::Pins;

/// What a slave has answered.
struct Answer {
  std::uint32_t data;
  std::uint32_t response;  ///< 0: okay
};

/// A slave never answers, or a clock cannot be.
class Mistake : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// All times are the processor's, in nanoseconds, and never before the last one that was told.
class Fabric {
 public:
  /// The design is reset at time 0; `scout`, another one like it, looks ahead.
  Fabric(std::unique_ptr<Logic> logic, std::unique_ptr<Logic> scout, std::int64_t period_ns);

  /// Sets the interrupt of the processor at the design.
  void request(std::int64_t now_ns, bool level);

  [[nodiscard]] Answer read(std::int64_t now_ns, std::size_t bus, std::uint32_t address);
  [[nodiscard]] Answer write(std::int64_t now_ns, std::size_t bus, std::uint32_t address,
                             std::uint32_t data);

  /// Passes every clock edge up to and with a time.
  void advance(std::int64_t now_ns);

  /// The interrupt of the design at the processor.
  [[nodiscard]] bool interrupt() const { return *pins_.interrupt != 0; }

  /// When that will change, or must be asked again, unless anything is done before; never if it
  /// cannot change by itself.
  [[nodiscard]] std::optional<std::int64_t> next_change_ns();

  /// Clock edges that have passed since the reset; where nothing could change they were only
  /// counted.
  [[nodiscard]] std::int64_t edges() const { return edges_; }

 private:
  /// Passes edges until one sees the signal of a handshake; what it sees can be looked at before.
  template <typename See>
  void pass(const std::uint32_t* signal, See see);
  void waited_until_now(std::int64_t now_ns) { waited_ns_ = edges_ * period_ns_ - now_ns; }

  std::unique_ptr<Logic> logic_;
  std::unique_ptr<Logic> scout_;
  Pins pins_;
  Pins scout_pins_;
  std::int64_t period_ns_;
  std::int64_t edges_ = 0;
  std::int64_t waited_ns_ = 0;  ///< by how much the design's time is before the processor's
  bool quiet_ = false;          ///< another edge changes nothing
};

}  // namespace latenz::logic
