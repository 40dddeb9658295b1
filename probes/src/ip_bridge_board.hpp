// SPDX-License-Identifier: Apache-2.0
// The Latencies IPs of this board, found by the names of their UIO devices, and what a request does
// to them. hdl/devicetree has the overlay that makes these devices.
//
// A register that an IP does not have is never touched: on Cortex-A53 the bus error of a read
// becomes SIGBUS, but that of a write cannot be attributed, and Linux panics. A ring writer is
// given no memory but the one that the device tree says is its ring's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ip_bridge_protocol.hpp"
#include "latenz/ip/configuration.hpp"
#include "mapped_device.hpp"

namespace latenz::probe {

/// The ring in memory that a stream_ring_writer fills.
struct RingPlace {
  std::uint64_t base = 0;       ///< physical address
  std::uint32_t size_log2 = 0;  ///< 2 to this power records
};

/// A device as /sys/class/uio tells it.
struct UioDevice {
  std::filesystem::path device;  ///< below /dev
  std::filesystem::path folder;  ///< below /sys/class/uio

  /// Maps registers by the name of their map, else by its number. Throws `Failure`.
  [[nodiscard]] MappedDevice map(std::string_view name, unsigned number) const;

  /// The number of the map of a name.
  [[nodiscard]] std::optional<unsigned> map_named(std::string_view name) const;

  /// The bytes of a property of its node in the device tree.
  [[nodiscard]] std::optional<std::string> property(std::string_view name) const;
};

/// Registers of one UIO device, and what may be done with them.
class BridgeWindow {
 public:
  enum class Kind : std::uint8_t { samples, registers, generator, ring_writer, ring };

  BridgeWindow(MappedDevice device, Kind kind, const ip::Configuration& configuration,
               const RingPlace& ring)
      : device_(std::move(device)), kind_(kind), configuration_(configuration), ring_(ring) {}

  /// Words of a request, in order, until one fails. Refused before the first access if a word is
  /// outside the device, or none is asked for.
  [[nodiscard]] BridgeResponse answer(const BridgeRequest& request) const;

  [[nodiscard]] bool loses_data_when_read() const { return kind_ == Kind::generator; }

 private:
  [[nodiscard]] BridgeResponse read(const BridgeRequest& request) const;
  [[nodiscard]] BridgeResponse write(const BridgeRequest& request) const;
  [[nodiscard]] bool may_read(std::uint32_t offset) const;
  [[nodiscard]] bool may_write(std::uint32_t offset, std::uint32_t word) const;
  [[nodiscard]] bool may_write_ring_writer(std::uint32_t offset, std::uint32_t word) const;

  MappedDevice device_;
  Kind kind_;
  ip::Configuration configuration_;
  RingPlace ring_;
};

class BridgeBoard {
 public:
  /// Finds the devices below `root`, which is "/" but in tests. Throws `Failure` if there are none,
  /// or one is not what its name and node say.
  explicit BridgeBoard(const std::filesystem::path& root);

  [[nodiscard]] const std::string& description() const { return description_; }
  [[nodiscard]] std::size_t windows() const { return windows_.size(); }

  /// The response to a request of these registers, as bytes.
  [[nodiscard]] std::vector<std::byte> answer(const BridgeRequest& request) const;

  /// How long a request wants its response to be waited for.
  [[nodiscard]] std::int64_t wait_ns(const BridgeRequest& request) const;

  /// Would another client notice the request? So do writes, and reads that take data away.
  [[nodiscard]] bool is_change(const BridgeRequest& request) const;

 private:
  /// Returns the number of the window.
  std::size_t add(MappedDevice device, BridgeWindow::Kind kind,
                  const ip::Configuration& configuration, const RingPlace& ring = {});

  std::vector<BridgeWindow> windows_;
  std::uint32_t clock_hz_ = 0;
  std::string description_;
};

}  // namespace latenz::probe
