// SPDX-License-Identifier: Apache-2.0
// What latenz-trace does with the events of a trace, without its output.
#pragma once

#include <cstdint>

#include "failure.hpp"
#include "json.hpp"
#include "target.hpp"
#include "trace_event.hpp"
#include "trace_source.hpp"
#include "trace_summary.hpp"

namespace latenz::fuzz {

/// Summarises events, and words each as `latenz-trace events` does.
class EveryEvent final : public trace::Consumer {
 public:
  void event(const trace::Event& event) override {
    summary_.event(event);
    probe::Json json;
    json.open_object().member("t_ns", event.t_ns).member("comm", event.comm);
    event.fields->write(json.key("fields").open_object());
    json.close_object().close_object();
  }
  void lost(int cpu, std::uint64_t count) override { summary_.lost(cpu, count); }

  void finish() const {
    probe::Json json;
    json.open_object();
    summary_.write(json);
    json.close_object();
  }

 private:
  static constexpr std::size_t worst = 10;
  trace::Summary summary_{worst};
};

/// Reads a file as one kind of trace; a refusal is one line.
template <typename Trace>
void read_trace(Input input) {
  static const InputFile file;
  file.put(input);
  try {
    const trace::FileSource source(file.path());
    Trace trace(source);
    EveryEvent events;
    if constexpr (requires { trace.read(events, true, true); }) {
      trace.read(events, true, true);
    } else {
      trace.read(events);
    }
    events.finish();
  } catch (const probe::Failure& failure) {
    const std::string told = failure.what();
    require(told.find_first_of("\n\r\x1b") == std::string::npos, "a refusal is one line");
  }
}

}  // namespace latenz::fuzz
