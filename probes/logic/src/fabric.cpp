// SPDX-License-Identifier: Apache-2.0
#include "fabric.hpp"

#include <algorithm>
#include <utility>

namespace latenz::logic {
namespace {

constexpr int reset_cycles = 4;
constexpr int longest_answer = 5000;  // cycles
constexpr std::int64_t look_ahead =
    16384;  // cycles; longer than what interrupts wait for the logic
constexpr std::uint32_t all_bytes = 15;

/// One cycle; returns whether anything has changed. If not, none after it changes anything either:
/// the same registers and the same inputs make the same registers.
bool passes_cycle(Logic& logic, const Pins& pins) {
  *pins.aclk = 0;
  const bool low = logic.settle();
  *pins.aclk = 1;
  const bool high = logic.settle();
  return low || high;
}

}  // namespace

Fabric::Fabric(std::unique_ptr<Logic> logic, std::unique_ptr<Logic> scout, std::int64_t period_ns)
    : logic_(std::move(logic)),
      scout_(std::move(scout)),
      pins_(logic_->pins()),
      scout_pins_(scout_->pins()),
      period_ns_(period_ns) {
  if (period_ns < 1) throw Mistake("a clock period is at least 1 ns");
  *pins_.aresetn = 0;
  for (int i = 0; i < reset_cycles; ++i) static_cast<void>(passes_cycle(*logic_, pins_));
  *pins_.aresetn = 1;
}

void Fabric::advance(std::int64_t now_ns) {
  const std::int64_t due = (now_ns + waited_ns_) / period_ns_;
  for (; edges_ < due && !quiet_; ++edges_) quiet_ = !passes_cycle(*logic_, pins_);
  edges_ = std::max(edges_, due);
}

void Fabric::request(std::int64_t now_ns, bool level) {
  advance(now_ns);
  *pins_.request = level ? 1 : 0;
  quiet_ = false;
}

template <typename See>
void Fabric::pass(const std::uint32_t* signal, See see) {
  for (int i = 0; i < longest_answer; ++i) {
    *pins_.aclk = 0;
    logic_->settle();
    const bool passes = *signal != 0;
    if (passes) see();
    *pins_.aclk = 1;
    logic_->settle();
    ++edges_;
    if (passes) return;
  }
  throw Mistake("a slave does not answer");
}

Answer Fabric::read(std::int64_t now_ns, std::size_t bus, std::uint32_t address) {
  advance(now_ns);
  quiet_ = false;
  const Bus& port = pins_.buses.at(bus);
  Answer answer{};
  *port.araddr = address;
  *port.arvalid = *port.rready = 1;
  pass(port.arready, [] {});
  *port.arvalid = 0;
  pass(port.rvalid, [&] { answer = {*port.rdata, *port.rresp}; });
  *port.rready = 0;
  waited_until_now(now_ns);
  return answer;
}

Answer Fabric::write(std::int64_t now_ns, std::size_t bus, std::uint32_t address,
                     std::uint32_t data) {
  advance(now_ns);
  quiet_ = false;
  const Bus& port = pins_.buses.at(bus);
  Answer answer{};
  *port.awaddr = address;
  *port.wdata = data;
  *port.wstrb = all_bytes;
  *port.awvalid = *port.wvalid = *port.bready = 1;
  pass(port.awready, [] {});
  *port.awvalid = *port.wvalid = 0;
  pass(port.bvalid, [&] { answer = {0, *port.bresp}; });
  *port.bready = 0;
  waited_until_now(now_ns);
  return answer;
}

std::optional<std::int64_t> Fabric::next_change_ns() {
  if (quiet_) return std::nullopt;
  scout_->copy_from(*logic_);
  for (std::int64_t ahead = 1; ahead <= look_ahead; ++ahead) {
    const bool changed = passes_cycle(*scout_, scout_pins_);
    const bool turned = *scout_pins_.interrupt != *pins_.interrupt;
    if (turned || ahead == look_ahead) return (edges_ + ahead) * period_ns_ - waited_ns_;
    if (!changed) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace latenz::logic
