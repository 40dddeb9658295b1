// SPDX-License-Identifier: Apache-2.0
// The first thing said: what runs, where, and with which parameters, as JSON.
#pragma once

#include <cstdint>
#include <string_view>

#include "latenz/text.hpp"
#include "measurement.hpp"

namespace latenz::firmware {

/// What only the program itself knows.
struct Running {
  std::string_view timer;
  std::uint64_t timer_hz;
  bool polled;
  unsigned entry_level;
};

inline void say_hello(const Parameters& wanted, const Plan& plan, const Running& running) {
  static Text<1024> text;
  text.clear();
  const auto field = [](std::string_view name, std::string_view value) {
    text.add("\"").add(name).add("\": \"").add(value).add("\", ");
  };
  const auto number = [](std::string_view name, std::uint64_t value, std::string_view then) {
    text.add("\"").add(name).add("\": ").add(value).add(then);
  };
  text.add("{");
  number("protocol", 1, ", ");
  field("program", "latency");
  field("version", LATENZ_VERSION);
  field("board", Board::name);
  field("core", Board::core);
  number("entry_level", running.entry_level, ", ");
  field("optimization", LATENZ_OPTIMIZATION);
  field("timer", running.timer);
  number("timer_hz", running.timer_hz, ", ");
  text.add("\"interrupt\": ").add(running.polled ? "false" : "true").add(", ");
  text.add("\"parameters\": {");
  number("samples", wanted.samples, ", ");
  number("warm_up", wanted.warm_up, ", ");
  field("arrivals", wanted.arrivals == Arrivals::exponential ? "exponential" : "periodic");
  number("period_ticks", plan.period, ", ");
  number("min_distance_ticks", plan.min_distance, ", ");
  number("seed", wanted.seed, ", ");
  number("start_after_ns", wanted.start_after_ns, ", ");
  field("wait", wanted.wait == Wait::wfi ? "wfi" : "poll");
  number("sender", wanted.sender, "}}");
  output().text(FrameKind::hello, text.view());
}

}  // namespace latenz::firmware
