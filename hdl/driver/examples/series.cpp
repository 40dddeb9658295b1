// SPDX-License-Identifier: Apache-2.0
// latenz-ip-series: one series of a Latencies IP by the C++ driver, told as JSON. A simulated board
// or a bridge gives the registers; `latenz ip simulate` and latenz-ip-bridge say where they listen.
//
//   latenz-ip-series PLACE S00 S01 published|extended series CYCLES
//   latenz-ip-series PLACE S00 S01 extended self-test DELAY COUNT
//
// PLACE: a Unix socket's path, or ADDRESS:PORT. S00, S01: numbers of the IP's windows there.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "latenz/ip/latencies.hpp"
#include "remote_registers.hpp"

namespace {

using namespace latenz::ip;
using Ip = Latencies<RemoteRegisters>;

constexpr std::uint32_t poll_every_cycles = 256;
constexpr unsigned most_polls = 4096;
constexpr std::uint32_t post_trigger = 2;

template <typename Number>
Number number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error("'" + std::string(text) + "' is not a number in its range");
  }
  return number;
}

/// Members of a JSON object; names need no escape.
class Object {
 public:
  Object& add(std::string_view name, std::uint64_t value) {
    return raw(name, std::to_string(value));
  }
  Object& raw(std::string_view name, const std::string& value) {
    text_.append(text_.empty() ? "\"" : ", \"").append(name).append("\": ").append(value);
    return *this;
  }
  [[nodiscard]] std::string text() const { return std::string("{").append(text_).append("}"); }

 private:
  std::string text_;
};

template <typename Condition>
void wait_until(RemoteBoard& board, Condition condition) {
  for (unsigned polls = 0; polls < most_polls; ++polls) {
    if (condition()) return;
    board.wait(poll_every_cycles);
  }
  throw std::runtime_error("the IP does not get ready");
}

std::string pair_of(std::uint64_t first, std::uint64_t second) {
  std::string text("[");
  return text.append(std::to_string(first)).append(", ").append(std::to_string(second)).append("]");
}

std::string pair_of(const Sample& sample) { return pair_of(sample.latency, sample.start); }

std::string samples(Ip& ip) {
  std::string text;
  const std::uint32_t stored = ip.stored();
  const std::uint32_t oldest = ip.oldest();
  for (std::uint32_t i = 0; i < stored; ++i) {
    const Sample sample = ip.sample((oldest + i) % ip.configuration().depth);
    text.append(i == 0 ? "" : ", ").append(pair_of(sample));
  }
  return std::string("[").append(text).append("]");
}

/// The half of the memory around the largest latency, and where in it that is.
std::string frozen(Ip& ip, const FrozenHalf& half) {
  std::string text;
  for (std::uint32_t i = 0; i < half.count; ++i) {
    text.append(i == 0 ? "" : ", ").append(pair_of(ip.frozen_sample(half, i)));
  }
  const std::uint32_t words = ip.configuration().depth / 2;
  const std::uint32_t oldest = (half.end + words - half.count) % words;
  Object object;
  object.add("trigger", (half.trigger + words - oldest) % words);
  return object.raw("samples", std::string("[").append(text).append("]")).text();
}

/// Bins that are not empty: their shortest latency, and how many.
std::string histogram(Ip& ip) {
  std::string text;
  for (std::uint32_t i = 0; i < ip.configuration().histogram_bins; ++i) {
    if (const std::uint32_t count = ip.bin(i).value_or(0); count > 0) {
      text.append(text.empty() ? "" : ", ").append(pair_of(ip.bin_begin(i), count));
    }
  }
  return std::string("[").append(text).append("]");
}

std::string results(Ip& ip) {
  Object object;
  const auto statistics = ip.statistics();
  if (!statistics) throw std::runtime_error("samples came faster than they could be read");
  object.add("num", statistics->num).add("last", statistics->last);
  object.add("max", statistics->max).add("min", statistics->min);
  object.add("alarm", ip.alarm() ? 1 : 0).add("alarm_limit", ip.alarm_limit());
  if (const auto sums = ip.sums()) object.add("sum", sums->sum).add("squares", sums->squares_low);
  if (const auto counters = ip.counters()) {
    object.add("orphans", counters->orphans).add("overlaps", counters->overlaps);
    object.add("missed", counters->missed).add("saturations", counters->saturations);
  }
  if (const auto saturated = ip.saturated()) object.add("saturated", *saturated ? 1 : 0);
  if (const auto timeouts = ip.timeouts()) object.add("timeouts", *timeouts);
  if (const auto now = ip.now()) object.add("now", *now);
  if (const auto overflow = ip.histogram_overflow()) {
    object.raw("histogram", histogram(ip)).add("histogram_overflow", *overflow);
  }
  if (const auto half = ip.frozen_half()) object.raw("frozen", frozen(ip, *half));
  object.raw("samples", samples(ip));
  return object.text();
}

std::string take_series(RemoteBoard& board, Ip& ip, std::uint32_t cycles) {
  ip.clear_alarm();
  static_cast<void>(ip.freeze_around_maximum(post_trigger, false));  // where it has that
  ip.start_series();
  wait_until(board, [&] { return ip.ready(); });
  board.wait(cycles);
  ip.stop_series();
  return results(ip);
}

std::string take_self_test(RemoteBoard& board, Ip& ip, std::uint32_t delay, std::uint32_t count) {
  ip.start_series();
  wait_until(board, [&] { return ip.ready(); });
  if (!ip.start_self_test(delay, count)) throw std::runtime_error("the IP has no self test");
  wait_until(board, [&] { return !ip.self_test_running(); });
  ip.stop_series();
  return results(ip);
}

Configuration configuration_of(const RemoteRegisters& registers, std::string_view kind) {
  if (kind == "published") return Configuration::published();
  const auto found = kind == "extended" ? Configuration::read(registers) : std::nullopt;
  if (!found) throw std::runtime_error("no Latencies IP with additions is there");
  return *found;
}

int run(std::span<char*> arguments) {
  const std::string_view what = arguments.size() > 5 ? arguments[5] : "";
  if (arguments.size() != (what == "series" ? 7U : 8U)) {
    throw std::runtime_error(
        "usage: latenz-ip-series PLACE S00 S01 published|extended series CYCLES | self-test DELAY "
        "COUNT");
  }
  RemoteBoard board(arguments[1]);
  const RemoteRegisters memory(board, number_in<std::uint8_t>(arguments[2]));
  const RemoteRegisters registers(board, number_in<std::uint8_t>(arguments[3]));
  Ip ip(registers, memory, configuration_of(registers, arguments[4]));
  const auto first = number_in<std::uint32_t>(arguments[6]);
  const std::string text =
      what == "series" ? take_series(board, ip, first)
                       : take_self_test(board, ip, first, number_in<std::uint32_t>(arguments[7]));
  return std::puts(text.c_str()) < 0 ? 4 : 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run({arguments, static_cast<std::size_t>(count)});
  } catch (const std::exception& error) {
    static_cast<void>(std::fprintf(stderr, "latenz-ip-series: %s\n", error.what()));
    return 2;
  }
}
