// SPDX-License-Identifier: Apache-2.0
// The windows that make up a wake-up latency of Linux, cut out of what one CPU does.
//
// Every instruction is of a thread (T, the idle thread awake included) or of an interrupt (I: from
// its vector to its return, or to where its exit calls the scheduler; softirqs that its exit runs
// belong to it). Whoever watches the CPU tells events, each with how many instructions were
// executed before it. What comes out are the longest T-times of:
//
//   blocking     from where an arrival can be held up to the next point at which the kernel calls
//                the scheduler if it is needed
//   switching    from the masking of interrupts for a switch of threads to the next point after it
//   idle_in      from that masking, where the idle thread is next, or from the last sleep, to sleep
//   idle_out     from sleep to the scheduler
//   idle_direct  from that masking to the scheduler, where idle did not come to sleep
//   scheduler    from a point that found it needed, or from its call, until the next thread runs
//                preemptibly; on kernels that do not preempt, until the scheduler returns
//   to_user      from there until the woken thread reads the counter in user mode
//
// and what interrupts take in windows of any length. docs/linux-bound.md has the theorem that they
// are for.
//
// Nothing here knows QEMU. Instructions count as 1 ns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "interference_curve.hpp"

namespace latenz::probe {

enum class Term : std::uint8_t {
  blocking,
  switching,
  idle_in,
  idle_out,
  idle_direct,
  scheduler,
  to_user
};
inline constexpr std::size_t terms = 7;
inline constexpr std::array<const char*, terms> term_names{
    "blocking", "switching", "idle_in", "idle_out", "idle_direct", "scheduler", "to_user"};

/// Where something happened: the instruction, and where its function returns to.
struct Place {
  std::uint64_t address = 0;
  std::uint64_t caller = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

/// Where a window began and ended.
struct Site {
  Place begin;
  Place end;
  friend bool operator==(const Site&, const Site&) = default;
};

struct SiteHash {
  std::size_t operator()(const Site& site) const {
    std::size_t hash = 0;
    for (const std::uint64_t part :
         {site.begin.address, site.begin.caller, site.end.address, site.end.caller}) {
      hash = (hash ^ part) * 0x9e3779b97f4a7c15ULL;
      hash ^= hash >> 29U;
    }
    return hash;
  }
};

/// What is known of the windows of one kind.
struct Longest {
  std::uint64_t n = 0;
  std::uint64_t ns = 0;
  Site site;
};

/// A thread as the kernel describes it.
struct Task {
  std::uint64_t address = 0;
  std::int32_t pid = 0;
  std::int32_t priority = 0;  ///< the kernel's own: 0 to 98 are real-time, less is more
  std::uint32_t preempt_count = 0;
  std::string name;
};

/// A wake-up of the measured thread.
struct WakeUp {
  std::uint64_t due_ns;      ///< as the counter has it
  std::uint64_t latency_ns;  ///< until it ran
};

/// Wake-ups one after the other, with the longest windows between the first and the last of them.
struct Segment {
  static constexpr std::size_t steps = 32;
  std::uint64_t wake_ups = 0;
  std::uint64_t longest_latency = 0;
  std::array<std::uint64_t, terms> longest{};
  Staircase interference{steps};

  void take(const Segment& later);
};

/// What another thread did that the theorem does not allow for.
struct Rival {
  std::string name;
  std::int32_t priority;
  std::uint64_t times;
};

/// An interrupt's executions.
struct InterruptSource {
  ExecutionWindow window;
  std::uint64_t longest = 0;
  Staircase interference{64};
};

struct KernelSettings {
  bool preemptible = true;          ///< PREEMPT_RT or PREEMPT; false: NONE or VOLUNTARY
  std::int32_t priority = 0;        ///< of the measured thread, as the kernel has it
  std::size_t most_sites = 20'000;  ///< of each kind
};

class KernelWindows {
 public:
  static constexpr std::size_t most_segments = 256;

  explicit KernelWindows(KernelSettings settings) : settings_(settings) {}

  // What the CPU does. `now`: instructions executed before; never less than in an earlier event.

  /// The vector of an interrupt.
  void interrupt_entered(std::uint64_t now);
  /// The vector of any other exception.
  void exception_entered(std::uint64_t now, bool from_user, Place place);
  /// An exception returns.
  void returned(std::uint64_t now, bool to_user, bool interrupts_on, Place place);
  /// Interrupts are masked or not from here on.
  void masked(std::uint64_t now, bool interrupts_on, Place place);
  /// The preemption count of the running thread is written.
  void counted(std::uint64_t now, std::uint32_t count, Place place);
  /// The kernel looks whether the count is 0 and the scheduler needed, to call it then.
  void tested(std::uint64_t now, std::uint32_t count, bool needed, Place place);
  /// The same in the scheduler's own loop, or on the way to user mode, where the count is known.
  void loop_tested(std::uint64_t now, bool needed, Place place);
  /// An interrupt in the kernel goes on as a thread, which calls the scheduler.
  void preempts_kernel(std::uint64_t now, Place place);
  /// On the way to user mode, of an interrupt or of a thread, there is other work to do.
  void works_before_user(std::uint64_t now, bool needed, Place place);
  /// The scheduler is called; `in_memory`: the preemption count, as memory has it.
  void schedule_called(std::uint64_t now, std::optional<std::uint32_t> in_memory, Place place);
  void schedule_returned(std::uint64_t now, Place place);
  /// Another thread is the running one.
  void switched(const Task& task);
  /// The CPU is to sleep until an interrupt is pending.
  void waits(std::uint64_t now, Place place);
  /// The counter of time was read. It runs as instructions do; what is more was sleep.
  void counter_read(std::uint64_t now, std::uint64_t counter_ns);
  /// The running program reads the counter in user mode.
  void user_read_counter(std::uint64_t now, Place place);
  /// The interrupt that is handled is this one.
  void interrupt_named(std::uint64_t hwirq);
  /// A timer's handler wakes a thread that was due at a time of the counter.
  void wake_up(const Task& task, std::uint64_t due_ns);
  /// Something was not understood; what comes before the first wake-up does not matter.
  void lost(const char* what) { lost_[what] += observing() ? 1U : 0U; }

  // What was found.

  [[nodiscard]] std::uint64_t thread_time(std::uint64_t now) const {
    return now - interrupt_time_ - (frames_.empty() ? 0 : now - outer_begin_);
  }
  [[nodiscard]] std::uint64_t interrupt_time(std::uint64_t now) const {
    return now - thread_time(now);
  }
  /// The counter's time.
  [[nodiscard]] std::uint64_t time_ns(std::uint64_t now) const { return now + offset_; }
  [[nodiscard]] std::uint64_t slept_ns() const { return slept_; }
  [[nodiscard]] std::uint64_t wake_ups() const { return wake_ups_; }
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  [[nodiscard]] const Longest& longest(Term term) const {
    return longest_.at(static_cast<std::size_t>(term));
  }
  [[nodiscard]] const std::map<std::uint64_t, InterruptSource>& sources() const { return sources_; }
  [[nodiscard]] const ExecutionWindow& executions() const { return executions_; }
  [[nodiscard]] std::uint64_t longest_execution() const { return longest_execution_; }
  [[nodiscard]] const Staircase& interference() const { return interference_; }
  [[nodiscard]] std::string report(std::uint64_t now) const;

  static constexpr std::uint64_t no_source = ~std::uint64_t{0};

 private:
  struct Frame {
    bool is_interrupt;
    std::uint64_t begin;    ///< instructions
    std::uint64_t resumed;  ///< since when it runs itself
    std::uint64_t own = 0;  ///< before that
    std::uint64_t source = no_source;
  };
  struct Execution {
    std::uint64_t begin_ns;
    std::uint64_t own;
    std::uint64_t source;
  };
  struct Window {
    std::uint64_t begin;
    Place place;
    Term term;
    bool owed;  ///< an interrupt may have been taken that nobody has looked at since
  };
  struct Count {
    std::uint64_t n = 0;
    std::uint64_t longest = 0;
    std::uint64_t first_wake_up = 0;
  };
  struct Found {
    Term term;
    std::uint64_t ns;
    Site site;
  };

  [[nodiscard]] bool observing() const { return wake_ups_ > 0; }
  [[nodiscard]] bool in_thread() const { return frames_.empty(); }
  [[nodiscard]] bool is_idle() const { return current_.pid == 0 && current_.address != 0; }
  [[nodiscard]] bool can_be_preempted() const {
    return in_user_ || (settings_.preemptible && interrupts_on_ && current_.preempt_count == 0);
  }
  void push(std::uint64_t now, bool is_interrupt);
  void pop(std::uint64_t now);
  void finish_execution(const Frame& frame);
  void update(std::uint64_t now, Place place);
  void point(std::uint64_t now, bool needed, Place place);
  void close(std::uint64_t now, Place place);
  void scheduler_done(std::uint64_t now, Place place);
  void woken_runs(std::uint64_t now);
  void record(Term term, std::uint64_t ns, Site site);
  void leave_interrupts(std::uint64_t now);
  void commit();

  KernelSettings settings_;
  Task current_;
  bool interrupts_on_ = false;
  bool in_user_ = false;
  std::vector<Frame> frames_;
  std::uint64_t outer_begin_ = 0;
  std::uint64_t interrupt_time_ = 0;
  std::uint64_t offset_ = 0;
  std::uint64_t slept_ = 0;
  bool clock_known_ = false;
  std::uint64_t counter_read_ = 0;      ///< when it was, last
  std::uint64_t repeated_ = 0;          ///< instructions that were counted twice
  std::uint64_t waits_ = 0;             ///< since the counter was last read
  std::size_t recent_before_wait_ = 0;  ///< executions that ended before the first of them
  std::uint64_t untimed_ = 0;           ///< sleep that is left out of the distances of executions

  std::optional<Window> window_;
  bool enabling_needed_ = false;  ///< the count is about to be 0, which was seen to need a switch
  // The scheduler: since when, in T-time, and where the point or the call was.
  std::optional<std::uint64_t> needed_since_;
  Place needed_place_;
  bool in_schedule_ = false;
  bool masked_in_schedule_ = false;
  bool waits_at_choice_ = false;  ///< the woken thread may be chosen, and nobody has been
  std::uint64_t masked_since_ = 0;
  Place masked_place_;
  std::optional<std::uint64_t> scheduling_since_;
  Place scheduling_place_;
  // Idle
  std::uint64_t idle_since_ = 0;
  Place idle_place_;
  bool slept_in_idle_ = false;
  std::uint64_t sleep_began_ = 0;
  Place sleep_place_;
  // The measured thread
  struct Pending {
    Task task;
    std::uint64_t due_ns;
  };
  std::optional<Pending> pending_;
  std::optional<std::int32_t> measured_;
  std::optional<std::uint64_t> running_since_;  ///< T-time since it ran after a wake-up
  std::uint64_t wake_ups_ = 0;

  std::vector<Found> found_;        ///< since the last wake-up
  std::vector<Task> rivals_found_;  ///< since then
  std::uint64_t passed_over_found_ = 0;
  std::uint64_t other_priority_found_ = 0;
  std::vector<Execution> recent_;  ///< executions since then
  Segment open_;                   ///< what the open segment holds
  std::vector<Segment> segments_;
  std::size_t segment_length_ = 1;
  std::array<Longest, terms> longest_{};
  std::array<std::unordered_map<Site, Count, SiteHash>, terms> sites_;
  std::array<std::array<std::uint64_t, 65>, terms> histogram_{};
  ExecutionWindow executions_;
  std::uint64_t longest_execution_ = 0;
  Staircase interference_{256};
  std::map<std::uint64_t, InterruptSource> sources_;
  std::vector<WakeUp> latest_;  ///< the wake-ups with the longest latencies
  std::array<std::uint64_t, 65> latency_histogram_{};

  // Whether the theorem's conditions held.
  std::uint64_t wrong_counts_ = 0;
  std::uint64_t schedules_ = 0;
  std::uint64_t preempted_in_kernel_ = 0;
  std::uint64_t passed_over_ = 0;
  std::uint64_t missed_ = 0;
  std::uint64_t began_observing_ = 0;
  std::uint64_t ended_observing_ = 0;
  std::map<std::int32_t, Rival> rivals_;
  std::map<std::string, std::uint64_t> lost_;
};

}  // namespace latenz::probe
