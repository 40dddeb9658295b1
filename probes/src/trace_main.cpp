// SPDX-License-Identifier: Apache-2.0
// latenz-trace: reads traces of the kernel (trace.dat, perf.data, ftrace, trace-cmd report,
// perf script).
//
//   latenz-trace summary FILE [WORST]          one JSON document
//   latenz-trace events FILE FROM:TO[:MOST]... one JSON line for each event in these times (ns),
//                                              of each window the first MOST ones
//   latenz-trace times FILE MOST NAME...       the first MOST events of these names, or of any name
//                                              without one: each as four 64-bit integers
//                                              (time, CPU, thread, place of its name)
//   latenz-trace windows FILE [preemptible|points]
//                                              the windows that delay wake-ups, on each CPU where a
//                                              real-time thread is woken by a timer: of a kernel
//                                              that preempts its own code, or at points only
//   latenz-trace --clock host ...              times of a guest's file by the host's clock, as
//                                              trace-cmd tells it there
//   latenz-trace --clock MULTIPLIER:SHIFT:OFFSET ...
//                                              times by another clock, which is
//                                              (time * MULTIPLIER >> SHIFT) + OFFSET
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "program.hpp"
#include "trace_read.hpp"
#include "trace_reasons.hpp"
#include "trace_summary.hpp"
#include "trace_windows.hpp"
#include "trace_words.hpp"

namespace latenz::trace {
namespace {

constexpr const char* usage =
    "usage: latenz-trace [--clock host|MULTIPLIER:SHIFT:OFFSET] summary FILE [WORST] | "
    "events FILE FROM:TO[:MOST]... | times FILE MOST NAME... | windows FILE [preemptible|points]";
constexpr std::size_t default_worst = 10;

struct Window {
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;                                        ///< belongs to it, as the first
  std::uint64_t left = std::numeric_limits<std::uint64_t>::max();  ///< events that it still takes
};

/// Prints the events in the windows, as they come.
class Printer final : public Consumer {
 public:
  explicit Printer(std::vector<Window> windows) : windows_(std::move(windows)) {}

  void event(const Event& event) override {
    bool is_wanted = false;
    for (Window& window : windows_) {
      const bool takes =
          window.left > 0 && window.first_ns <= event.t_ns && event.t_ns <= window.last_ns;
      window.left -= takes ? 1 : 0;
      is_wanted = is_wanted || takes;
    }
    if (!is_wanted) return;
    probe::Json json;
    json.open_object().member("t_ns", event.t_ns).member("cpu", event.cpu);
    json.member("pid", event.pid).member("comm", event.comm).member("name", event.name);
    if (!event.flags.empty()) json.member("flags", event.flags);
    json.key("fields").open_object();
    event.fields->write(json);
    json.close_object().close_object();
    print(json.text());
  }

  void lost(int /*cpu*/, std::uint64_t /*count*/) override {}

 private:
  static void print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() || std::putchar('\n') < 0) {
      throw probe::Failure("standard output cannot be written");
    }
  }

  std::vector<Window> windows_;
};

/// How the times of a file become those of another clock.
struct Clock {
  __extension__ using Wide = __int128;
  bool is_of_host = false;
  std::int64_t multiplier = 1;
  std::uint32_t shift = 0;
  std::int64_t offset = 0;

  [[nodiscard]] std::int64_t time(std::int64_t t_ns) const {
    const Wide scaled = (static_cast<Wide>(t_ns) * multiplier) >> shift;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(scaled) +
                                     static_cast<std::uint64_t>(offset));
  }
};

/// Hands events on with their times by another clock.
class Moved final : public Consumer {
 public:
  Moved(Consumer& next, const Clock& clock) : next_(next), clock_(clock) {}
  void event(const Event& event) override {
    Event moved = event;
    moved.t_ns = clock_.time(event.t_ns);
    next_.event(moved);
  }
  void lost(int cpu, std::uint64_t count) override { next_.lost(cpu, count); }

 private:
  Consumer& next_;
  Clock clock_;
};

/// Prints when events of some names were, in binary: millions of them are read at once.
class Times final : public Consumer {
 public:
  Times(std::vector<std::string_view> names, std::uint64_t most)
      : names_(std::move(names)), left_(most) {}

  void event(const Event& event) override {
    const auto found = std::ranges::find(names_, event.name);
    const bool is_wanted = names_.empty() || found != names_.end();
    if (!is_wanted || left_ == 0) return;
    --left_;
    const std::array<std::int64_t, 4> row = {event.t_ns, event.cpu, event.pid,
                                             found - names_.begin()};
    if (std::fwrite(row.data(), sizeof row, 1, stdout) != 1) {
      throw probe::Failure("standard output cannot be written");
    }
  }

  void lost(int /*cpu*/, std::uint64_t /*count*/) override {}

 private:
  std::vector<std::string_view> names_;
  std::uint64_t left_;
};

template <typename Number>
Number parse_number(std::string_view text) {
  Number number{};
  if (parse_all(text, number)) return number;
  throw probe::Failure("'" + std::string(text) + "' is not a number; " + usage);
}

Window parse_window(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) {
    throw probe::Failure("'" + std::string(text) + "' is not a window; " + usage);
  }
  const std::string_view rest = text.substr(colon + 1);
  const auto second = rest.find(':');
  Window window;
  window.first_ns = parse_number<std::int64_t>(text.substr(0, colon));
  window.last_ns = parse_number<std::int64_t>(rest.substr(0, second));
  if (second != std::string_view::npos) {
    window.left = parse_number<std::uint64_t>(rest.substr(second + 1));
  }
  return window;
}

Clock parse_clock(std::string_view text) {
  Clock clock;
  clock.is_of_host = text == "host";
  if (clock.is_of_host) return clock;
  constexpr std::uint32_t most_shift = 62;
  const auto first = text.find(':');
  const auto second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) {
    throw probe::Failure("'" + std::string(text) + "' is not a clock; " + usage);
  }
  clock.multiplier = parse_number<std::int64_t>(text.substr(0, first));
  clock.shift = parse_number<std::uint32_t>(text.substr(first + 1, second - first - 1));
  clock.offset = parse_number<std::int64_t>(text.substr(second + 1));
  if (clock.shift > most_shift) throw probe::Failure(usage);
  return clock;
}

Description read(const FileSource& file, Consumer& to, bool wants_functions, const Clock& clock) {
  Moved consumer(to, clock);
  return read_trace(file, consumer, wants_functions, clock.is_of_host);
}

void write(probe::Json& json, const Description& description) {
  json.member("format", description.format).member("version", description.version);
  json.member("compression", description.compression).member("clock", description.clock);
  json.key("buffers").open_array();
  for (const std::string& name : description.buffers) json.value(name);
  json.close_array();
  json.key("truncated_at");
  description.truncated_at.empty() ? json.null() : json.value(description.truncated_at);
  json.member("damages", description.damages);
  json.key("notes").open_array();
  for (const std::string& note : description.notes) json.value(note);
  json.close_array();
}

/// Numbers of 64 bits without a sign are told as text: readers of JSON keep 63 bits of them.
void write(probe::Json& json, const Session& session) {
  json.key("session").open_object();
  json.member("id", hex(session.id)).member("peer", hex(session.peer));
  json.member("has_shifts", !session.shifts.empty());
  json.member("tsc_multiplier", session.tsc_multiplier).member("tsc_shift", session.tsc_shift);
  json.key("guests").open_array();
  for (const Session::Guest& guest : session.guests) {
    json.open_object().member("name", guest.name).member("id", hex(guest.id));
    json.key("vcpus").open_array();
    for (const Session::Vcpu& vcpu : guest.vcpus) {
      json.open_object().member("cpu", vcpu.cpu).member("pid", vcpu.pid).close_object();
    }
    json.close_array().close_object();
  }
  json.close_array().close_object();
}

/// What is not known before the trace was read once is known the second time.
void tell_windows(const FileSource& file, std::optional<bool> preemptible, const Clock& clock) {
  TraceWindows survey;
  (void)read(file, survey, true, clock);
  survey.finish();
  TraceWindows windows(survey, preemptible);
  const Description description = read(file, windows, true, clock);
  windows.finish();
  probe::Json json;
  json.open_object();
  write(json, description);
  windows.write(json);
  json.close_object();
  probe::print(stdout, json.text() + "\n");
}

int run(std::span<const char* const> arguments) {
  Clock clock;
  if (arguments.size() > 2 && std::string_view(arguments[0]) == "--clock") {
    clock = parse_clock(arguments[1]);
    arguments = arguments.subspan(2);
  }
  if (arguments.size() < 2) throw probe::Failure(usage);
  const std::string_view mode = arguments[0];
  const FileSource file(arguments[1]);
  const auto rest = arguments.subspan(2);
  if (mode == "summary" && rest.size() <= 1) {
    Summary summary(rest.empty() ? default_worst : parse_number<std::size_t>(rest[0]));
    const Description description = read(file, summary, true, clock);
    probe::Json json;
    json.open_object();
    write(json, description);
    write(json, description.session);
    summary.write(json);
    json.close_object();
    probe::print(stdout, json.text() + "\n");
    return 0;
  }
  if (mode == "events" && !rest.empty()) {
    std::vector<Window> windows;
    std::ranges::transform(rest, std::back_inserter(windows), parse_window);
    Printer printer(std::move(windows));
    read(file, printer, true, clock);
    return std::fflush(stdout) == 0 ? 0 : probe::exit_output_failed;
  }
  if (mode == "times" && !rest.empty()) {
    const auto names = rest.subspan(1);
    Times times({names.begin(), names.end()}, parse_number<std::uint64_t>(rest[0]));
    read(file, times, false, clock);
    return std::fflush(stdout) == 0 ? 0 : probe::exit_output_failed;
  }
  if (mode == "windows" && rest.size() <= 1) {
    std::optional<bool> preemptible;
    if (!rest.empty()) preemptible = std::string_view(rest[0]) == "preemptible";
    if (preemptible == false && std::string_view(rest[0]) != "points") throw probe::Failure(usage);
    tell_windows(file, preemptible, clock);
    return 0;
  }
  throw probe::Failure(usage);
}

}  // namespace
}  // namespace latenz::trace

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-trace", count, arguments, latenz::trace::run);
}
