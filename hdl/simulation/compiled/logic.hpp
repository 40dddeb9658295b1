// SPDX-License-Identifier: Apache-2.0
// A design that was compiled to native code, as whoever loads it sees it: its pins, one step of its
// gates, and its state. The bench (latency_bench) has five buses and one interrupt in each
// direction.
//
// In a cycle inputs change while the clock is low, and `settle` lets the outputs follow; then the
// clock rises, and `settle` again. What the pins are just before the rising edge is what it sees.
#pragma once

#include <array>
#include <cstdint>

namespace latenz::compiled {

/// The pins of an AXI4-Lite slave.
struct Bus {
  std::uint32_t *awaddr, *awvalid, *awready, *wdata, *wstrb, *wvalid, *wready, *bresp, *bvalid,
      *bready, *araddr, *arvalid, *arready, *rdata, *rresp, *rvalid, *rready;
};

inline constexpr std::size_t bus_count = 5;

struct Pins {
  std::uint32_t *aclk, *aresetn, *request;
  const std::uint32_t* interrupt;
  std::array<Bus, bus_count> buses;  ///< S00 and S01 of T1, of T2, and the generator
};

class Logic {
 public:
  Logic() = default;
  Logic(const Logic&) = delete;
  Logic& operator=(const Logic&) = delete;
  Logic(Logic&&) = delete;
  Logic& operator=(Logic&&) = delete;
  virtual ~Logic() = default;

  /// They stay where they are.
  [[nodiscard]] virtual Pins pins() = 0;

  /// Lets the gates settle after pins have changed; returns whether any register, memory or loop of
  /// gates has.
  virtual bool settle() = 0;

  /// Takes over pins, registers and memories of another one of the same design.
  virtual void copy_from(Logic& other) = 0;
};

/// What a compiled design exports under the name `latenz_logic_create`.
using Create = Logic* (*)();

}  // namespace latenz::compiled
