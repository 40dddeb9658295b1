// SPDX-License-Identifier: Apache-2.0
// latenz-trace: reads traces of the kernel (trace.dat, ftrace, trace-cmd report, perf script).
//
//   latenz-trace summary FILE [WORST]          one JSON document
//   latenz-trace events FILE FROM:TO[:MOST]... one JSON line for each event in these times (ns),
//                                              of each window the first MOST ones
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "failure.hpp"
#include "program.hpp"
#include "trace_dat.hpp"
#include "trace_summary.hpp"
#include "trace_text.hpp"
#include "trace_words.hpp"

namespace latenz::trace {
namespace {

constexpr const char* usage =
    "usage: latenz-trace summary FILE [WORST] | latenz-trace events FILE FROM:TO[:MOST]...";
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

template <typename Number>
Number parse_number(std::string_view text) {
  Number number{};
  if (parse_all(text, number)) return number;
  throw probe::Failure("'" + std::string(text) + "' is no number; " + usage);
}

Window parse_window(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) {
    throw probe::Failure("'" + std::string(text) + "' is no window; " + usage);
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

Description read(const FileSource& file, Consumer& consumer, bool wants_functions) {
  std::array<std::uint8_t, dat_magic.size()> start{};
  const bool is_dat =
      file.read_some(0, start) == start.size() && std::ranges::equal(start, dat_magic);
  if (is_dat) {
    TraceDat trace(file);
    trace.read(consumer, wants_functions);
    return trace.description();
  }
  TraceText trace(file);
  trace.read(consumer);
  return trace.description();
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

int run(std::span<const char* const> arguments) {
  if (arguments.size() < 2) throw probe::Failure(usage);
  const std::string_view mode = arguments[0];
  const FileSource file(arguments[1]);
  const auto rest = arguments.subspan(2);
  if (mode == "summary" && rest.size() <= 1) {
    Summary summary(rest.empty() ? default_worst : parse_number<std::size_t>(rest[0]));
    const Description description = read(file, summary, true);
    probe::Json json;
    json.open_object();
    write(json, description);
    summary.write(json);
    json.close_object();
    probe::print(stdout, json.text() + "\n");
    return 0;
  }
  if (mode == "events" && !rest.empty()) {
    std::vector<Window> windows;
    std::ranges::transform(rest, std::back_inserter(windows), parse_window);
    Printer printer(std::move(windows));
    read(file, printer, true);
    return std::fflush(stdout) == 0 ? 0 : probe::exit_output_failed;
  }
  throw probe::Failure(usage);
}

}  // namespace
}  // namespace latenz::trace

int main(int count, char** arguments) {
  return latenz::probe::run_program("latenz-trace", count, arguments, latenz::trace::run);
}
