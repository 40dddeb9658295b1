// SPDX-License-Identifier: Apache-2.0
// Takes the samples: one event after the other from a timer, seen by an interrupt handler or by a
// loop. Nothing is printed meanwhile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "board.hpp"
#include "cpu.hpp"
#include "gaps.hpp"
#include "output.hpp"
#include "parameters.hpp"
#include "start.hpp"

namespace latenz::firmware {

struct Sample {
  std::uint64_t latency;
  std::uint64_t interarrival;  ///< from the event before, in ticks
};

/// Not cleared at the start: every sample is written before it is read.
[[gnu::section(".noinit")]] inline Sample sample_store[Parameters::max_samples + 1];

/// What is called by the interrupt vector.
extern "C" {
inline void (*interrupt_handler)() = nullptr;
}

/// What is to be done, in ticks.
struct Plan {
  std::uint64_t period;
  std::uint64_t min_distance;
  std::uint64_t start_after;
};

/// @tparam Timer source of events: `now` is read first of all in the handler
template <typename Timer>
class Measurement {
 public:
  using Interrupts = Board::Interrupts;

  /// Takes all samples, or those until a stop is wanted; returns those to be reported.
  static std::span<const Sample> take(const Parameters& wanted, const Plan& plan, bool polled) {
    count_ = wanted.warm_up + wanted.samples;
    taken_ = 0;
    prepare_gaps(wanted, slept(wanted, plan));
    if (polled) {
      poll();
    } else {
      interrupt_handler = on_interrupt;
      Interrupts::start(Timer::interrupt);
      start_timer();
      Cpu::enable_interrupts();
      wait(wanted.wait);
      Cpu::disable_interrupts();
    }
    Timer::stop();
    const std::size_t first = taken_ < wanted.warm_up ? taken_ : wanted.warm_up;
    return {sample_store + first, taken_ - first};
  }

 private:
  /// Returns what is left to be done after sleeping until the start.
  static Plan slept(const Parameters& wanted, Plan plan) {
    slept_ = sleep_before_start<Board>(wanted.start_after_ns);
    if (slept_) plan.start_after = 0;
    return plan;
  }

  /// The first event comes a gap after now, or after the time it slept until.
  static void start_timer() {
    const std::uint64_t gap = sample_store[0].interarrival;
    if constexpr (Timer::any_gap) {
      if (slept_) {
        static_cast<void>(Timer::schedule(gap));
        return;
      }
    }
    Timer::start(gap);
  }

  /// Before measuring, so that the handler need not compute.
  static void prepare_gaps(const Parameters& wanted, const Plan& plan) {
    ExponentialGaps random(plan.period, plan.min_distance, wanted.seed);
    for (std::size_t i = 0; i <= wanted.warm_up + wanted.samples; ++i) {
      const bool drawn = wanted.arrivals == Arrivals::exponential;
      sample_store[i].interarrival = drawn ? random.next() : plan.period;
    }
    if constexpr (Timer::any_gap) {
      sample_store[0].interarrival = std::max(sample_store[0].interarrival, plan.start_after);
    } else {
      skip_ = (plan.start_after + plan.period - 1) / plan.period;
    }
  }

  static void on_interrupt() {
    const std::uint64_t seen = Timer::now();
    const auto acknowledged = Interrupts::acknowledge();
    if (Interrupts::spurious(acknowledged)) return;
    if (Interrupts::number(acknowledged) != Timer::interrupt) fail("unexpected interrupt");
    on_event<Timer>(Timer::latency(seen));
    Interrupts::end(acknowledged);
  }

  /// Notes a sample and asks for the next event; after the last one events go on, so that a core
  /// that waits wakes up, but are not noted.
  template <typename Source>
  static void on_event(std::uint64_t latency) {
    const std::size_t at = taken_;
    Sample& next = sample_store[at < count_ ? at + 1 : at];
    if (skip_ > 0) {
      --skip_;
      Source::schedule(next.interarrival);
      return;
    }
    next.interarrival = Source::schedule(next.interarrival);
    if (at == count_) return;
    sample_store[at].latency = latency;
    taken_ = at + 1;
    Board::Supervision::count_sample(at + 1);
    if (Board::Supervision::is_wanted(ControlCommand::stop)) count_ = at + 1;
  }

  static void wait(Wait how) {
    while (taken_ < count_) {
      if (how == Wait::wfi) Cpu::wait_for_interrupt();
    }
  }

  static void poll() {
    if constexpr (requires { typename Timer::Polled; }) {
      using Source = Timer::Polled;
      Source::start(sample_store[0].interarrival);
      while (taken_ < count_) on_event<Source>(Source::wait());
    } else {
      fail("parameter delivery: this timer cannot be polled");
    }
  }

  static inline volatile std::size_t count_ = 0;
  static inline bool slept_ = false;
  static inline std::uint64_t skip_ = 0;
  static inline volatile std::size_t taken_ = 0;
};

}  // namespace latenz::firmware
