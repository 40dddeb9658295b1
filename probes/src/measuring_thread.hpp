// SPDX-License-Identifier: Apache-2.0
// The thread whose wake-ups are measured.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "activation.hpp"
#include "kernel_counters.hpp"
#include "plan.hpp"
#include "ring.hpp"
#include "tracing.hpp"

namespace latenz::probe {

struct Sample {
  std::int64_t t_ns;        ///< when the thread was due
  std::int64_t latency_ns;  ///< wake-up minus due time
};
static_assert(sizeof(Sample) == 16, "records of the journal");

/// A wake-up that was among the worst of its thread when it happened.
struct LateWakeup {
  Sample sample;
  std::int64_t missed;    ///< activations skipped right after it
  std::int64_t since_ns;  ///< wake-up before it: the exact counts start there
  unsigned cpu;
  unsigned cpu_before;  ///< where that wake-up was; only on the same CPU are the counts known
  Counts counts;        ///< since the wake-up before
  std::uint64_t last_interrupt;
  std::uint64_t last_task;
  std::array<char, 16> last_command;
  // Of this thread, since its last late wake-up or the start of the recording:
  std::int64_t own_since_ns;
  std::int64_t involuntary_switches;
  std::int64_t own_page_faults;
};

/// What all threads of a run share; read-only while they run, but for the stop flags.
struct Shared {
  Plan plan;
  TraceStopper trace;
  KernelCounters counters;
  std::atomic<std::int64_t> start_ns{0};  ///< first due time; 0: not yet, -1: never
  alignas(cache_line) std::atomic<bool> stop{false};
  std::atomic<bool> threshold_exceeded{false};
};

/// Latencies above which a wake-up is among the worst: the worst so far, in no order.
class WorstSoFar {
 public:
  explicit WorstSoFar(std::size_t capacity) : latencies_ns_(capacity, lowest) {}

  /// Whether the latency belongs to the worst; if so it takes the place of the least of them.
  bool admit(std::int64_t latency_ns) {
    if (latencies_ns_.empty() || latency_ns <= floor_ns_) {
      return false;
    }
    latencies_ns_[place_] = latency_ns;
    place_ = 0;
    for (std::size_t i = 1; i < latencies_ns_.size(); ++i) {
      place_ = latencies_ns_[i] < latencies_ns_[place_] ? i : place_;
    }
    floor_ns_ = latencies_ns_[place_];
    return true;
  }

 private:
  static constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  std::vector<std::int64_t> latencies_ns_;
  std::int64_t floor_ns_ = lowest;
  std::size_t place_ = 0;
};

class MeasuringThread {
 public:
  MeasuringThread(Shared& shared, std::size_t position);
  ~MeasuringThread();
  MeasuringThread(const MeasuringThread&) = delete;
  MeasuringThread& operator=(const MeasuringThread&) = delete;

  /// Starts the thread, which then waits for `Shared::start_ns`. Throws `Failure` if it may not
  /// have its CPU or its scheduling policy.
  void start();

  /// Wakes the thread if it sleeps, so that it sees the stop flag.
  void nudge() const;

  [[nodiscard]] bool finished() const { return finished_.load(std::memory_order_acquire); }
  /// The CPU it is to stay on; none under a policy that forbids that.
  [[nodiscard]] std::optional<unsigned> cpu() const {
    return plan_.is_pinned() ? std::optional(cpu_) : std::nullopt;
  }

  // Written by the thread, read by the recording thread at any time.
  [[nodiscard]] std::int64_t n() const { return n_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t missed() const { return missed_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t lost() const { return lost_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t late_lost() const {
    return late_lost_.load(std::memory_order_relaxed);
  }
  /// Samples taken on a CPU below `CPU_SETSIZE`, whichever the thread was to stay on.
  [[nodiscard]] std::int64_t taken_on(unsigned cpu) const {
    return taken_on_[cpu].load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t min_ns() const { return min_ns_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t max_ns() const { return max_ns_.load(std::memory_order_relaxed); }

  Ring<Sample>& samples() { return samples_; }
  Ring<LateWakeup>& late() { return late_; }

 private:
  struct OwnUsage {
    std::int64_t since_ns = 0;
    std::int64_t involuntary_switches = 0;
    std::int64_t page_faults = 0;
  };

  static void* enter(void* self);
  void run();
  [[nodiscard]] int take_cpu_and_policy();
  [[nodiscard]] int use_deadline_policy() const;
  void measure(std::int64_t start_ns);
  void record(const Sample& sample, std::int64_t skipped, unsigned cpu);
  void note_late(const Sample& sample, std::int64_t skipped, unsigned cpu);
  void break_if_too_late(std::int64_t latency_ns, unsigned cpu);
  void start_counting(unsigned cpu);
  [[nodiscard]] static OwnUsage own_usage(std::int64_t now_ns);
  [[nodiscard]] bool at_end(const Activation& last, std::int64_t next_due_ns);

  Shared& shared_;
  const Plan& plan_;
  std::size_t position_;
  unsigned cpu_;
  bool started_ = false;
  pthread_t thread_{};
  std::atomic<int> setup_error_{-1};  ///< -1: still setting up; 0: ready; otherwise errno

  Ring<Sample> samples_;
  Ring<LateWakeup> late_;

  // The thread's own, on cache lines that nobody else writes.
  alignas(cache_line) WorstSoFar worst_;
  std::int64_t end_ns_ = 0;
  std::int64_t last_recorded_due_ns_ = 0;
  std::int64_t last_wakeup_ns_ = 0;
  unsigned last_cpu_ = 0;
  Counts last_counts_{};
  Ending ending_;
  OwnUsage last_usage_{};
  alignas(cache_line) std::atomic<std::int64_t> n_{0};
  std::atomic<std::int64_t> missed_{0};
  std::atomic<std::int64_t> lost_{0};
  std::atomic<std::int64_t> late_lost_{0};
  std::atomic<std::int64_t> min_ns_{std::numeric_limits<std::int64_t>::max()};
  std::atomic<std::int64_t> max_ns_{std::numeric_limits<std::int64_t>::min()};
  std::array<std::atomic<std::int64_t>, CPU_SETSIZE> taken_on_{};
  std::atomic<bool> finished_{false};
};

}  // namespace latenz::probe
