// SPDX-License-Identifier: Apache-2.0
// The publication's measurement (alonso2024, section 5.1) with the Latencies IP in the logic of a
// ZCU102: a timer's interrupt asks the logic for data, the logic's interrupt is handled here, and
// two Latencies IPs measure both ways. Their samples are sent as streams 0 (T1) and 1 (T2).
//
// Runs alone, or as a guest to which timer and logic were passed through at their own addresses.
// Not run on hardware; emulated boards have the logic as docs/emulated-logic.md says. On a board it
// must have been loaded before (hdl/vivado/build.tcl); the program says so if it was not, or faults
// at its first access.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "devices/cadence_ttc.hpp"
#include "latenz/ip/bench.hpp"
#include "latenz/text.hpp"
#include "measurement.hpp"
#include "output.hpp"
#include "start.hpp"
#include "timer_list.hpp"

namespace latenz::firmware {
namespace {

using Registers = ip::MemoryMapped;
using Ip = ip::Latencies<Registers>;

/// TTC1: its interrupt goes to the logic, not to this core. The host tells its clock (timer_hz).
using Trigger = CadenceTtc<0xFF12'0000, 100'000'000, 0>;

// As hdl/vivado/latenz.tcl places them; pl_ps_irq0[0] is shared interrupt 89.
constexpr std::uintptr_t logic = 0xA000'0000;
constexpr std::uint32_t logic_interrupt = 32 + 89;

/// What the publication had, and what every variant of the bench has: nothing else is touched.
constexpr Ip latencies_ip(std::uintptr_t offset) {
  return {Registers(logic + offset + 0x1'0000), Registers(logic + offset),
          ip::Configuration::published()};
}

constinit ip::Bench<Registers> bench(ip::RandomDataGenerator(Registers(logic + 0x4'0000)),
                                     latencies_ip(0), latencies_ip(0x2'0000));

std::uint32_t period = 0;  // in ticks of the trigger
volatile std::uint32_t wanted_in_series = 0;

/// The interrupt is level sensitive and has fallen when all is read: on a bare core nothing is left
/// to be acknowledged then, which is no mistake. A guest's was acknowledged by its hypervisor.
void on_interrupt() {
  bench.on_interrupt();
  const auto acknowledged = Board::Interrupts::acknowledge();
  const bool gone = Board::Interrupts::spurious(acknowledged);
  if (!gone && Board::Interrupts::number(acknowledged) != logic_interrupt) {
    fail("unexpected interrupt");
  }
  if (bench.handled() < wanted_in_series) {
    static_cast<void>(Trigger::schedule(period));
  } else {
    Trigger::stop();
  }
  if (!gone) Board::Interrupts::end(acknowledged);
}

/// The period in ticks of the trigger; ends the program if the trigger cannot count it.
std::uint32_t period_ticks(const Parameters& wanted) {
  const std::uint64_t hz = wanted.timer_hz != 0 ? wanted.timer_hz : Trigger::hz();
  const std::uint64_t ticks =
      std::min(wanted.period_ns, UINT64_C(1'000'000'000)) * hz / 1'000'000'000;
  if (ticks < 1) fail("parameter period_ns: shorter than a tick of the timer");
  if (ticks > Trigger::longest_gap) fail("parameter period_ns: longer than the timer counts");
  return static_cast<std::uint32_t>(ticks);
}

void say_hello(const Parameters& wanted) {
  static Text<512> text;
  text.clear();
  text.add(R"({"protocol": 1, "program": "bench_latency", "version": ")").add(LATENZ_VERSION);
  text.add(R"(", "board": ")").add(Board::name).add(R"(", "core": ")").add(Board::core);
  text.add(R"(", "optimization": ")").add(LATENZ_OPTIMIZATION);
  text.add(R"(", "streams": ["T1", "T2"], "unit": "cycles of the logic", "parameters": )");
  text.add(R"({"samples": )").add(wanted.samples);
  text.add(R"(, "warm_up": )").add(wanted.warm_up);
  text.add(R"(, "period_ticks": )").add(period).add("}}");
  output().text(FrameKind::hello, text.view());
}

/// Lets the handler take so many interrupts.
void wait(Wait how, std::uint32_t count) {
  Cpu::enable_interrupts();
  while (bench.handled() < count) {
    if (how == Wait::poll) continue;
    Cpu::disable_interrupts();  // else the last one could come between looking and sleeping
    if (bench.handled() < count) Cpu::wait_for_interrupt();
    Cpu::enable_interrupts();
  }
  Cpu::disable_interrupts();
}

/// Lets a time pass by a timer that shows it at any time; returns whether this is one.
template <typename Timer>
bool pass(std::uint64_t time_ns) {
  if constexpr (Timer::any_gap) {
    const std::uint64_t start = Timer::now() + (time_ns / 1000 * Timer::hz() / 1'000'000);
    while (Timer::now() < start) {
    }
  }
  return Timer::any_gap;
}

/// Waits for the time of the first series.
template <typename... Timers>
void wait_for_start(TimerList<Timers...> /*of the board*/, std::uint64_t after_ns) {
  if (after_ns == 0 || sleep_before_start<Board>(after_ns)) return;
  if (!(pass<Timers>(after_ns) || ...)) fail("parameter start_after_ns: no timer here tells it");
}

/// Takes a series and leaves it in the logic; nothing but the handler uses the bus meanwhile.
void take_series(Wait how, std::uint32_t count) {
  wanted_in_series = count;
  if (!bench.start()) fail("no Latencies IP answers; load the logic first");
  Trigger::start(period);
  wait(how, count);
  if (!bench.stop()) fail("the logic did not measure every interrupt");
}

/// What is sent of a sample: the published IP does not say when it began.
struct Reported {
  std::uint64_t latency;
  std::uint64_t interarrival = 0;
};

/// Sends as many as fill a few frames at a time.
void send_series(std::array<FrameStream, 2>& streams, std::uint32_t skip) {
  std::array<Reported, 64> part{};
  for (const ip::Way way : {ip::Way::t1, ip::Way::t2}) {
    for (std::uint32_t i = skip; i < bench.handled();) {
      std::size_t count = 0;
      for (; count < part.size() && i < bench.handled(); ++i) {
        part[count++].latency = bench.sample(way, i).latency;
      }
      output().samples(streams[static_cast<std::size_t>(way)], std::span(part).first(count));
    }
  }
}

void measure(const Parameters& wanted) {
  period = period_ticks(wanted);
  Board::prepare(true);
  say_hello(wanted);
  wait_for_start(Board::Timers(), wanted.start_after_ns);
  interrupt_handler = on_interrupt;
  Board::Interrupts::start(logic_interrupt);
  std::array<FrameStream, 2> streams{{{.stream = 0}, {.stream = 1}}};
  std::uint32_t skip = wanted.warm_up;
  std::uint32_t left = wanted.warm_up + wanted.samples;
  while (left > 0) {
    const std::uint32_t count = std::min(left, bench.capacity());
    take_series(wanted.wait, count);
    send_series(streams, std::min(skip, count));
    skip -= std::min(skip, count);
    left -= count;
  }
  output().end(streams);
}

}  // namespace

extern "C" [[noreturn]] void firmware_main(unsigned /*entry_level*/) {
  const Parameters& wanted = parameters();
  if (const std::string_view problem = wanted.problem(); !problem.empty()) fail(problem);
  Board::Supervision::begin();
  Board::Supervision::enter(ControlState::running);
  measure(wanted);
  Board::Supervision::enter(ControlState::done);
  finish();
}

}  // namespace latenz::firmware
