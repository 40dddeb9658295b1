// SPDX-License-Identifier: Apache-2.0
#include "latenz/frame_sender.hpp"
#include "measurement.hpp"
#include "tasks.hpp"

namespace latenz::pair {

[[gnu::section(".noinit")]] Sample sample_store[Task::max_samples];

namespace {

/// As frames carry them.
struct Pair {
  std::uint64_t latency;
  std::uint64_t interarrival;
};

/// Sends one kind of latency of all samples.
FrameStream send(std::uint8_t number, std::span<const Sample> samples,
                 std::uint32_t Sample::* what) {
  FrameStream stream{.stream = number};
  std::uint32_t before = samples.front().began;
  while (!samples.empty()) {
    Pair part[32];
    const std::size_t count = std::min(samples.size(), std::size(part));
    for (std::size_t i = 0; i < count; ++i) {
      part[i] = {.latency = samples[i].*what, .interarrival = samples[i].began - before};
      before = samples[i].began;
    }
    firmware::output().samples(stream, std::span(part, count));
    samples = samples.subspan(count);
  }
  return stream;
}

void say_hello(std::string_view link) {
  Text<400> text;
  text.add(R"({"protocol": 1, "program": "pair", "version": ")").add(LATENZ_VERSION);
  text.add(R"(", "core": ")").add(Side::name).add(R"(", "link": ")").add(link);
  text.add(R"(", "timer": ")").add(Clocks::name());
  text.add(R"(", "timer_hz": )").add(Clocks::hz());
  text.add(R"(, "clock_doubt_ticks": )").add(Clocks::doubt()).add("}");
  firmware::output().text(FrameKind::hello, text.view());
}

}  // namespace

void report(std::string_view link, std::span<const Sample> samples, bool has_round_trip) {
  say_hello(link);
  FrameStream sent[3];
  std::size_t count = 0;
  if (has_round_trip) sent[count++] = send(0, samples, &Sample::round_trip);
  sent[count++] = send(1, samples, &Sample::one_way);
  sent[count++] = send(2, samples, &Sample::raw);
  say_hello(link);  // again: should the first one be lost on the way, no sample could be read
  firmware::output().end({sent, count});
}

void measure() {
  // by `Through`
  constexpr void (*ways[])(const Task&) = {measure_raw,    measure_mailbox, measure_exchange,
                                           measure_latest, measure_ring,    measure_interrupt,
                                           measure_rpmsg};
  ways[static_cast<std::uint32_t>(task().through)](task());
}

}  // namespace latenz::pair
