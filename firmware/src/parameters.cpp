// SPDX-License-Identifier: Apache-2.0
#include "parameters.hpp"

namespace latenz::firmware {
namespace {

constexpr std::array<char, 8> magic = {'L', 'A', 'T', 'E', 'N', 'Z', 'P', 'B'};

constexpr Parameters as_published() {
  Parameters block{
      .magic = magic,
      .version = Parameters::current_version,
      .size = sizeof(Parameters),
      .samples = 400,
      .warm_up = 10,
      .period_ns = 250'000,
      .min_distance_ns = 0,
      .seed = 1,
      .start_after_ns = 0,
      .arrivals = Arrivals::periodic,
      .wait = Wait::poll,
      .timer = TimerChoice::automatic,
      .delivery = Delivery::automatic,
      .timer_hz = 0,
      .sender = 0,
      .provoke = Provoke::nothing,
      .await_command = 0,
      .reserved = 0,
      .crc = 0,
  };
  block.crc = block.expected_crc();
  return block;
}

constexpr std::uint64_t ten_seconds_ns = 10'000'000'000;
constexpr std::uint64_t an_hour_ns = 3'600'000'000'000;

}  // namespace

// Volatile: the host changes it after the compiler has seen it.
extern "C" {
[[gnu::section(".parameters"), gnu::used]] constinit const volatile Parameters parameter_block =
    as_published();
}

const Parameters& parameters() { return const_cast<const Parameters&>(parameter_block); }

std::string_view Parameters::problem() const {
  if (magic != firmware::magic || size != sizeof(Parameters)) return "parameter block: not found";
  if (version != current_version) return "parameter block: not of version 1";
  if (crc != expected_crc()) return "parameter block: wrong checksum";
  if (samples < 1 || samples > max_samples) return "parameter samples: not 1 to 100000";
  if (warm_up > max_samples - samples) return "parameter warm_up: more than 100000 with samples";
  if (period_ns < 1 || period_ns > ten_seconds_ns) return "parameter period_ns: not 1 ns to 10 s";
  if (min_distance_ns > ten_seconds_ns) return "parameter min_distance_ns: beyond 10 s";
  if (start_after_ns > an_hour_ns) return "parameter start_after_ns: beyond an hour";
  if (arrivals > Arrivals::exponential) return "parameter arrivals: not 0 or 1";
  if (wait > Wait::wfi) return "parameter wait: not 0 or 1";
  if (timer > TimerChoice::dual) return "parameter timer: not 0 to 3";
  if (delivery > Delivery::polled) return "parameter delivery: not 0 to 2";
  if (timer_hz > 1'000'000'000) return "parameter timer_hz: beyond 1 GHz";
  if (sender > 255) return "parameter sender: beyond 255";
  if (provoke > Provoke::hang) return "parameter provoke: not 0 to 2";
  if (await_command > 1) return "parameter await_command: not 0 or 1";
  if (reserved != 0) return "parameter reserved: not 0";
  return {};
}

}  // namespace latenz::firmware
