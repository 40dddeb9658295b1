// SPDX-License-Identifier: Apache-2.0
// Measures how long after an event its interrupt handler runs, and sends every sample.
#include <cstdint>

#include "hello.hpp"
#include "measurement.hpp"
#include "output.hpp"

extern "C" [[noreturn]] void _start();  // start.S

namespace latenz::firmware {
namespace {

/// Nearest number of ticks; both are bounded (Parameters::problem), so seconds are taken apart.
std::uint64_t ticks(std::uint64_t time_ns, std::uint64_t hz) {
  constexpr std::uint64_t second = 1'000'000'000;
  return (time_ns / second * hz) + (((time_ns % second) * hz + second / 2) / second);
}

template <typename Timer>
Plan plan_for(const Parameters& wanted, std::uint64_t hz) {
  const Plan plan{.period = ticks(wanted.period_ns, hz),
                  .min_distance = ticks(wanted.min_distance_ns, hz),
                  .start_after = ticks(wanted.start_after_ns, hz)};
  if (plan.period < 1) fail("parameter period_ns: shorter than a tick of the timer");
  if (plan.period > UINT32_MAX) fail("parameter period_ns: 2^32 ticks of the timer or more");
  if (plan.period > Timer::longest_gap) fail("parameter period_ns: longer than the timer counts");
  if (!Timer::any_gap && wanted.arrivals == Arrivals::exponential) {
    fail("parameter arrivals: this timer is periodic only; use the generic one");
  }
  return plan;
}

void provoke(Provoke what) {
  if (what == Provoke::undefined_instruction) Cpu::undefined_instruction();
  while (what == Provoke::hang) Cpu::wait_for_interrupt();
}

template <typename Timer>
void measure(const Parameters& wanted, unsigned entry_level) {
  const std::uint64_t hz = wanted.timer_hz != 0 ? wanted.timer_hz : Timer::hz();
  if (hz == 0) fail("parameter timer_hz: needed, as the timer does not tell its clock");
  const Plan plan = plan_for<Timer>(wanted, hz);
  const bool polled = wanted.delivery == Delivery::automatic ? !Board::delivers_interrupts
                                                             : wanted.delivery == Delivery::polled;
  const auto hello = [&] {
    Board::prepare(!polled);
    say_hello(wanted, plan,
              {.timer = Timer::name, .timer_hz = hz, .polled = polled, .entry_level = entry_level});
  };
  hello();
  provoke(wanted.provoke);
  const auto samples = Measurement<Timer>::take(wanted, plan, polled);
  hello();  // again: should the first one be lost on the way, no sample could be read
  FrameStream stream;
  output().samples(stream, samples);
  output().end({&stream, 1});
}

std::string_view name_of(TimerChoice choice) {
  switch (choice) {
    case TimerChoice::generic:
      return "generic";
    case TimerChoice::ttc:
      return "ttc";
    case TimerChoice::dual:
      return "dual";
    default:
      return "";
  }
}

/// Measures by the first timer of the board that is wanted.
template <typename... Timers>
void measure_by_one_of(TimerList<Timers...> /*of the board*/, const Parameters& wanted,
                       unsigned entry_level) {
  const std::string_view name = name_of(wanted.timer);
  const auto measured_by = [&]<typename Timer>(Timer* /*only its type*/) {
    if (!name.empty() && name != Timer::name) return false;
    measure<Timer>(wanted, entry_level);
    return true;
  };
  if (!(measured_by(static_cast<Timers*>(nullptr)) || ...)) {
    fail("parameter timer: not on this board");
  }
}

/// Waits for a command, and obeys it.
void await(ControlCommand command) {
  while (!Board::Supervision::is_wanted(command)) Board::Supervision::beat();
  Board::Supervision::obey();
}

/// Begins anew from the entry point, as if loaded again, once that is wanted.
[[noreturn]] void restart_when_wanted() {
  await(ControlCommand::stop);
  Board::Supervision::enter(ControlState::stopped);
  while (!Board::Supervision::is_wanted(ControlCommand::start)) Board::Supervision::beat();
  _start();
}

}  // namespace

extern "C" [[noreturn]] void firmware_main(unsigned entry_level) {
  const Parameters& wanted = parameters();
  if (const std::string_view problem = wanted.problem(); !problem.empty()) fail(problem);
  const bool awaits = wanted.await_command == 1;
  if (awaits && !Board::Supervision::possible)
    fail("parameter await_command: nobody commands here");
  Board::Supervision::begin();
  Board::Supervision::enter(ControlState::ready);
  if (awaits) await(ControlCommand::start);
  Board::Supervision::enter(ControlState::running);
  measure_by_one_of(Board::Timers(), wanted, entry_level);
  Board::Supervision::enter(ControlState::done);
  if (awaits) restart_when_wanted();
  finish();
}

}  // namespace latenz::firmware
