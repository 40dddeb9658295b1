// SPDX-License-Identifier: Apache-2.0
// Tells of threads what a trace of the kernel holds, as our programs in the kernel would.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "attach_event.hpp"
#include "trace_event.hpp"

namespace latenz::attach {

class TraceEvents final : public trace::Consumer {
 public:
  /// `wanted`: tells by number and name whether a thread is watched. `take` gets the events of
  /// these, `missing` is called where the trace lost some.
  TraceEvents(std::function<bool(std::int32_t, std::string_view)> wanted,
              std::function<void(const Event&)> take, std::function<void()> missing)
      : wanted_(std::move(wanted)), take_(std::move(take)), missing_(std::move(missing)) {}

  void event(const trace::Event& event) override;
  void lost(int cpu, std::uint64_t count) override;

  /// Timers' clocks and the trace's are not the same: due times are what they cannot be later than.
  [[nodiscard]] bool is_other_clock() const { return base_ns_ != 0; }
  [[nodiscard]] bool has_timers() const { return has_timers_; }
  [[nodiscard]] std::uint64_t lost_places() const { return lost_places_; }

 private:
  struct Cpu {
    bool timer_active = false;
    bool is_of_day = false;
    std::optional<std::int64_t> timer_due;
    std::int64_t timer_now = 0;
    std::int64_t timer_base = 0;  ///< how far the trace's clock is ahead of this timer's
    std::int64_t timer_function = 0;
    std::int64_t interrupt_began = 0;
    std::int64_t interrupt_number = 0;
    std::int64_t softirq_began = 0;
    std::int64_t softirq_vector = 0;
    std::int64_t stolen_before_softirq = 0;
    std::int64_t stolen = 0;
    bool watching = false;
  };
  struct Thread {
    bool is_watched = false;
    std::int64_t call = unknown_call;
    std::int64_t calls = 0;
    std::int64_t argument_0 = 0;
    std::int64_t argument_1 = 0;
  };
  struct Timer {
    std::int64_t due = 0;
    std::int32_t owner = 0;
  };

  void timer(const trace::Event& event, Cpu& cpu);
  static void interrupt(const trace::Event& event, Cpu& cpu);
  void call(const trace::Event& event);
  void waking(const trace::Event& event, Cpu& cpu);
  static void tell_own_clock(Event& told, const Cpu& cpu);
  void changed(const trace::Event& event, Cpu& cpu);
  [[nodiscard]] static Event made(const trace::Event& event, EventKind kind, std::int32_t tid);
  Thread& thread(std::int32_t tid, std::string_view comm);

  std::function<bool(std::int32_t, std::string_view)> wanted_;
  std::function<void(const Event&)> take_;
  std::function<void()> missing_;
  std::map<int, Cpu> cpus_;
  std::unordered_map<std::int32_t, Thread> threads_;
  std::unordered_map<std::int64_t, Timer> timers_;
  std::optional<std::int64_t> least_ahead_ns_;
  std::int64_t base_ns_ = 0;  ///< how far the trace's clock is ahead of the timers'
  bool has_timers_ = false;
  std::uint64_t lost_places_ = 0;
};

}  // namespace latenz::attach
